/** What crosses to the module and back: numbers and texts. */

import type { FieldValue, NativeTransition } from "../../node/ts/native";
import type { Mode, Snapshot, State } from "../../node/ts/types";

/** A moment as it crosses; what is no number would be turned into one on the way. */
export function number(now: number): number {
  if (typeof now !== "number") throw { code: "NumberExpected" };
  return now;
}

/** An option's value as it crosses: the kind, the number, and the text that shows it. */
export function crossing(value: FieldValue | undefined): [kind: number, number: number, text: string] {
  if (value === undefined) return [0, 0, ""];
  const { number, text, other } = value;
  if (number !== undefined) return [1, number, String(number)];
  return text !== undefined ? [2, 0, text] : [3, 0, other ?? "undefined"];
}

/** A configuration that is being put together. */
export interface Builder {
  layer(): void;
  add(name: string, kind: number, number: number, text: string): void;
  build(): void;
}

/** Puts a policy together, layer by layer. Throws with code `config_invalid`. */
export function build(builder: Builder, layers: FieldValue[][]): void {
  for (const layer of layers) {
    builder.layer();
    for (const value of layer) builder.add(value.name, ...crossing(value));
  }
  builder.build();
}

/** A text as it crosses where a lone surrogate must be seen. */
export function units(text: string): Uint16Array {
  return Uint16Array.from({ length: text.length }, (_, i) => text.charCodeAt(i));
}

/** The words of the core, by the numbers that stand for them. */
export type Words = (place: number) => string;

/** A transition from its numbers; null if there is none. */
export function transitionOf(at: (place: number) => number, word: Words): NativeTransition | null {
  const from = at(0);
  if (from < 0) return null;
  return {
    from: word(from) as State,
    to: word(at(1)) as State,
    at: at(2),
    reason: word(at(3)) as NativeTransition["reason"],
    failures: at(4),
    openMs: orNull(at(5)),
  };
}

/** A snapshot from its numbers. */
export function snapshotOf(at: (place: number) => number, word: Words): Snapshot {
  return {
    state: word(at(0)) as State,
    mode: word(at(1)) as Mode,
    failuresInWindow: at(2),
    callsInWindow: at(3),
    consecutiveFailures: at(4),
    halfOpenSuccesses: at(5),
    halfOpenInFlight: at(6),
    openedAt: orNull(at(7)),
    remainingOpenMs: at(8),
    trips: at(9),
    epoch: at(10),
  };
}

/** The cells of a table of the core, which is asked for one by one. */
export function whileDefined<T>(cell: (place: number) => T | undefined): T[] {
  const cells: T[] = [];
  for (let at = cell(0); at !== undefined; at = cell(cells.length)) cells.push(at);
  return cells;
}

function orNull(n: number): number | null {
  return n < 0 ? null : n;
}
