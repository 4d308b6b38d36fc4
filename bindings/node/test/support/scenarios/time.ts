/** Time and windows. */
import { expect } from "vitest";
import { boom, fail, succeed } from "../time";
import { changesOf, type Scenario } from "../world";

export const TIME: readonly Scenario[] = [
  [
    "scenario 18: an open duration that is over reads as 0 left, and only a call begins the probing",
    async ({ clock, breaker: make }) => {
      const breaker = make({ failureThreshold: 1, openDurationMs: 10_000 });
      const changes = changesOf(breaker);
      await breaker.recordFailure();
      clock.now += 10_000;
      const before = await breaker.getSnapshot();
      expect(before).toMatchObject({ state: "open", remainingOpenMs: 0 });
      expect(await breaker.getSnapshot()).toEqual(before);
      expect(changes).toHaveLength(1);
      expect((await breaker.acquire()).probe).toBe(true);
      expect(changes[1]).toMatchObject({
        fromState: "open",
        toState: "half-open",
        reason: "cooldown",
        at: clock.now,
        openMs: null,
      });
    },
  ],
  [
    "scenario 20: failures around a window's end count together, and one that is a window old is out",
    async ({ clock, breaker: make }) => {
      const zero = clock.now;
      const straddling = make({ failureThreshold: 10, windowMs: 10_000 });
      for (const at of [9900, 10_100]) {
        clock.now = zero + at;
        for (let i = 0; i < 5; i++) await straddling.recordFailure();
      }
      expect(await straddling.getState()).toBe("open");
      const exact = make({ failureThreshold: 2, windowMs: 10_000 });
      await exact.recordFailure();
      clock.now += 10_000;
      await exact.recordFailure();
      expect(await exact.getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 1 });
      clock.now += 9999;
      await exact.recordFailure();
      expect(await exact.getState()).toBe("open");
    },
  ],
  [
    "scenario 21: consecutive failures trip however far apart",
    async ({ clock, breaker: make }) => {
      const breaker = make({ tripOn: "consecutive", failureThreshold: 5 });
      for (let i = 0; i < 4; i++) {
        await breaker.recordFailure();
        clock.now += 30_000;
      }
      expect(await breaker.getSnapshot()).toMatchObject({ state: "closed", consecutiveFailures: 4 });
      await breaker.recordFailure();
      expect(await breaker.getState()).toBe("open");
    },
  ],
  [
    "scenario 22: the backoff grows to its cap and starts anew after a close",
    async ({ clock, breaker: make }) => {
      const policy = { openDurationMs: 1000, openBackoff: 2, openDurationMaxMs: 8000 };
      const breaker = make({ ...policy, failureThreshold: 1 });
      const waits = [];
      for (let i = 0; i < 5; i++) {
        await expect(breaker.execute(fail)).rejects.toBe(boom);
        const { remainingOpenMs } = await breaker.getSnapshot();
        waits.push(remainingOpenMs);
        clock.now += remainingOpenMs;
      }
      expect(waits).toEqual([1000, 2000, 4000, 8000, 8000]);
      await expect(breaker.execute(succeed)).resolves.toBe("ok");
      await expect(breaker.execute(fail)).rejects.toBe(boom);
      expect((await breaker.getSnapshot()).remainingOpenMs).toBe(1000);
    },
  ],
  [
    "scenario 24: opening times keep milliseconds",
    async ({ clock, breaker: make }) => {
      const breaker = make({ failureThreshold: 1, openDurationMs: 1000 });
      clock.now += 900;
      await breaker.recordFailure();
      clock.now += 100;
      await expect(breaker.execute(succeed)).rejects.toMatchObject({ retryAfterMs: 900 });
      clock.now += 899;
      await expect(breaker.execute(succeed)).rejects.toMatchObject({ retryAfterMs: 1 });
      clock.now += 1;
      expect((await breaker.acquire()).probe).toBe(true);
    },
  ],
];
