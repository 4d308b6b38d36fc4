/** A function under a deadline and its caller's signal. */

import type { CheckedCall } from "./call-options";
import { CallTimeoutError } from "./error";

/**
 * Runs the function under the call's deadline and the caller's signal. Whichever ends first decides; what the function
 * does later is ignored.
 */
export function attempt(fn: (signal?: AbortSignal) => unknown, call: CheckedCall, circuit: string): unknown {
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

/** Whether an error is a timeout that was raised here and not yet asked about. */
export function isOwnTimeout(error: unknown): boolean {
  return typeof error === "object" && error !== null && timeouts.delete(error);
}

const timeouts = new WeakSet<object>();
