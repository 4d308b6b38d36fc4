/** What would happen if nothing stood between callers and the dependency: the calls, and what each of them comes to. */

import { draw, STREAM } from "./random";
import type { Act, HandCall, Load, Outage, Setup } from "./setup";
import { HAND_CALLS } from "./setup";

/** What a call tells the circuit when it ends. */
export type Outcome = "recordSuccess" | "recordFailure" | "release";

/** A call as it goes, or would go, if it is let through. */
export interface Call {
  readonly id: number;
  readonly at: number;
  readonly endsAt: number;
  readonly outcome: Outcome;
  /** How it ends for the caller. */
  readonly how: "answered" | "failed" | "timed out" | "cancelled";
  /** Made by hand, not by the load. */
  readonly byHand: boolean;
}

/** All calls of a set-up, in the order in which they begin. */
export function planCalls(setup: Setup): Call[] {
  const { load, outages, acts } = setup;
  const calls: Call[] = [];
  const gap = 1000 / load.callsPerSecond;
  for (let index = 0; ; index++) {
    // One call somewhere in each gap: as irregular as real ones, and each known without those before.
    const at = Math.floor((index + draw(load.seed, index, STREAM.arrival)) * gap);
    if (at >= load.lengthMs) break;
    calls.push({ id: index + 1, at, ...endOf(load, outages, index, at), byHand: false });
  }
  const byHand = acts.filter(isCall).filter(({ at }) => at < load.lengthMs);
  for (const { at, do: how } of byHand) {
    calls.push({ id: calls.length + 1, at, ...BY_HAND[how](at, load), byHand: true });
  }
  return calls.sort((a, b) => a.at - b.at || a.id - b.id);
}

/** Whether something done by hand is a call. */
export function isCall(act: Act): act is Act & { do: HandCall } {
  return (HAND_CALLS as readonly string[]).includes(act.do);
}

type End = Pick<Call, "endsAt" | "outcome" | "how">;

function endOf(load: Load, outages: readonly Outage[], index: number, at: number): End {
  const { seed, latencyMs, failureShare, timeoutMs } = load;
  const took = Math.round(latencyMs * (0.5 + draw(seed, index, STREAM.latency)));
  const hit = outages.find((outage) => isIn(outage, at) && draw(seed, index, STREAM.outage) < outage.share);
  if (hit?.kind === "hang" || took >= timeoutMs) return timedOut(at, load);
  const fails = hit !== undefined || draw(seed, index, STREAM.failure) < failureShare;
  return fails ? failed(at + took) : answered(at + took);
}

function isIn({ at: from, forMs }: Outage, at: number): boolean {
  return at >= from && at < from + forMs;
}

const BY_HAND: { readonly [how in HandCall]: (at: number, load: Load) => End } = {
  succeed: (at, { latencyMs }) => answered(at + latencyMs),
  fail: (at, { latencyMs }) => failed(at + latencyMs),
  hang: timedOut,
  cancel: (at, { latencyMs }) => ({ endsAt: at + latencyMs, outcome: "release", how: "cancelled" }),
};

function answered(endsAt: number): End {
  return { endsAt, outcome: "recordSuccess", how: "answered" };
}

function failed(endsAt: number): End {
  return { endsAt, outcome: "recordFailure", how: "failed" };
}

function timedOut(at: number, { timeoutMs }: Load): End {
  return { endsAt: at + timeoutMs, outcome: "recordFailure", how: "timed out" };
}
