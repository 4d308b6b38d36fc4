/** What is simulated: a policy, a load, outages, and what is done by hand. All times in milliseconds from the beginning. */

/** Options of the circuit by name, those that were given: the core alone knows and checks them. */
export type Policy = Readonly<Record<string, number | string>>;

/** What callers do, and how the dependency answers when nothing is wrong. */
export interface Load {
  readonly callsPerSecond: number;
  /** The middle of it: answers take from half as long to half as long again. */
  readonly latencyMs: number;
  /** The share of calls that fails while all is well. */
  readonly failureShare: number;
  /** Callers give up after this, which counts as a failure. */
  readonly timeoutMs: number;
  /** How much time is simulated. */
  readonly lengthMs: number;
  /** Another seed, another course of the same load. */
  readonly seed: number;
}

/** How a dependency fails: it never answers, or it answers with an error. */
export const OUTAGE_KINDS = ["hang", "error"] as const;
export type OutageKind = (typeof OUTAGE_KINDS)[number];

/** A time in which calls that begin in it fail. */
export interface Outage {
  readonly at: number;
  readonly forMs: number;
  readonly kind: OutageKind;
  /** The share of the calls that it hits. */
  readonly share: number;
}

/** What may be done by hand: a call with a known end, or manual control of the circuit. */
export const HAND_CALLS = ["succeed", "fail", "hang", "cancel"] as const;
export const HAND_CONTROLS = ["trip", "reset", "forceOpen", "disable"] as const;
export type HandCall = (typeof HAND_CALLS)[number];
export type HandControl = (typeof HAND_CONTROLS)[number];

/** One thing done by hand. */
export interface Act {
  readonly at: number;
  readonly do: HandCall | HandControl;
}

/** All that a run depends on: the same set-up always gives the same run. */
export interface Setup {
  readonly policy: Policy;
  readonly load: Load;
  readonly outages: readonly Outage[];
  readonly acts: readonly Act[];
}

/** What a number may be. */
export interface Range {
  readonly min: number;
  readonly max: number;
  readonly whole: boolean;
}

const MAX_LENGTH_MS = 3_600_000;

/** The numbers of a load. */
export const LOAD_RANGES: { readonly [name in keyof Load]: Range } = {
  callsPerSecond: { min: 0.1, max: 500, whole: false },
  latencyMs: { min: 0, max: 600_000, whole: true },
  failureShare: { min: 0, max: 1, whole: false },
  timeoutMs: { min: 1, max: 600_000, whole: true },
  lengthMs: { min: 1_000, max: MAX_LENGTH_MS, whole: true },
  seed: { min: 0, max: 2 ** 32 - 1, whole: true },
};

/** The numbers of an outage. */
export const OUTAGE_RANGES = {
  at: { min: 0, max: MAX_LENGTH_MS, whole: true },
  forMs: { min: 1, max: MAX_LENGTH_MS, whole: true },
  share: { min: 0, max: 1, whole: false },
} as const satisfies Record<string, Range>;

/** The time of an act. */
export const ACT_RANGE: Range = OUTAGE_RANGES.at;

/** What one page can simulate without making anybody wait. */
export const MAX_CALLS = 20_000;
export const MAX_OUTAGES = 20;
export const MAX_ACTS = 100;

/** A load that is calm: twelve calls in a second, an eighth of a second each. */
export const LOAD: Load = {
  callsPerSecond: 12,
  latencyMs: 120,
  failureShare: 0.01,
  timeoutMs: 2_000,
  lengthMs: 75_000,
  seed: 7,
};

/** Something about a set-up that cannot be: which field, and what would be valid. */
export class SetupError extends Error {
  override readonly name = "SetupError";
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(message);
  }
}

/**
 * A number in its range.
 * @throws {@link SetupError} naming the field, the value and what is valid
 */
export function checkNumber(field: string, value: unknown, { min, max, whole }: Range): number {
  const fits = typeof value === "number" && value >= min && value <= max && (!whole || Number.isInteger(value));
  if (!fits)
    throw new SetupError(field, mustBe(field, `${whole ? "an integer" : "a number"} from ${min} to ${max}`, value));
  return value;
}

/**
 * One of a few words.
 * @throws {@link SetupError}
 */
export function checkWord<W extends string>(field: string, value: unknown, words: readonly W[]): W {
  if (!words.includes(value as W))
    throw new SetupError(field, mustBe(field, words.map((word) => `'${word}'`).join(" or "), value));
  return value as W;
}

/**
 * A load: each number in its range, and not more calls than a page can simulate.
 * @throws {@link SetupError}
 */
export function checkLoad(load: { readonly [name in keyof Load]: unknown }): Load {
  const names = Object.keys(LOAD_RANGES) as (keyof Load)[];
  const checked = Object.fromEntries(names.map((name) => [name, checkNumber(name, load[name], LOAD_RANGES[name])]));
  const { callsPerSecond, lengthMs } = checked as unknown as Load;
  const calls = Math.round((callsPerSecond * lengthMs) / 1000);
  if (calls > MAX_CALLS) {
    const valid = `at most ${Math.floor((MAX_CALLS * 10_000) / lengthMs) / 10} for this length (${MAX_CALLS} calls)`;
    throw new SetupError("callsPerSecond", mustBe("callsPerSecond", valid, callsPerSecond));
  }
  return checked as unknown as Load;
}

/**
 * An outage; `field` is what to call it.
 * @throws {@link SetupError}
 */
export function checkOutage(field: string, outage: { readonly [name in keyof Outage]: unknown }): Outage {
  return {
    at: checkNumber(`${field}.at`, outage.at, OUTAGE_RANGES.at),
    forMs: checkNumber(`${field}.forMs`, outage.forMs, OUTAGE_RANGES.forMs),
    kind: checkWord(`${field}.kind`, outage.kind, OUTAGE_KINDS),
    share: checkNumber(`${field}.share`, outage.share, OUTAGE_RANGES.share),
  };
}

/**
 * Something done by hand; `field` is what to call it.
 * @throws {@link SetupError}
 */
export function checkAct(field: string, act: { readonly [name in keyof Act]: unknown }): Act {
  return {
    at: checkNumber(`${field}.at`, act.at, ACT_RANGE),
    do: checkWord(`${field}.do`, act.do, [...HAND_CALLS, ...HAND_CONTROLS]),
  };
}

/** A value from what somebody wrote: a number where it looks like one, else the text. */
export function valueIn(text: string): number | string {
  const trimmed = text.trim();
  const number = Number(trimmed);
  return trimmed === "" || Number.isNaN(number) ? trimmed : number;
}

function mustBe(field: string, valid: string, value: unknown): string {
  const shown =
    typeof value === "string" ? `'${value.length > 64 ? `${value.slice(0, 64)}...` : value}'` : String(value);
  return `\`${field}\` must be ${valid}, got \`${shown}\``;
}
