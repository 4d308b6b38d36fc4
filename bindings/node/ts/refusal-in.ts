import { isRefusal } from "./problem";
import type { Refusal } from "./types";

/** The refusal that an error is, or that `fetch` has hidden in the cause of its own: it does so with all that its dispatcher says. */
export function refusalIn(error: unknown): Refusal | undefined {
  if (isRefusal(error)) return error;
  const cause = error instanceof TypeError ? error.cause : undefined;
  return isRefusal(cause) ? cause : undefined;
}
