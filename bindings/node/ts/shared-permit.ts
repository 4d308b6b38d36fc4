import type { Outcome } from "./call";
import { type Grant, isProbe } from "./shared";
import type { Settled } from "./types";

/** The right to one call of a shared circuit. It settles once; a second settlement does nothing and answers `duplicate`. */
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
