import type { Step } from "./format.mjs";

/** One circuit, as a runner drives it: what it answers to each operation. A permit is whatever the machine makes of it. */
export interface VectorMachine<P> {
  acquire(at: number): { permit?: P; retryAfterMs: number | null };
  /** `null`: without a permit. */
  settle(at: number, operation: string, permit: P | null): string;
  control(at: number, operation: string, forMs?: number): void;
  snapshot(at: number): object;
}

/**
 * Does a step, with the permits `kept` by label: what the machine answered, and in what that differs from what was expected.
 *
 * @throws Error if it settles with the permit of an admission that was refused
 */
export function runStep<P>(
  step: Step,
  machine: VectorMachine<P>,
  kept: Map<string, P | undefined>,
): { got: Readonly<Record<string, unknown>>; differences: string[] };
