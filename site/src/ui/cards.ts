/** What the circuit is at the moment: its state, what it counts, its probes, and what that spares callers. */

import type { Circuit, Snapshot } from "../core";
import { firstMoment } from "../sim/foresee";
import type { Event, Run } from "../sim/run";
import type { Policy } from "../sim/setup";
import type { Statistics } from "../sim/statistics";
import { byId, fill, h, s } from "./dom";
import { counted, duration, moment, percent } from "./text";

/** A run at a moment: all that the cards show. */
export interface View {
  readonly run: Run;
  readonly inForce: Policy;
  /** After as many events as have happened. For looking only. */
  readonly circuit: Circuit;
  readonly snapshot: Snapshot;
  readonly count: number;
  readonly at: number;
  readonly statistics: Statistics;
}

export function showCards(view: View): void {
  fill(byId("card-state", HTMLElement), ...stateCard(view));
  fill(byId("card-window", HTMLElement), ...windowCard(view));
  fill(byId("card-probes", HTMLElement), ...probesCard(view));
  fill(byId("card-waits", HTMLElement), ...waitsCard(view));
}

/** Slots that are drawn one by one; more are a number. */
const MAX_SLOTS = 24;

function stateCard({ snapshot, run, count, at }: View): Node[] {
  const { state, mode, trips, epoch, remainingOpenMs } = snapshot;
  const since = run.events.slice(0, count).findLast(({ transition }) => transition !== null);
  const says: Record<Snapshot["state"], string> = {
    closed: "Every call goes through, and its outcome counts.",
    open: remainingOpenMs > 0 ? `Refuses for ${duration(remainingOpenMs)} more.` : "The next call is a probe.",
    "half-open": "A few probes go through and decide.",
  };
  const by = {
    auto: says[state],
    "forced-open": "Held open by hand.",
    disabled: "Switched off by hand: nothing is counted.",
  };
  return [
    h("p", { class: `lamp ${state}` }, h("span", { class: "dot", "aria-hidden": "true" }), state),
    h("p", { class: "says" }, by[mode]),
    facts([
      ["since", since === undefined ? "the beginning" : moment(since.at)],
      ["for", duration(at - (since?.at ?? 0))],
      ["trips since the last close", String(trips)],
      ["mode", mode],
      ["epoch", String(epoch)],
    ]),
  ];
}

function windowCard(view: View): Node[] {
  const { inForce, snapshot } = view;
  if (snapshot.mode !== "auto")
    return [h("p", { class: "says" }, "Nothing is counted while the circuit is held by hand.")];
  if (snapshot.state !== "closed") {
    const trip = view.run.events.slice(0, view.count).findLast(({ transition }) => transition?.reason === "threshold");
    const failures = trip?.transition?.failures ?? 0;
    const tripped = trip === undefined ? "" : `It tripped at ${moment(trip.at)}, on ${counted(failures, "failure")}. `;
    return [h("p", { class: "says" }, `${tripped}Nothing is counted until the circuit has closed.`)];
  }
  if (inForce.tripOn === "rate") return rateWindow(view);
  const threshold = Number(inForce.failureThreshold);
  if (inForce.tripOn === "consecutive") {
    const row = snapshot.consecutiveFailures;
    return [
      slots(row, threshold, "failed", `${row} of ${threshold} failures in a row`),
      h("p", { class: "says" }, row === 0 ? "No failure since the last success." : "The next success ends the row."),
    ];
  }
  const failures = snapshot.failuresInWindow;
  return [
    slots(failures, threshold, "failed", `${failures} of ${threshold} failures in the window`),
    strip(view, failures),
    h("p", { class: "says" }, failures === 0 ? "No failure in the window." : leaves(view)),
  ];
}

/** The window as a line that ends now, with each failure where it stands. How many of them there are is the core's word. */
function strip({ run, count, at, inForce }: View, failures: number): Node {
  const windowMs = Number(inForce.windowMs);
  const x = (then: number) => 6 + (1 - (at - then) / windowMs) * 268;
  const counts = run.events.slice(0, count).filter(isCountedFailure);
  const dots = counts
    .slice(counts.length - failures)
    .map((event) => s("circle", { class: "failed", cx: x(event.at), cy: 10, r: 4.5 }));
  return h(
    "div",
    { class: "strip" },
    s(
      "svg",
      { viewBox: "0 0 280 20", "aria-hidden": "true" },
      s("line", { class: "base", x1: 6, x2: 274, y1: 10, y2: 10 }),
      s("line", { class: "base", x1: 6, x2: 6, y1: 4, y2: 16 }),
      s("line", { class: "base", x1: 274, x2: 274, y1: 4, y2: 16 }),
      ...dots,
    ),
    h("p", { class: "ends" }, h("span", {}, `${duration(windowMs)} ago`), h("span", {}, "now")),
  );
}

function rateWindow(view: View): Node[] {
  const { inForce, snapshot } = view;
  const { callsInWindow: calls, failuresInWindow: failures } = snapshot;
  const [rate, minimum] = [Number(inForce.failureRate), Number(inForce.minimumCalls)];
  const share = calls === 0 ? 0 : failures / calls;
  return [
    meter("failed", share, rate, `${percent(share)} failed`, `trips at ${percent(rate)}`),
    meter("calls", calls / (minimum * 1.5), 1 / 1.5, counted(calls, "call"), `counts from ${minimum}`),
    h("p", { class: "says" }, failures === 0 ? "No failure in the window." : leaves(view)),
  ];
}

/** When the window holds fewer failures, as the core itself will say then. */
function leaves({ circuit, at, inForce, snapshot }: View): string {
  const now = snapshot.failuresInWindow;
  const last = at + 2 * Number(inForce.windowMs) + 10;
  const then = firstMoment(at, last, (moment) => circuit.snapshot(moment).failuresInWindow < now);
  return then === null ? "" : `The oldest leaves the window in ${duration(then - at)}.`;
}

function probesCard(view: View): Node[] {
  const { inForce, snapshot, statistics } = view;
  const [most, needed] = [Number(inForce.halfOpenMaxCalls), Number(inForce.successThreshold)];
  const { halfOpenInFlight: inFlight, halfOpenSuccesses: successes, state } = snapshot;
  const halfOpen = state === "half-open" && snapshot.mode === "auto";
  const says = halfOpen
    ? probesUnderWay(view)
    : state === "closed"
      ? "None needed while closed."
      : "None until the open time is over.";
  return [
    slots(inFlight, most, "probing", `${inFlight} of ${counted(most, "probe")} in flight`),
    h("p", { class: "says" }, says),
    facts([
      ["probes that succeeded", `${successes} of ${needed}`],
      ["probes so far", String(statistics.probes)],
      ["a slot is lost after", duration(Number(inForce.probeTimeoutMs))],
    ]),
  ];
}

/** The probes that hold a slot: of those without an end the newest, as many as the core counts. */
function probesUnderWay({ run, count, at, circuit, snapshot, inForce }: View): string {
  const inFlight = snapshot.halfOpenInFlight;
  if (inFlight === 0) return "A slot is free: the next call is a probe.";
  const begun = new Map<number, number>();
  for (const event of run.events.slice(0, count)) {
    if (event.kind === "ask" && event.answer.allowed && event.answer.probe) begun.set(event.call.id, event.at);
    if (event.kind === "end") begun.delete(event.call.id);
  }
  const listed = [...begun].slice(-inFlight).slice(-4);
  const names = listed.map(([id, since]) => `call ${id} for ${duration(at - since)}`).join(", ");
  const last = at + 2 * Number(inForce.probeTimeoutMs) + 10;
  const then = firstMoment(at, last, (moment) => circuit.snapshot(moment).halfOpenInFlight < inFlight);
  return `Under way: ${names}.${then === null ? "" : ` The oldest loses its slot in ${duration(then - at)}.`}`;
}

function waitsCard({ statistics, snapshot }: View): Node[] {
  const { waitedMs, waitedMsWithout, refused, refusedInVain, calls, inFlight, waitingWithout } = statistics;
  const most = Math.max(1, waitedMsWithout);
  const share = calls === 0 ? 0 : refused / calls;
  return [
    h("p", { class: "lead" }, "Callers waited for nothing"),
    meter("waiting", waitedMs / most, null, duration(waitedMs), "with the circuit"),
    meter("without", waitedMsWithout / most, null, duration(waitedMsWithout), "without"),
    facts([
      ["calls", statistics.calls.toLocaleString("en")],
      ["refused at once", `${refused.toLocaleString("en")} (${percent(share)})`],
      ["of these would have worked", refusedInVain.toLocaleString("en")],
      ["waiting now, and without", `${inFlight} / ${waitingWithout}`],
      ["most at once, and without", `${statistics.waitingPeak} / ${statistics.waitingPeakWithout}`],
      ["came too late to count", String(statistics.stale)],
    ]),
    ...(snapshot.mode === "disabled" ? [h("p", { class: "says" }, "Switched off, it spares nobody anything.")] : []),
  ];
}

function facts(pairs: readonly (readonly [string, string])[]): Node {
  return h("dl", {}, ...pairs.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function slots(taken: number, all: number, kind: string, text: string): Node {
  const boxes = Array.from({ length: Math.min(all, MAX_SLOTS) }, (_, place) =>
    h("span", {
      class: place < (all > MAX_SLOTS ? Math.ceil((taken * MAX_SLOTS) / all) : taken) ? `slot ${kind}` : "slot",
    }),
  );
  return h(
    "div",
    { class: "slots" },
    h("p", { class: "big" }, text),
    h("div", { class: "row", "aria-hidden": "true" }, ...boxes),
  );
}

/** A bar of a share, with a mark; the texts say the same. */
function meter(kind: string, share: number, mark: number | null, left: string, right: string): Node {
  const width = Math.min(1, share) * 280;
  return h(
    "div",
    { class: "meter" },
    h("p", {}, h("strong", {}, left), h("span", {}, right)),
    s(
      "svg",
      { viewBox: "0 0 280 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      s("rect", { class: "track", width: 280, height: 10 }),
      s("rect", { class: `level ${kind}`, width: Math.max(share > 0 ? 2 : 0, width), height: 10 }),
      mark !== null && s("rect", { class: "mark", x: mark * 280 - 1, width: 2, height: 10 }),
    ),
  );
}

function isCountedFailure(event: Event): boolean {
  return event.kind === "end" && event.status === "applied" && event.call.outcome === "recordFailure";
}
