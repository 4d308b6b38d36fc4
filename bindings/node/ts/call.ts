/**
 * One guarded call, once it was let through or refused: what to run, when to give up, how the end is classified, who gets
 * the result. Local and shared breakers differ only in what they hand in as {@link Settle}.
 */

import {
  checkedFunction,
  checkedTimeout,
  checkedWord,
  describe,
  type HostPolicy,
  onlyOptions,
  optionsObject,
  outOfRange,
} from "./config";
import { CallTimeoutError } from "./error";
import { GuardedAsyncGenerator, GuardedGenerator, isAsyncGenerator, isGenerator } from "./generator";
import { redact } from "./redact";

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

/** The options of one call, checked and with the policy's defaults. */
export interface CheckedCall {
  readonly fallback: ((error: unknown, ...args: unknown[]) => unknown) | undefined;
  readonly fallbackOn: "refusal" | "failure";
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
}

type Fn = (signal?: AbortSignal) => unknown;

/**
 * Checks the options of a call.
 * @throws {@link ConfigError}
 */
export function checkedCall(options: unknown, host: HostPolicy): CheckedCall {
  if (options === undefined) return { ...NO_OPTIONS, timeoutMs: host.timeoutMs };
  const given = optionsObject("options", options);
  onlyOptions(given, ["fallback", "fallbackOn", "signal", "timeoutMs"]);
  const { fallback, fallbackOn, signal, timeoutMs } = given;
  return {
    fallback: fallback === undefined ? undefined : checkedFunction("fallback", fallback),
    fallbackOn: fallbackOn === undefined ? "refusal" : checkedWord("fallbackOn", fallbackOn, ["refusal", "failure"]),
    signal: signal === undefined ? undefined : checkedSignal(signal),
    timeoutMs: timeoutMs === undefined ? host.timeoutMs : checkedTimeout("timeoutMs", timeoutMs),
  };
}

/**
 * Checks the options of a call that cannot be interrupted.
 * @throws {@link ConfigError}
 */
export function checkedSyncCall(options: unknown): CheckedCall {
  if (options === undefined) return NO_OPTIONS;
  const given = optionsObject("options", options);
  onlyOptions(given, ["fallback", "fallbackOn"]);
  const { fallback, fallbackOn } = given;
  return {
    ...NO_OPTIONS,
    fallback: fallback === undefined ? undefined : checkedFunction("fallback", fallback),
    fallbackOn: fallbackOn === undefined ? "refusal" : checkedWord("fallbackOn", fallbackOn, ["refusal", "failure"]),
  };
}

/**
 * What is to be guarded must be a function.
 * @throws TypeError
 */
export function checkedFn(fn: unknown): void {
  if (typeof fn !== "function") throw new TypeError(`what to guard must be a function, got ${describe(fn)}`);
}

/**
 * Runs a function that was let through, once, and settles once. A generator that it gives is settled when that ends.
 *
 * @param args - what the fallback gets after the error
 * @param begun - when it began, if that was before
 */
export async function run(
  fn: Fn,
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
  const settling = settle(returned(value, rules.host, since(begun, rules.now)));
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
  void settle(returned(value, rules.host, since(begun, rules.now)));
  return value;
}

/** Whether a value is to be awaited: a promise, or a lazy thenable such as a query builder. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  return typeof (value as { then?: unknown }).then === "function";
}

/**
 * Runs the function under the call's deadline and the caller's signal. Whichever ends first decides; what the function
 * does later is ignored.
 */
export function attempt(fn: Fn, call: CheckedCall, circuit: string): unknown {
  const { signal, timeoutMs } = call;
  if (signal === undefined && timeoutMs === undefined) return fn();
  // It may have been aborted while the admission was under way: no event comes any more.
  if (signal?.aborted === true) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    // Without a deadline of our own the caller's signal does as it is.
    const controller = timeoutMs === undefined ? undefined : new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    };
    const cancel = () => {
      end();
      reject(signal?.reason);
      controller?.abort(signal?.reason);
    };
    signal?.addEventListener("abort", cancel, { once: true });
    if (timeoutMs !== undefined) {
      // Not unref'd: it lives no longer than the call, and whoever awaits the call is owed its end.
      timer = setTimeout(() => {
        const error = new CallTimeoutError(circuit, timeoutMs);
        timeouts.add(error);
        end();
        reject(error);
        controller?.abort(error);
      }, timeoutMs);
    }
    // The executor's own rejection covers a throw; resolving follows a promise or lazy thenable, calling `then` once.
    new Promise((settled) => settled(fn(controller?.signal ?? signal))).then(
      (value) => {
        end();
        resolve(value);
      },
      (error) => {
        end();
        reject(error);
      },
    );
  });
}

/** How a call ended that threw. The caller's own signal decides first, whatever the error looks like. */
export function thrown(error: unknown, call: CheckedCall, rules: CallRules, durationMs: number | null): Ending {
  const ownTimeout = typeof error === "object" && error !== null && timeouts.delete(error);
  const neutral = !ownTimeout && (call.signal?.aborted === true || !countsAsFailure(error, rules.host));
  return { outcome: neutral ? "ignored" : "failure", error, durationMs, reason: null };
}

/** How a call ended that returned. */
export function returned(value: unknown, host: HostPolicy, durationMs: number | null): Ending {
  const reason = faultOf(value, host, durationMs);
  return { outcome: reason === null ? "success" : "failure", error: undefined, durationMs, reason };
}

/** Whether an error says that the dependency failed. A classifier that throws does not say otherwise. */
export function countsAsFailure(error: unknown, host: HostPolicy): boolean {
  if (host.isFailure === undefined) return true;
  try {
    return host.isFailure(error) !== false;
  } catch {
    return true;
  }
}

/** What a refused call gives: its fallback's result, or the refusal. */
export function refused(error: unknown, call: CheckedCall, args: readonly unknown[] = NO_ARGS): Promise<unknown> {
  if (call.fallback !== undefined) return recover(call.fallback, error, args);
  // Rejecting a moment later, when the caller listens already, costs half of rejecting at once: Node need not note, and
  // take back, that nobody handles it.
  return new Promise((_, reject) => queueMicrotask(() => reject(error)));
}

/** Hands the error to the fallback; an error of the fallback names the first one as its cause. */
export async function recover(
  fallback: NonNullable<CheckedCall["fallback"]>,
  error: unknown,
  args: readonly unknown[] = NO_ARGS,
): Promise<unknown> {
  try {
    return await fallback(error, ...args);
  } catch (later) {
    throw withCause(later, error);
  }
}

/** The same for a sync call. */
export function recoverSync(
  fallback: NonNullable<CheckedCall["fallback"]>,
  error: unknown,
  args: readonly unknown[] = NO_ARGS,
): unknown {
  try {
    return fallback(error, ...args);
  } catch (later) {
    throw withCause(later, error);
  }
}

/** A failure in a few words, for `lastFailure`: the code if it has one, else the message; never a password. */
export function failureText(error: unknown): string | null {
  if (error === undefined) return null;
  try {
    const text = words(error);
    const safe = redact(text);
    return safe.length > MAX_TEXT ? `${safe.slice(0, MAX_TEXT)}...` : safe;
  } catch {
    return "an error that cannot be shown";
  }
}

/** A reading of the clock for measuring; null where the clock itself fails, which the next admission reports. */
export function read(now: () => number): number | null {
  try {
    const at = now();
    return Number.isFinite(at) ? at : null;
  } catch {
    return null;
  }
}

/** When a call begins, if anybody wants to know how long it takes. */
export function beginning(rules: CallRules): number | null {
  return rules.timed() ? read(rules.now) : null;
}

/** The milliseconds since then; never negative, though a clock may step back. */
export function since(begun: number | null, now: () => number): number | null {
  const at = begun === null ? null : read(now);
  return begun === null || at === null ? null : Math.max(0, at - begun);
}

const NO_ARGS: readonly unknown[] = [];
const NO_OPTIONS: CheckedCall = { fallback: undefined, fallbackOn: "refusal", signal: undefined, timeoutMs: undefined };

/** The longest failure text that is kept: enough to recognize it, and a bound on what a breaker holds on to. */
const MAX_TEXT = 200;

/** The timeouts that were raised here and not yet classified: they count, whatever `isFailure` thinks of them. */
const timeouts = new WeakSet<object>();

function faultOf(value: unknown, host: HostPolicy, durationMs: number | null): string | null {
  if (host.isFailureResult !== undefined) {
    try {
      if (host.isFailureResult(value)) return "a result that counts as a failure";
    } catch {
      return "a result that could not be classified";
    }
  }
  const { slowCallMs } = host;
  return slowCallMs !== undefined && durationMs !== null && durationMs > slowCallMs
    ? `slower than ${slowCallMs} ms`
    : null;
}

function checkedSignal(signal: unknown): AbortSignal {
  const like = signal as AbortSignal | null;
  // By shape: signals of another realm or a polyfill are as good.
  if (typeof like !== "object" || typeof like?.aborted !== "boolean" || typeof like.addEventListener !== "function") {
    throw outOfRange("signal", "an AbortSignal", signal);
  }
  return like;
}

function withCause(later: unknown, error: unknown): unknown {
  if (later instanceof Error && later !== error && later.cause === undefined && Object.isExtensible(later)) {
    Object.defineProperty(later, "cause", { value: error, configurable: true, writable: true });
  }
  return later;
}

function words(error: unknown): string {
  if (typeof error !== "object" || error === null) return String(error);
  const { code, message, cause } = error as { code?: unknown; message?: unknown; cause?: { code?: unknown } };
  if (typeof code === "string" && code !== "") return code;
  // `fetch` hides what happened: "fetch failed", caused by ECONNREFUSED.
  if (typeof cause === "object" && cause !== null && typeof cause.code === "string") return cause.code;
  return typeof message === "string" && message !== "" ? message : String(error);
}
