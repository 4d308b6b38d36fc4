/** What comes back from a client, of whatever kind, made into what the engine takes: texts, integers, the words of an error. */

import type { Fields } from "./native-shared";
import { withoutCredentials } from "./redact";

/** Makes a reading of what a client made of it: some decode texts to Buffers. */
export function isReading(reply: unknown): reply is Fields {
  if (!Array.isArray(reply) || reply.length !== 5) return false;
  for (let i = 0; i < 5; i += 1) {
    const field = reply[i];
    if (field !== null && typeof field !== "string") reply[i] = field === undefined ? null : String(field);
  }
  return true;
}

/** The integers of a reply, however the client decodes them; empty for what is no list of integers. */
export function integers(reply: unknown): number[] {
  if (!Array.isArray(reply)) return [];
  const numbers = reply.map((item) => (typeof item === "number" ? item : parsed(item)));
  return numbers.every(Number.isInteger) ? numbers : [];
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
  if (!(thrown instanceof Error)) return String(thrown);
  // A host with several addresses fails with one error for each, and no message of its own.
  const parts = thrown instanceof AggregateError ? thrown.errors.map(words).join(", ") : "";
  const { code } = thrown as { code?: unknown };
  return thrown.message || parts || (typeof code === "string" ? code : thrown.constructor.name);
}
