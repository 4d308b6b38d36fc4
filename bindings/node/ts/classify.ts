/** Whether the end of a call says that the dependency failed. */

import { isOwnTimeout } from "./attempt";
import type { CallRules } from "./call";
import type { CheckedCall } from "./call-options";
import { CircuitOpenError, StoreUnavailableError } from "./error";
import { isThenable } from "./thenable";
import { warn } from "./warn";

/** How a call ended. `ignored` is neutral: cancelled, or an error that does not count. */
export type Outcome = "success" | "failure" | "ignored";

/** The end of a call as the circuit is told it. */
export interface Ending {
  readonly outcome: Outcome;
  /** What was thrown; undefined if nothing was. */
  readonly error: unknown;
  /** How long it took; null if nobody measured. */
  readonly durationMs: number | null;
  /** Why a call that threw nothing counts as a failure. */
  readonly reason: string | null;
}

/** How a call ended that threw. The caller's own signal decides first, whatever the error looks like. */
export function thrown(error: unknown, call: CheckedCall, rules: CallRules, durationMs: number | null): Ending {
  // Our own timeout counts, whatever `isFailure` thinks of it.
  const neutral = !isOwnTimeout(error) && (call.signal?.aborted === true || !countsAsFailure(error, rules));
  return { outcome: neutral ? "ignored" : "failure", error, durationMs, reason: null };
}

/** How a call ended that returned. */
export function returned(value: unknown, rules: CallRules, durationMs: number | null): Ending {
  const reason = faultOf(value, rules, durationMs);
  return { outcome: reason === null ? "success" : "failure", error: undefined, durationMs, reason };
}

/**
 * Whether an error says that the dependency failed. Only a clear `false` says that it does not: a classifier that forgets to
 * answer must not keep the circuit closed for ever. And a refusal by the very circuit, from a guarded call within this one,
 * says something of the circuit.
 */
export function countsAsFailure(error: unknown, rules: CallRules): boolean {
  // Counting it, a probe whose own slot is what refused the inner call would open the circuit again, each time.
  if (isRefusalOf(rules.circuit, error)) return false;
  return rules.host.isFailure === undefined || asked("isFailure", error, rules) !== false;
}

function isRefusalOf(circuit: string, error: unknown): boolean {
  try {
    return (error instanceof CircuitOpenError || error instanceof StoreUnavailableError) && error.circuit === circuit;
  } catch {
    // A proxy may refuse the question.
    return false;
  }
}

function faultOf(value: unknown, rules: CallRules, durationMs: number | null): string | null {
  const { isFailureResult, slowCallMs } = rules.host;
  if (isFailureResult !== undefined) {
    const answer = asked("isFailureResult", value, rules);
    if (answer === UNCLASSIFIED) return "a result that could not be classified";
    if (answer) return "a result that counts as a failure";
  }
  return slowCallMs !== undefined && durationMs !== null && durationMs > slowCallMs
    ? `slower than ${slowCallMs} ms`
    : null;
}

type Classifier = "isFailure" | "isFailureResult";

const UNCLASSIFIED = Symbol("unclassified");

/** What a classifier answers; {@link UNCLASSIFIED} for one that throws, or would answer later. */
function asked(option: Classifier, about: unknown, rules: CallRules): unknown {
  try {
    const answer: unknown = rules.host[option]?.(about);
    if (!isThenable(answer)) return answer;
    // Nobody waits for it: its rejection must not end the process.
    Promise.resolve(answer).catch(() => undefined);
  } catch {
    return UNCLASSIFIED;
  }
  warnOnce(option, rules);
  return UNCLASSIFIED;
}

/** By breaker: which of its classifiers were told to answer later. */
const warned = new WeakMap<CallRules, Set<Classifier>>();

function warnOnce(option: Classifier, rules: CallRules): void {
  const told = warned.get(rules) ?? new Set();
  if (told.has(option)) return;
  warned.set(rules, told.add(option));
  const text = `\`${option}\` of circuit \`${rules.circuit}\` must answer at once, it gave a promise: the call counts as a failure`;
  warn(`${text} (reported once)`, "switchgear_classifier");
}
