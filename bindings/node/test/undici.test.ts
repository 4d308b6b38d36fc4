// What is undici's own: how it is composed, its errors, bodies that are sent, and circuits of a group. The decisions that it shares
// with other clients are in http-table.test.ts.
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { Readable, Writable } from "node:stream";
import { CircuitBreakerGroup, CircuitOpenError, ConfigError } from "switchgear";
import { circuitBreaker } from "switchgear/undici";
import * as undici7 from "undici";
import * as undici6 from "undici6";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Origin, startOrigin } from "./support/origin.mjs";

let server: Origin;
let opened: { destroy(): Promise<unknown> }[] = [];
let now: number;

beforeEach(async () => {
  server = await startOrigin();
  now = 1_000_000;
});
afterEach(async () => {
  await Promise.all(opened.map((dispatcher) => dispatcher.destroy()));
  opened = [];
  await server.close();
});

/** What the two versions have in common, as far as it is used here. */
interface Undici {
  Agent: new (options?: object) => Dispatcher;
  Pool: new (origin: string) => Dispatcher;
  Client: new (origin: string) => Dispatcher;
  request(url: string, options: object): Promise<{ statusCode: number; body: { text(): Promise<string> } }>;
  stream(url: string, options: object, factory: () => unknown): Promise<unknown>;
  getGlobalDispatcher(): Dispatcher;
  setGlobalDispatcher(dispatcher: Dispatcher): void;
  interceptors: Record<"retry" | "redirect", (options: object) => Interceptor>;
}
interface Dispatcher {
  compose(...interceptors: Interceptor[]): Dispatcher;
  request(options: object): Promise<{ statusCode: number; body: { text(): Promise<string> } }>;
  upgrade(options: object): Promise<{ socket: Socket }>;
  destroy(): Promise<unknown>;
}
type Interceptor = (dispatch: never) => unknown;

const VERSIONS = { "undici 7": undici7, "undici 6": undici6 } as unknown as Record<string, Undici>;

const OPTIONS = { failureThreshold: 1, openDurationMs: 1000, openJitter: 0, clock: () => now };

describe.each(Object.entries(VERSIONS))("%s", (version, undici) => {
  const composed = (breaker: Interceptor, options: object = {}, ...outer: Interceptor[]) => {
    const agent = new undici.Agent(options);
    opened.push(agent);
    return agent.compose(breaker, ...outer);
  };
  /** A circuit whose next request is a probe. */
  const probing = (breaker: ReturnType<typeof local>) => {
    breaker.for(server.origin).trip({ forMs: 1 });
    now += 1;
  };
  const local = (options: object = {}) => circuitBreaker({ ...OPTIONS, ...options });
  const state = (breaker: ReturnType<typeof local>) => breaker.for(server.origin).getState();

  test("fetch hides a refusal in the cause of its error", async () => {
    const breaker = local();
    breaker.for(server.origin).trip();
    const error = await fetch(server.origin, { dispatcher: composed(breaker) } as object).catch((error) => error);
    expect(error).toBeInstanceOf(TypeError);
    expect(error.cause).toBeInstanceOf(CircuitOpenError);
    expect(error.cause).toMatchObject({ circuit: server.origin, retryAfterMs: 1000 });
    expect(server.requests).toBe(0);
  });

  test("as the global dispatcher it guards every fetch", async () => {
    const before = undici.getGlobalDispatcher();
    const breaker = local();
    try {
      undici.setGlobalDispatcher(composed(breaker));
      server.answer = { status: 500 };
      await (await fetch(server.origin)).text();
      await expect(fetch(server.origin)).rejects.toMatchObject({ cause: { code: "circuit_open" } });
      expect(server.requests).toBe(1);
    } finally {
      undici.setGlobalDispatcher(before);
    }
  });

  test("a retry that is composed after it has each attempt admitted, and stops at the open circuit", async () => {
    const breaker = local({ failureThreshold: 2 });
    const retry = undici.interceptors.retry({ maxRetries: 5, minTimeout: 1, timeoutFactor: 1 });
    server.answer = { status: 503 };
    const asking = undici.request(server.origin, { dispatcher: composed(breaker, {}, retry) });
    await expect(asking).rejects.toMatchObject({ code: "circuit_open" });
    expect(server.requests).toBe(2);
  });

  test("a retry that is composed before it counts once", async () => {
    const breaker = local({ failureThreshold: 2 });
    const agent = new undici.Agent();
    opened.push(agent);
    const retry = undici.interceptors.retry({ maxRetries: 2, minTimeout: 1, timeoutFactor: 1 });
    server.answer = { status: 503 };
    await undici.request(server.origin, { dispatcher: agent.compose(retry, breaker) }).then(
      ({ body }) => body.text(),
      () => undefined,
    );
    expect(server.requests).toBe(3);
    expect(breaker.for(server.origin).getSnapshot().failuresInWindow).toBe(1);
  });

  test("each hop of a redirect is another request, of its own origin", async () => {
    const other = await startOrigin();
    try {
      const breaker = local();
      server.answer = { status: 302, headers: { location: other.origin } };
      other.answer = { status: 500 };
      const dispatcher = composed(breaker, {}, undici.interceptors.redirect({ maxRedirections: 2 }));
      await (await undici.request(server.origin, { dispatcher })).body.text();
      expect([state(breaker), breaker.for(other.origin).getState()]).toEqual(["closed", "open"]);
    } finally {
      await other.close();
    }
  });

  test.each(["Pool", "Client"] as const)("a %s asks one origin, which is given", async (Kind) => {
    const dispatcher = new undici[Kind](server.origin);
    opened.push(dispatcher);
    const breaker = local({ origin: `${server.origin}/any/path` });
    const guarded = dispatcher.compose(breaker);
    server.answer = { status: 500 };
    await (await guarded.request({ path: "/", method: "GET" })).body.text();
    await expect(guarded.request({ path: "/", method: "GET" })).rejects.toMatchObject({ circuit: server.origin });
    const unnamed = dispatcher.compose(local()).request({ path: "/", method: "GET" });
    await expect(unnamed).rejects.toThrow("`origin` must be given to circuitBreaker");
    expect(server.requests).toBe(1);
  });

  test.each([
    ["before the head", { hang: true }, { headersTimeout: 1 }],
    ["within the body", { chunks: ["one"], hang: true }, { bodyTimeout: 1 }],
  ])("a timeout of undici's own counts, %s", async (_when, answer, options) => {
    const breaker = local();
    server.answer = answer;
    const asking = undici.request(server.origin, { dispatcher: composed(breaker), ...options });
    await expect(asking.then(({ body }) => body.text())).rejects.toThrow(/Timeout/);
    expect(state(breaker)).toBe("open");
  });

  test.each([
    ["a stream", () => Readable.from(broken())],
    ["an async iterable", broken],
  ])("a body to send that breaks is the caller's own: %s", async (_what, body) => {
    const breaker = local();
    probing(breaker);
    const asking = undici.request(server.origin, { dispatcher: composed(breaker), method: "POST", body: body() });
    await expect(asking).rejects.toThrow("disk");
    await vi.waitFor(() => expect(breaker.for(server.origin).getSnapshot().halfOpenInFlight).toBe(0), 60_000);
    expect(state(breaker)).toBe("half-open");
  });

  test.each([
    ["a stream", () => Readable.from(whole())],
    ["an async iterable", whole],
    ["a text", () => "one, two"],
    ["bytes", () => Buffer.from("one, two")],
  ])("a body to send arrives whole: %s", async (_what, body) => {
    const breaker = local();
    const options = { dispatcher: composed(breaker), method: "POST", body: body() };
    await (await undici.request(server.origin, options)).body.text();
    expect(server.last?.body).toBe("one, two");
    expect(state(breaker)).toBe("closed");
  });

  test("fetch sends its body through it, too", async () => {
    const init = { method: "POST", body: new URLSearchParams({ a: "b" }), dispatcher: composed(local()) };
    await (await fetch(server.origin, init as object)).text();
    expect(server.last).toMatchObject({ method: "POST", body: "a=b" });
  });

  test.each<[string, (mine: Error) => unknown]>([
    [
      "at the head",
      (mine) => {
        throw mine;
      },
    ],
    [
      "at the body",
      (mine) =>
        new Writable({
          write() {
            throw mine;
          },
        }),
    ],
  ])("what its caller throws %s says nothing of the server, and frees the slot of a probe", async (_where, take) => {
    const breaker = local({ halfOpenMaxCalls: 1 });
    const dispatcher = composed(breaker);
    probing(breaker);
    server.answer = { status: 200, body: "some" };
    const mine = new Error("mine");
    const streaming = undici.stream(server.origin, { method: "GET", dispatcher }, () => take(mine));
    await expect(streaming).rejects.toBe(mine);
    expect(state(breaker)).toBe("half-open");
    expect((await undici.request(server.origin, { dispatcher })).statusCode).toBe(200);
  });

  test("a dispatcher that was closed says nothing of the server", async () => {
    const breaker = local();
    const agent = new undici.Agent();
    await agent.destroy();
    await expect(undici.request(server.origin, { dispatcher: agent.compose(breaker) })).rejects.toThrow();
    expect(state(breaker)).toBe("closed");
  });

  test("what is destroyed under way says nothing of the server", async () => {
    const breaker = local();
    probing(breaker);
    server.answer = { hang: true };
    const asking = undici.request(server.origin, { dispatcher: composed(breaker) });
    await Promise.all([expect(asking).rejects.toThrow(), server.reached(1).then(() => opened[0]?.destroy())]);
    expect(breaker.for(server.origin).getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
  });

  test("an upgrade is a success", async () => {
    const upgrading = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () =>
        socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n"),
      );
    }).listen(0, "127.0.0.1");
    await once(upgrading, "listening");
    const origin = `http://127.0.0.1:${(upgrading.address() as { port: number }).port}`;
    try {
      const breaker = local();
      breaker.for(origin).trip({ forMs: 1 });
      now += 1;
      const guarded = composed(breaker);
      const { socket } = await guarded.upgrade({ origin, path: "/", protocol: "echo" });
      expect(breaker.for(origin).getState()).toBe("closed");
      socket.destroy();
    } finally {
      upgrading.close();
    }
  });

  test("what is told before the answer is not the answer", async () => {
    const early = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () =>
        socket.end("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"),
      );
    }).listen(0, "127.0.0.1");
    await once(early, "listening");
    const origin = `http://127.0.0.1:${(early.address() as { port: number }).port}`;
    try {
      const breaker = local();
      await (await undici.request(origin, { dispatcher: composed(breaker) })).body.text();
      expect(breaker.for(origin).getState()).toBe("open");
    } finally {
      early.close();
    }
  });

  test("a circuit further in that refuses counts nowhere", async () => {
    const [inner, outer] = [local(), local()];
    inner.for(server.origin).trip();
    const asking = undici.request(server.origin, { dispatcher: composed(inner, {}, outer) });
    await expect(asking).rejects.toThrow(CircuitOpenError);
    expect(state(outer)).toBe("closed");
  });

  test("the circuits of a local group", async () => {
    const group = new CircuitBreakerGroup({
      name: "hooks",
      failureThreshold: 1,
      clock: () => now,
      isFailure: (error) => (error as { status?: number }).status !== 429,
    });
    const breaker = circuitBreaker({ group });
    const dispatcher = composed(breaker);
    for (const [status, expected] of [
      [429, "closed"],
      [503, "open"],
    ] as const) {
      server.answer = { status };
      await (await undici.request(server.origin, { dispatcher })).body.text();
      expect(group.for(server.origin).getState(), `${status}`).toBe(expected);
    }
    await expect(undici.request(server.origin, { dispatcher })).rejects.toMatchObject({
      circuit: `hooks:${server.origin}`,
    });
    expect(breaker.for(server.origin)).toBe(group.for(server.origin));
    expect(() => breaker.for("api.example.com")).toThrow(ConfigError);
    expect(group.size).toBe(1);
  });

  test(`its types are what ${version} takes`, () => {
    const agent = version === "undici 7" ? new undici7.Agent() : new undici6.Agent();
    opened.push(agent);
    const composed = agent instanceof undici7.Agent ? agent.compose(local()) : agent.compose(local(), circuitBreaker());
    expect(typeof composed.dispatch).toBe("function");
  });
});

test.each([
  [{ origin: "ftp://a" }, "`origin` must be an http: or https: address, got `'ftp://a'`"],
  [{ origin: 3 }, "`origin` must be an http: or https: address, got `3`"],
  [{ isFailure: () => true }, "`isFailure` is no option here: HTTP says what counts"],
  [{ shareTabs: true }, /^`shareTabs` is not an option; valid are .*respectRetryAfter/],
  [{ openJitter: 2 }, "`openJitter` must be a number from 0 to 1, got `2`"],
  [{ group: {} }, "`group` must be a CircuitBreakerGroup or a DistributedCircuitBreakerGroup, got `an object`"],
  [{ group: null }, "`group` must be a CircuitBreakerGroup or a DistributedCircuitBreakerGroup, got `null`"],
  [
    { group: new CircuitBreakerGroup(), failureThreshold: 3 },
    "`failureThreshold` goes with no `group`: give it to the group",
  ],
  [{ group: new CircuitBreakerGroup(), retryAfterMaxMs: 0 }, "`retryAfterMaxMs` must be an integer from 1"],
  [null, "`policy` must be an object, got `null`"],
])("%j is refused at once", (options, message) => {
  expect(() => circuitBreaker(options as never)).toThrow(ConfigError);
  expect(() => circuitBreaker(options as never)).toThrow(message);
});

async function* broken(): AsyncGenerator<string> {
  yield "one";
  throw new Error("disk");
}

async function* whole(): AsyncGenerator<string> {
  yield "one, ";
  yield "two";
}
