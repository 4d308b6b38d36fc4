import { fromNative } from "./error";
import { native } from "./native";

/**
 * The host's monotonic clock, anchored once to the wall clock: it reads as whole epoch milliseconds, and a wall clock that
 * is set back or ahead while the process runs neither prolongs nor shortens anything.
 */
export function monotonicNow(): number {
  return Math.floor(ORIGIN + HOST.now());
}

/** Looked up once: in Node a global is a getter, which costs a healthy call an eighth of what reading the time does. */
const HOST = performance;

/** Read once: it never changes, and reading it takes longer than all the rest. */
const ORIGIN = HOST.timeOrigin;

/**
 * Reads a clock that was given, once, and throws the reading away: one that never works would otherwise be found out by
 * the first call only, or never where a healthy call reads no clock.
 * @throws {@link TimeError}, or what the clock throws
 */
export function checkClock(clock: (() => number) | undefined): void {
  if (clock === undefined) return;
  const now = clock();
  try {
    // The core knows what a time is: any of its operations says so.
    const core = native();
    new core.Breaker(new core.Config([])).snapshot(now);
  } catch (error) {
    throw fromNative(error);
  }
}

/** The two times of a store: its users may say what the second one is, else it is asked for. */
export interface Clock {
  /** Goes forward only, but where the user's own serves: what is measured, and how old an answer is. */
  readonly host: () => number;
  /** What the store is told, at this moment of the host; -1 where the engine asks the store itself. */
  readonly store: (host: number) => number;
  /** Whether it is the user's own: what that says may be no time, or it may throw. */
  readonly isForeign: boolean;
}

/** The time that the store itself has. */
export const SERVER_CLOCK: Clock = { host: monotonicNow, store: () => ASKED, isForeign: false };

/** The wall clock of this machine. */
export const SYSTEM_CLOCK: Clock = { host: monotonicNow, store: () => Date.now(), isForeign: false };

/** A function that says both times. */
export function clockOf(fn: () => number): Clock {
  return { host: fn, store: (host) => host, isForeign: true };
}

const ASKED = -1;
