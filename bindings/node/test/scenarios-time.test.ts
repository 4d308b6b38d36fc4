// The users' scenarios about time and windows, on the local breaker.
import { CircuitBreaker, type StateChange } from "switchgear";
import { describe, expect, test } from "vitest";
import { ManualClock } from "./support/time";

describe("time and windows", () => {
  test("scenario 18: an open circuit whose time is over says so, and reading it changes nothing", () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", { failureThreshold: 1, openDurationMs: 10_000, clock: clock.read });
    const changes: StateChange[] = [];
    breaker.on("stateChange", (change) => changes.push(change));
    breaker.recordFailure();
    clock.now = 10_000;
    for (let peek = 0; peek < 3; peek++) {
      expect(breaker.getSnapshot()).toMatchObject({ state: "open", remainingOpenMs: 0 });
    }
    expect(changes).toHaveLength(1);
    expect(breaker.canExecute()).toBe(true);
    expect(breaker.getState()).toBe("half-open");
    expect(changes[1]).toMatchObject({ fromState: "open", toState: "half-open", reason: "cooldown", at: 10_000 });
  });

  test("scenario 19: the clock steps back a minute while open: nobody waits longer than the open duration", () => {
    const clock = new ManualClock(1_000_000);
    const breaker = new CircuitBreaker("c", { failureThreshold: 1, openDurationMs: 30_000, clock: clock.read });
    breaker.recordFailure();
    clock.now -= 60_001;
    const refused = breaker.getSnapshot();
    expect(refused.remainingOpenMs).toBeLessThanOrEqual(30_000);
    expect(breaker.canExecute()).toBe(false);
    clock.now += 30_000;
    expect(breaker.canExecute()).toBe(true);
  });

  test("scenario 19: without a clock of its own a breaker does not follow the wall clock", () => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1, openDurationMs: 3_600_000 });
    const real = Date.now;
    try {
      breaker.recordFailure();
      Date.now = () => real() - 86_400_000;
      const before = breaker.getSnapshot();
      expect(before.remainingOpenMs).toBeLessThanOrEqual(3_600_000);
      Date.now = () => real() + 86_400_000;
      expect(breaker.canExecute()).toBe(false);
    } finally {
      Date.now = real;
    }
  });

  test("scenario 20: failures on both sides of a boundary share a sliding window; one that is as old as the window is out", () => {
    const clock = new ManualClock();
    const policy = { failureThreshold: 10, windowMs: 10_000, clock: clock.read };
    const breaker = new CircuitBreaker("c", policy);
    clock.now = 9900;
    for (let n = 0; n < 5; n++) breaker.recordFailure();
    clock.now = 10_100;
    for (let n = 0; n < 5; n++) breaker.recordFailure();
    expect(breaker.getState()).toBe("open");

    const edge = new CircuitBreaker("c", policy);
    clock.now = 0;
    for (let n = 0; n < 9; n++) edge.recordFailure();
    clock.now = 10_000;
    edge.recordFailure();
    expect(edge.getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 1 });
  });

  test("scenario 21: consecutive failures count however far apart they are", () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", { tripOn: "consecutive", failureThreshold: 5, clock: clock.read });
    for (let n = 1; n <= 4; n++) {
      clock.now = n * 30_000;
      breaker.recordFailure();
      expect(breaker.getSnapshot()).toMatchObject({ state: "closed", consecutiveFailures: n });
    }
    clock.now = 150_000;
    breaker.recordFailure();
    expect(breaker.getState()).toBe("open");
  });

  test("scenario 22: reopenings wait 1, 2, 4, 8, 8 s; after a close 1 again; after ten thousand still 8", () => {
    const clock = new ManualClock();
    const policy = { failureThreshold: 1, openDurationMs: 1000, openBackoff: 2, openDurationMaxMs: 8000 };
    const breaker = new CircuitBreaker("c", { ...policy, clock: clock.read });
    const wait = () => breaker.getSnapshot().remainingOpenMs;
    const reopen = () => {
      clock.now += wait();
      expect(breaker.canExecute()).toBe(true);
      breaker.recordFailure();
      return wait();
    };
    breaker.recordFailure();
    expect([wait(), reopen(), reopen(), reopen(), reopen()]).toEqual([1000, 2000, 4000, 8000, 8000]);
    for (let n = 0; n < 10_000; n++) reopen();
    expect(wait()).toBe(8000);
    clock.now += 8000;
    expect(breaker.canExecute()).toBe(true);
    breaker.recordSuccess();
    expect(breaker.getState()).toBe("closed");
    breaker.recordFailure();
    expect(wait()).toBe(1000);
  });

  test("scenario 23: a given 0 is never turned into the default", () => {
    const fields = ["failureThreshold", "windowMs", "openDurationMs", "halfOpenMaxCalls", "successThreshold"] as const;
    const all = [...fields, "probeTimeoutMs", "openBackoff", "openDurationMaxMs", "slowCallMs", "timeoutMs"] as const;
    for (const field of all) {
      const create = () => new CircuitBreaker("c", { [field]: 0 });
      expect(create, field).toThrow(expect.objectContaining({ code: "config_invalid", field, value: "0" }));
    }
    // Time itself may be 0.
    const breaker = new CircuitBreaker("c", { failureThreshold: 1, clock: () => 0 });
    breaker.recordFailure();
    expect(breaker.getSnapshot().openedAt).toBe(0);
  });

  test("scenario 24: opening times keep milliseconds", () => {
    const clock = new ManualClock(10_900);
    const breaker = new CircuitBreaker("c", { failureThreshold: 1, openDurationMs: 1000, clock: clock.read });
    breaker.recordFailure();
    clock.now = 11_000;
    expect(() => breaker.acquire()).toThrow(expect.objectContaining({ retryAfterMs: 900 }));
    clock.now = 11_899;
    expect(() => breaker.acquire()).toThrow(expect.objectContaining({ retryAfterMs: 1 }));
    clock.now = 11_900;
    expect(breaker.acquire().probe).toBe(true);
  });
});
