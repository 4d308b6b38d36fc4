/** What an application holds, as Nest's container knows it. */

import type { Type } from "@nestjs/common";
import type { ModulesContainer } from "@nestjs/core";
import { isThenable } from "../thenable";
import type { Circuits } from "./circuits";

/** A module as Nest knows it. */
export type Module = ModulesContainer extends Map<string, infer M> ? M : never;
/** A provider as Nest knows it. */
export type Wrapper = Module["providers"] extends Map<unknown, infer W> ? W : never;
type Factory = (...args: unknown[]) => unknown;

/** The part of an application that has its circuits from one import of the module: all of it, where that is global. */
export class Home {
  private readonly self = new WeakRef(this);
  private left = false;

  /**
   * @param modules - those of the application that the import is visible to; some may be loaded later
   * @param circuits - of the import
   */
  constructor(
    private readonly modules: () => readonly Module[],
    readonly circuits: Circuits,
  ) {
    homes.add(this.self);
  }

  /** Nobody looks here any more. */
  leave(): void {
    this.left = true;
    homes.delete(this.self);
  }

  /** Whether the application was closed. */
  get hasLeft(): boolean {
    return this.left;
  }

  /** The classes of all providers, controllers and so on; of what a factory makes nobody knows the class before. */
  *classes(): Generator<Type> {
    for (const wrapper of wrappersOf(this.modules())) {
      if (wrapper.isFactory) continue;
      // A value is there already, and has no class of Nest's.
      const of: unknown = wrapper.isNotMetatype ? wrapper.instance?.constructor : wrapper.metatype;
      if (typeof of === "function") yield of as Type;
    }
  }

  /**
   * Has somebody see what factories make from now on, for what they make per request Nest does not keep. All of them: which are
   * of a request by what they inject, may not be asked before everything is made, for Nest would remember the answer.
   */
  watchFactories(made: (product: unknown) => void): void {
    for (const wrapper of wrappersOf(this.modules())) {
      const { metatype: make } = wrapper;
      if (wrapper.isFactory && typeof make === "function") wrapper.metatype = watched(make as Factory, made);
    }
  }

  /** Whether it is something that Nest keeps here. */
  holds(instance: object): boolean {
    for (const wrapper of wrappersOf(this.modules())) {
      if (wrapper.instance === instance) return true;
      if (wrapper.getStaticTransientInstances().some((host) => host?.instance === instance)) return true;
    }
    return false;
  }
}

/**
 * The modules of an application that see a module: by importing it, or one that exports it; a global one all of them import.
 * @param isIt - whether a module is the one
 */
export function modulesThatSee(container: ModulesContainer, isIt: (module: Module) => boolean): Module[] {
  const offers = (module: Module, seen: Set<Module>): boolean =>
    [...module.imports].some((imported) => {
      if (seen.has(imported)) return false;
      seen.add(imported);
      if (isIt(imported)) return true;
      return [...imported.imports].some(({ metatype }) => imported.exports.has(metatype)) && offers(imported, seen);
    });
  return [...container.values()].filter((module) => isIt(module) || offers(module, new Set()));
}

/** The application that something belongs to; undefined if it belongs to none that still runs. */
export function homeOf(instance: object): Home | undefined {
  for (const ref of homes) {
    const home = ref.deref();
    if (home === undefined) homes.delete(ref);
    else if (home.holds(instance)) return home;
  }
  return undefined;
}

/** Weakly: an application that nobody closes may be forgotten all the same. */
const homes = new Set<WeakRef<Home>>();

function* wrappersOf(modules: readonly Module[]): Generator<Wrapper> {
  for (const { providers, controllers, injectables, middlewares } of modules) {
    for (const wrappers of [providers, controllers, injectables, middlewares])
      yield* wrappers.values() as Iterable<Wrapper>;
  }
}

function watched(make: Factory, made: (product: unknown) => void): Factory {
  const watch = (...args: unknown[]): unknown => {
    const product = make(...args);
    const seen = (value: unknown) => {
      made(value);
      return value;
    };
    return isThenable(product) ? Promise.resolve(product).then(seen) : seen(product);
  };
  return Object.defineProperty(watch, "name", { value: make.name });
}
