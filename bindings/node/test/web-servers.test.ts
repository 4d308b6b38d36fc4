// What real servers answer when a circuit refuses in one of their handlers.
import type { FastifyInstance } from "fastify";
import { Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { Redis } from "ioredis";
import { CircuitBreaker } from "switchgear";
import { circuitOpenHandler as forFastify } from "switchgear/fastify";
import { circuitOpenResponse, circuitOpenHandler as forHono } from "switchgear/hono";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { circuitBreaker } from "switchgear/undici";
import { Agent } from "undici";
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Application, FRAMEWORKS } from "./support/frameworks.mjs";
import { quiet } from "./support/stores";

const now = 1_000_000;
const redis = quiet(new Redis({ port: 1, lazyConnect: true, retryStrategy: null }));
const store = new RedisStore(redis, { timeoutMs: 20_000 });
store.on("degraded", () => undefined);
const agent = new Agent();
// Express logs an error some time after it has answered it.
const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
afterAll(() => agent.destroy());

/** What the handlers of the applications guard. Their names and failures are nobody's business but the operator's. */
const SECRET = "billing-primary";
const failed = new CircuitBreaker(SECRET, { failureThreshold: 1, openDurationMs: 12_300, clock: () => now });
failed.recordFailure(new Error(`connect ECONNREFUSED ${SECRET}.internal:5432`));
const forced = new CircuitBreaker(SECRET);
forced.forceOpen();
const unanswered = new DistributedCircuitBreaker(SECRET, store, { onStoreFailure: "fail-closed" });
const called = async () => "called";
const intercepting = circuitBreaker({ clock: () => now });
const HANDLERS: Record<string, () => Promise<string>> = {
  "/open": () => failed.execute(called),
  "/forced": () => forced.execute(called),
  "/unanswered": () => unanswered.execute(called),
  "/fetch": async () => {
    intercepting.for(`http://${SECRET}`).trip({ forMs: 12_000 });
    const init: object = { dispatcher: agent.compose(intercepting) };
    return (await fetch(`http://${SECRET}/charge`, init)).text();
  },
  "/other": () => Promise.reject(new Error(`other, ${SECRET}`)),
  "/revived": () => Promise.reject(revived({ retryAfterMs: 12_300 })),
  "/twisted": () => Promise.reject(revived({ headers: { "Retry-After": `1\r\nset-cookie: ${SECRET}` } })),
  "/fine": called,
};
/** A refusal that another process has made, of which not everything has come over: known by its code all the same. */
const revived = (fields: object) => Object.assign(new Error(SECRET), { code: "circuit_open", ...fields });
const handler = (path: string) => (HANDLERS[path] ?? called)();

let app: Application | undefined;
beforeEach(() => {
  // In production: elsewhere Express shows the stack of any error to whoever asks.
  vi.stubEnv("NODE_ENV", "production");
});
afterEach(async () => {
  await app?.close();
  app = undefined;
  vi.unstubAllEnvs();
});

const REFUSALS = [
  ["/open", "an open circuit", "13"],
  ["/forced", "one that an operator holds open", null],
  ["/unanswered", "a store that does not answer", null],
] as const;

/** Asks, and sees to it that nothing of what is inside comes out: not in the head either. */
async function ask(path: string, { shows = false } = {}) {
  const response = await fetch((app as Application).url + path);
  const body = await response.text();
  const all = [body, ...[...response.headers].flat()].join("\n");
  if (!shows)
    expect(all).not.toMatch(/billing|primary|ECONNREFUSED|OpenError|Unavailable?Error|circuit|redis|node_modules/i);
  return { status: response.status, retryAfter: response.headers.get("retry-after"), headers: response.headers, body };
}

describe.each(["Express 4", "Express 5", "Koa"] as const)("%s, without a line of wiring", (name) => {
  test.each(REFUSALS)("%s: %s", async (path, _what, retryAfter) => {
    app = await FRAMEWORKS[name](handler);
    const answer = await ask(path);
    expect(answer).toMatchObject({ status: 503, retryAfter });
    expect(answer.body).toContain("Service Unavailable");
  });

  test("any other answer is as it was", async () => {
    app = await FRAMEWORKS[name](handler);
    expect(await ask("/other")).toMatchObject({ status: 500, retryAfter: null });
    expect(await ask("/fine")).toMatchObject({ status: 200, body: "called" });
  });
});

describe("Fastify 5", () => {
  test.each(REFUSALS)(
    "without a line of wiring, %s: %s, with the message that it shows of any error",
    async (path, _what, retryAfter) => {
      app = await FRAMEWORKS["Fastify 5"](handler);
      const { body, ...answer } = await ask(path, { shows: true });
      expect(answer).toMatchObject({ status: 503, retryAfter });
      expect(JSON.parse(body)).toMatchObject({ statusCode: 503, error: "Service Unavailable" });
    },
  );

  test.each(REFUSALS)("with one line, %s: %s, and nothing of what is inside", async (path, _what, retryAfter) => {
    const logged: string[] = [];
    app = await FRAMEWORKS["Fastify 5"](handler, (app: FastifyInstance) => {
      app.setErrorHandler(circuitOpenHandlerOf(logged));
    });
    isProblem(await ask(path), retryAfter);
    expect(logged).toEqual([expect.stringContaining(SECRET)]);
  });

  test.each(["/revived", "/twisted"])("with one line, %s: a refusal without headers that can be sent", async (path) => {
    app = await FRAMEWORKS["Fastify 5"](handler, (app: FastifyInstance) => {
      app.setErrorHandler(forFastify);
    });
    isProblem(await ask(path), null);
  });

  test("other errors go on to the handler around it, and to Fastify's own", async () => {
    app = await FRAMEWORKS["Fastify 5"](handler, (app: FastifyInstance) => {
      app.setErrorHandler(forFastify);
    });
    expect(await ask("/other", { shows: true })).toMatchObject({ status: 500, retryAfter: null });
    expect(await ask("/fine")).toMatchObject({ status: 200, body: "called" });
    isProblem(await ask("/fetch"), "12");
  });

  /** The handler, and what it logs. */
  function circuitOpenHandlerOf(logged: string[]): typeof forFastify {
    return (error, { log }, reply) => {
      const noting = {
        error(about: object, text: string) {
          logged.push(text);
          log.error(about, text);
        },
      };
      return forFastify(error, { log: noting }, reply);
    };
  }
});

describe("Hono, with one line", () => {
  const start = async () => {
    app = await FRAMEWORKS.Hono(handler, (app: Hono) => {
      app.onError(forHono);
    });
  };

  test.each(REFUSALS)("%s: %s", async (path, _what, retryAfter) => {
    await start();
    const answer = await ask(path);
    isProblem(answer, retryAfter);
    expect(answer.headers.get("x-by")).toBe("a middleware");
  });

  test.each(["/revived", "/twisted"])("%s: a refusal without headers that can be sent", async (path) => {
    await start();
    isProblem(await ask(path), null);
  });

  test("a refusal that fetch hides is one all the same", async () => {
    await start();
    isProblem(await ask("/fetch"), "12");
  });

  test("any other error is answered as by Hono itself", async () => {
    await start();
    expect(await ask("/other", { shows: true })).toMatchObject({ status: 500, body: "Internal Server Error" });
    expect(logged).toHaveBeenCalledWith(expect.objectContaining({ message: `other, ${SECRET}` }));
    expect(await ask("/fine")).toMatchObject({ status: 200, body: "called" });
    const own = new Hono().get("/", () => {
      throw new HTTPException(401, { message: "who are you" });
    });
    own.onError(forHono);
    const answer = await own.request("/");
    expect([answer.status, await answer.text()]).toEqual([401, "who are you"]);
  });

  test("a handler of one's own asks for the answer to a refusal", async () => {
    const refusal = await failed.execute(called).catch((error) => error);
    const answer = circuitOpenResponse(refusal) as Response;
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "13"]);
    expect(circuitOpenResponse(new Error("other"))).toBeUndefined();
    for (const strange of [undefined, null, "circuit_open", { code: "circuit_open" }]) {
      expect(circuitOpenResponse(strange)).toBeUndefined();
    }
  });
});

test("a half-open circuit whose slots are taken says when one may be free", async () => {
  let at = now;
  const probed = new CircuitBreaker(SECRET, { openDurationMs: 2000, clock: () => at });
  probed.trip();
  at += 2000;
  probed.acquire();
  at += 500;
  app = await FRAMEWORKS["Express 5"](() => probed.execute(called));
  expect(await ask("/")).toMatchObject({ status: 503, retryAfter: "2" });
});

function isProblem(answer: Awaited<ReturnType<typeof ask>>, retryAfter: string | null): void {
  expect(answer).toMatchObject({ status: 503, retryAfter });
  expect(answer.headers.get("content-type")).toMatch(/^application\/problem\+json/);
  expect(JSON.parse(answer.body)).toEqual({
    type: "about:blank",
    title: "Service Unavailable",
    status: 503,
    detail: `The service cannot answer this request now. Try again ${retryAfter === null ? "later" : `in ${retryAfter} s`}.`,
  });
}
