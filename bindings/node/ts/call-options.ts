/** What one call may say, checked before anything runs. */

import {
  checkedFunction,
  checkedNumber,
  checkedWord,
  describe,
  type HostPolicy,
  optionsOf,
  outOfRange,
} from "./config";

/** The options of one call, checked and with the policy's defaults. */
export interface CheckedCall {
  readonly fallback: ((error: unknown, ...args: unknown[]) => unknown) | undefined;
  readonly fallbackOn: "refusal" | "failure";
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
}

/** A call that says nothing. */
export const NO_OPTIONS: CheckedCall = {
  fallback: undefined,
  fallbackOn: "refusal",
  signal: undefined,
  timeoutMs: undefined,
};

/**
 * Checks the options of a call.
 * @throws {@link ConfigError}
 */
export function checkedCall(options: unknown, host: HostPolicy): CheckedCall {
  if (options === undefined)
    return host.timeoutMs === undefined ? NO_OPTIONS : { ...NO_OPTIONS, timeoutMs: host.timeoutMs };
  const { fallback, fallbackOn, signal, timeoutMs } = optionsOf("options", options, CALL_OPTIONS);
  return {
    ...checkedFallback(fallback, fallbackOn),
    signal: signal === undefined ? undefined : checkedSignal(signal),
    timeoutMs: timeoutMs === undefined ? host.timeoutMs : checkedNumber("timeoutMs", timeoutMs),
  };
}

/**
 * Checks the options of a call that cannot be interrupted.
 * @throws {@link ConfigError}
 */
export function checkedSyncCall(options: unknown): CheckedCall {
  if (options === undefined) return NO_OPTIONS;
  const { fallback, fallbackOn } = optionsOf("options", options, SYNC_CALL_OPTIONS);
  return { ...checkedFallback(fallback, fallbackOn), signal: undefined, timeoutMs: undefined };
}

/**
 * What is to be guarded must be a function.
 * @throws TypeError
 */
export function checkedFn(fn: unknown): void {
  if (typeof fn !== "function") throw new TypeError(`what to guard must be a function, got ${describe(fn)}`);
}

const SYNC_CALL_OPTIONS = ["fallback", "fallbackOn"];
const CALL_OPTIONS = [...SYNC_CALL_OPTIONS, "signal", "timeoutMs"];

function checkedFallback(fallback: unknown, fallbackOn: unknown): Pick<CheckedCall, "fallback" | "fallbackOn"> {
  return {
    fallback: fallback === undefined ? undefined : checkedFunction("fallback", fallback),
    fallbackOn: fallbackOn === undefined ? "refusal" : checkedWord("fallbackOn", fallbackOn, ["refusal", "failure"]),
  };
}

function checkedSignal(signal: unknown): AbortSignal {
  const like = signal as AbortSignal | null;
  // By shape: signals of another realm or a polyfill are as good.
  if (!isSignal(like)) throw outOfRange("signal", "an AbortSignal", signal);
  return like;
}

function isSignal(like: AbortSignal | null): like is AbortSignal {
  if (typeof like !== "object" || like === null) return false;
  try {
    const { aborted, addEventListener, removeEventListener } = like;
    return (
      typeof aborted === "boolean" &&
      typeof addEventListener === "function" &&
      typeof removeEventListener === "function"
    );
  } catch {
    return false;
  }
}
