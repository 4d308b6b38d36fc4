import { withoutCredentials } from "./redact";

/**
 * A failure in a few words, for `lastFailure`: the code if it has one, else the message; on one line, and never with the
 * user and password of a URL.
 */
export function failureText(error: unknown): string | null {
  if (error === undefined) return null;
  return shown(() => words(error));
}

/** What was thrown, for a warning: as it shows itself, under the same rules. Never throws. */
export function thrownText(error: unknown): string {
  return shown(() => String(error));
}

function shown(words: () => string): string {
  try {
    const text = withoutCredentials(words()).replace(BREAKS, " ");
    return text.length > MAX_TEXT ? `${text.slice(0, cutOf(text))}...` : text;
  } catch {
    return "an error that cannot be shown";
  }
}

/** Line ends and control characters: who writes a refusal to a log wants one line, and no terminal commands of others. */
const BREAKS = /[\p{Cc}\u2028\u2029]+/gu;

/** The longest failure text that is kept: enough to recognize it, and a bound on what a breaker holds on to. */
const MAX_TEXT = 200;

/** Where to cut: never between the two halves of one character. */
function cutOf(text: string): number {
  const last = text.charCodeAt(MAX_TEXT - 1);
  return last >= 0xd800 && last <= 0xdbff ? MAX_TEXT - 1 : MAX_TEXT;
}

function words(error: unknown): string {
  if (typeof error !== "object" || error === null) return String(error);
  const { code, message, cause } = error as { code?: unknown; message?: unknown; cause?: { code?: unknown } };
  if (typeof code === "string" && code !== "") return code;
  // `fetch` hides what happened: "fetch failed", caused by ECONNREFUSED.
  if (typeof cause === "object" && cause !== null && typeof cause.code === "string") return cause.code;
  return typeof message === "string" && message !== "" ? message : String(error);
}
