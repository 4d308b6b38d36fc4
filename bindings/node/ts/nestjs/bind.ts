/** How an instance with guarded methods comes to the circuits of its application: Nest injects them. */

import { Inject, type Type } from "@nestjs/common";
import { Circuits } from "./circuits";
import { homeOf } from "./home";

/** The hidden property. Where the module is missing, Nest's own error at boot names it, and so says what to import. */
export const CIRCUITS: unique symbol = Symbol(
  "the circuits of @WithCircuitBreaker: import CircuitBreakerModule.forRoot(...) of 'switchgear/nestjs' into the root module, or where it is not global into the module of this class",
);

/** An instance whose class has guarded methods. */
interface Guarded {
  [CIRCUITS]?: Circuits | undefined;
}

/**
 * Has Nest inject the circuits into each instance of a class, whatever its scope.
 *
 * @param prototype - of the class
 * @param bound - told of each instance, by its circuits and its class
 */
export function injectCircuits(prototype: object, bound: (circuits: Circuits, owner: Type) => void): void {
  if (CIRCUITS in prototype) return;
  Object.defineProperty(prototype, CIRCUITS, {
    get(this: object) {
      return ofClosed.get(this);
    },
    set(this: object, circuits: unknown) {
      // In a unit test somebody may inject something else: then there is nothing to go by.
      if (!(circuits instanceof Circuits)) return;
      const own = { value: circuits, configurable: true, writable: true };
      // Its own, so that whatever wraps the instance later passes it on; out of sight of who compares or prints it.
      if (!Reflect.defineProperty(this, CIRCUITS, own)) ofClosed.set(this, circuits);
      bound(circuits, this.constructor as Type);
    },
    configurable: true,
  });
  Inject(Circuits)(prototype, CIRCUITS);
}

/** The circuits that a method's `this` belongs to; undefined where no running Nest application knows it. */
export function circuitsOf(instance: unknown): Circuits | undefined {
  if (!isGuarded(instance)) return undefined;
  const known = instance[CIRCUITS];
  if (isInUse(known)) return known;
  // What is a value to Nest, or what a factory gave: into those it injects nothing.
  const circuits = homeOf(instance)?.circuits;
  if (circuits !== undefined) instance[CIRCUITS] = circuits;
  return circuits ?? known;
}

/** What a factory gave belongs to its application from now on. */
export function adopt(instance: unknown, circuits: Circuits): void {
  if (isGuarded(instance) && !isInUse(instance[CIRCUITS])) instance[CIRCUITS] = circuits;
}

/** The circuits of instances that take no further property: frozen ones, say. */
const ofClosed = new WeakMap<object, Circuits>();

/** Whether an instance has its circuits. One that outlives its application, as a value may, can come into another one. */
function isInUse(circuits: Circuits | undefined): boolean {
  return circuits !== undefined && circuits.home?.hasLeft !== true;
}

function isGuarded(instance: unknown): instance is object & Guarded {
  return typeof instance === "object" && instance !== null && CIRCUITS in instance;
}
