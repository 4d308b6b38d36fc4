// The users' scenarios about time that only a local breaker has; those of every breaker are in support/scenarios.ts.
import { CircuitBreaker } from "switchgear";
import { describe, expect, test } from "vitest";
import { ManualClock } from "./support/time";

describe("time and windows", () => {
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

  test("scenario 22: after ten thousand reopenings the wait is still the longest", () => {
    const clock = new ManualClock();
    const policy = { failureThreshold: 1, openDurationMs: 1000, openBackoff: 2, openDurationMaxMs: 8000 };
    const breaker = new CircuitBreaker("c", { ...policy, clock: clock.read });
    breaker.recordFailure();
    for (let n = 0; n < 10_000; n++) {
      clock.now += breaker.getSnapshot().remainingOpenMs;
      expect(breaker.canExecute()).toBe(true);
      breaker.recordFailure();
    }
    expect(breaker.getSnapshot().remainingOpenMs).toBe(8000);
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
});
