/** What a web server answers to a call that was refused: 503, `Retry-After` where the wait is known, a problem of RFC 9457. */

import type { Refusal } from "./types";

/** The body of the answer: what a client may know. Which circuit refused, and why, is for the log of the service. */
export interface Problem {
  /** None of its own: it is what the status says. */
  readonly type: "about:blank";
  /** The phrase of the status, as RFC 9457 wants it of `about:blank`. */
  readonly title: "Service Unavailable";
  /** That of the answer. */
  readonly status: 503;
  /** When to come back. */
  readonly detail: string;
}

/** The whole answer, as any server can send it. */
export interface ProblemAnswer {
  readonly status: 503;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The type of the body. */
export const PROBLEM_TYPE = "application/problem+json";

/** Whether something that was thrown is a refusal, of whatever copy of this package: they are known by their codes. */
export function isRefusal(error: unknown): error is Refusal {
  if (typeof error !== "object" || error === null) return false;
  try {
    const { code } = error as { code?: unknown };
    return (code === "circuit_open" || code === "store_unavailable") && error instanceof Error;
  } catch {
    // It does not let itself be looked at.
    return false;
  }
}

/** The body of the answer to a refusal, given its headers. */
export function problemOf(refusal: Pick<Refusal, "headers">): Problem {
  const seconds = secondsOf(refusal);
  const when = seconds === undefined ? "later" : `in ${seconds} s`;
  const detail = `The service cannot answer this request now. Try again ${when}.`;
  return { type: "about:blank", title: "Service Unavailable", status: 503, detail };
}

/** The answer to a refusal. */
export function answerTo(refusal: Pick<Refusal, "headers">): ProblemAnswer {
  const seconds = secondsOf(refusal);
  const headers = { ...(seconds !== undefined && { "Retry-After": seconds }), "Content-Type": PROBLEM_TYPE };
  return { status: 503, headers, body: JSON.stringify(problemOf(refusal)) };
}

/** What `Retry-After` is to say. An error known by its code may be of anybody's making, and have other headers or none. */
function secondsOf({ headers }: { readonly headers?: Readonly<Record<string, unknown>> | null }): string | undefined {
  const seconds = headers?.["Retry-After"];
  return typeof seconds === "string" && /^\d+$/.test(seconds) ? seconds : undefined;
}
