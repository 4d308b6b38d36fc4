/** Tabs and workers of one origin tell each other which servers fail. Each goes on deciding for itself: what it has heard, it has heard. */

import type { CircuitBreaker } from "./breaker";
import { monotonicNow } from "./clock";
import { ConfigError } from "./error";
import type { Emitter } from "./events";
import { openFor } from "./http";
import type { Events } from "./types";

/** What is told: an origin opened until then, or closed then. Times are on the clock that all tabs of a machine share. */
interface Word {
  readonly switchgear: 1;
  readonly origin: string;
  readonly at: number;
  /** How long it stays open, in milliseconds; null where it closed. */
  readonly openMs: number | null;
}

/**
 * Passes on each opening and closing of a tab's circuits, and takes what other tabs pass on.
 *
 * An opening is taken for what is left of it; a closing ends what opened before it. What was heard is not passed on again. A tab
 * that is closed takes nothing away from the others, for nobody waits for anybody.
 *
 * What is heard may come from a page with another policy, or from a script that is none of ours: it is believed for as long as
 * this tab would stay open by itself, and no longer.
 *
 * @throws {@link ConfigError} where there is no `BroadcastChannel`
 * @param events - of all circuits of this tab
 * @param circuit - the circuit of an origin; null for what is none
 * @param mostMs - how long another tab's opening is believed at most
 * @param now - the clock of the circuits, if the user gave one
 */
export function shareTabs(
  events: Emitter<Events>,
  circuit: (origin: string) => CircuitBreaker | null,
  mostMs: number,
  now: () => number = monotonicNow,
): void {
  if (typeof BroadcastChannel !== "function") {
    throw new ConfigError("`shareTabs` needs BroadcastChannel, which is not there", "shareTabs");
  }
  const channel = new BroadcastChannel("switchgear");
  let hearing = false;
  events.on("stateChange", ({ circuit: origin, toState, at, openMs }) => {
    // Half-open is a tab's own business; what an operator forces open has no end that others could know.
    if (hearing || toState === "half-open" || (toState === "open" && openMs === null)) return;
    channel.postMessage({ switchgear: 1, origin, at, openMs: toState === "open" ? openMs : null } satisfies Word);
  });
  channel.onmessage = ({ data }: { data: unknown }) => {
    if (!isWord(data)) return;
    hearing = true;
    try {
      take(circuit(data.origin), data, mostMs, now());
    } catch {
      // A clock that fails: the next request of this tab finds that out.
    } finally {
      hearing = false;
    }
  };
  // Where there are processes, it keeps none alive.
  (channel as { unref?: () => void }).unref?.();
}

function take(breaker: CircuitBreaker | null, { at, openMs }: Word, mostMs: number, now: number): void {
  if (breaker === null) return;
  if (openMs !== null) {
    // Never longer than it lasts, should the clocks of two tabs differ.
    openFor(breaker, Math.min(openMs, at + openMs - now, mostMs));
    return;
  }
  const { mode, openedAt } = breaker.getSnapshot();
  if (mode === "auto" && openedAt !== null && openedAt <= at) breaker.reset();
}

function isWord(data: unknown): data is Word {
  const { switchgear, origin, at, openMs } = (data ?? {}) as { [K in keyof Word]?: unknown };
  const isMs = (ms: unknown) => Number.isSafeInteger(ms) && (ms as number) >= 0;
  return switchgear === 1 && typeof origin === "string" && isMs(at) && (openMs === null || isMs(openMs));
}
