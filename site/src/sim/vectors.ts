/** Vectors, step by step: what is expected, what the core answers, and whether the two agree. */

import { runStep, type VectorMachine } from "../../../bindings/node/test/support/compare.mjs";
import { type Step, type Vector, vectorsOf } from "../../../bindings/node/test/support/format.mjs";
import type { Circuit, Snapshot } from "../core";

export type { Step, Vector };

/** A step that was done. */
export interface Played {
  readonly step: Step;
  /** The answer and the snapshot; null where the step could not be done. */
  readonly got: Readonly<Record<string, unknown>> | null;
  /** In what they differ, in words. */
  readonly differences: readonly string[];
  readonly snapshot: Snapshot;
}

/** A vector that was played to its end. */
export interface PlayedVector {
  readonly vector: Vector;
  readonly steps: readonly Played[];
  /** Whether every expectation holds. */
  readonly holds: boolean;
}

/** More than this would only make the page hang. The longest run is a vector of less: what the page hands out, it takes. */
export const MAX_FILE_BYTES = 20_000_000;
/** Steps of all vectors of a file together. */
const MAX_STEPS = 100_000;

/** The core's word on a configuration: throws what is wrong with it. */
export type CheckConfig = (config: Readonly<Record<string, unknown>>) => void;

/** Makes a closed circuit by a configuration. */
export type MakeCircuit = (config: Readonly<Record<string, unknown>>) => Circuit;

/**
 * The vectors of a file's text, whichever of the two shapes it has.
 * @throws Error that says where, what is there and what is valid
 */
export function readVectors(text: string, checkConfig: CheckConfig): Vector[] {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new Error(`a vector file is JSON, and this is none: ${(error as Error).message}`);
  }
  const vectors = vectorsOf(content, checkConfig);
  if (vectors.length === 0) throw new Error("`vectors`: none, so there is nothing to play");
  const steps = vectors.reduce((sum, vector) => sum + vector.steps.length, 0);
  if (steps > MAX_STEPS) throw new Error(`\`steps\`: ${steps} in all; at most ${MAX_STEPS} are played`);
  return vectors;
}

/** Plays a vector on a circuit of its own. */
export function play(vector: Vector, make: MakeCircuit): PlayedVector {
  const circuit = make(vector.config ?? {});
  const machine = driven(circuit);
  const kept = new Map<string, number | undefined>();
  const steps = vector.steps.map((step): Played => {
    try {
      const { got, differences } = runStep(step, machine, kept);
      return { step, got, differences, snapshot: circuit.snapshot(step.at) };
    } catch (error) {
      // As a settlement with the permit of an admission that was refused.
      return { step, got: null, differences: [(error as Error).message], snapshot: circuit.snapshot(step.at) };
    }
  });
  circuit.free();
  return { vector, steps, holds: steps.every(({ differences }) => differences.length === 0) };
}

function driven(circuit: Circuit): VectorMachine<number> {
  return {
    acquire(at) {
      const answer = circuit.ask(at);
      return answer.allowed ? { permit: answer.permit, retryAfterMs: 0 } : { retryAfterMs: answer.retryAfterMs };
    },
    settle: (at, operation, permit) => circuit.settle(at, operation, permit ?? undefined),
    control: (at, operation, forMs) => circuit.control(at, operation, forMs),
    snapshot: (at) => circuit.snapshot(at),
  };
}
