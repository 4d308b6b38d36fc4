/** What scenarios are told with: both kinds of breaker, their clock, and the ways to bring one where it is wanted. */
import type { Awaitable, Breaker, CircuitBreakerPolicy, Settled, StateChange } from "switchgear";
import { Deferred, type ManualClock } from "./time";

/** Both kinds of breaker give permits, each its own kind of permit. */
export interface AnyBreaker extends Breaker {
  acquire(): Awaitable<AnyPermit>;
}

interface AnyPermit {
  readonly probe: boolean;
  recordSuccess(): Awaitable<Settled>;
  recordFailure(error?: unknown): Awaitable<Settled>;
  release(): Awaitable<Settled>;
}

/** Where a scenario takes place. */
export interface World {
  readonly clock: ManualClock;
  /** Another breaker on the clock, each of a circuit of its own. */
  breaker(policy?: CircuitBreakerPolicy): AnyBreaker;
}

export type Scenario = readonly [title: string, run: (world: World) => Promise<void>];

/** A breaker that one failure has tripped, at the moment when probes are admitted. */
export async function tripped(
  make: World["breaker"],
  clock: ManualClock,
  policy?: CircuitBreakerPolicy,
): Promise<AnyBreaker> {
  const breaker = make({ failureThreshold: 1, openDurationMs: 1000, ...policy });
  await breaker.trip();
  clock.now += 1000;
  return breaker;
}

/** Starts a call, and answers when its function runs; it is in flight until the scenario ends it. */
export async function start(breaker: Breaker, options?: { signal: AbortSignal }) {
  const call = new Deferred();
  const begun = new Deferred<void>();
  const run = () => {
    begun.resolve();
    return call.promise;
  };
  const result = options === undefined ? breaker.execute(run) : breaker.execute(run, options);
  result.catch((error) => begun.reject(error));
  await begun.promise;
  return { result, resolve: call.resolve, reject: call.reject };
}

/** The changes of state that a breaker tells from now on. */
export function changesOf(breaker: Breaker): StateChange[] {
  const changes: StateChange[] = [];
  breaker.on("stateChange", (change) => changes.push(change));
  return changes;
}
