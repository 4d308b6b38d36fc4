/**
 * The users' scenarios that must hold for any breaker, local or shared. Each is told what makes its breakers and may only
 * use what both kinds have in common; every answer is awaited, for a shared one is a promise.
 */
import type { Awaitable, Breaker, CircuitBreakerPolicy, Settled, StateChange } from "switchgear";
import { expect } from "vitest";
import { boom, Deferred, fail, type ManualClock, succeed } from "./time";

/** Both kinds of breaker give permits, each its own kind of permit. */
export interface AnyBreaker extends Breaker {
  acquire(): Awaitable<AnyPermit>;
}

interface AnyPermit {
  readonly probe: boolean;
  recordSuccess(): Awaitable<Settled>;
  recordFailure(error?: unknown): Awaitable<Settled>;
  release(): Awaitable<Settled>;
}

/** Where a scenario takes place. */
export interface World {
  readonly clock: ManualClock;
  /** Another breaker on the clock, each of a circuit of its own. */
  breaker(policy?: CircuitBreakerPolicy): AnyBreaker;
}

export type Scenario = readonly [title: string, run: (world: World) => Promise<void>];

export const SCENARIOS: readonly Scenario[] = [
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
  [
    "scenario 25: 32 calls cancelled by their callers count nothing",
    async ({ breaker: make }) => {
      const breaker = make({ failureThreshold: 1 });
      const callers = Array.from({ length: 32 }, () => new AbortController());
      const calls = [];
      for (const { signal } of callers) calls.push(await start(breaker, { signal }));
      for (const caller of callers) caller.abort("gone");
      for (const call of calls) await expect(call.result).rejects.toBe("gone");
      expect(await breaker.getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 0 });
    },
  ],
  [
    "scenario 26: a deadline of the dependency counts, the caller's own signal does not",
    async ({ breaker: make }) => {
      const breaker = make();
      for (const name of ["AbortError", "TimeoutError"]) {
        const theirs = new DOMException("the dependency took too long", name);
        const { signal } = new AbortController();
        await expect(breaker.execute(async () => Promise.reject(theirs), { signal })).rejects.toBe(theirs);
      }
      expect((await breaker.getSnapshot()).failuresInWindow).toBe(2);
      const controller = new AbortController();
      const result = breaker.execute(
        async () => {
          controller.abort();
          throw boom;
        },
        { signal: controller.signal },
      );
      await expect(result).rejects.toBeDefined();
      expect((await breaker.getSnapshot()).failuresInWindow).toBe(2);
    },
  ],
  [
    "scenario 27: an ignored error reaches the caller as it is, without fallback and without failure",
    async ({ breaker: make }) => {
      const breaker = make({ failureThreshold: 1, isFailure: () => false });
      let fellBack = 0;
      const fallback = () => {
        fellBack += 1;
        return "instead";
      };
      await expect(breaker.execute(fail, { fallback, fallbackOn: "failure" })).rejects.toBe(boom);
      expect(fellBack).toBe(0);
      expect(await breaker.getState()).toBe("closed");
    },
  ],
  [
    "scenario 28: a call that times out and then rejects is one failure and one fallback",
    async ({ breaker: make }) => {
      const breaker = make({ failureThreshold: 2, timeoutMs: 20 });
      const late = new Deferred();
      let fellBack = 0;
      const result = breaker.execute(() => late.promise, {
        fallbackOn: "failure",
        fallback: (error) => {
          fellBack += 1;
          return (error as { code: string }).code;
        },
      });
      await expect(result).resolves.toBe("call_timeout");
      late.reject(boom);
      expect(fellBack).toBe(1);
      expect((await breaker.getSnapshot()).failuresInWindow).toBe(1);
    },
  ],
  [
    "scenario 29: a timeout of one call aborts no other",
    async ({ breaker: make }) => {
      const breaker = make();
      const signals: (AbortSignal | undefined)[] = [];
      const end = new Deferred();
      const run = (signal?: AbortSignal) => {
        signals.push(signal);
        return end.promise;
      };
      const patient = breaker.execute(run, { timeoutMs: 60_000 });
      await expect(breaker.execute(run, { timeoutMs: 20 })).rejects.toMatchObject({ code: "call_timeout" });
      expect(signals.map((signal) => signal?.aborted)).toEqual([false, true]);
      end.resolve("ok");
      await expect(patient).resolves.toBe("ok");
    },
  ],
  [
    "scenario 30: a retry loop stops at the refusal, which says when to come back",
    async ({ breaker: make }) => {
      const breaker = make({ failureThreshold: 3, openDurationMs: 12_300 });
      let attempts = 0;
      let last: unknown;
      while (attempts < 100 && (last as { retryable?: boolean } | undefined)?.retryable !== false) {
        attempts += 1;
        last = await breaker.execute(fail).catch((error) => error);
      }
      expect(attempts).toBe(4);
      expect(last).toMatchObject({
        name: "CircuitOpenError",
        retryable: false,
        retryAfterMs: 12_300,
        status: 503,
        headers: { "Retry-After": "13" },
        message: `circuit \`${breaker.name}\` is open, retry in 12.3 s (last failure: ECONNREFUSED)`,
      });
    },
  ],
  [
    "scenario 31: a classifier that throws leaves the caller the original error and frees the slot",
    async ({ clock, breaker: make }) => {
      const isFailure = () => {
        throw new Error("a bug in the classifier");
      };
      const breaker = await tripped(make, clock, { isFailure });
      await expect(breaker.execute(fail)).rejects.toBe(boom);
      expect(await breaker.getSnapshot()).toMatchObject({ state: "open", halfOpenInFlight: 0 });
    },
  ],
  [
    "scenario 31: a classifier of results that throws counts, and leaves the caller the value",
    async ({ breaker: make }) => {
      const isFailureResult = () => {
        throw new Error("a bug in the classifier");
      };
      const breaker = make({ isFailureResult });
      await expect(breaker.execute(succeed)).resolves.toBe("ok");
      expect((await breaker.getSnapshot()).failuresInWindow).toBe(1);
    },
  ],
  [
    "scenario 32: a function that returns undefined synchronously is a success",
    async ({ clock, breaker: make }) => {
      const breaker = await tripped(make, clock);
      await expect(breaker.execute(() => undefined)).resolves.toBeUndefined();
      expect(await breaker.getState()).toBe("closed");
    },
  ],
  [
    "scenario 36: each call emits exactly one event, and the body runs exactly once",
    async ({ clock, breaker: make }) => {
      const told = {
        success: "success",
        failure: "failure",
        ignored: "ignored",
        refused: "refused",
        slow: "failure",
        timeout: "failure",
        cancelled: "ignored",
      };
      for (const [how, event] of Object.entries(told)) {
        const breaker = make({ isFailure: (error) => error === boom, slowCallMs: 10 });
        const events: string[] = [];
        for (const name of ["success", "failure", "ignored", "refused"] as const) {
          breaker.on(name, ({ circuit }) => events.push(`${name} of ${circuit}`));
        }
        if (how === "refused") await breaker.forceOpen();
        const caller = new AbortController();
        let ran = 0;
        const body = () => {
          ran += 1;
          if (how === "failure") throw boom;
          if (how === "ignored") throw new Error("not found");
          if (how === "slow") clock.now += 11;
          if (how === "cancelled") caller.abort("gone");
          return how === "timeout" || how === "cancelled" ? new Promise(() => undefined) : succeed();
        };
        const options = { timeoutMs: how === "timeout" ? 5 : 60_000, signal: caller.signal };
        await breaker.execute(body, options).catch(() => undefined);
        expect(events, how).toEqual([`${event} of ${breaker.name}`]);
        expect(ran, how).toBe(how === "refused" ? 0 : 1);
      }
    },
  ],
  [
    "scenario 37: a listener may use the breaker, and events come after the transition, in order",
    async ({ clock, breaker: make }) => {
      const breaker = make({ failureThreshold: 1, openDurationMs: 1000 });
      const seen: Awaitable<string>[] = [];
      const order: string[] = [];
      breaker.on("stateChange", ({ fromState, toState }) => {
        order.push(`${fromState} > ${toState}`);
        seen.push(breaker.getState());
        if (toState === "closed") seen.push(Promise.resolve(breaker.reset()).then(() => "reset"));
      });
      await expect(breaker.execute(fail)).rejects.toBe(boom);
      expect(await Promise.all(seen)).toEqual(["open"]);
      clock.now += 1000;
      await breaker.execute(succeed);
      expect(order).toEqual(["closed > open", "open > half-open", "half-open > closed"]);
      expect((await Promise.all(seen)).slice(2)).toEqual(["closed", "reset"]);
    },
  ],
  [
    "scenario 38: a listener that throws changes nothing, and the others still run",
    async ({ breaker: make }) => {
      const breaker = make({ failureThreshold: 1 });
      const heard: string[] = [];
      for (const name of ["stateChange", "failure"] as const) {
        breaker.on(name, () => {
          throw new Error("a bug in the listener");
        });
        breaker.on(name, () => heard.push(name));
      }
      await expect(breaker.execute(fail)).rejects.toBe(boom);
      expect(heard.sort()).toEqual(["failure", "stateChange"]);
      expect(await breaker.getState()).toBe("open");
    },
  ],
  [
    "values, promises and lazy thenables pass through, and `then` is called once",
    async ({ breaker: make }) => {
      const breaker = make();
      let subscribed = 0;
      const query = {
        // biome-ignore lint/suspicious/noThenProperty: a lazy thenable, as query builders are.
        then(resolve: (rows: string[]) => void) {
          subscribed += 1;
          resolve(["row"]);
        },
      };
      await expect(breaker.execute(() => query as unknown as Promise<string[]>)).resolves.toEqual(["row"]);
      expect(subscribed).toBe(1);
      await expect(breaker.execute(() => 7)).resolves.toBe(7);
    },
  ],
  [
    "a result may count as a failure and is still returned; so may a slow success",
    async ({ clock, breaker: make }) => {
      const results = make({ failureThreshold: 2, isFailureResult: (value) => value === 503 });
      await expect(results.execute(() => 503)).resolves.toBe(503);
      expect((await results.getSnapshot()).failuresInWindow).toBe(1);
      const slow = make({ failureThreshold: 2, slowCallMs: 100 });
      const take = (ms: number) => async () => {
        clock.now += ms;
        return "ok";
      };
      await slow.execute(take(100));
      expect((await slow.getSnapshot()).failuresInWindow).toBe(0);
      await expect(slow.execute(take(101))).resolves.toBe("ok");
      expect((await slow.getSnapshot()).failuresInWindow).toBe(1);
    },
  ],
  [
    "a fallback steps in for a refusal, runs once, and its own error names the refusal as its cause",
    async ({ breaker: make }) => {
      const breaker = make();
      await breaker.forceOpen();
      await expect(breaker.execute(succeed, { fallback: (refusal) => refusal })).resolves.toMatchObject({
        code: "circuit_open",
        retryAfterMs: null,
      });
      const fallback = () => {
        throw new Error("no luck either");
      };
      await expect(breaker.execute(succeed, { fallback })).rejects.toMatchObject({
        message: "no luck either",
        cause: { code: "circuit_open" },
      });
    },
  ],
  [
    "a caller who gave up before is not served, and nothing is counted",
    async ({ clock, breaker: make }) => {
      const breaker = await tripped(make, clock);
      let ran = 0;
      const result = breaker.execute(() => (ran += 1), { signal: AbortSignal.abort("gone") });
      await expect(result).rejects.toBe("gone");
      expect(ran).toBe(0);
      expect((await breaker.getSnapshot()).halfOpenInFlight).toBe(0);
    },
  ],
  [
    "under observe every call goes ahead, and what would have been refused is said",
    async ({ breaker: make }) => {
      const breaker = make({ failureThreshold: 1, observe: true });
      const events: string[] = [];
      for (const name of ["success", "failure", "refused"] as const) breaker.on(name, () => events.push(name));
      await expect(breaker.execute(fail)).rejects.toBe(boom);
      expect(await breaker.getState()).toBe("open");
      await expect(breaker.execute(succeed)).resolves.toBe("ok");
      expect(await breaker.canExecute()).toBe(true);
      expect(await (await breaker.acquire()).recordSuccess()).toBe("stale");
      expect(events).toEqual(["failure", "refused", "refused", "refused"]);
    },
  ],
];

/** A breaker that one failure has tripped, at the moment when probes are admitted. */
async function tripped(make: World["breaker"], clock: ManualClock, policy?: CircuitBreakerPolicy): Promise<AnyBreaker> {
  const breaker = make({ failureThreshold: 1, openDurationMs: 1000, ...policy });
  await breaker.trip();
  clock.now += 1000;
  return breaker;
}

/** Starts a call, and answers when its function runs; it is in flight until the scenario ends it. */
async function start(breaker: Breaker, options?: { signal: AbortSignal }) {
  const call = new Deferred();
  const begun = new Deferred<void>();
  const run = () => {
    begun.resolve();
    return call.promise;
  };
  const result = options === undefined ? breaker.execute(run) : breaker.execute(run, options);
  result.catch((error) => begun.reject(error));
  await begun.promise;
  return { result, resolve: call.resolve, reject: call.reject };
}

function changesOf(breaker: Breaker): StateChange[] {
  const changes: StateChange[] = [];
  breaker.on("stateChange", (change) => changes.push(change));
  return changes;
}
