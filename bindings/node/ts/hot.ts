/** The healthy path of a call: no option wants to know more about it than how it ended. */

import type { CheckedCall } from "./call-options";
import type { HostPolicy } from "./config";
import { isAsyncGenerator, isGenerator } from "./generator";
import { isOrdinaryPromise } from "./thenable";

/** What is done at the end of a call on the healthy path: made once per period, not per call. */
export interface HotEnds {
  /** Undefined where no success ever counts: the promise then passes the value on by itself. */
  readonly onValue: ((value: unknown) => unknown) | undefined;
  /** Throws the error, or gives a promise that rejects with it once it has been settled. */
  readonly onError: (error: unknown) => unknown;
  /** Guards a generator over its whole life. */
  readonly running: (inner: AsyncGenerator | Generator) => unknown;
}

/** Runs a function that was let through. Not an `async` function: that would cost a promise and two turns more. */
export function runHot(fn: () => unknown, { onValue, onError, running }: HotEnds): Promise<unknown> {
  let result: unknown;
  try {
    result = fn();
  } catch (error) {
    return threw(error, onError);
  }
  if (isOrdinaryPromise(result)) {
    try {
      return result.then(onValue, onError);
    } catch {
      // It only looks like one, and then says so: see below.
    }
  }
  if (isAsyncGenerator(result) || isGenerator(result)) return Promise.resolve(running(result));
  // A subclass, another realm's promise, a lazy thenable, or no promise at all. Resolving calls a `then` once, and turns
  // what that throws into a rejection.
  return new Promise((resolve) => resolve(result)).then(onValue, onError);
}

/** Whether the options of a breaker leave its calls on the healthy path. */
export function isPlainHost(host: HostPolicy): boolean {
  return host.slowCallMs === undefined && host.timeoutMs === undefined && host.isFailureResult === undefined;
}

/** Whether the options of a call leave it on the healthy path; a fallback for refusals does. */
export function isPlain(call: CheckedCall): boolean {
  return (
    call.signal === undefined &&
    call.timeoutMs === undefined &&
    (call.fallback === undefined || call.fallbackOn === "refusal")
  );
}

/** A function of the healthy path threw before it gave a promise: settled at once, not a turn later. */
function threw(error: unknown, onError: HotEnds["onError"]): Promise<unknown> {
  try {
    return Promise.resolve(onError(error));
  } catch (rethrown) {
    return Promise.reject(rethrown);
  }
}
