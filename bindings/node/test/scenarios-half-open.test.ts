// The users' scenarios about half-open circuits, permits and stuck states, on the local breaker.
import { CircuitBreaker, type StateChange } from "switchgear";
import { describe, expect, test } from "vitest";
import { boom, Deferred, fail, ManualClock, succeed } from "./support/time";

/** A breaker that one failure trips, and its clock. */
function tripped(policy: ConstructorParameters<typeof CircuitBreaker>[1] = {}, now = 0) {
  const clock = new ManualClock(now);
  const breaker = new CircuitBreaker("c", { failureThreshold: 1, openDurationMs: 1000, clock: clock.read, ...policy });
  breaker.recordFailure();
  clock.now += 1000;
  return { breaker, clock };
}

/** Starts a call that is in flight until the test ends it. */
function start(breaker: CircuitBreaker) {
  const call = new Deferred();
  const result = breaker.execute(() => call.promise);
  result.catch(() => undefined);
  return { ...call, resolve: call.resolve, reject: call.reject, result };
}

describe("half-open circuits, permits and stuck states", () => {
  test("scenario 01: minimum calls never apply to a probe", async () => {
    const clock = new ManualClock();
    const policy = { tripOn: "rate", failureRate: 0.01, minimumCalls: 1, openDurationMs: 1000 } as const;
    const breaker = new CircuitBreaker("c", { ...policy, clock: clock.read });
    breaker.trip();
    clock.now = 50_000_000;
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    expect(breaker.getState()).toBe("open");
    const strict = new CircuitBreaker("c", { ...policy, minimumCalls: 1_000_000, clock: clock.read });
    strict.trip();
    clock.now += 1000;
    await expect(strict.execute(fail)).rejects.toBe(boom);
    expect(strict.getState()).toBe("open");
  });

  test("scenario 02: six calls fail, the fifth trips once, and the probe comes at exactly its time", async () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", { failureThreshold: 5, openDurationMs: 1000, clock: clock.read });
    const changes: StateChange[] = [];
    breaker.on("stateChange", (change) => changes.push(change));
    const calls = Array.from({ length: 6 }, () => start(breaker));
    for (const [index, call] of calls.entries()) {
      clock.now = 10 + index;
      call.reject(boom);
      await expect(call.result).rejects.toBe(boom);
    }
    expect(changes.map(({ toState, at }) => [toState, at])).toEqual([["open", 14]]);
    expect(breaker.getSnapshot()).toMatchObject({ openedAt: 14, trips: 1 });
    clock.now = 1013;
    expect(breaker.canExecute()).toBe(false);
    clock.now = 1014;
    expect(breaker.canExecute()).toBe(true);
  });

  test("scenario 03: a hundred times fail, fail, succeed", async () => {
    const { breaker, clock } = tripped();
    for (let round = 0; round < 100; round++) {
      await expect(breaker.execute(fail)).rejects.toBe(boom);
      expect(breaker.getState()).toBe("open");
      clock.now += 1000;
      await expect(breaker.execute(fail)).rejects.toBe(boom);
      expect(breaker.getState()).toBe("open");
      clock.now += 1000;
      await expect(breaker.execute(succeed)).resolves.toBe("ok");
      expect(breaker.getState()).toBe("closed");
      breaker.recordFailure();
      clock.now += 1000;
    }
  });

  test("scenario 04: two probes end neutrally, two new ones close", async () => {
    const isFailure = (error: unknown) => error === boom;
    const { breaker } = tripped({ halfOpenMaxCalls: 2, successThreshold: 2, isFailure });
    const probes = [start(breaker), start(breaker)];
    expect(breaker.getSnapshot().halfOpenInFlight).toBe(2);
    for (const probe of probes) {
      probe.reject("not found");
      await expect(probe.result).rejects.toBe("not found");
    }
    expect(breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
    await Promise.all([breaker.execute(succeed), breaker.execute(succeed)]);
    expect(breaker.getState()).toBe("closed");
  });

  test("scenario 05: a probe that never reports loses its slot after probeTimeoutMs", () => {
    const { breaker, clock } = tripped({ probeTimeoutMs: 5000 });
    start(breaker);
    clock.now = 1000 + 4999;
    expect(breaker.canExecute()).toBe(false);
    clock.now = 1000 + 5000;
    expect(breaker.canExecute()).toBe(true);
  });

  test("scenario 06: a thousand peeks eat no slot", () => {
    const { breaker } = tripped({ halfOpenMaxCalls: 2, successThreshold: 2 });
    expect(breaker.canExecute()).toBe(true);
    for (let peek = 0; peek < 1000; peek++) {
      expect(breaker.getState()).toBe("half-open");
      expect(breaker.getSnapshot().halfOpenInFlight).toBe(1);
    }
    expect(breaker.canExecute()).toBe(true);
    expect(breaker.canExecute()).toBe(false);
  });

  test("scenario 07: of 64 admissions at the reopening time exactly halfOpenMaxCalls go through", async () => {
    const { breaker } = tripped({ halfOpenMaxCalls: 3, successThreshold: 3 });
    let running = 0;
    const calls = Array.from({ length: 64 }, () =>
      breaker.execute(async () => {
        running += 1;
        await Promise.resolve();
        return "ok";
      }),
    );
    const results = await Promise.allSettled(calls);
    expect(running).toBe(3);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
    expect(breaker.getState()).toBe("closed");
  });

  test.each([
    ["succeeds", "half-open"],
    ["fails", "half-open"],
  ])(
    "scenario 08: a call admitted while closed that %s late does not decide a half-open circuit",
    async (how, state) => {
      const clock = new ManualClock();
      const breaker = new CircuitBreaker("c", { failureThreshold: 1, openDurationMs: 1000, clock: clock.read });
      const late = start(breaker);
      await expect(breaker.execute(fail)).rejects.toBe(boom);
      clock.now = 1000;
      const probe = start(breaker);
      if (how === "fails") late.reject(boom);
      else late.resolve("late");
      await late.result.catch(() => undefined);
      expect(breaker.getSnapshot()).toMatchObject({ state, halfOpenInFlight: 1, halfOpenSuccesses: 0 });
      probe.resolve("ok");
      await probe.result;
      expect(breaker.getState()).toBe("closed");
    },
  );

  test("scenario 09: ten in flight, one trip, openedAt unchanged by the late failures", async () => {
    const clock = new ManualClock(100);
    const breaker = new CircuitBreaker("c", { failureThreshold: 5, clock: clock.read });
    const changes: StateChange[] = [];
    breaker.on("stateChange", (change) => changes.push(change));
    for (const call of Array.from({ length: 10 }, () => start(breaker))) {
      clock.now += 1;
      call.reject(boom);
      await expect(call.result).rejects.toBe(boom);
    }
    expect(changes).toHaveLength(1);
    expect(changes[0]).toMatchObject({
      circuit: "c",
      fromState: "closed",
      toState: "open",
      reason: "threshold",
      failures: 5,
    });
    expect(breaker.getSnapshot().openedAt).toBe(105);
  });

  test("scenario 10: the two-step caller is told when its outcome did not count", () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", { failureThreshold: 1, clock: clock.read });
    const permit = breaker.acquire();
    expect(breaker.recordFailure()).toBe("applied");
    expect(permit.recordFailure()).toBe("stale");
    expect(permit.recordSuccess()).toBe("duplicate");
    expect(breaker.recordSuccess()).toBe("stale");
    expect(breaker.release()).toBe("stale");
  });

  test("scenario 11: with a hundred slots the first failing probe reopens", async () => {
    const { breaker } = tripped({ halfOpenMaxCalls: 100, successThreshold: 100 });
    const probes = Array.from({ length: 100 }, () => start(breaker));
    probes[41]?.reject(boom);
    await expect(probes[41]?.result).rejects.toBe(boom);
    expect(breaker.getState()).toBe("open");
  });

  test("scenario 12: the triad obeys the same limits as execute", async () => {
    const { breaker } = tripped({ halfOpenMaxCalls: 2, successThreshold: 2 });
    expect(breaker.canExecute()).toBe(true);
    start(breaker);
    expect(breaker.canExecute()).toBe(false);
    await expect(breaker.execute(succeed)).rejects.toMatchObject({ code: "circuit_open", state: "half-open" });
    expect(() => breaker.acquire()).toThrow(expect.objectContaining({ code: "circuit_open", state: "half-open" }));
  });

  test("scenario 13: the same error is classified alike when closed and when half-open", async () => {
    const isFailure = (error: unknown) => error !== "not found";
    const { breaker } = tripped({ isFailure });
    await expect(breaker.execute(() => Promise.reject("not found"))).rejects.toBe("not found");
    expect(breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
    await breaker.execute(succeed);
    await expect(breaker.execute(() => Promise.reject("not found"))).rejects.toBe("not found");
    expect(breaker.getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 0 });
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    expect(breaker.getState()).toBe("open");
  });

  test("scenario 14: a probe cancelled from outside frees its slot at once and counts nowhere", async () => {
    const { breaker } = tripped();
    const cancel = new AbortController();
    const hanging = breaker.execute(() => new Promise(() => undefined), { signal: cancel.signal });
    expect(breaker.canExecute()).toBe(false);
    cancel.abort(new Error("changed my mind"));
    await expect(hanging).rejects.toThrow("changed my mind");
    expect(breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0, halfOpenSuccesses: 0 });
    expect(breaker.canExecute()).toBe(true);
  });

  test("scenario 15: a late success while open changes no deadline", async () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", { failureThreshold: 1, openDurationMs: 1000, clock: clock.read });
    const late = start(breaker);
    breaker.recordFailure();
    clock.now = 400;
    const before = breaker.getSnapshot();
    late.resolve("late");
    await late.result;
    expect(breaker.getSnapshot()).toEqual(before);
    expect(before).toMatchObject({ state: "open", remainingOpenMs: 600 });
  });

  test("scenario 16: the call that moves open to half-open is one of the probes", () => {
    const { breaker } = tripped({ halfOpenMaxCalls: 3, successThreshold: 3 });
    expect([1, 2, 3, 4].map(() => breaker.canExecute())).toEqual([true, true, true, false]);
  });

  test("scenario 17: a probe frees its own slot, not another's", () => {
    const { breaker, clock } = tripped({ halfOpenMaxCalls: 2, successThreshold: 3, probeTimeoutMs: 10_000 });
    const begin = clock.now;
    const first = breaker.acquire();
    clock.now = begin + 9000;
    const second = breaker.acquire();
    clock.now = begin + 9500;
    expect(first.recordSuccess()).toBe("applied");
    clock.now = begin + 10_001;
    expect([breaker.canExecute(), breaker.canExecute()]).toEqual([true, false]);
    expect(second.recordSuccess()).toBe("applied");
  });
});
