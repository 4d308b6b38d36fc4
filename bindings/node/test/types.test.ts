// What a user's code may rely on of the types. The compiler proves it (`npm run typecheck`); run, it shows that the values
// are what their types say.
import {
  type Breaker,
  type CallOptions,
  CircuitBreaker,
  CircuitBreakerGroup,
  type CircuitOpenError,
  type Refusal,
  type StoreUnavailableError,
} from "switchgear";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { describe, expect, expectTypeOf, test } from "vitest";

interface Invoice {
  id: number;
  kind: "paid" | "due";
}

const paid = async (id: number): Promise<Invoice> => ({ id, kind: "paid" });
const down = () => Promise.reject(new Error("down"));
/** A store that never answers: nothing here depends on one that does. */
const SILENT = new RedisStore({ command: () => new Promise<never>(() => {}) }, { timeoutMs: 1 });

function opened(): CircuitBreaker {
  const breaker = new CircuitBreaker("billing");
  breaker.forceOpen();
  return breaker;
}

describe("execute", () => {
  test("the fallback of refusals knows what a refusal is", async () => {
    const given = await opened().execute(() => paid(1), {
      fallback: (refusal) => {
        expectTypeOf(refusal).toEqualTypeOf<Refusal>();
        if (refusal.code === "circuit_open") {
          expectTypeOf(refusal).toEqualTypeOf<CircuitOpenError>();
          expectTypeOf(refusal.lastFailure).toEqualTypeOf<string | null>();
        } else {
          expectTypeOf(refusal).toEqualTypeOf<StoreUnavailableError>();
        }
        return [refusal.circuit, refusal.retryAfterMs, refusal.statusCode, refusal.headers, refusal.expose] as const;
      },
    });
    expect(given).toEqual(["billing", null, 503, {}, false]);
    await opened().execute(() => paid(1), {
      fallbackOn: "refusal",
      timeoutMs: 60_000,
      fallback: (refusal) => expectTypeOf(refusal).toEqualTypeOf<Refusal>(),
    });
  });

  test("the fallback of failures gets anything that was thrown", async () => {
    const breaker = new CircuitBreaker("billing");
    const given = await breaker.execute(down, {
      fallbackOn: "failure",
      fallback: (error) => {
        expectTypeOf(error).toBeUnknown();
        // @ts-expect-error: it may be anything
        expect(error.circuit).toBeUndefined();
        return String(error);
      },
    });
    expectTypeOf(given).toBeString();
    expect(given).toBe("Error: down");
    await breaker.execute(down, {
      fallbackOn: "failure",
      signal: new AbortController().signal,
      fallback: (error) => expectTypeOf(error).toBeUnknown(),
    });
  });

  test("its result is the function's or the fallback's", async () => {
    const breaker = new CircuitBreaker("billing");
    expectTypeOf(breaker.execute(() => paid(1))).toEqualTypeOf<Promise<Invoice>>();
    expectTypeOf(breaker.execute(() => 1)).toEqualTypeOf<Promise<number>>();
    expectTypeOf(breaker.execute(() => paid(1), { timeoutMs: 60_000 })).toEqualTypeOf<Promise<Invoice>>();
    const orNull = breaker.execute(() => paid(1), { fallback: () => null });
    expectTypeOf(orNull).toEqualTypeOf<Promise<Invoice | null>>();
    const later = breaker.execute(() => paid(1), { fallback: async () => ({ pending: true }) });
    expectTypeOf(later).toEqualTypeOf<Promise<Invoice | { pending: boolean }>>();
    // What is wanted reaches into the functions: the literal stays a literal.
    const wanted: Promise<Invoice> = breaker.execute(async () => ({ id: 1, kind: "due" }), {
      fallback: () => ({ id: 0, kind: "due" }),
    });
    expect(await wanted).toEqual({ id: 1, kind: "due" });
    // @ts-expect-error: the result may be null
    const never: Promise<Invoice> = breaker.execute(() => paid(1), { fallback: () => null });
    // @ts-expect-error: it is no number
    const number: Promise<number> = breaker.execute(() => paid(1));
    await Promise.all([orNull, later, never, number]);
  });

  test("the function's signal may be missing, unless this call is sure to give one", async () => {
    const breaker = new CircuitBreaker("billing", { timeoutMs: 60_000 });
    const request = (signal: AbortSignal | null) => signal?.aborted;
    await breaker.execute((signal) => {
      expectTypeOf(signal).toEqualTypeOf<AbortSignal | undefined>();
      return request(signal ?? null);
    });
    const must = async (signal: AbortSignal) => signal.aborted;
    expect(await breaker.execute(must, { timeoutMs: 60_000 })).toBe(false);
    expect(await breaker.execute(must, { signal: new AbortController().signal, fallback: () => null })).toBe(false);
    const fetching = (u: string) => breaker.execute((signal) => fetch(u, { signal: signal ?? null }));
    expectTypeOf(fetching).returns.toEqualTypeOf<Promise<Response>>();
    // @ts-expect-error: nothing here says that there is a signal
    expect(await breaker.execute(must)).toBe(false);
  });

  test("options of other code", async () => {
    const breaker = new CircuitBreaker("billing");
    // The type of the result is given, and the fallback is one of any error.
    const options: CallOptions<Invoice> = { fallback: (_error: unknown) => ({ id: 0, kind: "due" }) };
    expectTypeOf(breaker.execute(() => paid(1), options)).toEqualTypeOf<Promise<Invoice>>();
    const none = { fallback: undefined, fallbackOn: undefined, signal: undefined, timeoutMs: undefined };
    expectTypeOf(breaker.execute(() => paid(1), none)).toEqualTypeOf<Promise<Invoice>>();
    const named = breaker.execute<Invoice>(() => paid(1), { fallback: (_error: unknown) => ({ id: 0, kind: "due" }) });
    expectTypeOf(named).toEqualTypeOf<Promise<Invoice>>();
    const either = Math.random() < 2 ? "refusal" : "failure";
    await opened().execute(() => paid(1), {
      fallbackOn: either as "refusal" | "failure",
      fallback: (error: unknown) => error,
    });
    // @ts-expect-error: a fallback of refusals is none of failures
    await opened().execute(() => paid(1), { fallbackOn: "failure", fallback: (refusal: Refusal) => refusal.circuit });
    // @ts-expect-error: no such option
    expect(() => opened().executeSync(() => 1, { timeoutMs: 5 })).toThrow("timeoutMs");
  });

  test("an object with one type for function and fallback is a breaker, and a breaker is such an object", () => {
    class Fake {
      readonly name = "fake";
      async execute<T>(fn: (signal?: AbortSignal) => T | Promise<T>, _options?: CallOptions<T>): Promise<T> {
        return fn();
      }
      canExecute = () => true;
      recordSuccess = () => "applied" as const;
      recordFailure = () => "applied" as const;
      release = () => "applied" as const;
      getState = () => "closed" as const;
      getSnapshot = () => new CircuitBreaker("fake").getSnapshot();
      reset = () => {};
      trip = () => {};
      forceOpen = () => {};
      disable = () => {};
      on = () => () => {};
    }
    const breakers: Breaker[] = [new Fake(), new CircuitBreaker("own"), new DistributedCircuitBreaker("all", SILENT)];
    expect(breakers).toHaveLength(3);
    interface Executor {
      execute<T>(fn: (signal?: AbortSignal) => T | Promise<T>, options?: CallOptions<T>): Promise<T>;
    }
    expect([
      new CircuitBreaker("own"),
      new DistributedCircuitBreaker("all", SILENT),
    ] satisfies Executor[]).toBeDefined();
  });
});

describe("executeSync", () => {
  test("its result is the function's or the fallback's", () => {
    const breaker = opened();
    const given = breaker.executeSync(() => 1, { fallback: (refusal) => refusal.circuit });
    expectTypeOf(given).toEqualTypeOf<number | string>();
    expect(given).toBe("billing");
    expectTypeOf(new CircuitBreaker("c").executeSync(() => 1)).toBeNumber();
    expectTypeOf(breaker.executeSync(() => 1, { fallback: async () => null })).toEqualTypeOf<number | Promise<null>>();
  });
});

describe("guard", () => {
  test("gives a function of the same type, with what the fallback gives", async () => {
    const breaker = opened();
    expectTypeOf(breaker.guard(paid)).toEqualTypeOf<(id: number) => Promise<Invoice>>();
    const orNull = breaker.guard(paid, { fallback: () => null });
    expectTypeOf(orNull).toEqualTypeOf<(id: number) => Promise<Invoice | null>>();
    expect(await orNull(1)).toBeNull();
    const sync = breaker.guard((text: string) => text.length, {
      fallback: (refusal, text) => {
        expectTypeOf(refusal).toEqualTypeOf<Refusal>();
        expectTypeOf(text).toBeString();
        return text;
      },
    });
    expectTypeOf(sync).toEqualTypeOf<(text: string) => number | string>();
    expect(sync("gear")).toBe("gear");
    const always = breaker.guard(paid, {
      fallbackOn: "failure",
      fallback: async (error, id) => {
        expectTypeOf(error).toBeUnknown();
        return id;
      },
    });
    expectTypeOf(always).toEqualTypeOf<(id: number) => Promise<Invoice | number>>();
    expect(await always(7)).toBe(7);
  });

  test("keeps the types of generators and of generic functions", () => {
    const breaker = new CircuitBreaker("c");
    async function* pages(): AsyncGenerator<string> {
      yield "a page";
    }
    const orOne = breaker.guard(pages, { fallback: (refusal) => [refusal.circuit] });
    expectTypeOf(orOne).toEqualTypeOf<() => AsyncGenerator<string>>();
    const same = breaker.guard(<T>(value: T) => value);
    expectTypeOf(same(1 as const)).toEqualTypeOf<1>();
    const wrap = <T>(fn: () => Promise<T>): (() => Promise<T | null>) => breaker.guard(fn, { fallback: () => null });
    expectTypeOf(wrap(() => paid(1))).toEqualTypeOf<() => Promise<Invoice | null>>();
    expectTypeOf(new CircuitBreakerGroup().for("k").guard(paid)).toEqualTypeOf<(id: number) => Promise<Invoice>>();
  });

  test("of a shared breaker gives promises", async () => {
    const breaker = new DistributedCircuitBreaker("all", SILENT, { onStoreFailure: "fail-closed" });
    const sync = breaker.guard((id: number) => id);
    expectTypeOf(sync).toEqualTypeOf<(id: number) => Promise<number>>();
    const orNull = breaker.guard(paid, {
      fallback: (refusal) => {
        expectTypeOf(refusal).toEqualTypeOf<Refusal>();
        return refusal.code === "store_unavailable" ? null : refusal.lastFailure;
      },
    });
    expectTypeOf(orNull).toEqualTypeOf<(id: number) => Promise<Invoice | string | null>>();
    expect(await orNull(1)).toBeNull();
    async function* pages(): AsyncGenerator<string> {
      yield "a page";
    }
    expectTypeOf(breaker.guard(pages)).toEqualTypeOf<() => AsyncGenerator<string>>();
    const orOne = breaker.guard(pages, { fallback: (refusal) => [refusal.circuit] });
    expectTypeOf(orOne).toEqualTypeOf<() => AsyncGenerator<string>>();
    for await (const page of orOne()) expect(page).toBe("all");
    const wrap = <T>(fn: () => Promise<T>): (() => Promise<Awaited<T> | null>) =>
      breaker.guard(fn, { fallback: () => null });
    expectTypeOf(wrap(() => paid(1))).toEqualTypeOf<() => Promise<Invoice | null>>();
    const shared = breaker.execute(() => paid(1), { fallback: (refusal) => refusal.circuit });
    expectTypeOf(shared).toEqualTypeOf<Promise<Invoice | string>>();
    expect(await shared).toBe("all");
  });
});
