import type { Permit, Settled } from "./types";

/** Settles with what a permit stands for; answers whether it counted. */
type Settling = (outcome: "success" | "failure" | "ignored", error: unknown) => Settled;

/** The permit that `acquire` gives: it settles once. */
export class SettleOnce implements Permit {
  private settle: Settling | undefined;

  constructor(
    readonly probe: boolean,
    settle: Settling,
  ) {
    this.settle = settle;
  }

  recordSuccess(): Settled {
    return this.once("success", undefined);
  }

  recordFailure(error?: unknown): Settled {
    return this.once("failure", error);
  }

  release(): Settled {
    return this.once("ignored", undefined);
  }

  private once(outcome: "success" | "failure" | "ignored", error: unknown): Settled {
    const settle = this.settle;
    if (settle === undefined) return "duplicate";
    // Before settling: a listener that settles again must find it settled. But a clock that fails settles nothing.
    this.settle = undefined;
    try {
      return settle(outcome, error);
    } catch (error) {
      this.settle = settle;
      throw error;
    }
  }
}
