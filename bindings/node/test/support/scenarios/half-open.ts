/** Half-open circuits, permits and stuck states. */
import { CircuitOpenError, StoreUnavailableError } from "switchgear";
import { expect } from "vitest";
import { boom, Deferred, fail, succeed } from "../time";
import { changesOf, type Scenario, start, tripped } from "../world";

export const HALF_OPEN: readonly Scenario[] = [
  [
    "scenario 01: minimum calls never apply to a probe",
    async ({ clock, breaker: make }) => {
      for (const minimumCalls of [1, 1_000_000]) {
        const breaker = make({ tripOn: "rate", failureRate: 0.01, minimumCalls, openDurationMs: 1000 });
        await breaker.trip();
        clock.now += 50_000_000;
        await expect(breaker.execute(fail)).rejects.toBe(boom);
        expect(await breaker.getState()).toBe("open");
      }
    },
  ],
  [
    "scenario 02: six calls fail, the fifth trips once, and the probe comes at exactly its time",
    async ({ clock, breaker: make }) => {
      const breaker = make({ failureThreshold: 5, openDurationMs: 1000 });
      const changes = changesOf(breaker);
      const zero = clock.now;
      const calls = [];
      for (let i = 0; i < 6; i++) calls.push(await start(breaker));
      for (const [index, call] of calls.entries()) {
        clock.now = zero + 10 + index;
        call.reject(boom);
        await expect(call.result).rejects.toBe(boom);
      }
      expect(changes.map(({ toState, at, failures, openMs }) => [toState, at - zero, failures, openMs])).toEqual([
        ["open", 14, 5, 1000],
      ]);
      expect(await breaker.getSnapshot()).toMatchObject({ openedAt: zero + 14, trips: 1 });
      clock.now = zero + 1013;
      expect(await breaker.canExecute()).toBe(false);
      clock.now = zero + 1014;
      expect(await breaker.canExecute()).toBe(true);
    },
  ],
  [
    "scenario 03: a hundred times fail, fail, succeed",
    async ({ clock, breaker: make }) => {
      const breaker = await tripped(make, clock);
      for (let round = 0; round < 100; round++) {
        for (let probe = 0; probe < 2; probe++) {
          await expect(breaker.execute(fail)).rejects.toBe(boom);
          expect(await breaker.getState()).toBe("open");
          clock.now += 1000;
        }
        await expect(breaker.execute(succeed)).resolves.toBe("ok");
        expect(await breaker.getState()).toBe("closed");
        await expect(breaker.execute(fail)).rejects.toBe(boom);
        clock.now += 1000;
      }
    },
  ],
  [
    "scenario 04: two probes end neutrally, two new ones close",
    async ({ clock, breaker: make }) => {
      const isFailure = (error: unknown) => error === boom;
      const breaker = await tripped(make, clock, { halfOpenMaxCalls: 2, successThreshold: 2, isFailure });
      const probes = [await start(breaker), await start(breaker)];
      expect((await breaker.getSnapshot()).halfOpenInFlight).toBe(2);
      for (const probe of probes) {
        probe.reject("not found");
        await expect(probe.result).rejects.toBe("not found");
      }
      expect(await breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
      await Promise.all([breaker.execute(succeed), breaker.execute(succeed)]);
      expect(await breaker.getState()).toBe("closed");
    },
  ],
  [
    "scenario 05: a probe that never reports loses its slot after probeTimeoutMs",
    async ({ clock, breaker: make }) => {
      const breaker = await tripped(make, clock, { probeTimeoutMs: 5000 });
      await start(breaker);
      clock.now += 4999;
      expect(await breaker.canExecute()).toBe(false);
      clock.now += 1;
      expect(await breaker.canExecute()).toBe(true);
    },
  ],
  [
    "scenario 06: a thousand peeks eat no slot",
    async ({ clock, breaker: make }) => {
      const breaker = await tripped(make, clock, { halfOpenMaxCalls: 2, successThreshold: 2 });
      expect(await breaker.canExecute()).toBe(true);
      for (let peek = 0; peek < 500; peek++) {
        expect(await breaker.getState()).toBe("half-open");
        expect((await breaker.getSnapshot()).halfOpenInFlight).toBe(1);
      }
      expect(await breaker.canExecute()).toBe(true);
      expect(await breaker.canExecute()).toBe(false);
    },
  ],
  [
    "scenario 07: of 64 admissions at the reopening time exactly halfOpenMaxCalls go through",
    async ({ clock, breaker: make }) => {
      const breaker = await tripped(make, clock, { halfOpenMaxCalls: 3, successThreshold: 3 });
      let running = 0;
      const end = new Deferred();
      const calls = Array.from({ length: 64 }, () =>
        breaker.execute(() => {
          running += 1;
          return end.promise;
        }),
      );
      for (const call of calls) call.catch(() => undefined);
      const refused = await Promise.all(calls.slice(3).map((call) => call.catch((error) => error.code)));
      expect(refused).toEqual(Array(61).fill("circuit_open"));
      expect(running).toBe(3);
      end.resolve("ok");
      await Promise.all(calls.slice(0, 3));
      expect(await breaker.getState()).toBe("closed");
    },
  ],
  ...(["succeeds", "fails"] as const).map(
    (how): Scenario => [
      `scenario 08: a call admitted while closed that ${how} late does not decide a half-open circuit`,
      async ({ clock, breaker: make }) => {
        const breaker = make({ failureThreshold: 1, openDurationMs: 1000 });
        const late = await start(breaker);
        await expect(breaker.execute(fail)).rejects.toBe(boom);
        clock.now += 1000;
        const probe = await start(breaker);
        if (how === "fails") late.reject(boom);
        else late.resolve("late");
        await late.result.catch(() => undefined);
        expect(await breaker.getSnapshot()).toMatchObject({
          state: "half-open",
          halfOpenInFlight: 1,
          halfOpenSuccesses: 0,
        });
        probe.resolve("ok");
        await probe.result;
        expect(await breaker.getState()).toBe("closed");
      },
    ],
  ),
  [
    "scenario 09: ten in flight, one trip, openedAt unchanged by the late failures",
    async ({ clock, breaker: make }) => {
      const breaker = make({ failureThreshold: 5 });
      const changes = changesOf(breaker);
      const zero = clock.now;
      const calls = [];
      for (let i = 0; i < 10; i++) calls.push(await start(breaker));
      for (const call of calls) {
        call.reject(boom);
        await call.result.catch(() => undefined);
        clock.now += 1;
      }
      expect(changes).toHaveLength(1);
      expect(changes[0]).toMatchObject({
        circuit: breaker.name,
        fromState: "closed",
        toState: "open",
        reason: "threshold",
        failures: 5,
      });
      expect(await breaker.getSnapshot()).toMatchObject({ state: "open", openedAt: zero + 4, trips: 1 });
    },
  ],
  [
    "scenario 10: the two-step caller is told when its outcome did not count, and when it came twice",
    async ({ clock, breaker: make }) => {
      const breaker = make({ failureThreshold: 1, openDurationMs: 1000 });
      const late = await breaker.acquire();
      expect(await breaker.recordFailure(boom)).toBe("applied");
      expect(await breaker.recordFailure(boom)).toBe("stale");
      expect(await breaker.recordSuccess()).toBe("stale");
      expect(await breaker.release()).toBe("stale");
      expect(await late.recordFailure(boom)).toBe("stale");
      expect(await late.recordFailure(boom)).toBe("duplicate");
      clock.now += 1000;
      const probe = await breaker.acquire();
      expect(probe.probe).toBe(true);
      expect(await probe.release()).toBe("applied");
      expect(await probe.recordSuccess()).toBe("duplicate");
      expect(await breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
    },
  ],
  [
    "scenario 11: of a hundred probes the first that fails reopens",
    async ({ clock, breaker: make }) => {
      const breaker = await tripped(make, clock, { halfOpenMaxCalls: 100, successThreshold: 100 });
      const probes = [];
      for (let i = 0; i < 100; i++) probes.push(await breaker.acquire());
      for (const probe of probes.slice(0, 41)) expect(await probe.recordSuccess()).toBe("applied");
      expect(await probes[41]?.recordFailure()).toBe("applied");
      expect(await breaker.getSnapshot()).toMatchObject({ state: "open", trips: 2 });
    },
  ],
  [
    "scenario 12: the triad obeys the same limits as execute",
    async ({ clock, breaker: make }) => {
      const breaker = await tripped(make, clock, { halfOpenMaxCalls: 2, successThreshold: 2 });
      expect(await breaker.canExecute()).toBe(true);
      const probe = await start(breaker);
      expect(await breaker.canExecute()).toBe(false);
      await expect(breaker.execute(succeed)).rejects.toMatchObject({ code: "circuit_open", state: "half-open" });
      const acquiring = async () => breaker.acquire();
      await expect(acquiring()).rejects.toMatchObject({ code: "circuit_open", state: "half-open" });
      expect(await breaker.recordSuccess()).toBe("applied");
      probe.resolve("ok");
      await probe.result;
      expect(await breaker.getState()).toBe("closed");
    },
  ],
  [
    "scenario 13: the same error is classified alike when closed and when half-open",
    async ({ clock, breaker: make }) => {
      const breaker = make({ failureThreshold: 1, openDurationMs: 1000, isFailure: (error) => error !== "mine" });
      const mine = async () => Promise.reject("mine");
      await expect(breaker.execute(mine)).rejects.toBe("mine");
      expect(await breaker.recordFailure("mine")).toBe("applied");
      expect(await breaker.getState()).toBe("closed");
      await breaker.trip();
      clock.now += 1000;
      await expect(breaker.execute(mine)).rejects.toBe("mine");
      expect(await breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
      await expect(breaker.execute(fail)).rejects.toBe(boom);
      expect(await breaker.getState()).toBe("open");
    },
  ],
  [
    "scenario 14: after a cancelled probe the next call is admitted at once",
    async ({ clock, breaker: make }) => {
      const breaker = await tripped(make, clock);
      const controller = new AbortController();
      const probe = await start(breaker, { signal: controller.signal });
      controller.abort("gone");
      await expect(probe.result).rejects.toBe("gone");
      expect(await breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
      await expect(breaker.execute(succeed)).resolves.toBe("ok");
      expect(await breaker.getState()).toBe("closed");
    },
  ],
  [
    "scenario 15: a late success while open changes no deadline",
    async ({ clock, breaker: make }) => {
      const breaker = make({ failureThreshold: 1, openDurationMs: 1000 });
      const late = await start(breaker);
      await expect(breaker.execute(fail)).rejects.toBe(boom);
      clock.now += 400;
      late.resolve("late");
      await expect(late.result).resolves.toBe("late");
      expect(await breaker.getSnapshot()).toMatchObject({ state: "open", remainingOpenMs: 600 });
    },
  ],
  [
    "scenario 16: the call that begins the half-open period is one of the three",
    async ({ clock, breaker: make }) => {
      const breaker = await tripped(make, clock, { halfOpenMaxCalls: 3, successThreshold: 3 });
      const answers = [];
      for (let i = 0; i < 4; i++) answers.push(await breaker.canExecute());
      expect(answers).toEqual([true, true, true, false]);
    },
  ],
  [
    "scenario 17: a probe that succeeds frees its own slot, not another's",
    async ({ clock, breaker: make }) => {
      const policy = { halfOpenMaxCalls: 2, successThreshold: 5, probeTimeoutMs: 10_000 };
      const breaker = await tripped(make, clock, policy);
      const zero = clock.now;
      const first = await start(breaker);
      clock.now = zero + 9000;
      await start(breaker);
      clock.now = zero + 9500;
      first.resolve("ok");
      await first.result;
      expect((await breaker.getSnapshot()).halfOpenInFlight).toBe(1);
      clock.now = zero + 10_001;
      expect([await breaker.canExecute(), await breaker.canExecute()]).toEqual([true, false]);
    },
  ],
  [
    "a probe that meets its own circuit gives its slot back, and counts nowhere",
    async ({ clock, breaker: make }) => {
      const asked: unknown[] = [];
      const breaker = await tripped(make, clock, { isFailure: (error) => asked.push(error) > 0 });
      const nested = () => breaker.execute(() => breaker.execute(succeed));
      async function byPermit(): Promise<void> {
        const permit = await breaker.acquire();
        await breaker.execute(succeed).catch(async (refusal: unknown) => {
          await permit.recordFailure(refusal);
          throw refusal;
        });
        await permit.recordSuccess();
      }
      for (const call of [nested, byPermit, nested]) {
        await expect(call()).rejects.toMatchObject({ code: "circuit_open", state: "half-open", lastFailure: null });
        expect(await breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0, trips: 1 });
      }
      expect(asked).toEqual([]);
      await expect(breaker.execute(succeed)).resolves.toBe("ok");
      expect(await breaker.getState()).toBe("closed");
      await expect(nested()).resolves.toBe("ok");
    },
  ],
  [
    "the refusal of another circuit counts",
    async ({ breaker: make }) => {
      const outer = make({ failureThreshold: 1 });
      const refusal = new CircuitOpenError({ circuit: "inner", state: "open", retryAfterMs: 10, lastFailure: null });
      await expect(outer.execute(() => Promise.reject(refusal))).rejects.toBe(refusal);
      expect(await outer.getState()).toBe("open");
    },
  ],
  [
    "a store that fails within a call of the circuit is no failure of the dependency",
    async ({ breaker: make }) => {
      const outer = make({ failureThreshold: 1 });
      const refusal = new StoreUnavailableError(outer.name, null);
      await expect(outer.execute(() => Promise.reject(refusal))).rejects.toBe(refusal);
      expect(await outer.getState()).toBe("closed");
    },
  ],
  [
    "an error that cannot even be asked what it is counts, and comes through",
    async ({ breaker: make }) => {
      const breaker = make({ failureThreshold: 1 });
      const refuse = () => {
        throw boom;
      };
      const hostile = new Proxy({}, { getPrototypeOf: refuse });
      const caught = await breaker.execute(() => Promise.reject(hostile)).catch((error: unknown) => error);
      expect(Object.is(caught, hostile)).toBe(true);
      expect(await breaker.getState()).toBe("open");
    },
  ],
];
