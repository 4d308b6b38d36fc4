/** The circuits that an adapter of an HTTP client asks: its own, one per origin, or those of a group that it was given. */

import type { CircuitBreaker } from "./breaker";
import { optionsOf, outOfRange } from "./config";
import type { DistributedCircuitBreaker } from "./distributed";
import type { DistributedCircuitBreakerGroup } from "./distributed-group";
import { ConfigError } from "./error";
import type { CircuitBreakerGroup } from "./group";
import { HttpCall, type HttpRules } from "./http";
import {
  checkedOrigin,
  type OriginOptions,
  Origins,
  RETRY_AFTER_OPTIONS,
  type RetryAfterOptions,
  retryAfterRules,
} from "./origins";
import { isThenable } from "./thenable";
import type { Awaitable, Events } from "./types";

/** The circuits of a group, local or shared, in place of circuits of the adapter's own. */
export interface GroupOptions<G extends AnyGroup = AnyGroup> extends RetryAfterOptions {
  /**
   * The group whose circuits guard: that of an origin has the origin as its key. It has the policy; of that, what says something
   * of a function's result or ends its call (`isFailureResult`, `slowCallMs`, `timeoutMs`) has nothing to say here, and `isFailure`
   * can only take out of what HTTP counts: for a status it is given an error with that `status`.
   */
  group: G;
}

/** A group of either kind. */
export type AnyGroup = CircuitBreakerGroup | DistributedCircuitBreakerGroup;

/** What an adapter offers beside what its client asks of it. */
export interface Circuits<B extends AnyBreaker> {
  /**
   * The circuit of an origin (`https://api.example.com`), made if there is none. An address of that origin will do.
   * @throws {@link ConfigError} for what is no such address; {@link NameError}
   */
  for(origin: string): B;
  /**
   * Listens to an event of all circuits, present and future: see `CircuitBreaker.on`.
   * @returns a function that stops listening
   */
  on<K extends keyof Events>(event: K, fn: (e: Events[K]) => void): () => void;
}

/** A breaker of either kind. */
export type AnyBreaker = CircuitBreaker | DistributedCircuitBreaker;

/** Asks the circuit of an origin, and says what else the adapter's options said. */
export interface HttpCircuits extends Circuits<AnyBreaker> {
  /** The further options that were given, unchecked. */
  readonly extra: Readonly<Record<string, unknown>>;
  /**
   * Asks for one request: at once where the circuit is local.
   * @throws {@link CircuitOpenError}; {@link StoreUnavailableError}; {@link TimeError} if a clock fails
   */
  ask(origin: string): Awaitable<HttpCall>;
}

/**
 * @param options - as the user gave them
 * @param more - the names of further options that the adapter takes
 * @param named - which circuit somebody means who names an origin; throws for what is none
 * @throws {@link ConfigError} naming the option, the value and what is valid
 */
export function httpCircuits(
  options: OriginOptions | GroupOptions,
  more: readonly string[],
  named: (origin: unknown) => string = checkedOrigin,
): HttpCircuits {
  const given = (options as GroupOptions | null)?.group;
  if (given === undefined) {
    const origins = new Origins(options, ["group", ...more]);
    return circuitsOf(origins, origins.events, origins.rules, origins.extra, named);
  }
  const taken = ["group", ...RETRY_AFTER_OPTIONS, ...more];
  for (const name of Object.keys(options)) {
    if (taken.includes(name) || (options as unknown as Record<string, unknown>)[name] === undefined) continue;
    throw new ConfigError(`\`${name}\` goes with no \`group\`: give it to the group`, name);
  }
  const extra = optionsOf("options", options, Object.keys(options));
  // By shape: one of another build of this package is as good.
  if (typeof given?.for !== "function" || typeof given.on !== "function") {
    throw outOfRange("group", "a CircuitBreakerGroup or a DistributedCircuitBreakerGroup", given);
  }
  // Who is one circuit for a fleet, or has one policy for all, is not stretched by half.
  return circuitsOf(given, given, { ...retryAfterRules(extra), openJitter: 0 }, extra, named);
}

function circuitsOf(
  group: { for(origin: string): AnyBreaker },
  events: Pick<Circuits<AnyBreaker>, "on">,
  rules: HttpRules,
  extra: HttpCircuits["extra"],
  named: (origin: unknown) => string,
): HttpCircuits {
  return {
    extra,
    for: (origin) => group.for(named(origin)),
    on: (event, fn) => events.on(event, fn),
    ask(origin) {
      const permit = group.for(origin).acquire();
      return isThenable(permit)
        ? (permit as Promise<Awaited<typeof permit>>).then((permit) => new HttpCall(group, origin, permit, rules))
        : new HttpCall(group, origin, permit, rules);
    },
  };
}
