/** A run: the planned calls, asked of a circuit one by one. Which of them it lets through is the core's to say, and nothing else is. */

import type { Circuit, Snapshot, Transition } from "../core";
import { type Call, isCall, type Outcome, planCalls } from "./plan";
import type { HandControl, Setup } from "./setup";

/** Something that happened: a call asked to begin, one ended, or somebody took control. */
export type Happening =
  | { readonly kind: "ask"; readonly call: Call; readonly answer: Granted | Refused }
  | { readonly kind: "end"; readonly call: Call; readonly probe: boolean; readonly status: "applied" | "stale" }
  | { readonly kind: "control"; readonly operation: HandControl };

/** A happening with its moment, and what it did to the state. */
export type Event = Happening & { readonly at: number; readonly transition: Transition | null };

export interface Granted {
  readonly allowed: true;
  readonly permit: number;
  readonly probe: boolean;
}

export interface Refused {
  readonly allowed: false;
  /** Milliseconds; null if unknown. */
  readonly retryAfterMs: number | null;
}

/** What the circuit looked like at a moment: for the graphs. */
export interface Sample {
  readonly at: number;
  readonly snapshot: Snapshot;
}

/** A whole run, which no one changes any more. */
export interface Run {
  readonly setup: Setup;
  readonly calls: readonly Call[];
  readonly events: readonly Event[];
  /** In the order of their times: at regular moments, and after each event that may have changed what is counted. */
  readonly samples: readonly Sample[];
}

/** Makes a closed circuit by a policy. */
export type MakeCircuit = (policy: Setup["policy"]) => Circuit;

/** Regular samples of a run. */
const SAMPLES = 480;

/**
 * Runs a set-up to its end.
 * @throws what the core says of the policy
 */
export function runSetup(setup: Setup, make: MakeCircuit): Run {
  const calls = planCalls(setup);
  const circuit = make(setup.policy);
  const events: Event[] = [];
  const samples: Sample[] = [];
  const look = (at: number) => samples.push({ at, snapshot: circuit.snapshot(at) });
  const { lengthMs } = setup.load;
  const step = lengthMs / SAMPLES;
  const granted = new Map<number, Granted>();
  let regular = 0;
  const lookUntil = (at: number) => {
    for (; regular <= SAMPLES && Math.round(regular * step) < at; regular++) look(Math.round(regular * step));
  };
  for (const item of agendaOf(setup, calls)) {
    if (item.kind === "end" && !granted.has(item.call.id)) continue;
    lookUntil(item.at);
    const event = happen(circuit, item, granted);
    events.push(event);
    if (event.transition !== null || event.kind === "control" || isFailure(event)) look(item.at);
  }
  lookUntil(lengthMs + 1);
  circuit.free();
  return { setup, calls, events, samples };
}

/**
 * A circuit that goes through a run event by event, to and fro. Going back is going there from the beginning: what is seen at a
 * place never depends on the way to it.
 */
export class Replay {
  private circuit: Circuit;
  private done = 0;

  constructor(
    private readonly run: Run,
    private readonly make: MakeCircuit,
  ) {
    this.circuit = make(run.setup.policy);
  }

  /** The circuit after that many events. Whoever gets it only looks. */
  after(count: number): Circuit {
    if (count < this.done) {
      this.circuit.free();
      this.circuit = this.make(this.run.setup.policy);
      this.done = 0;
    }
    for (; this.done < count; this.done++) this.repeat(this.run.events[this.done] as Event);
    return this.circuit;
  }

  free(): void {
    this.circuit.free();
  }

  private repeat(event: Event): void {
    switch (event.kind) {
      case "ask":
        this.circuit.ask(event.at);
        break;
      case "end":
        this.circuit.settle(event.at, event.call.outcome, this.permitOf(event.call));
        break;
      case "control":
        this.circuit.control(event.at, event.operation);
    }
  }

  private readonly permits = new Map<number, number>();

  private permitOf(call: Call): number {
    if (this.permits.size === 0) {
      for (const event of this.run.events) {
        if (event.kind === "ask" && event.answer.allowed) this.permits.set(event.call.id, event.answer.permit);
      }
    }
    return this.permits.get(call.id) as number;
  }
}

/** How many events have happened by a moment, those of that very moment included. */
export function eventsBy(run: Run, at: number): number {
  let [low, high] = [0, run.events.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((run.events[middle] as Event).at <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

type Item =
  | { readonly kind: "ask" | "end"; readonly at: number; readonly call: Call }
  | { readonly kind: "control"; readonly at: number; readonly operation: HandControl };

/** All that may happen, in order: at one moment first what ends, then what somebody does to the circuit, then what begins. */
function agendaOf({ acts, load }: Setup, calls: readonly Call[]): Item[] {
  const items: Item[] = calls.flatMap((call) => [
    { kind: "ask", at: call.at, call } as const,
    { kind: "end", at: call.endsAt, call } as const,
  ]);
  for (const act of acts) {
    if (!isCall(act)) items.push({ kind: "control", at: act.at, operation: act.do as HandControl });
  }
  const rank = { end: 0, control: 1, ask: 2 };
  return items
    .filter(({ at }) => at <= load.lengthMs)
    .sort((a, b) => a.at - b.at || rank[a.kind] - rank[b.kind] || idOf(a) - idOf(b));
}

function idOf(item: Item): number {
  return item.kind === "control" ? 0 : item.call.id;
}

function happen(circuit: Circuit, item: Item, granted: Map<number, Granted>): Event {
  const { at } = item;
  if (item.kind === "control") {
    circuit.control(at, item.operation);
    return { kind: "control", at, operation: item.operation, transition: circuit.transition() };
  }
  const { call } = item;
  if (item.kind === "ask") {
    const answer = circuit.ask(at);
    if (answer.allowed) granted.set(call.id, answer);
    return { kind: "ask", at, call, answer, transition: circuit.transition() };
  }
  const { permit, probe } = granted.get(call.id) as Granted;
  const status = circuit.settle(at, call.outcome, permit);
  return { kind: "end", at, call, probe, status, transition: circuit.transition() };
}

function isFailure(event: Event): boolean {
  const failure: Outcome = "recordFailure";
  return event.kind === "end" && event.call.outcome === failure;
}
