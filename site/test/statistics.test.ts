import { expect, test } from "vitest";
import type { Call } from "../src/sim/plan";
import { eventsBy, runSetup } from "../src/sim/run";
import { binned, grantedCalls, periodsOf, statisticsAt, transitionsOf, underWay } from "../src/sim/statistics";
import { make, setupWith } from "./support";

/** Nothing but what is done by hand: the one call of the load comes in the last second at the earliest. */
function byHand(
  policy: Record<string, number>,
  ...acts: readonly [at: number, what: "hang" | "succeed" | "fail" | "cancel"][]
) {
  const load = { callsPerSecond: 0.1, latencyMs: 100, timeoutMs: 2_000, lengthMs: 10_000, seed: LATE };
  return runSetup(setupWith({ policy, load, acts: acts.map(([at, what]) => ({ at, do: what })) }), make);
}

/** With this seed that call begins after the ninth second. */
const LATE = Array.from({ length: 1_000 }, (_, seed) => seed).find((seed) => {
  const setup = setupWith({ load: { callsPerSecond: 0.1, lengthMs: 10_000, seed } });
  return (runSetup(setup, make).calls[0]?.at ?? 0) > 9_000;
}) as number;

test("two calls hang and trip; the rest is refused, and what that spares is counted", () => {
  const run = byHand(
    { failureThreshold: 2, openDurationMs: 60_000 },
    [0, "hang"],
    [500, "hang"],
    [2_600, "hang"],
    [2_700, "succeed"],
  );
  const at = 4_000;
  expect(statisticsAt(run, eventsBy(run, at), at)).toEqual({
    ...{ calls: 4, succeeded: 0, failed: 2, cancelled: 0, inFlight: 0, probes: 0, stale: 0 },
    ...{ refused: 2, refusedInVain: 1, waitedMs: 4_000, waitedMsWithout: 4_000 + 1_400 },
    ...{ waitingPeak: 2, waitingPeakWithout: 2, waitingWithout: 1 },
  });
  expect(transitionsOf(run).map(({ event }) => [event.at, event.transition?.to])).toEqual([[2_500, "open"]]);
  expect(periodsOf(run).map(({ from, to, state }) => [from, to, state])).toEqual([
    [0, 2_500, "closed"],
    [2_500, 10_000, "open"],
  ]);
});

test("what has not ended is in flight, and has waited until now", () => {
  const run = byHand({}, [0, "hang"], [100, "succeed"], [150, "cancel"], [160, "fail"]);
  const at = 180;
  const early = statisticsAt(run, eventsBy(run, at), at);
  expect(early).toMatchObject({
    calls: 4,
    inFlight: 4,
    waitedMs: 180 + 30 + 20,
    waitedMsWithout: 230,
    waitingWithout: 4,
  });
  const late = statisticsAt(run, eventsBy(run, 3_000), 3_000);
  expect(late).toMatchObject({ inFlight: 0, succeeded: 1, failed: 2, cancelled: 1, waitedMs: 2_000 + 100 + 100 });
});

test("probes are counted, and outcomes that came too late", () => {
  const policy = { failureThreshold: 1, openDurationMs: 1_000 };
  // The second hangs longer than the circuit stays closed: its outcome is stale. The fourth is the probe that closes it.
  const run = byHand(policy, [0, "fail"], [50, "hang"], [600, "succeed"], [1_200, "succeed"]);
  const end = statisticsAt(run, eventsBy(run, 5_000), 5_000);
  expect(end).toMatchObject({ calls: 4, refused: 1, refusedInVain: 1, probes: 1, stale: 1, succeeded: 1, failed: 2 });
});

test("nothing has happened yet: zeros", () => {
  const run = byHand({}, [5_000, "fail"]);
  for (const value of Object.values(statisticsAt(run, 0, 0))) expect(value).toBe(0);
});

test("calls under way at moments: from their first millisecond to the one before their last", () => {
  const call = (at: number, endsAt: number) => ({ at, endsAt }) as Call;
  const calls = [call(10, 20), call(15, 16), call(20, 30)];
  expect(underWay(calls, [9, 10, 15, 16, 19, 20, 29, 30])).toEqual([0, 1, 2, 1, 1, 1, 1, 0]);
  expect(underWay([], [1, 2])).toEqual([0, 0]);
});

test("bins hold every call of the run once", () => {
  const run = runSetup(setupWith({ outages: [{ at: 20_000, forMs: 20_000, kind: "error", share: 1 }] }), make);
  for (const bins of [1, 7, 100]) {
    const sums = binned(run, bins).reduce(
      (sum, bin) => ({
        succeeded: sum.succeeded + bin.succeeded,
        failed: sum.failed + bin.failed,
        refused: sum.refused + bin.refused,
      }),
      { succeeded: 0, failed: 0, refused: 0 },
    );
    const through = grantedCalls(run);
    expect(sums.succeeded + sums.failed).toBe(through.length);
    expect(sums.failed).toBe(through.filter(({ outcome }) => outcome === "recordFailure").length);
    expect(sums.refused).toBe(run.calls.length - through.length);
  }
});
