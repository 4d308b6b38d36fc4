import { native } from "./native";

/** A text that others wrote with the user and password of each URL in it replaced, by the core's rule. */
export function withoutCredentials(text: string): string {
  // Most errors name no URL, and need not cross to the core.
  return text.includes("//") ? native().withoutCredentials(text) : text;
}
