/** How long to wait before another attempt; a rule without a clock. */

import { CircuitOpenError } from "../error";
import { isThenable } from "../thenable";
import type { CheckedRetry } from "./retryable";

/**
 * Milliseconds to wait before the next attempt; null where there is to be none.
 *
 * @param count - how many attempts have failed
 * @param error - of the last one
 * @param random - 0 to below 1
 */
export function waitBefore(
  count: number,
  error: unknown,
  { baseDelayMs, maxDelayMs, retryOn, waitForCircuit }: CheckedRetry,
  random: () => number = Math.random,
): number | null {
  if (waitForCircuit && error instanceof CircuitOpenError) return error.retryAfterMs;
  if (!asked(retryOn, error)) return null;
  const longest = Math.min(maxDelayMs, baseDelayMs * 2 ** (count - 1));
  return longest - (longest / 2) * random();
}

/** What asks must not take the place of the error that it is asked about. */
function asked(retryOn: (error: unknown) => boolean, error: unknown): boolean {
  try {
    const answer: unknown = retryOn(error);
    return Boolean(answer) && !isThenable(answer);
  } catch {
    return false;
  }
}
