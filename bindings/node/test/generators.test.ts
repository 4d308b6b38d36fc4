// Generators are guarded over their whole life: scenario 34, and what follows from it.
import { CircuitBreaker } from "switchgear";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { describe, expect, test, vi } from "vitest";
import { boom, ManualClock } from "./support/time";

async function* asyncOnce(): AsyncGenerator<number, string> {
  yield 1;
  throw boom;
}

function* once(): Generator<number, string> {
  yield 1;
  throw boom;
}

async function* asyncCount(upTo: number): AsyncGenerator<number, string> {
  for (let n = 1; n <= upTo; n++) yield n;
  return "done";
}

function* count(upTo: number): Generator<number, string> {
  for (let n = 1; n <= upTo; n++) yield n;
  return "done";
}

async function all<T>(generator: AsyncIterable<T>): Promise<T[]> {
  const values: T[] = [];
  for await (const value of generator) values.push(value);
  return values;
}

/** Every way an async generator can go through a breaker. */
const asyncWays: Record<
  string,
  (breaker: CircuitBreaker, make: () => AsyncGenerator<number, string>) => Promise<AsyncGenerator<number, string>>
> = {
  guard: async (breaker, make) =>
    breaker.guard(async function* () {
      return yield* make();
    })(),
  execute: (breaker, make) => breaker.execute(make),
  "execute, not on the healthy path": (breaker, make) => breaker.execute(make, { timeoutMs: 60_000 }),
  executeSync: async (breaker, make) => breaker.executeSync(make),
  "guard of a plain function": async (breaker, make) => breaker.guard(() => make())(),
};

const syncWays: Record<
  string,
  (breaker: CircuitBreaker, make: () => Generator<number, string>) => Promise<Generator<number, string>>
> = {
  guard: async (breaker, make) =>
    breaker.guard(function* () {
      return yield* make();
    })(),
  execute: (breaker, make) => breaker.execute(make),
  executeSync: async (breaker, make) => breaker.executeSync(make),
  "guard of a plain function": async (breaker, make) => breaker.guard(() => make())(),
};

describe.each(Object.entries(asyncWays))("an async generator through %s", (_name, way) => {
  test("scenario 34: it yields once and then throws: open", async () => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
    const generator = await way(breaker, asyncOnce);
    expect(await generator.next()).toEqual({ done: false, value: 1 });
    expect(breaker.getState()).toBe("closed");
    await expect(generator.next()).rejects.toBe(boom);
    expect(breaker.getState()).toBe("open");
    expect(await generator.next()).toEqual({ done: true, value: undefined });
  });

  test("scenario 34: exhausting it keeps its return value, and is one success", async () => {
    const breaker = new CircuitBreaker("c");
    const success = vi.fn();
    breaker.on("success", success);
    const generator = await way(breaker, () => asyncCount(3));
    const results = [await generator.next(), await generator.next(), await generator.next(), await generator.next()];
    expect(results.map(({ value }) => value)).toEqual([1, 2, 3, "done"]);
    expect(results.at(-1)?.done).toBe(true);
    expect(success).toHaveBeenCalledTimes(1);
  });

  test("scenario 34: closing it early is neutral, and closes the original", async () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", { failureThreshold: 1, openDurationMs: 1000, clock: clock.read });
    breaker.recordFailure();
    clock.now = 1000;
    const ignored = vi.fn();
    breaker.on("ignored", ignored);
    let closed = false;
    const generator = await way(breaker, async function* () {
      try {
        yield 1;
        yield 2;
      } finally {
        closed = true;
      }
      return "done";
    });
    for await (const value of generator) {
      expect(value).toBe(1);
      expect(breaker.getSnapshot().halfOpenInFlight).toBe(1);
      break;
    }
    expect(closed).toBe(true);
    expect(breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0, halfOpenSuccesses: 0 });
    expect(ignored).toHaveBeenCalledTimes(1);
  });

  test("what is sent in arrives, and so does an error", async () => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
    const generator = await way(breaker, async function* () {
      const sent: unknown = yield 1;
      try {
        yield Number(sent) + 1;
      } catch (error) {
        return String(error);
      }
      return "done";
    });
    await generator.next();
    expect(await generator.next(41 as never)).toEqual({ done: false, value: 42 });
    expect(await generator.throw("stop")).toEqual({ done: true, value: "stop" });
    expect(breaker.getState()).toBe("closed");
  });

  test("a clean-up that throws counts", async () => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
    const generator = await way(breaker, async function* () {
      try {
        yield 1;
      } finally {
        // biome-ignore lint/correctness/noUnsafeFinally: it is the case under test.
        throw boom;
      }
    });
    await generator.next();
    await expect(generator.return("done")).rejects.toBe(boom);
    expect(breaker.getState()).toBe("open");
  });
});

describe.each(Object.entries(syncWays))("a generator through %s", (_name, way) => {
  test("scenario 34: it yields once and then throws: open", async () => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
    const generator = await way(breaker, once);
    expect(generator.next()).toEqual({ done: false, value: 1 });
    expect(() => generator.next()).toThrow(boom);
    expect(breaker.getState()).toBe("open");
    expect(generator.next()).toEqual({ done: true, value: undefined });
  });

  test("scenario 34: exhausting it keeps its return value, and is one success", async () => {
    const breaker = new CircuitBreaker("c");
    const success = vi.fn();
    breaker.on("success", success);
    const generator = await way(breaker, () => count(2));
    expect([generator.next(), generator.next(), generator.next()].map(({ value }) => value)).toEqual([1, 2, "done"]);
    expect(success).toHaveBeenCalledTimes(1);
  });

  test("scenario 34: closing it early is neutral", async () => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
    const ignored = vi.fn();
    breaker.on("ignored", ignored);
    for (const value of await way(breaker, () => count(3))) {
      expect(value).toBe(1);
      break;
    }
    expect(ignored).toHaveBeenCalledTimes(1);
    expect(breaker.getState()).toBe("closed");
  });
});

test.each([undefined, { timeoutMs: 60_000 }])(
  "a promise of a generator is a value like any other (options: %o)",
  async (options) => {
    const breaker = new CircuitBreaker("c");
    const success = vi.fn();
    breaker.on("success", success);
    for (const generator of [asyncOnce(), once()]) {
      expect(await breaker.execute<unknown>(async () => generator, options)).toBe(generator);
    }
    expect(success).toHaveBeenCalledTimes(2);
  },
);

describe("a guarded generator function", () => {
  test("asks for its permit at the first step, and not at all if there is none", async () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", { failureThreshold: 1, openDurationMs: 1000, clock: clock.read });
    const guarded = breaker.guard(asyncCount);
    const guardedSync = breaker.guard(count);
    const [first, second, unused] = [guarded(1), guardedSync(1), guarded(1)];
    breaker.recordFailure();
    await expect(first.next()).rejects.toMatchObject({ code: "circuit_open" });
    expect(() => second.next()).toThrow(expect.objectContaining({ code: "circuit_open" }));
    expect(await first.next()).toEqual({ done: true, value: undefined });
    clock.now = 1000;
    expect(await unused.return("never begun")).toEqual({ done: true, value: "never begun" });
    expect(breaker.getState()).toBe("open");
    expect(await all(guarded(3))).toEqual([1, 2, 3]);
    expect(breaker.getState()).toBe("closed");
  });

  test("refused, it goes on with what its fallback gives", async () => {
    const breaker = new CircuitBreaker("c");
    breaker.forceOpen();
    const guarded = breaker.guard(asyncCount, { fallback: async (_refusal, upTo) => asyncCount(upTo + 1) as never });
    expect(await all(guarded(1))).toEqual([1, 2]);
    const guardedSync = breaker.guard(count, { fallback: (_refusal, upTo) => count(upTo + 1) as never });
    expect([...guardedSync(1)]).toEqual([1, 2]);
    const wrong = breaker.guard(asyncCount, { fallback: () => 5 as never });
    await expect(wrong(1).next()).rejects.toThrow("must give something iterable, got 5");
  });

  test("failed midway, it goes on with what its fallback gives, if that is for failures", async () => {
    const breaker = new CircuitBreaker("c");
    const options = { fallback: () => asyncCount(2) as never, fallbackOn: "failure" } as const;
    expect(await all(breaker.guard(asyncOnce, options)())).toEqual([1, 1, 2]);
    expect([...breaker.guard(once, { fallback: () => count(2) as never, fallbackOn: "failure" })()]).toEqual([1, 1, 2]);
    expect(breaker.getSnapshot().failuresInWindow).toBe(2);
  });

  test("timeoutMs bounds each step, not the time its consumer takes", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const breaker = new CircuitBreaker("c", { timeoutMs: 20 });
      const generator = breaker.guard(async function* () {
        yield 1;
        yield 2;
        await new Promise(() => undefined);
        yield 3;
      })();
      await generator.next();
      await vi.advanceTimersByTimeAsync(1000);
      expect(await generator.next()).toEqual({ done: false, value: 2 });
      const hanging = generator.next();
      hanging.catch(() => undefined);
      await vi.advanceTimersByTimeAsync(20);
      await expect(hanging).rejects.toMatchObject({ code: "call_timeout" });
      expect(breaker.getSnapshot().failuresInWindow).toBe(1);
      expect(await generator.next()).toEqual({ done: true, value: undefined });
    } finally {
      vi.useRealTimers();
    }
  });

  test("a signal that is aborted ends it neutrally", async () => {
    const breaker = new CircuitBreaker("c");
    const cancel = new AbortController();
    const guarded = breaker.guard(
      async function* () {
        yield 1;
        await new Promise(() => undefined);
      },
      { signal: cancel.signal },
    );
    const generator = guarded();
    await generator.next();
    const pending = generator.next();
    cancel.abort("enough");
    await expect(pending).rejects.toBe("enough");
    expect(breaker.getSnapshot().failuresInWindow).toBe(0);
  });

  test("slowCallMs is about the time spent in it", async () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", { slowCallMs: 10, clock: clock.read });
    const guarded = breaker.guard(async function* () {
      clock.now += 6;
      yield 1;
      clock.now += 4;
    });
    for await (const _ of guarded()) clock.now += 1000;
    expect(breaker.getSnapshot().failuresInWindow).toBe(0);
    const slow = breaker.guard(function* () {
      clock.now += 6;
      yield 1;
      clock.now += 5;
    });
    expect([...slow()]).toEqual([1]);
    expect(breaker.getSnapshot().failuresInWindow).toBe(1);
  });

  test("steps asked for at once are answered in order", async () => {
    const breaker = new CircuitBreaker("c");
    const generator = breaker.guard(asyncCount)(2);
    const steps = await Promise.all([generator.next(), generator.next(), generator.next(), generator.next()]);
    expect(steps.map(({ value }) => value)).toEqual([1, 2, "done", undefined]);
  });

  test("steps asked for at once are answered by the fallback from the failure on", async () => {
    const breaker = new CircuitBreaker("c");
    const fallback = async function* () {
      yield 2;
      yield 3;
    };
    const generator = breaker.guard(asyncOnce, { fallback, fallbackOn: "failure" })();
    const steps = await Promise.all([generator.next(), generator.next(), generator.next(), generator.next()]);
    expect(steps.map(({ value }) => value)).toEqual([1, 2, 3, undefined]);
    expect(breaker.getSnapshot().failuresInWindow).toBe(1);
  });
});

describe("a generator function whose parameters throw", () => {
  const asyncPick = async function* ({ url }: { url: string }) {
    yield url;
  };
  const pick = function* ({ url }: { url: string }) {
    yield url;
  };
  const missing = undefined as never;

  test.each(["closed", "half-open"])("has failed at its first step: %s", async (state) => {
    for (const kind of ["async", "sync"]) {
      const clock = new ManualClock();
      const breaker = new CircuitBreaker("c", { failureThreshold: 1, openDurationMs: 100, clock: clock.read });
      if (state === "half-open") breaker.trip();
      clock.now = 100;
      const failure = vi.fn();
      breaker.on("failure", failure);
      if (kind === "async") await expect(breaker.guard(asyncPick)(missing).next()).rejects.toThrow(TypeError);
      else expect(() => breaker.guard(pick)(missing).next()).toThrow(TypeError);
      expect(breaker.getSnapshot()).toMatchObject({ state: "open", halfOpenInFlight: 0 });
      expect(failure).toHaveBeenCalledTimes(1);
    }
  });

  test("goes on with its fallback", async () => {
    const breaker = new CircuitBreaker("c");
    const options = { fallbackOn: "failure", fallback: () => ["instead"] } as const;
    expect(await all(breaker.guard(asyncPick, options)(missing) as AsyncGenerator<string>)).toEqual(["instead"]);
    expect([...(breaker.guard(pick, options)(missing) as Generator<string>)]).toEqual(["instead"]);
    expect(breaker.getSnapshot().failuresInWindow).toBe(2);
  });

  test("has failed for a shared circuit, too", async () => {
    const command = async () => [null, null, "7", null, null];
    const breaker = new DistributedCircuitBreaker("c", new RedisStore({ command }));
    const failure = vi.fn();
    breaker.on("failure", failure);
    await expect(breaker.guard(asyncPick)(missing).next()).rejects.toThrow(TypeError);
    expect(failure).toHaveBeenCalledTimes(1);
  });
});

describe("what a consumer throws into a generator that has not begun", () => {
  test.each(Object.entries(asyncWays))("is no failure: %s", async (_name, way) => {
    const breaker = new CircuitBreaker("c", { tripOn: "consecutive", failureThreshold: 1 });
    const generator = await way(breaker, () => asyncCount(2));
    await expect(generator.throw(boom)).rejects.toBe(boom);
    expect(await generator.next()).toEqual({ done: true, value: undefined });
    expect(breaker.getState()).toBe("closed");
  });

  test.each(Object.entries(syncWays))("is no failure of a sync one: %s", async (_name, way) => {
    const breaker = new CircuitBreaker("c", { tripOn: "consecutive", failureThreshold: 1 });
    const generator = await way(breaker, () => count(2));
    expect(() => generator.throw(boom)).toThrow(boom);
    expect(generator.next()).toEqual({ done: true, value: undefined });
    expect(breaker.getState()).toBe("closed");
  });

  test("gives the slot of a probe back", async () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", { openDurationMs: 100, clock: clock.read });
    breaker.trip();
    clock.now = 100;
    const generator = await breaker.execute(() => asyncCount(2));
    expect(breaker.getSnapshot().halfOpenInFlight).toBe(1);
    await expect(generator.throw(boom)).rejects.toBe(boom);
    expect(breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
  });
});
