import { BREAKER_POLICY, fieldValue, readPolicy } from "./config";
import { fromNative } from "./error";
import { ANSWER, APPLIED, FAILURE, type NativeBreaker, NO_PERMIT, native, REFUSED, RELEASE, SUCCESS } from "./native";
import type { CircuitBreakerPolicy, Settled, Snapshot, State } from "./types";

/** A permit of a {@link CircuitBreakerState}: it settles once. Each `now` is in whole milliseconds, 0 to 2^52. */
export interface StatePermit {
  /** The dependency did its work. */
  recordSuccess(now: number): Settled;
  /** The dependency failed. */
  recordFailure(now: number): Settled;
  /** Neither; frees the slot. */
  release(now: number): Settled;
}

/**
 * The state machine alone: no clock, no promises, no events. Every call that depends on time takes `now` in whole
 * milliseconds, 0 to 2^52, and the same calls give the same answers, here as in every other host. For simulations, for
 * tests, and for building something else on it.
 *
 * Of a policy it uses what concerns the machine; the options about running functions are checked and have no effect.
 */
export class CircuitBreakerState {
  private readonly core: NativeBreaker;

  /**
   * @param policy - how it behaves; every option has a default
   * @throws {@link ConfigError} naming the option, the value and what is valid
   */
  constructor(policy?: CircuitBreakerPolicy) {
    this.core = new (native().Breaker)(readPolicy([policy], BREAKER_POLICY).config);
  }

  /**
   * Whether a call may go ahead. In a half-open circuit it takes a slot.
   * @throws {@link TimeError}
   */
  canRequest(now: number): boolean {
    return asked(() => (this.core.canRequest(now) & ANSWER) !== REFUSED);
  }

  /**
   * A call succeeded. Whether that counted.
   * @throws {@link TimeError}
   */
  recordSuccess(now: number): Settled {
    return this.settle(now, NO_PERMIT, 0, 0, SUCCESS);
  }

  /**
   * A call failed. Whether that counted.
   * @throws {@link TimeError}
   */
  recordFailure(now: number): Settled {
    return this.settle(now, NO_PERMIT, 0, 0, FAILURE);
  }

  /**
   * A call ended neutrally. Whether that counted.
   * @throws {@link TimeError}
   */
  release(now: number): Settled {
    return this.settle(now, NO_PERMIT, 0, 0, RELEASE);
  }

  /**
   * Asks for a call and gives the permit to settle it with; null if it was refused.
   * @throws {@link TimeError}
   */
  acquire(now: number): StatePermit | null {
    const kind = asked(() => this.core.canRequest(now)) & ANSWER;
    if (kind === REFUSED) return null;
    const epoch = this.core.permitEpoch();
    const id = this.core.permitId();
    let settled = false;
    const once = (at: number, outcome: number): Settled => {
      if (settled) return "duplicate";
      const answer = this.settle(at, kind, epoch, id, outcome);
      settled = true;
      return answer;
    };
    return {
      recordSuccess: (at) => once(at, SUCCESS),
      recordFailure: (at) => once(at, FAILURE),
      release: (at) => once(at, RELEASE),
    };
  }

  /**
   * How many milliseconds a call would have to wait: 0 if it would be admitted, null if that is unknown (forced open).
   * Changes nothing.
   * @throws {@link TimeError}
   */
  retryAfterMs(now: number): number | null {
    const wait = asked(() => this.core.retryAfter(now));
    return wait < 0 ? null : wait;
  }

  /** The state as callers see it. Changes nothing. */
  getState(): State {
    return this.core.state();
  }

  /**
   * Everything it knows. Changes nothing.
   * @throws {@link TimeError}
   */
  snapshot(now: number): Snapshot {
    return asked(() => this.core.snapshot(now));
  }

  /**
   * Closes and forgets everything.
   * @throws {@link TimeError}
   */
  reset(now: number): void {
    asked(() => this.core.reset(now));
  }

  /**
   * Opens now, also when it is open already; recovers as usual.
   * @param forMs - how long it stays open, in milliseconds; by default as long as after any other trip
   * @throws {@link TimeError}; {@link ConfigError} for `forMs`
   */
  trip(now: number, forMs?: number): void {
    const field = forMs === undefined ? undefined : fieldValue("forMs", forMs);
    asked(() => this.core.trip(now, field));
  }

  /**
   * Refuses every call until {@link reset} or {@link trip}.
   * @throws {@link TimeError}
   */
  forceOpen(now: number): void {
    asked(() => this.core.forceOpen(now));
  }

  /**
   * Admits every call and counts none until {@link reset} or {@link trip}.
   * @throws {@link TimeError}
   */
  disable(now: number): void {
    asked(() => this.core.disable(now));
  }

  private settle(now: number, kind: number, epoch: number, id: number, outcome: number): Settled {
    const answer = asked(() => this.core.settle(now, kind, epoch, id, outcome));
    return (answer & ANSWER) === APPLIED ? "applied" : "stale";
  }
}

function asked<T>(question: () => T): T {
  try {
    return question();
  } catch (error) {
    throw fromNative(error);
  }
}
