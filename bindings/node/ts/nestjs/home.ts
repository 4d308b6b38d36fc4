/** What an application holds, as Nest's container knows it. */

import type { Type } from "@nestjs/common";
import type { ModulesContainer } from "@nestjs/core";
import type { Circuits } from "./circuits";

type Module = ModulesContainer extends Map<string, infer M> ? M : never;
type Wrapper = Module["providers"] extends Map<unknown, infer W> ? W : never;
type Factory = (...args: unknown[]) => unknown;

/** An application with circuits. */
export class Home {
  private readonly self = new WeakRef(this);

  /**
   * @param container - what Nest holds
   * @param circuits - of the application
   */
  constructor(
    private readonly container: ModulesContainer,
    readonly circuits: Circuits,
  ) {
    homes.add(this.self);
  }

  /** Nobody looks here any more. */
  leave(): void {
    homes.delete(this.self);
  }

  /** The classes of all providers, controllers and so on; of what a factory makes nobody knows the class before. */
  *classes(): Generator<Type> {
    for (const wrapper of wrappersOf(this.container)) {
      if (wrapper.isFactory) continue;
      // A value is there already, and has no class of Nest's.
      const of: unknown = wrapper.isNotMetatype ? wrapper.instance?.constructor : wrapper.metatype;
      if (typeof of === "function") yield of as Type;
    }
  }

  /** Has somebody see what the factories make whose products Nest does not keep. */
  watchFactories(made: (product: unknown) => void): void {
    for (const wrapper of wrappersOf(this.container)) {
      const { metatype: make } = wrapper;
      if (!wrapper.isFactory || typeof make !== "function") continue;
      if (wrapper.isDependencyTreeStatic() && !wrapper.isTransient) continue;
      const watched = async (...args: unknown[]) => {
        const product = await (make as Factory)(...args);
        made(product);
        return product;
      };
      wrapper.metatype = Object.defineProperty(watched, "name", { value: make.name });
    }
  }

  /** Whether it is something that Nest keeps. */
  holds(instance: object): boolean {
    for (const wrapper of wrappersOf(this.container)) {
      if (wrapper.instance === instance) return true;
      if (wrapper.getStaticTransientInstances().some((host) => host?.instance === instance)) return true;
    }
    return false;
  }
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

function* wrappersOf(container: ModulesContainer): Generator<Wrapper> {
  for (const { providers, controllers, injectables, middlewares } of container.values()) {
    for (const wrappers of [providers, controllers, injectables, middlewares])
      yield* wrappers.values() as Iterable<Wrapper>;
  }
}
