/** The real core, as WebAssembly: the module `objects` of bindings/wasm. Every rule of the playground is in it, and none is here. */

import type { FieldValue } from "../../bindings/node/ts/native";
import type { Snapshot, State } from "../../bindings/node/ts/types";
import * as glue from "../../bindings/wasm/dist/objects.js";
import { build } from "../../bindings/wasm/ts/values";
import type { Granted, Refused } from "./sim/run";

export type { Snapshot, State };

/** A row of the core's table of options. */
export interface Field {
  readonly name: string;
  readonly synonym: string | null;
  readonly kind: "word" | "count" | "duration" | "timer" | "age" | "share" | "factor";
  /** What a `word` may be. */
  readonly words: readonly string[];
  /** What is valid, in the words of the core's error. */
  readonly valid: string;
  /** With `of`: so many times that other field. */
  readonly default: number | string;
  readonly of: string | null;
  /** The `tripOn` that use it. */
  readonly usedBy: readonly string[];
}

/** What an operation did to the state. */
export interface Transition {
  readonly from: State;
  readonly to: State;
  readonly at: number;
  readonly reason: "threshold" | "cooldown" | "probe-failed" | "probes-succeeded" | "manual";
  readonly failures: number;
  readonly openMs: number | null;
}

/** What is wrong with an option, in the core's words. */
export interface Problem {
  readonly field: string;
  readonly message: string;
}

/** Starts the module. Once, before anything else here. */
export function startCore(module: WebAssembly.Module): void {
  glue.initSync({ module });
}

/** The core's table of options. */
export function fields(): Field[] {
  return glue.fields();
}

/** Everything that is wrong with a policy: what the core says first, then what it says when that is left out, and so on. */
export function problemsOf(policy: Readonly<Record<string, unknown>>): Problem[] {
  const left = { ...policy };
  const problems: Problem[] = [];
  for (;;) {
    const problem = firstProblem(left);
    if (problem === null) return problems;
    problems.push(problem);
    if (!(problem.field in left)) return problems;
    delete left[problem.field];
  }
}

/** One circuit. */
export class Circuit {
  private readonly circuit: glue.Circuit;

  /** @throws Error in the core's words if the policy is not valid */
  constructor(policy: Readonly<Record<string, unknown>>) {
    this.circuit = new glue.Circuit(policy);
  }

  /** Asks for one call. */
  ask(now: number): Granted | Refused {
    const permit = this.circuit.canRequest(now);
    if (permit >= 0) return { allowed: true, permit, probe: this.circuit.permitKind(permit) === "probe" };
    const wait = this.circuit.wait(now);
    return { allowed: false, retryAfterMs: wait < 0 ? null : wait };
  }

  /** Settles a call, with its permit or without one. */
  settle(now: number, outcome: string, permit?: number): "applied" | "stale" {
    return this.circuit.settle(now, outcome, permit) as "applied" | "stale";
  }

  /** Manual control: `reset`, `trip`, `forceOpen`, `disable`. */
  control(now: number, operation: string, forMs?: number): void {
    this.circuit.control(now, operation, forMs);
  }

  /** What it looks like at a moment. Looking changes nothing. */
  snapshot(now: number): Snapshot {
    return this.circuit.snapshot(now);
  }

  /** What the last operation did to the state; null if nothing. */
  transition(): Transition | null {
    return this.circuit.transition();
  }

  /** The options in force: what was given, and the defaults for the rest. */
  policy(): Readonly<Record<string, number | string>> {
    return this.circuit.policy();
  }

  free(): void {
    this.circuit.free();
  }
}

/** What the core says first about a policy; null if it is valid. */
function firstProblem(policy: Readonly<Record<string, unknown>>): Problem | null {
  const config = glue.newConfig();
  try {
    build(
      {
        layer: () => glue.layer(config),
        add: (...field) => glue.add(config, ...field),
        build: () => glue.build(config),
      },
      [Object.entries(policy).map(([name, value]) => fieldValue(name, value))],
    );
    return null;
  } catch (problem) {
    const { field, message } = problem as Partial<Problem>;
    if (field === undefined || message === undefined) throw problem;
    return { field, message };
  } finally {
    glue.freeConfig(config);
  }
}

function fieldValue(name: string, value: unknown): FieldValue {
  if (typeof value === "number") return { name, number: value };
  if (typeof value === "string") return { name, text: value };
  const object = Array.isArray(value) ? "an array" : "an object";
  return { name, other: typeof value === "object" && value !== null ? object : String(value) };
}
