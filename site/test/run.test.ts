import fc from "fast-check";
import { CircuitBreakerState } from "switchgear";
import { expect, test } from "vitest";
import { PRESETS } from "../src/sim/presets";
import { eventsBy, Replay, type Run, runSetup } from "../src/sim/run";
import { type Act, HAND_CALLS, HAND_CONTROLS, OUTAGE_KINDS, type Policy, type Setup } from "../src/sim/setup";
import { make, setupWith } from "./support";

/** A run that trips, probes and closes, and in which hands are laid on. */
const EVENTFUL: Setup = setupWith({
  policy: { failureThreshold: 3, openDurationMs: 4_000, halfOpenMaxCalls: 2, successThreshold: 2 },
  load: { failureShare: 0.05, lengthMs: 40_000 },
  outages: [
    { at: 8_000, forMs: 9_000, kind: "hang", share: 0.9 },
    { at: 24_000, forMs: 3_000, kind: "error", share: 1 },
  ],
  acts: [
    { at: 2_000, do: "trip" },
    { at: 3_000, do: "reset" },
    { at: 31_000, do: "forceOpen" },
    { at: 33_000, do: "disable" },
    { at: 35_000, do: "reset" },
    { at: 35_000, do: "hang" },
  ],
});

test("the same set-up gives the same run, always", () => {
  for (const { setup } of [...PRESETS, { setup: EVENTFUL }]) {
    expect(runSetup(structuredClone(setup), make)).toEqual(runSetup(setup, make));
  }
});

test("the native core in Node says the same to the same calls at the same times", () => {
  for (const { setup } of [...PRESETS, { setup: EVENTFUL }]) {
    const run = runSetup(setup, make);
    const native = new CircuitBreakerState(setup.policy);
    const permits = new Map<number, NonNullable<ReturnType<typeof native.acquire>>>();
    for (const event of run.events) {
      const { at } = event;
      if (event.kind === "control") native[event.operation](at);
      else if (event.kind === "end") {
        expect(permits.get(event.call.id)?.[event.call.outcome](at)).toBe(event.status);
      } else {
        const permit = native.acquire(at);
        expect(event.answer.allowed).toBe(permit !== null);
        if (permit !== null) permits.set(event.call.id, permit);
        else if (!event.answer.allowed) expect(event.answer.retryAfterMs).toBe(native.retryAfterMs(at));
      }
      if (event.transition !== null) expect(native.getState()).toBe(event.transition.to);
    }
    const last = run.samples.at(-1);
    expect(last?.snapshot).toEqual(native.snapshot(setup.load.lengthMs));
  }
});

test("each call that was let through and ended within the run was settled once; a refused one never", () => {
  const { setup, events, calls } = runSetup(EVENTFUL, make);
  const asked = events.filter((event) => event.kind === "ask");
  expect(asked.map(({ call }) => call.id).sort((a, b) => a - b)).toEqual(
    calls.map(({ id }) => id).sort((a, b) => a - b),
  );
  const through = asked.filter(({ answer }) => answer.allowed).map(({ call }) => call);
  const ended = events.filter((event) => event.kind === "end").map(({ call }) => call.id);
  const due = through.filter(({ endsAt }) => endsAt <= setup.load.lengthMs).map(({ id }) => id);
  expect([...ended].sort((a, b) => a - b)).toEqual(due.sort((a, b) => a - b));
  expect(asked.length).toBeGreaterThan(through.length);
});

test("events are in the order of their times, and so are the samples", () => {
  const { events, samples } = runSetup(EVENTFUL, make);
  for (const list of [events, samples]) {
    for (let i = 1; i < list.length; i++) {
      expect(list[i]?.at).toBeGreaterThanOrEqual(list[i - 1]?.at as number);
    }
  }
  expect(samples[0]?.at).toBe(0);
  expect(samples.at(-1)?.at).toBe(40_000);
});

/** All that is seen after so many events, at the moment of the last of them and a little later. */
function seen(run: Run, replay: Replay, count: number): unknown {
  const at = run.events[count - 1]?.at ?? 0;
  const circuit = replay.after(count);
  return [circuit.snapshot(at), circuit.snapshot(at + 1_234), circuit.policy()];
}

test("to and fro: what is seen at a place is the same, whichever way one came", () => {
  const run = runSetup(EVENTFUL, make);
  const straight = new Replay(run, make);
  const expected = Array.from({ length: run.events.length + 1 }, (_, count) => seen(run, straight, count));
  const wandering = new Replay(run, make);
  const place = fc.integer({ min: 0, max: run.events.length });
  fc.assert(
    fc.property(fc.array(place, { minLength: 1, maxLength: 30 }), (places) => {
      for (const count of places) expect(seen(run, wandering, count)).toEqual(expected[count]);
    }),
    { numRuns: 60 },
  );
});

test("a replay sees what the run saw", () => {
  for (const { setup } of PRESETS) {
    const run = runSetup(setup, make);
    const replay = new Replay(run, make);
    const last = new Map(run.samples.map((sample) => [sample.at, sample.snapshot]));
    for (const [at, snapshot] of last) expect(replay.after(eventsBy(run, at)).snapshot(at)).toEqual(snapshot);
  }
});

test("a change by hand changes nothing before it", () => {
  const before = runSetup(EVENTFUL, make);
  const acts: Act[] = [...EVENTFUL.acts, { at: 20_000, do: "trip" }];
  const after = runSetup({ ...EVENTFUL, acts }, make);
  const early = (run: Run) => run.events.filter(({ at }) => at < 20_000);
  expect(early(after)).toEqual(early(before));
  expect(after.events.some(({ transition }) => transition?.at === 20_000 && transition.reason === "manual")).toBe(true);
});

test("how many events have happened by a moment", () => {
  const run = runSetup(EVENTFUL, make);
  for (const at of [0, 1, 1_999, 2_000, 2_001, 17_123, 40_000, 99_999]) {
    expect(eventsBy(run, at)).toBe(run.events.filter((event) => event.at <= at).length);
  }
});

test("whatever the set-up, no run breaks", () => {
  const act = fc.record({
    at: fc.integer({ min: 0, max: 30_000 }),
    do: fc.constantFrom(...HAND_CALLS, ...HAND_CONTROLS),
  });
  const outage = fc.record({
    at: fc.integer({ min: 0, max: 30_000 }),
    forMs: fc.integer({ min: 1, max: 30_000 }),
    kind: fc.constantFrom(...OUTAGE_KINDS),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  const policy = fc.constantFrom<Policy>(
    {},
    { failureThreshold: 1, openDurationMs: 1 },
    { tripOn: "consecutive", halfOpenMaxCalls: 3, successThreshold: 5, probeTimeoutMs: 50 },
    { tripOn: "rate", minimumCalls: 1, failureRate: 1, windowMs: 1 },
  );
  const load = fc.record({
    callsPerSecond: fc.constantFrom(0.1, 3, 40),
    latencyMs: fc.constantFrom(0, 120, 5_000),
    failureShare: fc.constantFrom(0, 0.5, 1),
    timeoutMs: fc.constantFrom(1, 2_000, 600_000),
    lengthMs: fc.constantFrom(1_000, 20_000),
    seed: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  });
  const given = fc.record({
    policy,
    load,
    outages: fc.array(outage, { maxLength: 4 }),
    acts: fc.array(act, { maxLength: 8 }),
  });
  fc.assert(
    fc.property(given, (setup: Setup) => {
      const run = runSetup(setup, make);
      const replay = new Replay(run, make);
      expect(replay.after(run.events.length).snapshot(setup.load.lengthMs)).toEqual(run.samples.at(-1)?.snapshot);
      replay.free();
    }),
    { numRuns: 60 },
  );
});
