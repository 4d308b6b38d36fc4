/**
 * What a Hono application answers when a circuit refuses, wherever it runs.
 *
 * @packageDocumentation
 */

import { answerTo } from "./problem";
import { refusalIn } from "./refusal-in";

/** What of Hono's `Context` is used. */
export interface Context {
  /** Makes the answer, with the headers that were set before. */
  // biome-ignore lint/suspicious/noExplicitAny: Hono's own types say more than can be said without Hono.
  newResponse(body: any, answer: any): Response;
  /** Makes an answer of a text. */
  text(text: string, status: 500): Response;
}

/**
 * Answers a refused call with 503, `Retry-After` where the wait is known, and a problem of RFC 9457, which says when to come back and
 * nothing of what is inside. Every other error is answered as Hono does by itself.
 *
 * A refusal is known by its code, also within the `TypeError` of a `fetch`.
 *
 * @example
 * ```ts
 * const app = new Hono();
 * app.onError(circuitOpenHandler);
 * ```
 */
export function circuitOpenHandler(error: Error, context: Context): Response {
  const refusal = refusalIn(error);
  if (refusal !== undefined) {
    const { status, headers, body } = answerTo(refusal);
    return context.newResponse(body, { status, headers });
  }
  const { getResponse } = error as { getResponse?: () => Response };
  if (typeof getResponse === "function") {
    const response = getResponse.call(error);
    return context.newResponse(response.body, response);
  }
  console.error(error);
  return context.text("Internal Server Error", 500);
}

/**
 * The answer to a refused call, for an error handler of your own and for any server whose handlers give a `Response`: as
 * {@link circuitOpenHandler} answers it. Undefined for every other error.
 *
 * @example
 * ```ts
 * const answer = circuitOpenResponse(error) ?? new Response("oops", { status: 500 });
 * ```
 */
export function circuitOpenResponse(error: unknown): Response | undefined {
  const refusal = refusalIn(error);
  if (refusal === undefined) return undefined;
  const { status, headers, body } = answerTo(refusal);
  return new Response(body, { status, headers });
}
