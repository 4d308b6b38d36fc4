/** Numbers as a page shows them, in seconds and percent, and as a set-up holds them, in milliseconds and shares. */

import { checkNumber, type Range, valueIn } from "./setup";

/** A unit: so many of what a set-up holds make one of what is shown, or so many of what is shown make one of what it holds. */
export interface Unit {
  readonly symbol: string;
  readonly times?: number;
  readonly parts?: number;
}

export const UNIT = {
  none: { symbol: "" },
  milliseconds: { symbol: "ms" },
  seconds: { symbol: "s", times: 1_000 },
  perSecond: { symbol: "per s" },
  percent: { symbol: "%", parts: 100 },
} as const satisfies Record<string, Unit>;

/** A number of a set-up in a unit, without the noise that binary fractions make. */
export function shownIn({ times = 1, parts = 1 }: Unit, value: number): string {
  return String(Number(((value * parts) / times).toPrecision(12)));
}

/**
 * What somebody typed in a unit, as a set-up holds it.
 * @throws SetupError in that unit, naming the field, the value and what is valid
 */
export function typedIn({ times = 1, parts = 1 }: Unit, field: string, text: string, range: Range): number {
  const { min, max, whole } = range;
  const scaled = (n: number) => (n * parts) / times;
  const value = checkNumber(field, valueIn(text), { min: scaled(min), max: scaled(max), whole: whole && times === 1 });
  const held = (value * times) / parts;
  return whole ? Math.round(held) : held;
}
