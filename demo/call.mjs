// One guarded call, as both parts of the demo make it, and what became of it.

/** The policy of both parts: the defaults, but for shorter waits. */
export const POLICY = { failureThreshold: 5, openDurationMs: 1000 };

/**
 * Calls the dependency through `breaker.execute`. What became of it: `outcome` 'answered', 'failed' or 'refused', `text`
 * (a refusal's is its message), `ms` it took and, of a refusal, `retryAfterMs`.
 */
export async function guardedCall(breaker, url) {
  const begin = performance.now();
  const since = () => performance.now() - begin;
  try {
    const text = await breaker.execute(async () => {
      const response = await fetch(url);
      const body = await response.text();
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      return body;
    });
    return { outcome: "answered", text: `HTTP ${text}`, ms: since() };
  } catch (error) {
    if (error.code !== "circuit_open") return { outcome: "failed", text: error.message, ms: since() };
    return { outcome: "refused", text: error.message, ms: since(), retryAfterMs: error.retryAfterMs };
  }
}
