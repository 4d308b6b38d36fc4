// The users' scenarios about what counts, cancellation and fallback, on the local breaker.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { CircuitBreaker, CircuitBreakerGroup } from "switchgear";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { boom, Deferred, fail, ManualClock, succeed } from "./support/time";

const RECOVERED = "from the fallback";

function failures(breaker: CircuitBreaker): number {
  return breaker.getSnapshot().failuresInWindow;
}

describe("what counts, cancellation, fallback", () => {
  test("scenario 25: 32 calls cancelled by their callers count nowhere", async () => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
    const cancel = new AbortController();
    const calls = Array.from({ length: 32 }, () =>
      breaker.execute((signal) => fetch("http://127.0.0.1:9/", { signal }), { signal: cancel.signal }),
    );
    cancel.abort();
    for (const result of await Promise.allSettled(calls)) {
      expect(result).toMatchObject({ status: "rejected", reason: { name: "AbortError" } });
    }
    expect(breaker.getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 0 });
  });

  test("scenario 26: a deadline of the dependency counts, whatever its error looks like", async () => {
    const breaker = new CircuitBreaker("c");
    for (const name of ["AbortError", "TimeoutError"]) {
      const theirs = new DOMException("the dependency gave up", name);
      const mine = new AbortController();
      const call = breaker.execute(() => Promise.reject(theirs), { signal: mine.signal });
      await expect(call).rejects.toBe(theirs);
    }
    expect(failures(breaker)).toBe(2);
  });

  test("scenario 26: the caller's own signal does not count, whatever the error looks like", async () => {
    const breaker = new CircuitBreaker("c");
    const mine = new AbortController();
    const call = breaker.execute(
      (signal) =>
        new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new TypeError("socket closed")))),
      { signal: mine.signal },
    );
    mine.abort("enough");
    await expect(call).rejects.toBe("enough");
    expect(failures(breaker)).toBe(0);
  });

  test("scenario 27: an ignored error reaches the caller as it is, without fallback and without counting", async () => {
    const breaker = new CircuitBreaker("c", { isFailure: () => false });
    const fallback = vi.fn(() => RECOVERED as never);
    await expect(breaker.execute(fail, { fallback, fallbackOn: "failure" })).rejects.toBe(boom);
    expect(() =>
      breaker.executeSync(
        () => {
          throw boom;
        },
        { fallback, fallbackOn: "failure" },
      ),
    ).toThrow(boom);
    expect(fallback).not.toHaveBeenCalled();
    expect(failures(breaker)).toBe(0);
  });

  test("scenario 28: a timeout, then a late rejection: one failure, one fallback, nothing unhandled", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    try {
      const breaker = new CircuitBreaker("c");
      const fallback = vi.fn(async (_error: unknown) => RECOVERED);
      const late = new Deferred();
      const call = breaker.execute(() => late.promise, { timeoutMs: 5, fallback, fallbackOn: "failure" });
      await expect(call).resolves.toBe(RECOVERED);
      late.reject(boom);
      await new Promise((resolve) => setImmediate(resolve));
      expect(fallback).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: "call_timeout", timeoutMs: 5 }));
      expect(failures(breaker)).toBe(1);
      expect(unhandled).not.toHaveBeenCalled();
    } finally {
      process.off("unhandledRejection", unhandled);
    }
  });

  test("scenario 29: one signal per call: a timeout of one aborts no other", async () => {
    const breaker = new CircuitBreaker("c");
    const signals: AbortSignal[] = [];
    const slow = new Deferred();
    const hang = (signal?: AbortSignal) => {
      signals.push(signal as AbortSignal);
      return slow.promise;
    };
    const first = breaker.execute(hang, { timeoutMs: 5 });
    const second = breaker.execute(hang, { timeoutMs: 60_000 });
    await expect(first).rejects.toMatchObject({ code: "call_timeout" });
    expect(signals[0]).not.toBe(signals[1]);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    slow.resolve("ok");
    await expect(second).resolves.toBe("ok");
  });

  test("scenario 30: a retry loop stops at the open error", async () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", { failureThreshold: 3, clock: clock.read });
    let attempts = 0;
    let last: unknown;
    for (let n = 0; n < 100; n++) {
      attempts += 1;
      try {
        await breaker.execute(fail);
      } catch (error) {
        last = error;
        if ((error as { retryable?: boolean }).retryable === false) break;
      }
    }
    expect(attempts).toBe(4);
    expect(last).toMatchObject({ code: "circuit_open", retryable: false, retryAfterMs: 30_000 });
  });

  test("scenario 31: a classifier that throws: counted, slot freed, the caller gets the original error", async () => {
    const clock = new ManualClock();
    const isFailure = () => {
      throw new Error("the classifier is broken");
    };
    const breaker = new CircuitBreaker("c", {
      failureThreshold: 1,
      openDurationMs: 1000,
      isFailure,
      clock: clock.read,
    });
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    expect(breaker.getState()).toBe("open");
    clock.now = 1000;
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    expect(breaker.getSnapshot()).toMatchObject({ state: "open", halfOpenInFlight: 0, openedAt: 1000 });
  });

  test("scenario 31: a result classifier that throws: counted, and the value is still returned", async () => {
    const isFailureResult = () => {
      throw new Error("the classifier is broken");
    };
    const breaker = new CircuitBreaker("c", { isFailureResult });
    await expect(breaker.execute(succeed)).resolves.toBe("ok");
    expect(breaker.executeSync(() => "ok")).toBe("ok");
    expect(failures(breaker)).toBe(2);
  });

  test("scenario 32: a function that returns undefined synchronously is a success", async () => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
    const heard = vi.fn();
    breaker.on("success", heard);
    await expect(breaker.execute(() => undefined)).resolves.toBeUndefined();
    expect(breaker.executeSync(() => undefined)).toBeUndefined();
    expect(breaker.guard(() => undefined)()).toBeUndefined();
    expect(heard).toHaveBeenCalledTimes(3);
    expect(breaker.getState()).toBe("closed");
  });

  test("scenario 36: each call emits exactly one event, and the body runs exactly once", async () => {
    for (const outcome of ["success", "failure", "ignored", "refused", "slow", "timeout", "cancelled"] as const) {
      const clock = new ManualClock();
      const policy = { isFailure: (error: unknown) => error === boom, slowCallMs: 10, clock: clock.read };
      const breaker = new CircuitBreaker("c", policy);
      const told: string[] = [];
      for (const event of ["success", "failure", "ignored", "refused"] as const) {
        breaker.on(event, (e) => told.push(`${event} of ${e.circuit}`));
      }
      if (outcome === "refused") breaker.forceOpen();
      const cancel = new AbortController();
      let ran = 0;
      const body = () => {
        ran += 1;
        if (outcome === "failure") throw boom;
        if (outcome === "ignored") throw new Error("not found");
        if (outcome === "slow") clock.now += 11;
        if (outcome === "cancelled") cancel.abort();
        return outcome === "timeout" || outcome === "cancelled" ? new Promise(() => undefined) : succeed();
      };
      const options = { timeoutMs: outcome === "timeout" ? 5 : 60_000, signal: cancel.signal };
      await breaker.execute(body, options).catch(() => undefined);
      const event = { slow: "failure", timeout: "failure", cancelled: "ignored" }[outcome as string] ?? outcome;
      expect(told, outcome).toEqual([`${event} of c`]);
      expect(ran, outcome).toBe(outcome === "refused" ? 0 : 1);
    }
  });
});

describe("real HTTP", () => {
  let server: Server;
  let url: string;
  let answer = 200;

  beforeAll(async () => {
    server = createServer((_request, response) => {
      response.statusCode = answer;
      response.end();
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });

  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test("scenario 35: 503 counts, 404 does not, a malformed URL of the caller does not", async () => {
    const perHost = new CircuitBreakerGroup({
      isFailure: (error) => (error as { code?: string }).code !== "ERR_INVALID_URL",
      isFailureResult: (response: Response) =>
        response.status === 429 || (response.status >= 500 && response.status !== 501),
    });
    const breaker = perHost.for("127.0.0.1");
    const get = (target: string) => breaker.execute(async () => fetch(new URL(target)));
    answer = 404;
    expect((await get(url)).status).toBe(404);
    await expect(get("http://")).rejects.toMatchObject({ code: "ERR_INVALID_URL" });
    expect(failures(breaker)).toBe(0);
    answer = 503;
    expect((await get(url)).status).toBe(503);
    expect(failures(breaker)).toBe(1);
    // Port 9: nobody listens there.
    await expect(get("http://127.0.0.1:9/")).rejects.toThrow("fetch failed");
    expect(failures(breaker)).toBe(2);
  });
});
