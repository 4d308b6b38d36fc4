/** A decorated method: one function for all decorators of ours that stand beside it, which act by their order. */

import "reflect-metadata";
import { Observable } from "rxjs";
import { outOfRange } from "../config";
import { circuitsOf } from "./bind";
import type { Circuits } from "./circuits";

/** A call, on its way inward. */
export type Step = (self: unknown, args: unknown[]) => unknown;

/** What a method gives; of a plain function its first call says so, where its declared type does not. */
export type Gives = "unknown" | "promise" | "observable" | "generator" | "async generator";

/** What one decorator adds to a method. */
export interface Aspect {
  /** The lower, the further outside. Of two alike the one that stands above is outside. */
  readonly order: number;
  /** Whether it needs the circuits of an application. */
  readonly needsCircuits: boolean;
  /** What stands beside the method, as an error says it. */
  readonly decorator: string;
  /** Says at boot what there will be for the methods of a class, or throws. */
  declare?(method: Method, circuits: Circuits, owner: NamedClass): void;
  /** Puts itself around a call. The circuits are there if it needs them. */
  around(inner: Step, method: Method, circuits: Circuits | undefined, owner: NamedClass): Step;
}

/** A class as its circuits are named after it. */
export type NamedClass = object & { readonly name: string };

/** A decorated method of a class, shared by all its instances and by those that inherit it. */
export class Method {
  /** What calls give. */
  gives: Gives;
  /** What its decorators add, the outermost first. */
  readonly aspects: Aspect[] = [];
  private readonly bare = new WeakMap<object, Step>();
  private readonly bound = new WeakMap<Circuits, WeakMap<object, Step>>();

  /**
   * @param original - the function that was decorated
   * @param declaring - the class whose method it is
   * @param key - what it is called
   * @param declared - the type that its result was declared with, where the compiler has kept it
   */
  constructor(
    private readonly original: (...args: unknown[]) => unknown,
    readonly declaring: NamedClass,
    readonly key: string | symbol,
    declared: unknown,
  ) {
    this.gives = givenBy(original, declared);
  }

  /**
   * The class that the circuit of an instance's method is called after: its own. But the declaring one where its own has no name,
   * and where it has another decorated method of this name, which calls this one by `super`.
   */
  classFor(owner: NamedClass): NamedClass {
    const isHidden = outermost(owner, this.key) !== this;
    return owner.name === "" || isHidden ? this.declaring : owner;
  }

  /** `Class.method`, as an instance of the class has it. */
  nameIn(owner: NamedClass): string {
    const key = typeof this.key === "symbol" ? (this.key.description ?? "") : this.key;
    return `${this.classFor(owner).name}.${key}`;
  }

  /** Adds what a decorator says. */
  add(aspect: Aspect): void {
    // The one above comes later, and of two alike is to be outside.
    this.aspects.unshift(aspect);
    this.aspects.sort((one, other) => one.order - other.order);
  }

  /** Says at boot what there will be for a class. */
  declare(circuits: Circuits, owner: NamedClass): void {
    for (const aspect of this.aspects) aspect.declare?.(this, circuits, owner);
  }

  /** Makes what calls on instances of a class go through, before the first of them. */
  prepare(circuits: Circuits, owner: NamedClass): void {
    this.through(circuits, owner);
  }

  /** Calls the method through all aspects. */
  call(self: unknown, args: unknown[]): unknown {
    const circuits = circuitsOf(self);
    const owner = typeof self === "object" && self !== null ? (self.constructor as NamedClass) : this.declaring;
    return this.through(circuits, owner)(self, args);
  }

  private through(circuits: Circuits | undefined, owner: NamedClass): Step {
    let steps = circuits === undefined ? this.bare : this.bound.get(circuits);
    if (steps === undefined) {
      steps = new WeakMap();
      this.bound.set(circuits as Circuits, steps);
    }
    let step = steps.get(owner);
    if (step === undefined) {
      step = this.composed(circuits, owner);
      steps.set(owner, step);
    }
    return step;
  }

  private composed(circuits: Circuits | undefined, owner: NamedClass): Step {
    const outside = this.aspects.find(({ needsCircuits }) => needsCircuits && circuits === undefined);
    if (outside !== undefined) return this.refusing(outside, owner);
    const { original } = this;
    const innermost: Step = (self, args) => original.apply(self, args);
    return this.aspects.reduceRight((inner, aspect) => aspect.around(inner, this, circuits, owner), innermost);
  }

  /** Rather than let a call through unguarded. */
  private refusing({ decorator }: Aspect, owner: NamedClass): Step {
    return () => {
      const error = new Error(
        `\`${this.nameIn(owner)}\` has ${decorator} and was called on an object that is in no running Nest application; let Nest make it, with CircuitBreakerModule.forRoot() imported, in a unit test by Test.createTestingModule`,
      );
      if (this.gives === "promise") return Promise.reject(error);
      throw error;
    };
  }
}

/**
 * Adds an aspect to a method, and puts the one function in its place that calls it through all of them. What other decorators keep
 * at the function, below or above, stays.
 * @throws TypeError where there is no method of a class
 */
export function decorate(aspect: Aspect, target: object, key: unknown, descriptor: unknown): Method {
  const { decorator } = aspect;
  if (typeof key === "object") {
    throw new TypeError(`${decorator} is a decorator as Nest has them: set experimentalDecorators for the compiler`);
  }
  const place = descriptor as TypedPropertyDescriptor<(...args: unknown[]) => unknown> | undefined;
  const original = place?.value;
  if (typeof target !== "object" || typeof original !== "function" || place === undefined) {
    throw new TypeError(
      `${decorator} must stand before a method of a class, and not before ${String(key)}, which is none`,
    );
  }
  const known = methods.get(original);
  if (known !== undefined) {
    known.add(aspect);
    return known;
  }
  const name = key as string | symbol;
  const declared: unknown = Reflect.getOwnMetadata("design:returntype", target, name);
  const method = new Method(original, target.constructor, name, declared);
  method.add(aspect);
  const replacement = function (this: unknown, ...args: unknown[]): unknown {
    return method.call(this, args);
  };
  likeTheOriginal(original, replacement);
  methods.set(replacement, method);
  const own = byPrototype.get(target) ?? [];
  byPrototype.set(target, [...own, method]);
  place.value = replacement;
  return method;
}

/** The decorated methods of a class, inherited ones too, but for those that a class on the way has written anew. */
export function methodsOf(owner: { readonly prototype?: unknown }): Method[] {
  const found: Method[] = [];
  const seen = new Set<string | symbol>();
  for (let of: unknown = owner.prototype; typeof of === "object" && of !== null; of = Object.getPrototypeOf(of)) {
    found.push(...(byPrototype.get(of) ?? []).filter(({ key }) => !seen.has(key)));
    for (const key of Reflect.ownKeys(of)) seen.add(key);
  }
  return found;
}

/**
 * Where a decorator stands.
 * @throws {@link ConfigError}
 */
export function checkedOrder(order: unknown, byDefault: number): number {
  if (order === undefined) return byDefault;
  if (typeof order !== "number" || !Number.isFinite(order)) throw outOfRange("order", "a number", order);
  return order;
}

/** The decorated method of this name that an instance of a class comes to first; of two decorated ones the more derived. */
function outermost(owner: NamedClass, key: string | symbol): Method | undefined {
  for (let of: unknown = (owner as { prototype?: unknown }).prototype; of; of = Object.getPrototypeOf(of)) {
    const own = byPrototype.get(of)?.findLast((method) => method.key === key);
    if (own !== undefined) return own;
  }
  return undefined;
}

/** By the function that stands in the class. */
const methods = new WeakMap<object, Method>();
const byPrototype = new WeakMap<object, readonly Method[]>();

function givenBy(original: object, declared: unknown): Gives {
  switch (Object.prototype.toString.call(original)) {
    case "[object AsyncFunction]":
      return "promise";
    case "[object AsyncGeneratorFunction]":
      return "async generator";
    case "[object GeneratorFunction]":
      return "generator";
    default:
      if (declared === Promise) return "promise";
      return isObservableClass(declared) ? "observable" : "unknown";
  }
}

function isObservableClass(declared: unknown): boolean {
  if (typeof declared !== "function") return false;
  // By its name where it is the class of another copy of rxjs.
  return declared === Observable || declared.prototype instanceof Observable || declared.name === "Observable";
}

/** Name, length, what decorators below have kept, and whatever else somebody has put there. */
function likeTheOriginal(original: (...args: unknown[]) => unknown, replacement: object): void {
  const { prototype: _, ...own } = Object.getOwnPropertyDescriptors(original);
  Object.defineProperties(replacement, own as PropertyDescriptorMap);
  for (const key of Reflect.getOwnMetadataKeys(original)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, original), replacement);
  }
}
