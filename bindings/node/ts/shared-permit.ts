import type { Outcome } from "./classify";
import type { StoreError } from "./error";
import { GRANTED_LOCAL_PROBE, GRANTED_PROBE } from "./native-shared";
import type { Settled } from "./types";

/**
 * The right to one call of a shared circuit. It settles once; a second settlement does nothing and answers `duplicate`.
 *
 * Of a call that was admitted while closed the store hears no success under `rolling`, and no release: neither changes
 * anything, so both answer `applied` without a round trip, even if the circuit has tripped since.
 */
export interface SharedPermit {
  /** Whether it holds one of the slots of a half-open circuit. */
  readonly probe: boolean;
  /** The dependency did its work. */
  recordSuccess(): Promise<Settled>;
  /**
   * The dependency failed. With an error, `isFailure` decides whether it counts.
   * @param error - what went wrong
   */
  recordFailure(error?: unknown): Promise<Settled>;
  /** Neither: the call was cancelled, say. Frees the slot and counts nowhere. */
  release(): Promise<Settled>;
}

/** The permit that `acquire` gives. An outcome that the store did not take counts as told: it is `stale`. */
export class SharedSettleOnce implements SharedPermit {
  private settled = false;

  constructor(
    private readonly grant: Grant,
    private readonly settle: (grant: Grant, outcome: Outcome, error: unknown) => Promise<Settled>,
  ) {}

  get probe(): boolean {
    return isProbe(this.grant);
  }

  recordSuccess(): Promise<Settled> {
    return this.once("success", undefined);
  }

  recordFailure(error?: unknown): Promise<Settled> {
    return this.once("failure", error);
  }

  release(): Promise<Settled> {
    return this.once("ignored", undefined);
  }

  private async once(outcome: Outcome, error: unknown): Promise<Settled> {
    if (this.settled) return "duplicate";
    this.settled = true;
    return this.settle(this.grant, outcome, error);
  }
}

/** A permit as it crosses to the engine. */
export class Grant {
  constructor(
    readonly kind: number,
    readonly epoch: number,
    readonly counter: number,
  ) {}
}

/** No right to a call, and when to ask again: null if nobody knows. */
export class Refused {
  constructor(
    readonly state: "open" | "half-open",
    readonly retryAfterMs: number | null,
  ) {}
}

/** What comes of asking for a call; the error where the store did not answer and the circuit fails closed. */
export type Admission = Grant | Refused | StoreError;

/** Without a permit the plain rules of the current state apply. */
export const NO_GRANT = new Grant(0, 0, 0);

/** Whether a permit holds a slot of a half-open circuit, the fleet's or this process's own. */
export function isProbe(grant: Grant): boolean {
  return grant.kind === GRANTED_PROBE || grant.kind === GRANTED_LOCAL_PROBE;
}
