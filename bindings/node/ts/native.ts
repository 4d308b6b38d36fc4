/**
 * The one place that knows the native module. The facade talks to this interface only, so that another build of the core
 * (WASM) can stand behind the very same files.
 */

import type { Snapshot, State } from "./types";

/** A value as the core takes it: a number, a text, or how an error should show anything else (`null`, `a function`). */
export type FieldValue = { name: string; number?: number; text?: string; other?: string };

/** A checked configuration. Made once per policy, taken by every breaker of a group. */
export type NativeConfig = { readonly opaque?: never };

/** Answers of {@link NativeBreaker.canRequest} and {@link NativeBreaker.settle}: one of the low values plus flags. */
export const REFUSED = 0;
export const ALLOWED_CLOSED = 1;
export const ALLOWED_PROBE = 2;
export const APPLIED = 1;
/** Masks the low value. */
export const ANSWER = 3;
/** With {@link REFUSED}: a half-open circuit refused, not an open one. */
export const BY_HALF_OPEN = 16;
/** The state changed: {@link NativeBreaker.transition} says how. */
export const TRANSITION = 4;
/** What {@link NativeBreaker.hints} says is not what it said before. */
export const HINTS = 8;

/** Kinds of permit and outcomes as they cross the boundary. */
export const NO_PERMIT = 0;
export const CLOSED_PERMIT = ALLOWED_CLOSED;
export const PROBE_PERMIT = ALLOWED_PROBE;
export const SUCCESS = 0;
export const FAILURE = 1;
export const RELEASE = 2;

/** What the next answers are bound to be, until the next operation that says {@link HINTS}. */
export interface NativeHints {
  /** Every request is admitted, with the closed permit of this epoch; -1 if that is not so. */
  admitEpoch: number;
  /** A success with that permit changes nothing. */
  successFree: boolean;
  /** A success with a closed permit never changes anything, whatever happens in between. */
  successIgnored: boolean;
  /** Every request at `refuseFrom <= now < refuseUntil` is refused; both 0 if that is not so. */
  refuseFrom: number;
  refuseUntil: number;
}

/** A transition as the core tells it. */
export interface NativeTransition {
  from: State;
  to: State;
  at: number;
  reason: "threshold" | "cooldown" | "probe-failed" | "probes-succeeded" | "manual";
  failures: number;
  openMs: number | null;
}

/** The state machine of one circuit. Every `now` is checked: anything but an integer, 0 to 2^52, throws. */
export interface NativeBreaker {
  /** Allowed or refused, plus flags. */
  canRequest(now: number): number;
  /** Of the last request: the epoch and the slot of its permit. */
  permitEpoch(): number;
  permitId(): number;
  /** Of the last request, if it was refused: when to come back; -1 = unknown. */
  refusalWait(): number;
  /** Settles with a permit (kind, epoch, id; `NO_PERMIT, 0, 0` for none): applied or stale, plus flags. */
  settle(now: number, kind: number, epoch: number, id: number, outcome: number): number;
  /** The transition that the last operation made. */
  transition(): NativeTransition | null;
  hints(): NativeHints;
  retryAfter(now: number): number;
  state(): State;
  snapshot(now: number): Snapshot;
  /** Manual control answers flags. `forMs`: undefined for the configured duration. */
  reset(now: number): number;
  trip(now: number, forMs: FieldValue | undefined): number;
  forceOpen(now: number): number;
  disable(now: number): number;
}

/** The order in which a full group gives up its members. Slots are small integers. */
export interface NativeRecency {
  /** Makes room if need be and takes a slot; {@link evicted} says whether it was another's. */
  insert(): number;
  /** Whether the slot that was taken last belonged to another until then. */
  evicted(): boolean;
  touch(slot: number): void;
  /** A member that is not closed is given up after those that are. */
  note(slot: number, closed: boolean): void;
  remove(slot: number): void;
}

/** Everything the native module offers to the local half; the shared half adds to it by declaration merging. */
export interface Native {
  /** The core's table of fields: name, synonym, default. */
  fieldTable(): { name: string; synonym: string | null; default: string }[];
  /** Builds a configuration from layers, the outermost first; throws with code `config_invalid`. */
  Config: new (
    layers: FieldValue[][],
  ) => NativeConfig;
  /** Checks an option of the host by the core's rules; throws with code `config_invalid`. */
  checkOption(value: FieldValue): number;
  /** A text as an error shows it: in quotes, shortened, without the user and password of a URL. */
  showText(text: string): string;
  /** A text with the user and password of each URL in it replaced. */
  withoutCredentials(text: string): string;
  /** Whether an HTTP status says that the server failed. */
  statusCounts(status: number): boolean;
  /** How many breakers a group holds by default. */
  maxKeysDefault(): number;
  /** Throws with code `name_invalid` unless the text can name a circuit. */
  checkName(name: string): void;
  Breaker: new (config: NativeConfig) => NativeBreaker;
  Recency: new (capacity: number) => NativeRecency;
}

let current: Native | undefined;
let provided: (() => Partial<Native>)[] = [];

/** Sets the module that everything from here on runs on; called once, by the entry that loads it. */
export function setNative(loaded: Native): void {
  current = loaded;
}

/** Names what loads the module, or a part of it, when something is first asked of it: until then nothing is run. */
export function provideNative(load: () => Partial<Native>): void {
  provided.push(load);
}

/**
 * The module.
 * @throws where it may not run: each time, for nothing is taken for loaded that is not
 */
export function native(): Native {
  if (provided.length > 0) {
    current = Object.assign({}, current, ...provided.map((load) => load()));
    provided = [];
  }
  if (current === undefined) throw new Error("switchgear: import an entry of the package, not one of its files");
  return current;
}
