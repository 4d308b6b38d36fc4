import { expect, test } from "vitest";
import { planCalls } from "../src/sim/plan";
import { setupWith } from "./support";

const all = { forMs: 1_000_000, share: 1, at: 0 } as const;

test("so many calls in a second, one in each gap, in order, all within the run", () => {
  const calls = planCalls(setupWith({ load: { callsPerSecond: 4, lengthMs: 30_000 } }));
  expect(calls).toHaveLength(120);
  for (const [index, { id, at }] of calls.entries()) {
    expect(id).toBe(index + 1);
    expect(Math.floor(at / 250)).toBe(index);
  }
});

test("answers take from half to one and a half times the latency", () => {
  const calls = planCalls(setupWith({ load: { latencyMs: 100 } }));
  const took = calls.map(({ at, endsAt }) => endsAt - at);
  expect(Math.min(...took)).toBeGreaterThanOrEqual(50);
  expect(Math.max(...took)).toBeLessThanOrEqual(150);
  expect(new Set(calls.map(({ how }) => how))).toEqual(new Set(["answered"]));
});

test("a call as slow as its caller is patient times out, and counts as a failure", () => {
  const calls = planCalls(setupWith({ load: { latencyMs: 1_000, timeoutMs: 500 } }));
  for (const call of calls) {
    expect(call).toMatchObject({ endsAt: call.at + 500, how: "timed out", outcome: "recordFailure" });
  }
});

test("an outage hits the calls that begin in it, from its first millisecond to the last", () => {
  const outage = { at: 10_000, forMs: 5_000, kind: "hang", share: 1 } as const;
  const calls = planCalls(setupWith({ load: { callsPerSecond: 100, timeoutMs: 700 }, outages: [outage] }));
  for (const { at, endsAt, how } of calls) {
    const inside = at >= 10_000 && at < 15_000;
    expect(how).toBe(inside ? "timed out" : "answered");
    if (inside) expect(endsAt).toBe(at + 700);
  }
});

test("an outage of errors answers as fast as ever; its share is a share", () => {
  const some = planCalls(
    setupWith({ load: { callsPerSecond: 200 }, outages: [{ ...all, kind: "error", share: 0.3 }] }),
  );
  const failed = some.filter(({ how }) => how === "failed");
  expect(failed.length / some.length).toBeGreaterThan(0.27);
  expect(failed.length / some.length).toBeLessThan(0.33);
  for (const { at, endsAt } of failed) expect(endsAt - at).toBeLessThanOrEqual(180);
  expect(
    planCalls(setupWith({ outages: [{ ...all, kind: "error", share: 0 }] })).every(({ how }) => how === "answered"),
  ).toBe(true);
});

test("what is not changed stays as it was: an outage moves no call and slows down none that it does not hit", () => {
  const [before, after] = [[], [{ ...all, at: 20_000, kind: "hang" as const }]].map((outages) =>
    planCalls(setupWith({ load: { failureShare: 0.2 }, outages })),
  );
  expect(after?.map(({ at }) => at)).toEqual(before?.map(({ at }) => at));
  const early = before?.filter(({ at }) => at < 20_000);
  expect(after?.slice(0, early?.length)).toEqual(early);
});

test("calls by hand end as they were said to, and change none of the others", () => {
  const acts = (["succeed", "fail", "hang", "cancel"] as const).map((what) => ({ at: 5_000, do: what }));
  const setup = setupWith({ load: { latencyMs: 80, timeoutMs: 900 }, acts });
  const calls = planCalls(setup);
  expect(calls.filter(({ byHand }) => byHand).map(({ endsAt, how, outcome }) => [endsAt, how, outcome])).toEqual([
    [5_080, "answered", "recordSuccess"],
    [5_080, "failed", "recordFailure"],
    [5_900, "timed out", "recordFailure"],
    [5_080, "cancelled", "release"],
  ]);
  expect(calls.filter(({ byHand }) => !byHand)).toEqual(planCalls({ ...setup, acts: [] }));
});

test("controls are no calls, and what is beyond the end is left out", () => {
  const acts = [
    { at: 10, do: "trip" },
    { at: 75_000, do: "succeed" },
  ] as const;
  expect(planCalls(setupWith({ acts }))).toEqual(planCalls(setupWith()));
});
