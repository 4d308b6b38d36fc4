// What `execute` and `executeSync` promise about values, errors, fallbacks, signals and timeouts.
import { CircuitBreaker, type CircuitBreakerPolicy } from "switchgear";
import { describe, expect, test, vi } from "vitest";
import { runScript } from "./support/child";
import { boom, Deferred, fail, ManualClock, succeed } from "./support/time";

/** Breakers on which calls take different paths to the same end. */
const PATHS: Record<string, CircuitBreakerPolicy> = {
  "rolling, healthy": {},
  "consecutive, healthy": { tripOn: "consecutive" },
  rate: { tripOn: "rate" },
  "with a timeout": { timeoutMs: 60_000 },
  "with slowCallMs": { slowCallMs: 60_000 },
  "observed only": { observe: true },
};

describe.each(Object.entries(PATHS))("%s", (_name, policy) => {
  test("values, promises, subclasses of promises and lazy thenables arrive; a `then` is called once", async () => {
    const breaker = new CircuitBreaker("c", policy);
    class LazyPromise<T> extends Promise<T> {
      static calls = 0;
      // biome-ignore lint/suspicious/noThenProperty: query builders do this.
      override then<A, B>(...args: Parameters<Promise<T>["then"]>): Promise<A | B> {
        LazyPromise.calls += 1;
        return super.then(...args) as Promise<A | B>;
      }
    }
    const then = vi.fn((resolve: (value: string) => void) => resolve("rows"));
    // biome-ignore lint/suspicious/noThenProperty: an object that looks like a thenable and is none.
    const object = { then: 5 };
    await expect(breaker.execute(() => 42)).resolves.toBe(42);
    await expect(breaker.execute(() => null)).resolves.toBeNull();
    await expect(breaker.execute(() => object as never)).resolves.toBe(object);
    await expect(breaker.execute(succeed)).resolves.toBe("ok");
    await expect(breaker.execute(() => LazyPromise.resolve("lazy"))).resolves.toBe("lazy");
    expect(LazyPromise.calls).toBe(1);
    await expect(breaker.execute(() => ({ then }) as never)).resolves.toBe("rows");
    expect(then).toHaveBeenCalledTimes(1);
  });

  test("the original error arrives, thrown or rejected, whatever it is", async () => {
    const breaker = new CircuitBreaker("c", {
      ...policy,
      ...(policy.tripOn === "rate" ? {} : { failureThreshold: 100 }),
    });
    for (const error of [boom, "text", undefined, null, 0, Object.freeze(new Error("frozen"))]) {
      await expect(breaker.execute(() => Promise.reject(error))).rejects.toBe(error);
      await expect(
        breaker.execute(() => {
          throw error;
        }),
      ).rejects.toBe(error);
    }
    const { failuresInWindow, consecutiveFailures } = breaker.getSnapshot();
    expect(Math.max(failuresInWindow, consecutiveFailures)).toBe(12);
  });

  test("a function gets a signal only when there is a timeout or a caller's signal", async () => {
    const breaker = new CircuitBreaker("c", policy);
    const seen = vi.fn(async (_signal?: AbortSignal) => "ok");
    await breaker.execute(seen);
    const expected = policy.timeoutMs === undefined ? undefined : expect.any(AbortSignal);
    expect(seen).toHaveBeenLastCalledWith(...(expected === undefined ? [] : [expected]));
    await breaker.execute(seen, { signal: new AbortController().signal });
    expect(seen).toHaveBeenLastCalledWith(expect.any(AbortSignal));
    await breaker.execute(seen, { timeoutMs: 60_000 });
    expect(seen).toHaveBeenLastCalledWith(expect.any(AbortSignal));
  });

  test("a call whose signal is aborted already does not begin, and counts nowhere", async () => {
    const breaker = new CircuitBreaker("c", policy);
    const body = vi.fn();
    const ignored = vi.fn();
    breaker.on("ignored", ignored);
    const before = breaker.getSnapshot();
    await expect(breaker.execute(body, { signal: AbortSignal.abort("never mind") })).rejects.toBe("never mind");
    expect(body).not.toHaveBeenCalled();
    expect(ignored).toHaveBeenCalledTimes(1);
    expect(breaker.getSnapshot()).toEqual(before);
  });
});

describe("a closed, healthy circuit", () => {
  test.each(["rolling", "consecutive"] as const)(
    "%s: no clock is read and the machine is not asked",
    async (tripOn) => {
      const clock = new ManualClock();
      const breaker = new CircuitBreaker("c", { tripOn, clock: clock.read });
      const core = Object.getPrototypeOf((breaker as unknown as { machine: { core: object } }).machine.core);
      const spies = Object.getOwnPropertyNames(core)
        .filter((name) => name !== "constructor")
        .map((name) => vi.spyOn(core, name as never));
      clock.reads = 0;
      try {
        for (let n = 0; n < 10; n++) {
          await breaker.execute(succeed);
          await breaker.execute(succeed, { fallback: () => "cached" });
          await breaker.guard(succeed)();
          breaker.executeSync(() => 1);
          breaker.canExecute();
          breaker.recordSuccess();
          breaker.acquire().recordSuccess();
        }
        for (const spy of spies) expect(spy).not.toHaveBeenCalled();
        expect(clock.reads).toBe(0);
        await breaker.execute(fail).catch(() => undefined);
        expect(clock.reads).toBe(1);
      } finally {
        for (const spy of spies) spy.mockRestore();
      }
    },
  );

  test("consecutive: a success that began while healthy still ends the row that began meanwhile", async () => {
    const breaker = new CircuitBreaker("c", { tripOn: "consecutive", failureThreshold: 2 });
    const call = new Deferred();
    const pending = breaker.execute(() => call.promise);
    await breaker.execute(fail).catch(() => undefined);
    expect(breaker.getSnapshot().consecutiveFailures).toBe(1);
    call.resolve("ok");
    await pending;
    expect(breaker.getSnapshot().consecutiveFailures).toBe(0);
  });

  test("a function that trips its own breaker", async () => {
    const breaker = new CircuitBreaker("c", { openDurationMs: 1000 });
    await expect(breaker.execute(() => breaker.trip())).resolves.toBeUndefined();
    expect(breaker.getState()).toBe("open");
  });
});

describe("a function that ends the period its own call was admitted in", () => {
  const ENDS: Record<string, () => unknown> = {
    throws: () => {
      throw boom;
    },
    rejects: fail,
    // biome-ignore lint/suspicious/noThenProperty: lazy thenables are a way to give a result.
    "gives a thenable that rejects": () => ({ then: (_: unknown, reject: (error: unknown) => void) => reject(boom) }),
  };

  test.each(Object.entries(ENDS))("and then %s: its outcome is stale", async (_how, end) => {
    for (const policy of [{}, { tripOn: "consecutive" }, { timeoutMs: 60_000 }] as const) {
      const clock = new ManualClock();
      const breaker = new CircuitBreaker("c", { failureThreshold: 1, clock: clock.read, ...policy });
      const call = breaker.execute(() => {
        clock.now += 1;
        breaker.reset();
        return end() as Promise<never>;
      });
      await expect(call).rejects.toBe(boom);
      expect(breaker.getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 0, consecutiveFailures: 0 });
    }
  });
});

describe("fallbacks", () => {
  test("for refusals: gets the refusal, and failures are rethrown", async () => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
    const fallback = vi.fn(async (_error: unknown) => "cached");
    await expect(breaker.execute(fail as () => Promise<string>, { fallback })).rejects.toBe(boom);
    expect(fallback).not.toHaveBeenCalled();
    await expect(breaker.execute(succeed, { fallback })).resolves.toBe("cached");
    expect(fallback).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: "circuit_open" }));
    expect(breaker.executeSync(() => "ok", { fallback: (error) => String((error as Error).name) })).toBe(
      "CircuitOpenError",
    );
  });

  test("for failures: also counted errors and timeouts, once", async () => {
    const breaker = new CircuitBreaker("c");
    const fallback = vi.fn(async (error: unknown) => (error as { code: string }).code);
    const options = { fallback, fallbackOn: "failure" } as const;
    await expect(breaker.execute(fail as () => Promise<string>, options)).resolves.toBe("ECONNREFUSED");
    const hang = () => new Promise<string>(() => undefined);
    await expect(breaker.execute(hang, { ...options, timeoutMs: 5 })).resolves.toBe("call_timeout");
    breaker.forceOpen();
    await expect(breaker.execute(succeed, options)).resolves.toBe("circuit_open");
    expect(fallback).toHaveBeenCalledTimes(3);
  });

  test("for failures: not for what is neutral, and not for a value that counts as failure", async () => {
    const breaker = new CircuitBreaker("c", { isFailure: () => false, isFailureResult: (value) => value === "503" });
    const options = { fallback: () => "cached", fallbackOn: "failure" } as const;
    await expect(breaker.execute(fail as () => Promise<string>, options)).rejects.toBe(boom);
    const cancel = new AbortController();
    const hanging = breaker.execute(() => new Promise<string>(() => undefined), { ...options, signal: cancel.signal });
    cancel.abort("enough");
    await expect(hanging).rejects.toBe("enough");
    await expect(breaker.execute(async () => "503", options)).resolves.toBe("503");
    expect(breaker.getSnapshot().failuresInWindow).toBe(1);
  });

  test("one that throws: its own error, with the original as cause", async () => {
    const breaker = new CircuitBreaker("c");
    const broken = () => {
      throw new Error("the cache is down, too");
    };
    const options = { fallback: broken, fallbackOn: "failure" } as const;
    await expect(breaker.execute(fail, options)).rejects.toMatchObject({
      message: "the cache is down, too",
      cause: boom,
    });
    breaker.forceOpen();
    await expect(breaker.execute(succeed, { fallback: async () => broken() })).rejects.toMatchObject({
      message: "the cache is down, too",
      cause: { code: "circuit_open" },
    });
    expect(() => breaker.executeSync(() => 1, { fallback: broken })).toThrow(
      expect.objectContaining({ cause: expect.objectContaining({ code: "circuit_open" }) }),
    );
    // What already has a cause, or cannot take one, stays as it is.
    const own = new Error("down", { cause: "its own" });
    await expect(breaker.execute(succeed, { fallback: () => Promise.reject(own) })).rejects.toHaveProperty(
      "cause",
      "its own",
    );
    const frozen = Object.freeze(new Error("frozen"));
    await expect(breaker.execute(succeed, { fallback: () => Promise.reject(frozen) })).rejects.toBe(frozen);
    await expect(breaker.execute(succeed, { fallback: (error) => Promise.reject(error) })).rejects.not.toHaveProperty(
      "cause",
    );
    await expect(breaker.execute(succeed, { fallback: () => Promise.reject("text") })).rejects.toBe("text");
  });
});

describe("classification", () => {
  test.each([
    [false, false],
    [undefined, true],
    [null, true],
    [0, true],
    [true, true],
    ["no", true],
  ])("only false makes an error neutral, not a forgotten answer: %o", async (answer, counts) => {
    const breaker = new CircuitBreaker("c", { isFailure: () => answer as boolean });
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    breaker.recordFailure(boom);
    expect(breaker.getSnapshot().failuresInWindow).toBe(counts ? 2 : 0);
  });

  test.each([
    [false, false],
    [undefined, false],
    [null, false],
    [0, false],
    [true, true],
    [{}, true],
  ])("a result counts if its classifier's answer holds as a condition: %o", async (answer, counts) => {
    const results = new CircuitBreaker("c", { isFailureResult: () => answer as boolean });
    await expect(results.execute(succeed)).resolves.toBe("ok");
    expect(results.getSnapshot().failuresInWindow).toBe(counts ? 1 : 0);
  });

  test.each([
    ["resolves", (answer: boolean) => Promise.resolve(answer)],
    ["rejects", () => Promise.reject(new Error("the classifier is broken"))],
    // biome-ignore lint/suspicious/noThenProperty: a thenable is as much of a promise here.
    ["is a thenable", () => ({ then: (_: unknown, reject: (error: unknown) => void) => reject(boom) })],
  ])(
    "a classifier whose promise %s is one that throws: it counts, is said once, and ends nothing",
    async (_, later) => {
      const unhandled = vi.fn();
      process.on("unhandledRejection", unhandled);
      const warning = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
      try {
        const classifiers = { isFailure: () => later(false) as never, isFailureResult: () => later(false) as never };
        const breaker = new CircuitBreaker("c", classifiers);
        for (let n = 0; n < 2; n++) {
          await expect(breaker.execute(fail)).rejects.toBe(boom);
          await expect(breaker.execute(succeed)).resolves.toBe("ok");
        }
        expect(breaker.getSnapshot().failuresInWindow).toBe(4);
        const other = new CircuitBreaker("other", {
          isFailureResult: classifiers.isFailureResult,
          failureThreshold: 1,
        });
        expect(other.executeSync(() => "ok")).toBe("ok");
        expect(() => other.acquire()).toThrow("last failure: a result that could not be classified");
        await new Promise((resolve) => setImmediate(resolve));
        expect(unhandled).not.toHaveBeenCalled();
        const said = (option: string, circuit: string) =>
          `\`${option}\` of circuit \`${circuit}\` must answer at once, it gave a promise: the call counts as a failure (reported once)`;
        expect(warning.mock.calls.map(([text]) => text)).toEqual([
          said("isFailure", "c"),
          said("isFailureResult", "c"),
          said("isFailureResult", "other"),
        ]);
      } finally {
        warning.mockRestore();
        process.off("unhandledRejection", unhandled);
      }
    },
  );

  test("isFailureResult: the value counts and is still returned", async () => {
    const isFailureResult = (value: { status: number }) => value.status >= 500;
    const breaker = new CircuitBreaker("c", { failureThreshold: 3, isFailureResult });
    const response = { status: 503 };
    await expect(breaker.execute(async () => response)).resolves.toBe(response);
    expect(breaker.executeSync(() => response)).toBe(response);
    await expect(breaker.execute(async () => ({ status: 404 }))).resolves.toEqual({ status: 404 });
    expect(breaker.getSnapshot().failuresInWindow).toBe(2);
    await breaker.execute(async () => response);
    await expect(breaker.execute(succeed)).rejects.toMatchObject({ lastFailure: "a result that counts as a failure" });
  });

  test("slowCallMs: slower than this counts, as slow as this does not", async () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", { failureThreshold: 2, slowCallMs: 500, clock: clock.read });
    const takes = (ms: number) => () => {
      clock.now += ms;
      return "ok";
    };
    await expect(breaker.execute(takes(500))).resolves.toBe("ok");
    expect(breaker.getSnapshot().failuresInWindow).toBe(0);
    await expect(breaker.execute(takes(501))).resolves.toBe("ok");
    expect(breaker.executeSync(takes(501))).toBe("ok");
    await expect(breaker.execute(succeed)).rejects.toMatchObject({ lastFailure: "slower than 500 ms" });
  });

  test("a timeout counts whatever isFailure says; a timeout of an inner breaker is an error like any other", async () => {
    const neutral = new CircuitBreaker("outer", { isFailure: () => false });
    const inner = new CircuitBreaker("inner");
    const hang = () => new Promise(() => undefined);
    await expect(neutral.execute(hang, { timeoutMs: 5 })).rejects.toMatchObject({
      code: "call_timeout",
      circuit: "outer",
    });
    expect(neutral.getSnapshot().failuresInWindow).toBe(1);
    const nested = neutral.execute(() => inner.execute(hang, { timeoutMs: 5 }));
    await expect(nested).rejects.toMatchObject({
      circuit: "inner",
      message: "call of circuit `inner` took longer than 5 ms",
    });
    expect(neutral.getSnapshot().failuresInWindow).toBe(1);
  });

  test("the call's timeout beats the policy's", async () => {
    const breaker = new CircuitBreaker("c", { timeoutMs: 60_000 });
    const hang = () => new Promise(() => undefined);
    await expect(breaker.execute(hang, { timeoutMs: 5 })).rejects.toMatchObject({ timeoutMs: 5 });
    const strict = new CircuitBreaker("c", { timeoutMs: 5 });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const held = new Deferred();
      const patient = strict.execute(() => held.promise, { timeoutMs: 60_000 });
      const hasty = strict.execute(() => held.promise);
      hasty.catch(() => undefined);
      vi.advanceTimersByTime(59_999);
      held.resolve("ok");
      await expect(patient).resolves.toBe("ok");
      await expect(hasty).rejects.toMatchObject({ timeoutMs: 5 });
    } finally {
      vi.useRealTimers();
    }
  });

  test("a timeout or an abort leaves no listener on the caller's signal", async () => {
    const breaker = new CircuitBreaker("c");
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, "addEventListener");
    const removed = vi.spyOn(signal, "removeEventListener");
    await breaker.execute(succeed, { signal });
    await breaker.execute(() => new Promise(() => undefined), { signal, timeoutMs: 5 }).catch(() => undefined);
    expect(removed).toHaveBeenCalledTimes(added.mock.calls.length);
  });
});

describe("the last failure", () => {
  test.each([
    [Object.assign(new Error("connect failed"), { code: "ECONNREFUSED" }), "ECONNREFUSED"],
    [new TypeError("fetch failed", { cause: { code: "ENOTFOUND" } }), "ENOTFOUND"],
    [new Error("the pool is empty"), "the pool is empty"],
    [
      new Error("cannot reach redis://me:secret@host/0 or amqp://you:hidden@host"),
      "cannot reach redis://***@host/0 or amqp://***@host",
    ],
    [new Error("x".repeat(500)), `${"x".repeat(200)}...`],
    [new RangeError(""), "RangeError"],
    ["text", "text"],
    [new Error("first\r\nsecond\tthird\0\u0085\u2028\u{1b}[2J\u2019s end"), "first second third [2J\u2019s end"],
    [null, "null"],
    [Object.create(null), "an error that cannot be shown"],
  ])("%o reads %o", async (error, text) => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
    await breaker.execute(() => Promise.reject(error)).catch(() => undefined);
    await expect(breaker.execute(succeed)).rejects.toMatchObject({ lastFailure: text });
  });

  test("is one that counted, and is forgotten when the circuit closes", async () => {
    const clock = new ManualClock();
    const isFailure = (error: unknown) => error === boom;
    const breaker = new CircuitBreaker("c", {
      failureThreshold: 1,
      openDurationMs: 1000,
      isFailure,
      clock: clock.read,
    });
    const last = () => breaker.execute(succeed).catch((error) => error.lastFailure);
    const late = breaker.acquire();
    await breaker.execute(fail).catch(() => undefined);
    expect(late.recordFailure(new Error("too late"))).toBe("stale");
    expect(breaker.recordFailure("not found")).toBe("stale");
    expect(await last()).toBe("ECONNREFUSED");
    breaker.reset();
    breaker.trip();
    expect(await last()).toBeNull();
    await expect(breaker.execute(succeed)).rejects.toHaveProperty("message", "circuit `c` is open, retry in 1.0 s");
    breaker.forceOpen();
    await expect(breaker.execute(succeed)).rejects.toHaveProperty("message", "circuit `c` is open (forced)");
  });
});

describe("observe", () => {
  test("the machine runs and refusals are announced, but every call is let through", async () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", {
      failureThreshold: 1,
      openDurationMs: 1000,
      observe: true,
      clock: clock.read,
    });
    const told: string[] = [];
    for (const event of ["stateChange", "success", "failure", "ignored", "refused"] as const) {
      breaker.on(event, () => told.push(event));
    }
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    expect(breaker.getState()).toBe("open");
    await expect(breaker.execute(succeed)).resolves.toBe("ok");
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    expect(breaker.executeSync(() => "ok")).toBe("ok");
    expect(await breaker.guard(succeed)()).toBe("ok");
    expect(breaker.canExecute()).toBe(true);
    const permit = breaker.acquire();
    expect([permit.probe, permit.recordFailure(), permit.recordSuccess()]).toEqual([false, "stale", "duplicate"]);
    expect(breaker.getSnapshot()).toMatchObject({ state: "open", openedAt: 0, trips: 1 });
    expect(told).toEqual(["stateChange", "failure", ...Array(6).fill("refused")]);
    clock.now = 1000;
    await expect(breaker.execute(succeed)).resolves.toBe("ok");
    expect(breaker.getState()).toBe("closed");
  });

  test("a refused call keeps its timeout and is no reason for a fallback", async () => {
    const breaker = new CircuitBreaker("c", { observe: true });
    breaker.forceOpen();
    await expect(breaker.execute(succeed, { fallback: () => "cached" })).resolves.toBe("ok");
    await expect(breaker.execute(() => new Promise(() => undefined), { timeoutMs: 5 })).rejects.toMatchObject({
      code: "call_timeout",
    });
  });
});

describe("unhandled rejections", () => {
  test("none for what the caller was told already; the caller's own are not swallowed", async () => {
    const { code, stdout, stderr } = await runScript(`
      import { CircuitBreaker } from "switchgear";
      const seen = [];
      process.on("unhandledRejection", (error) => seen.push(error.message ?? error));
      const breaker = new CircuitBreaker("c");
      const later = (ms, error) => new Promise((_, reject) => setTimeout(() => reject(new Error(error)), ms));
      const cancel = new AbortController();
      await Promise.allSettled([
        breaker.execute(() => later(20, "late"), { timeoutMs: 5 }),
        breaker.execute(() => later(20, "late"), { signal: cancel.signal, timeoutMs: 5_000 }),
        breaker.execute(() => later(20, "late"), { timeoutMs: 5, fallback: () => 1, fallbackOn: "failure" }),
        new Promise((resolve) => setTimeout(() => resolve(cancel.abort("enough")), 5)),
      ]);
      try { breaker.executeSync(() => later(5, "late")) } catch {}
      breaker.execute(() => later(1, "nobody waited"));
      setTimeout(() => console.log(JSON.stringify(seen)), 60);
    `);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '["nobody waited"]\n', stderr: "" });
  });
});
