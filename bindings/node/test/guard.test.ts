// What `guard` promises: a function like the one it was given.
import { CircuitBreaker } from "switchgear";
import { describe, expect, expectTypeOf, test, vi } from "vitest";
import { boom, fail, succeed } from "./support/time";

function open(): CircuitBreaker {
  const breaker = new CircuitBreaker("c");
  breaker.forceOpen();
  return breaker;
}

describe("a guarded function", () => {
  test("has the name, the length, the type and the `this` of the original", async () => {
    const breaker = new CircuitBreaker("c");
    function add(a: number, b: number): number {
      return a + b;
    }
    const guarded = breaker.guard(add);
    expect([guarded.name, guarded.length, guarded(1, 2)]).toEqual(["add", 2, 3]);
    expectTypeOf(guarded).toEqualTypeOf(add);
    const account = {
      balance: 5,
      async charge(amount: number) {
        this.balance -= amount;
        return this.balance;
      },
    };
    account.charge = breaker.guard(account.charge);
    expect(await account.charge(2)).toBe(3);
    expect(account.balance).toBe(3);
  });

  test("counts what it throws, rejects and returns", async () => {
    const breaker = new CircuitBreaker("c", { isFailureResult: (value) => value === "503" });
    const sync = breaker.guard(() => {
      throw boom;
    });
    expect(sync).toThrow(boom);
    await expect(breaker.guard(fail)()).rejects.toBe(boom);
    await expect(breaker.guard(() => Promise.reject(boom))()).rejects.toBe(boom);
    expect(breaker.guard(() => "503")()).toBe("503");
    expect(breaker.getSnapshot().failuresInWindow).toBe(4);
  });

  test("awaits a lazy thenable, whose `then` is called once", async () => {
    const breaker = new CircuitBreaker("c");
    const then = vi.fn((_resolve: unknown, reject: (error: unknown) => void) => reject(boom));
    const query = breaker.guard(() => ({ then }) as unknown as Promise<string>);
    expect(then).not.toHaveBeenCalled();
    await expect(query()).rejects.toBe(boom);
    expect(then).toHaveBeenCalledTimes(1);
    expect(breaker.getSnapshot().failuresInWindow).toBe(1);
  });
});

describe("refused", () => {
  test("an async function rejects, a sync function throws", async () => {
    const breaker = open();
    const body = vi.fn();
    const refused = breaker.guard(async () => body())();
    await expect(refused).rejects.toMatchObject({ code: "circuit_open" });
    expect(() => breaker.guard(() => body())()).toThrow(expect.objectContaining({ code: "circuit_open" }));
    expect(body).not.toHaveBeenCalled();
  });

  test("a plain function that returns promises rejects once it is known to", async () => {
    const breaker = new CircuitBreaker("c");
    const plain = breaker.guard(() => succeed());
    breaker.forceOpen();
    expect(() => plain()).toThrow(expect.objectContaining({ code: "circuit_open" }));
    breaker.reset();
    await plain();
    breaker.forceOpen();
    const refused = plain();
    await expect(refused).rejects.toMatchObject({ code: "circuit_open" });
  });

  test("its fallback gets the error, then the arguments", async () => {
    const breaker = open();
    const fallback = vi.fn((_error: unknown, a: number, b: number) => a * b);
    expect(breaker.guard((a: number, b: number) => a + b, { fallback })(2, 5)).toBe(10);
    expect(await breaker.guard(async (a: number, b: number) => a + b, { fallback })(3, 5)).toBe(15);
    expect(fallback).toHaveBeenLastCalledWith(expect.objectContaining({ code: "circuit_open" }), 3, 5);
    breaker.reset();
    const failing = breaker.guard(
      (_a: number, _b: number): number => {
        throw boom;
      },
      { fallback, fallbackOn: "failure" },
    );
    expect(failing(4, 5)).toBe(20);
    expect(fallback).toHaveBeenLastCalledWith(boom, 4, 5);
    const rejecting = breaker.guard((_a: number, _b: number): Promise<number> => Promise.reject(boom), {
      fallback,
      fallbackOn: "failure",
    });
    expect(await rejecting(5, 5)).toBe(25);
  });
});

describe("timeouts and signals", () => {
  test("a timeout rejects and counts; the function is not handed a signal", async () => {
    const breaker = new CircuitBreaker("c");
    const hang = vi.fn((..._args: unknown[]) => new Promise(() => undefined));
    for (const guarded of [
      breaker.guard(hang, { timeoutMs: 5 }),
      breaker.guard(async () => hang("a"), { timeoutMs: 5 }),
    ]) {
      await expect(guarded("a")).rejects.toMatchObject({ code: "call_timeout" });
    }
    expect(hang.mock.calls).toEqual([["a"], ["a"]]);
    expect(breaker.getSnapshot().failuresInWindow).toBe(2);
  });

  test("a sync function has no timeout", () => {
    const breaker = new CircuitBreaker("c", { timeoutMs: 1 });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const busy = breaker.guard(() => {
      vi.advanceTimersByTime(1000);
      return "done";
    });
    try {
      expect(busy()).toBe("done");
    } finally {
      vi.useRealTimers();
    }
    expect(breaker.getSnapshot().failuresInWindow).toBe(0);
  });

  test("a caller's signal cancels an async function, and keeps a sync one from beginning", async () => {
    const breaker = new CircuitBreaker("c");
    const cancel = new AbortController();
    const hanging = breaker.guard(async () => new Promise(() => undefined), { signal: cancel.signal })();
    const sync = breaker.guard(() => "ok", { signal: cancel.signal });
    expect(sync()).toBe("ok");
    cancel.abort("enough");
    await expect(hanging).rejects.toBe("enough");
    expect(sync).toThrow("enough");
    expect(breaker.getSnapshot().failuresInWindow).toBe(0);
  });

  test("stays sync when its fallback is async", async () => {
    const breaker = new CircuitBreaker("c");
    const increment = breaker.guard((n: number) => n + 1, { fallback: async () => -1 });
    expect(increment(1)).toBe(2);
    breaker.forceOpen();
    expect(await increment(1)).toBe(-1);
    breaker.reset();
    expect(increment(1)).toBe(2);
  });

  test("is not a class, whose calls need `new`", () => {
    const breaker = new CircuitBreaker("c");
    class Client {}
    for (const given of [Client, class {}, class extends Client {}]) {
      expect(() => breaker.guard(given as unknown as () => void)).toThrow(TypeError);
    }
    const method = { class: () => 1, classify: () => 2 };
    expect([breaker.guard(method.class)(), breaker.guard(method.classify)()]).toEqual([1, 2]);
  });
});
