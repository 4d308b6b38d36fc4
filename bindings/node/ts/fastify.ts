/**
 * What a Fastify application answers when a circuit refuses. Without it that is 503 with `Retry-After`, too, but as of any error
 * Fastify shows its message, which names circuits and failures.
 *
 * @packageDocumentation
 */

import { answerTo } from "./problem";
import { refusalIn } from "./refusal-in";

/** What of Fastify's logger is used. */
export interface Log {
  /** Logs an error. */
  error(about: object, text: string): void;
}

/** What of Fastify's request is used. */
export interface Request {
  /** The log of the service. */
  readonly log: Log;
}

/** What of Fastify's reply is used. */
export interface Reply {
  /** Sets the status. */
  code(status: 503): Reply;
  /** Sets headers. */
  headers(headers: Record<string, string>): Reply;
  /** Sends the answer. */
  send(body: string): unknown;
}

/**
 * Answers a refused call with 503, `Retry-After` where the wait is known, and a problem of RFC 9457, which says when to come back and
 * nothing of what is inside; that is logged, as Fastify logs an error by itself. Every other error goes on to the handler around this
 * one, and in the end to Fastify's own.
 *
 * A refusal is known by its code, also within the `TypeError` of a `fetch`.
 *
 * @example
 * ```ts
 * const app = fastify();
 * app.setErrorHandler(circuitOpenHandler);
 * ```
 */
export function circuitOpenHandler(error: unknown, request: Request, reply: Reply): unknown {
  const refusal = refusalIn(error);
  if (refusal === undefined) throw error;
  const { status, headers, body } = answerTo(refusal);
  request.log.error({ err: error }, refusal.message);
  return reply.code(status).headers(headers).send(body);
}
