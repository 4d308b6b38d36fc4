/** How long calls take, where somebody wants to know. */

import type { CallRules } from "./call";

/** A reading of the clock for measuring; null where the clock itself fails, which the next admission reports. */
export function read(now: () => number): number | null {
  try {
    const at = now();
    return Number.isFinite(at) ? at : null;
  } catch {
    return null;
  }
}

/** When a call begins, if anybody wants to know how long it takes. */
export function beginning(rules: CallRules): number | null {
  return rules.timed() ? read(rules.now) : null;
}

/** The milliseconds since then; never negative, though a clock may step back. */
export function since(begun: number | null, now: () => number): number | null {
  const at = begun === null ? null : read(now);
  return begun === null || at === null ? null : Math.max(0, at - begun);
}
