/** One call of a guarded method, by what the method gives. */

import { isObservable, type Observable } from "rxjs";
import type { CircuitBreaker } from "../breaker";
import { isThenable } from "../thenable";
import { Assembled } from "./assembled";
import type { AnyBreaker } from "./circuits";
import type { Method, Step } from "./method";
import { observed } from "./observed";

/** What a guarded call falls back to. */
export interface FallbackOptions {
  readonly fallback: ((this: unknown, error: unknown, ...args: unknown[]) => unknown) | undefined;
  readonly fallbackOn: "refusal" | "failure";
}

type Guard = (self: unknown, args: unknown[]) => unknown;

/**
 * A step around which there is a circuit.
 *
 * @param inner - what is guarded
 * @param method - which learns from its first call what it gives, where nothing else says so
 * @param breakerOf - the breaker of a call, given its arguments
 * @param shared - whether a breaker has to ask its store first, and so gives promises
 */
export function guardedStep(
  inner: Step,
  method: Method,
  breakerOf: (args: unknown[]) => AnyBreaker,
  shared: boolean,
  { fallback, fallbackOn }: FallbackOptions,
): Step {
  const options = (self: unknown, args: unknown[]) =>
    fallback && { fallbackOn, fallback: (error: unknown) => fallback.call(self, error, ...args) };

  const guards = new WeakMap<AnyBreaker, Guard>();
  const guardOf = (breaker: AnyBreaker, body: Guard): Guard => {
    let guard = guards.get(breaker);
    if (guard === undefined) {
      const falls =
        fallback &&
        ({
          fallbackOn,
          fallback: (error: unknown, self: unknown, args: unknown[]) => fallback.call(self, error, ...args),
        } as const);
      // Which of the two kinds of fallback it is, only the type of a literal says.
      guard = (breaker as CircuitBreaker).guard(body, falls as never) as Guard;
      guards.set(breaker, guard);
    }
    return guard;
  };

  /** What the method has given tells what it will go on to give. */
  const learn: Guard = (self, args) => {
    const value = inner(self, args);
    if (isObservable(value)) {
      method.gives = "observable";
      throw new Assembled(value);
    }
    if (isThenable(value)) method.gives = "promise";
    return value;
  };

  const stepped = function* (self: unknown, args: unknown[]) {
    return yield* inner(self, args) as Generator;
  };
  const steppedAsync = async function* (self: unknown, args: unknown[]) {
    return yield* inner(self, args) as AsyncGenerator;
  };

  const subscribed = (self: unknown, args: unknown[], first?: Observable<unknown>): Observable<unknown> =>
    observed(
      () => inner(self, args),
      () => breakerOf(args),
      options(self, args),
      first,
    );

  /** What a call gives in which it was found out that its subscriptions are the calls. */
  const unlessAssembled = (error: unknown, self: unknown, args: unknown[]): Observable<unknown> => {
    if (error instanceof Assembled) return subscribed(self, args, error.source);
    throw error;
  };

  const asynchronous = async (self: unknown, args: unknown[], body: Guard): Promise<unknown> =>
    breakerOf(args).execute(() => body(self, args), options(self, args) as never);

  return (self, args) => {
    switch (method.gives) {
      case "promise":
        return asynchronous(self, args, inner);
      case "observable":
        return subscribed(self, args);
      case "async generator":
        return guardOf(breakerOf(args), steppedAsync)(self, args);
      case "generator":
        return guardOf(breakerOf(args), stepped)(self, args);
      case "unknown":
        if (shared) return asynchronous(self, args, learn).catch((error) => unlessAssembled(error, self, args));
        try {
          return guardOf(breakerOf(args), learn)(self, args);
        } catch (error) {
          return unlessAssembled(error, self, args);
        }
    }
  };
}
