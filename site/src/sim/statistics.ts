/** What a run came to by a moment, with the circuit and without it. */

import type { Call } from "./plan";
import type { Event, Run } from "./run";

/** Sums over the calls that had begun. Times in milliseconds. */
export interface Statistics {
  /** Calls that somebody wanted to make. */
  readonly calls: number;
  /** Of these, those that were let through, by how they ended; `inFlight` have not yet. */
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly inFlight: number;
  /** Of the calls let through, those that were probes. */
  readonly probes: number;
  /** Calls that were refused; each of them would have failed, or would not. */
  readonly refused: number;
  readonly refusedInVain: number;
  /** Outcomes that came too late to count. */
  readonly stale: number;
  /** What callers waited for calls that did not succeed, up to the moment. */
  readonly waitedMs: number;
  /** The same if each call had gone out. */
  readonly waitedMsWithout: number;
  /** The most calls that waited at once, up to the moment. */
  readonly waitingPeak: number;
  readonly waitingPeakWithout: number;
  /** How many wait at the moment. */
  readonly waitingWithout: number;
}

/** What the first `count` events came to, seen at a moment not before the last of them. */
export function statisticsAt(run: Run, count: number, at: number): Statistics {
  const events = run.events.slice(0, count);
  const asked = events.filter((event) => event.kind === "ask");
  const ended = events.filter((event) => event.kind === "end");
  const granted = asked.filter(({ answer }) => answer.allowed).map(({ call }) => call);
  const refused = asked.filter(({ answer }) => !answer.allowed).map(({ call }) => call);
  const all = asked.map(({ call }) => call);
  const endedWith = (outcome: Call["outcome"]) => ended.filter(({ call }) => call.outcome === outcome).length;
  return {
    calls: all.length,
    succeeded: endedWith("recordSuccess"),
    failed: endedWith("recordFailure"),
    cancelled: endedWith("release"),
    inFlight: granted.length - ended.length,
    probes: asked.filter(({ answer }) => answer.allowed && answer.probe).length,
    refused: refused.length,
    refusedInVain: refused.filter(({ outcome }) => outcome === "recordSuccess").length,
    stale: ended.filter(({ status }) => status === "stale").length,
    waitedMs: waited(granted, at),
    waitedMsWithout: waited(all, at),
    waitingPeak: peak(granted, at),
    waitingPeakWithout: peak(all, at),
    waitingWithout: all.filter(({ endsAt }) => endsAt > at).length,
  };
}

/** How many of these calls are under way at each of these moments, which ascend. */
export function underWay(calls: readonly Call[], moments: readonly number[]): number[] {
  const begins = calls.map(({ at }) => at).sort(ascending);
  const ends = calls.map(({ endsAt }) => endsAt).sort(ascending);
  let [begun, over] = [0, 0];
  return moments.map((moment) => {
    while ((begins[begun] ?? Infinity) <= moment) begun++;
    while ((ends[over] ?? Infinity) <= moment) over++;
    return begun - over;
  });
}

/** The calls that were let through. */
export function grantedCalls(run: Run): Call[] {
  return run.events.flatMap((event) => (event.kind === "ask" && event.answer.allowed ? [event.call] : []));
}

/** How a run's calls came out, in so many equal parts of its time, each call in the part in which it began. */
export interface Bin {
  succeeded: number;
  failed: number;
  refused: number;
}

export function binned(run: Run, bins: number): Bin[] {
  const { lengthMs } = run.setup.load;
  const parts: Bin[] = Array.from({ length: bins }, () => ({ succeeded: 0, failed: 0, refused: 0 }));
  for (const event of run.events) {
    if (event.kind !== "ask") continue;
    const part = parts[Math.min(bins - 1, Math.floor((event.at * bins) / lengthMs))] as Bin;
    if (!event.answer.allowed) part.refused += 1;
    else if (event.call.outcome === "recordFailure") part.failed += 1;
    else part.succeeded += 1;
  }
  return parts;
}

/** A time in which the state stayed the same. */
export interface Period {
  readonly from: number;
  readonly to: number;
  readonly state: "closed" | "open" | "half-open";
}

/** The states of a run as its snapshots showed them, without those that lasted no time. */
export function periodsOf(run: Run): Period[] {
  const periods: { from: number; to: number; state: Period["state"] }[] = [];
  for (const { at, snapshot } of run.samples) {
    const last = periods.at(-1);
    if (last?.state === snapshot.state) continue;
    if (last !== undefined) last.to = at;
    periods.push({ from: at, to: run.setup.load.lengthMs, state: snapshot.state });
  }
  return periods.filter(({ from, to }) => to > from);
}

/** The transitions of a run, each with its place among the events. */
export function transitionsOf(run: Run): { readonly index: number; readonly event: Event }[] {
  return run.events.flatMap((event, index) => (event.transition === null ? [] : [{ index, event }]));
}

/** Time spent on calls that brought nothing: a success is worth its wait. */
function waited(calls: readonly Call[], at: number): number {
  return calls
    .filter(({ outcome }) => outcome !== "recordSuccess")
    .reduce((sum, call) => sum + Math.min(call.endsAt, at) - call.at, 0);
}

function peak(calls: readonly Call[], at: number): number {
  const moments = calls.map((call) => call.at).filter((moment) => moment <= at);
  return underWay(calls, moments).reduce((most, count) => Math.max(most, count), 0);
}

function ascending(a: number, b: number): number {
  return a - b;
}
