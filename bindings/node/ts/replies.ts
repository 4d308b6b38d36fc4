/** What comes back from a client, of whatever kind, made into what the engine takes: texts, integers, the words of an error. */

import type { Fields } from "./native-shared";
import { withoutCredentials } from "./redact";

/** The reading that a reply is, whatever the client made of its texts; null if it is none. The reply stays the client's. */
export function reading(reply: unknown): Fields | null {
  try {
    if (!Array.isArray(reply) || reply.length !== 5) return null;
    return [field(reply[0]), field(reply[1]), field(reply[2]), field(reply[3]), field(reply[4])];
  } catch {
    return null;
  }
}

/** Some clients decode texts to Buffers. */
function field(item: unknown): string | null {
  if (typeof item === "string" || item === null) return item;
  return item === undefined ? null : String(item);
}

/** The integers of a reply, however the client decodes them; empty for what is no list of integers. */
export function integers(reply: unknown): number[] {
  try {
    if (!Array.isArray(reply)) return [];
    // From, not map: what a sparse array leaves out is no integer either.
    const numbers = Array.from(reply, (item: unknown) => (typeof item === "number" ? item : parsed(item)));
    return numbers.every(Number.isInteger) ? numbers : [];
  } catch {
    return [];
  }
}

/** Some clients are told to answer texts, Buffers or bigints. */
function parsed(item: unknown): number {
  const text = String(item);
  return text === "" ? Number.NaN : Number(text);
}

/** What a client says went wrong, in words, without the user and password of a URL. */
export function errorText(thrown: unknown): string {
  try {
    return withoutCredentials(words(thrown));
  } catch {
    return "an error that cannot be shown";
  }
}

/** Text only, never the client's own error: some carry the arguments of AUTH. */
function words(thrown: unknown): string {
  // By shape: an error of another realm (a vm context, a test runner) is none of ours by class.
  if (typeof thrown !== "object" || thrown === null) return String(thrown);
  const { message, errors, code } = thrown as { [K in "message" | "errors" | "code"]?: unknown };
  if (typeof message !== "string") return String(thrown);
  // A host with several addresses fails with one error for each, and no message of its own.
  const parts = Array.isArray(errors) ? errors.map(words).join(", ") : "";
  return message || parts || (typeof code === "string" ? code : thrown.constructor.name);
}
