/** What counts, cancellation, fallbacks and listeners. */
import type { Awaitable } from "switchgear";
import { expect } from "vitest";
import { boom, Deferred, fail, succeed } from "../time";
import { type Scenario, start, tripped } from "../world";

export const CALLS: readonly Scenario[] = [
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
