import { monotonicNow } from "./clock";
import { fromNative } from "./error";
import {
  ALLOWED_CLOSED,
  ANSWER,
  APPLIED,
  BY_HALF_OPEN,
  CLOSED_PERMIT,
  HINTS,
  type NativeBreaker,
  type NativeConfig,
  type NativeTransition,
  NO_PERMIT,
  native,
  PROBE_PERMIT,
  REFUSED,
  SUCCESS,
  TRANSITION,
} from "./native";
import type { Snapshot, State } from "./types";

/** A permit as it crosses the boundary. */
export interface Grant {
  readonly allowed: true;
  readonly kind: number;
  readonly epoch: number;
  readonly id: number;
}

/** A refusal as the core answers it. */
export interface Denial {
  readonly allowed: false;
  readonly state: "open" | "half-open";
  readonly retryAfterMs: number | null;
}

/** Settling without a permit: the plain rules of the current state apply. */
export const WITHOUT_PERMIT: Grant = { allowed: true, kind: NO_PERMIT, epoch: 0, id: 0 };

/** Whether a permit holds a slot of a half-open circuit. */
export function isProbe(grant: Grant): boolean {
  return grant.kind === PROBE_PERMIT;
}

/**
 * The native state machine of one circuit with the host's clock, and what the machine says need not be asked: while its
 * hints hold, admissions and successes cross no boundary and read no clock. The answers are the same.
 */
export class Machine {
  /** Every request is admitted, and its success changes nothing. */
  free = false;
  /** Changes with every period: what was prepared for one no longer holds in the next. */
  admitEpoch = -1;
  /** The success of a call admitted while closed changes nothing whenever it comes. */
  successIgnored = false;

  private successFree = false;
  private refuseFrom = 0;
  private refuseUntil = 0;
  private readonly core: NativeBreaker;

  /**
   * @param now - the clock, in whole milliseconds; the core checks each reading
   * @param changed - called after each transition, when it is over
   * @param refreshed - called when {@link free} or {@link admitEpoch} may have changed
   */
  constructor(
    config: NativeConfig,
    readonly now: () => number = monotonicNow,
    private readonly changed: (transition: NativeTransition) => void,
    private readonly refreshed: () => void,
  ) {
    this.core = new (native().Breaker)(config);
    this.readHints();
  }

  /**
   * Asks for one call.
   * @throws {@link TimeError}
   */
  admit(): Grant | Denial {
    if (this.admitEpoch >= 0) return { allowed: true, kind: CLOSED_PERMIT, epoch: this.admitEpoch, id: 0 };
    const now = this.now();
    // First whether it is a number at all: comparing may throw.
    if (Number.isInteger(now) && this.refuseFrom <= now && now < this.refuseUntil) {
      return { allowed: false, state: "open", retryAfterMs: this.refuseUntil - now };
    }
    const answer = this.ask(() => this.core.canRequest(now));
    const admission = this.admission(answer);
    this.follow(answer);
    return admission;
  }

  /**
   * Settles a call. Whether it counted.
   * @throws {@link TimeError}
   */
  settle(grant: Grant, outcome: number): boolean {
    // Without a permit as with the current one: applied, and nothing changes.
    if (this.free && outcome === SUCCESS && (grant.kind === NO_PERMIT || this.isCurrent(grant))) return true;
    const now = this.now();
    const answer = this.ask(() => this.core.settle(now, grant.kind, grant.epoch, grant.id, outcome));
    this.follow(answer);
    return (answer & ANSWER) === APPLIED;
  }

  /** The state as callers see it. */
  state(): State {
    return this.core.state();
  }

  /**
   * Everything the machine knows.
   * @throws {@link TimeError}
   */
  snapshot(): Snapshot {
    const now = this.now();
    return this.ask(() => this.core.snapshot(now));
  }

  /**
   * Manual control.
   * @throws {@link TimeError}; {@link ConfigError} for `forMs`
   */
  control(operation: (core: NativeBreaker, now: number) => number): void {
    const now = this.now();
    this.follow(this.ask(() => operation(this.core, now)));
  }

  private isCurrent(grant: Grant): boolean {
    return grant.kind === CLOSED_PERMIT && grant.epoch === this.admitEpoch;
  }

  /** The core's errors come as plain objects; their classes are the facade's. */
  private ask<T>(question: () => T): T {
    try {
      return question();
    } catch (error) {
      throw fromNative(error);
    }
  }

  /** Everything about an admission, before anybody else can ask the machine for something. */
  private admission(answer: number): Grant | Denial {
    const kind = answer & ANSWER;
    if (kind === REFUSED) {
      const wait = this.core.refusalWait();
      const state = (answer & BY_HALF_OPEN) === 0 ? "open" : "half-open";
      return { allowed: false, state, retryAfterMs: wait < 0 ? null : wait };
    }
    const epoch = this.core.permitEpoch();
    return { allowed: true, kind, epoch, id: kind === ALLOWED_CLOSED ? 0 : this.core.permitId() };
  }

  private follow(answer: number): void {
    const transition = (answer & TRANSITION) === 0 ? null : this.core.transition();
    if ((answer & HINTS) !== 0) {
      this.readHints();
      this.refreshed();
    }
    // Last: a listener may call the breaker, and must find it as it is now.
    if (transition !== null) this.changed(transition);
  }

  private readHints(): void {
    const hints = this.core.hints();
    this.admitEpoch = hints.admitEpoch;
    this.successFree = hints.successFree;
    this.successIgnored = hints.successIgnored;
    this.refuseFrom = hints.refuseFrom;
    this.refuseUntil = hints.refuseUntil;
    this.free = this.admitEpoch >= 0 && this.successFree;
  }
}
