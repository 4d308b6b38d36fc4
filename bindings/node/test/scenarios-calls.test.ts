// The users' scenarios about sync calls, which only a local breaker has, and about real HTTP; the rest are in
// support/scenarios.ts.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { CircuitBreaker, CircuitBreakerGroup } from "switchgear";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { boom } from "./support/time";

function failures(breaker: CircuitBreaker): number {
  return breaker.getSnapshot().failuresInWindow;
}

describe("sync calls", () => {
  test("scenario 27: an ignored error reaches the caller as it is, without fallback and without counting", () => {
    const breaker = new CircuitBreaker("c", { isFailure: () => false });
    const fallback = vi.fn(() => "from the fallback" as never);
    const failing = () => {
      throw boom;
    };
    expect(() => breaker.executeSync(failing, { fallback, fallbackOn: "failure" })).toThrow(boom);
    expect(fallback).not.toHaveBeenCalled();
    expect(failures(breaker)).toBe(0);
  });

  test("scenario 31: a result classifier that throws: counted, and the value is still returned", () => {
    const isFailureResult = () => {
      throw new Error("the classifier is broken");
    };
    const breaker = new CircuitBreaker("c", { isFailureResult });
    expect(breaker.executeSync(() => "ok")).toBe("ok");
    expect(failures(breaker)).toBe(1);
  });

  test("scenario 32: a function that returns undefined is a success", () => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
    const heard = vi.fn();
    breaker.on("success", heard);
    expect(breaker.executeSync(() => undefined)).toBeUndefined();
    expect(breaker.guard(() => undefined)()).toBeUndefined();
    expect(heard).toHaveBeenCalledTimes(2);
    expect(breaker.getState()).toBe("closed");
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
