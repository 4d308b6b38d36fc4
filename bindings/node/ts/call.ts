/**
 * One guarded call that was let through: run once, settled once, its result or its own error passed on. Local and shared
 * breakers differ only in what they hand in as {@link Settle}.
 */

import { attempt } from "./attempt";
import type { CheckedCall } from "./call-options";
import { type Ending, returned, thrown } from "./classify";
import type { HostPolicy } from "./config";
import { recover, recoverSync } from "./fallback";
import { GuardedAsyncGenerator, GuardedGenerator, isAsyncGenerator, isGenerator } from "./generator";
import { beginning, since } from "./stopwatch";
import { isThenable } from "./thenable";

/**
 * Counts the end of a call and tells the listeners. Answers a promise where that takes a round trip, and the caller's
 * result waits for it. It neither throws nor rejects: settling never hides the caller's result.
 */
export type Settle = (ending: Ending) => void | Promise<void>;

/** What all calls of one breaker have in common. */
export interface CallRules {
  readonly circuit: string;
  readonly host: HostPolicy;
  /** The time that durations are measured with, in milliseconds. */
  readonly now: () => number;
  /** Whether anybody wants to know how long a call took; if not, the clock is not read. */
  readonly timed: () => boolean;
}

/**
 * Runs a function that was let through, once, and settles once. A generator that it gives is settled when that ends.
 *
 * @param args - what the fallback gets after the error
 * @param begun - when it began, if that was before
 */
export async function run(
  fn: (signal?: AbortSignal) => unknown,
  call: CheckedCall,
  rules: CallRules,
  settle: Settle,
  args: readonly unknown[] = NO_ARGS,
  begun: number | null = beginning(rules),
): Promise<unknown> {
  let given: unknown;
  let value: unknown;
  try {
    value = await attempt(
      (signal) => {
        given = signal === undefined ? fn() : fn(signal);
        return given;
      },
      call,
      rules.circuit,
    );
  } catch (error) {
    const ending = thrown(error, call, rules, since(begun, rules.now));
    const settling = settle(ending);
    if (settling !== undefined) await settling;
    if (ending.outcome === "failure" && call.fallbackOn === "failure" && call.fallback !== undefined) {
      return recover(call.fallback, error, args);
    }
    throw error;
  }
  if (value === given) {
    if (isAsyncGenerator(value)) return new GuardedAsyncGenerator({ call, rules, args }, { inner: value, settle });
    if (isGenerator(value)) return new GuardedGenerator({ call, rules, args }, { inner: value, settle });
  }
  const settling = settle(returned(value, rules, since(begun, rules.now)));
  if (settling !== undefined) await settling;
  return value;
}

/**
 * The same for a sync function, whose circuit is settled without waiting.
 *
 * @param awaitable - what becomes of a promise or thenable that it gives after all
 */
export function runSync(
  fn: () => unknown,
  call: CheckedCall,
  rules: CallRules,
  settle: Settle,
  awaitable: (value: PromiseLike<unknown>, begun: number | null) => unknown,
  args: readonly unknown[] = NO_ARGS,
): unknown {
  const begun = beginning(rules);
  let value: unknown;
  try {
    value = fn();
  } catch (error) {
    const ending = thrown(error, call, rules, since(begun, rules.now));
    void settle(ending);
    if (ending.outcome === "failure" && call.fallbackOn === "failure" && call.fallback !== undefined) {
      return recoverSync(call.fallback, error, args);
    }
    throw error;
  }
  if (isThenable(value)) return awaitable(value, begun);
  if (isAsyncGenerator(value)) return new GuardedAsyncGenerator({ call, rules, args }, { inner: value, settle });
  if (isGenerator(value)) return new GuardedGenerator({ call, rules, args }, { inner: value, settle });
  void settle(returned(value, rules, since(begun, rules.now)));
  return value;
}

const NO_ARGS: readonly unknown[] = [];
