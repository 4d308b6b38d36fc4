/** A run as a vector: the same operations at the same times, with what the core answered as what is expected. */

import type { Circuit } from "../core";
import type { Event, MakeCircuit, Run } from "./run";
import type { Step, Vector } from "./vectors";

/** What a run's first `count` events are as a vector, which every runner of the project can play. */
export function vectorOf(run: Run, count: number, make: MakeCircuit): Vector {
  const circuit = make(run.setup.policy);
  const permits = new Map<number, number>();
  const steps = run.events.slice(0, count).map((event) => stepOf(event, circuit, permits));
  circuit.free();
  return {
    name: "a run of the playground",
    about: "Each call as it was asked for and as it ended, with the answers of the core.",
    config: run.setup.policy,
    steps,
  };
}

function stepOf(event: Event, circuit: Circuit, permits: Map<number, number>): Step {
  const { at } = event;
  if (event.kind === "control") {
    circuit.control(at, event.operation);
    return { at, do: event.operation, expect: { ...circuit.snapshot(at) } };
  }
  const { id, outcome } = event.call;
  if (event.kind === "end") {
    const status = circuit.settle(at, outcome, permits.get(id));
    return { at, do: outcome, permit: `call ${id}`, expect: { status, ...circuit.snapshot(at) } };
  }
  const answer = circuit.ask(at);
  if (!answer.allowed) {
    const { retryAfterMs } = answer;
    return { at, do: "canRequest", expect: { allowed: false, retryAfterMs, ...circuit.snapshot(at) } };
  }
  permits.set(id, answer.permit);
  return {
    at,
    do: "canRequest",
    as: `call ${id}`,
    expect: { allowed: true, retryAfterMs: 0, ...circuit.snapshot(at) },
  };
}
