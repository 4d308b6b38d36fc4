/** What a call gives instead of its own result: the fallback's, or the error. */

import type { CheckedCall } from "./call-options";

type Fallback = NonNullable<CheckedCall["fallback"]>;

/** What a refused call gives: its fallback's result, or the refusal. */
export function refused(error: unknown, call: CheckedCall, args: readonly unknown[] = NO_ARGS): Promise<unknown> {
  if (call.fallback !== undefined) return recover(call.fallback, error, args);
  // A moment later, when the caller listens already: rejected at once, Node would note, and take back, that nobody
  // handles it.
  return new Promise((_, reject) => queueMicrotask(() => reject(error)));
}

/** Hands the error to the fallback; an error of the fallback names the first one as its cause. */
export async function recover(
  fallback: Fallback,
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
export function recoverSync(fallback: Fallback, error: unknown, args: readonly unknown[] = NO_ARGS): unknown {
  try {
    return fallback(error, ...args);
  } catch (later) {
    throw withCause(later, error);
  }
}

const NO_ARGS: readonly unknown[] = [];

function withCause(later: unknown, error: unknown): unknown {
  try {
    if (later instanceof Error && later !== error && later.cause === undefined && Object.isExtensible(later)) {
      Object.defineProperty(later, "cause", { value: error, configurable: true, writable: true });
    }
  } catch {
    // It does not let itself be looked at: it is passed on as it is.
  }
  return later;
}
