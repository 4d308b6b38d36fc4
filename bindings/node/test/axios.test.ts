// What is axios's own: buffered answers, validateStatus, its timeout and errors, and circuits of a group. The decisions that it
// shares with other clients are in http-table.test.ts.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import axios, { AxiosError, CanceledError } from "axios";
import { CircuitBreakerGroup, CircuitOpenError, ConfigError } from "switchgear";
import { type AnyBreaker, type CircuitAdapter, circuitBreaker } from "switchgear/axios";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ROOT } from "./support/child";
import { type Origin, startOrigin } from "./support/origin.mjs";

let server: Origin;
let now: number;

beforeEach(async () => {
  server = await startOrigin();
  now = 1_000_000;
});
afterEach(() => server.close());

describe.each(["http", "fetch"])("the adapter `%s`", (name) => {
  const client = (options: object = {}, config: object = {}) => {
    const adapter = circuitBreaker({ failureThreshold: 1, openJitter: 0, clock: () => now, adapter: name, ...options });
    return { http: axios.create({ adapter, baseURL: server.origin, ...config }), adapter };
  };
  /** A client whose next request is a probe. */
  const probing = (config: object = {}) => {
    const made = client({}, config);
    made.adapter.for(server.origin).trip({ forMs: 1 });
    now += 1;
    return made;
  };
  const state = ({ adapter }: ReturnType<typeof client>) => adapter.for(server.origin).getState();
  const isFreeAgain = ({ adapter }: ReturnType<typeof client>) =>
    vi.waitFor(() => {
      expect(adapter.for(server.origin).getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
    }, 60_000);

  test("what axios makes of an answer is as without it", async () => {
    const { http } = client();
    server.answer = { body: '{"a":1}', headers: { "content-type": "application/json", "x-id": "7" } };
    const response = await http.post("/orders", { b: 2 });
    expect([response.status, response.data, response.headers["x-id"]]).toEqual([200, { a: 1 }, "7"]);
    expect(server.last).toMatchObject({ method: "POST", url: "/orders", body: '{"b":2}' });
    server.answer = { status: 404, body: '{"no":1}', headers: { "content-type": "application/json" } };
    const error = await http.get("/").catch((error) => error);
    expect(error).toBeInstanceOf(AxiosError);
    expect([error.response.status, error.response.data]).toEqual([404, { no: 1 }]);
  });

  test.each([
    [404, "closed"],
    [503, "open"],
  ])("a %d is the same whatever validateStatus says of it", async (status, expected) => {
    for (const validateStatus of [null, () => true, () => false, (given: number) => given < 400]) {
      const made = probing({ validateStatus });
      server.answer = { status, body: "why" };
      await made.http.get("/").catch((error) => expect(error.response.status).toBe(status));
      expect(state(made)).toBe(expected);
    }
  });

  test("a refusal comes as it is, before anything is sent", async () => {
    const made = client();
    made.adapter.for(server.origin).trip();
    const refusal = await made.http.get("/").catch((error) => error);
    expect(refusal).toBeInstanceOf(CircuitOpenError);
    expect(refusal).toMatchObject({ code: "circuit_open", circuit: server.origin });
    expect(axios.isAxiosError(refusal)).toBe(false);
    expect(server.requests).toBe(0);
  });

  test.each([200, 503])("a body that breaks off under a buffered %d counts", async (status) => {
    const made = probing();
    server.answer = { status, chunks: ["one"], breaks: true };
    await expect(made.http.get("/")).rejects.toThrow(AxiosError);
    expect(state(made)).toBe("open");
  });

  test("the timeout of axios counts", async () => {
    const made = probing();
    server.answer = { hang: true };
    await expect(made.http.get("/", { timeout: 1 })).rejects.toThrow(/timeout of 1ms/);
    expect(state(made)).toBe("open");
  });

  test("a cancel token is neutral", async () => {
    const made = probing();
    server.answer = { hang: true };
    const source = axios.CancelToken.source();
    const asking = made.http.get("/", { cancelToken: source.token });
    void server.reached(1).then(() => source.cancel("not interested"));
    await expect(asking).rejects.toThrow(CanceledError);
    await isFreeAgain(made);
  });

  test("an answer that is larger than wanted is neutral", async () => {
    const made = probing({ maxContentLength: 3 });
    server.answer = { chunks: ["one", "two"] };
    await expect(made.http.get("/")).rejects.toThrow(/maxContentLength/);
    await isFreeAgain(made);
  });

  test.each([
    ["whose body is larger than it may be", { method: "POST", data: "x".repeat(100), maxBodyLength: 10 }],
    ["of an address that is none", { url: "http://[" }],
    ["of a protocol that nobody speaks", { url: "gopher://a" }],
  ])("a request %s is neutral", async (_what, config) => {
    const made = probing();
    await expect(made.http.request(config)).rejects.toThrow();
    expect(server.requests).toBe(0);
    expect(made.adapter.for(server.origin).getSnapshot().halfOpenInFlight).toBe(0);
  });

  test("the address is put together as axios does", async () => {
    const made = client({}, { baseURL: `${server.origin}/api/` });
    server.answer = { status: 500 };
    await made.http.get("orders", { params: { a: 1 } }).catch(() => undefined);
    expect(server.last?.url).toBe("/api/orders?a=1");
    await expect(made.http.get(`${server.origin}/other`)).rejects.toThrow(CircuitOpenError);
    const bound = client({}, { baseURL: server.origin, allowAbsoluteUrls: false });
    await bound.http.get("https://elsewhere.example/").catch(() => undefined);
    expect(state(bound)).toBe("open");
  });

  test("what no server answers is passed on", async () => {
    const { data } = await client().http.get("data:text/plain,here", { baseURL: "" });
    expect(String(data)).toBe("here");
  });

  test("a circuit further in that refuses counts nowhere", async () => {
    const inner = client().adapter;
    inner.for(server.origin).trip();
    const outer = client({ adapter: inner });
    await expect(outer.http.get("/")).rejects.toThrow(CircuitOpenError);
    expect(state(outer)).toBe("closed");
  });

  test("the circuits of a local group", async () => {
    const group = new CircuitBreakerGroup({ name: "hooks", failureThreshold: 1 });
    const http = axios.create({ adapter: circuitBreaker({ group, adapter: name }) });
    server.answer = { status: 503, headers: { "retry-after": "60" } };
    await expect(http.get(server.origin)).rejects.toThrow("503");
    await expect(http.get(server.origin)).rejects.toMatchObject({ circuit: `hooks:${server.origin}` });
    const { remainingOpenMs } = group.for(server.origin).getSnapshot();
    expect(remainingOpenMs).toBeGreaterThan(30_000);
    expect(remainingOpenMs).toBeLessThanOrEqual(60_000);
  });
});

describe("on Node's own http", () => {
  const client = (config: object = {}) => {
    const adapter = circuitBreaker({ failureThreshold: 1, openJitter: 0, clock: () => now });
    adapter.for(server.origin).trip({ forMs: 1 });
    now += 1;
    return { http: axios.create({ adapter, baseURL: server.origin, ...config }), breaker: adapter.for(server.origin) };
  };

  test("a body to send that breaks is the caller's own", async () => {
    const { http, breaker } = client();
    const body = Readable.from(
      (async function* () {
        yield "one";
        throw Object.assign(new Error("disk"), { code: "EIO" });
      })(),
    );
    await expect(http.post("/", body)).rejects.toThrow("disk");
    expect(breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
  });

  test("a stream that its reader destroys is neutral, with or without an error", async () => {
    for (const error of [undefined, new Error("not interested")]) {
      const { http, breaker } = client({ responseType: "stream" });
      server.answer = { chunks: ["one"], hang: true };
      const { data } = await http.get("/");
      data.on("error", () => undefined).destroy(error);
      await vi.waitFor(() => {
        expect(breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
      }, 60_000);
    }
  });

  test("what is compressed and breaks off counts", async () => {
    const { http, breaker } = client({ responseType: "stream" });
    server.answer = { headers: { "content-encoding": "gzip" }, chunks: ["not gzip"] };
    const { data } = await http.get("/");
    await expect(data.toArray()).rejects.toThrow();
    await vi.waitFor(() => expect(breaker.getState()).toBe("open"), 60_000);
  });

  test("a socket of the file system has a circuit by its path", async () => {
    const socketPath = join(tmpdir(), `switchgear-${process.pid}-${Math.random().toString(36).slice(2)}.sock`);
    const here = createServer((_request, response) => response.writeHead(500).end());
    await new Promise<void>((resolve) => here.listen(socketPath, resolve));
    try {
      const adapter = circuitBreaker({ failureThreshold: 1 });
      const http = axios.create({ adapter, socketPath });
      await http.get("/info").catch(() => undefined);
      await expect(http.get("/info")).rejects.toMatchObject({ circuit: `unix:${socketPath}` });
      expect(adapter.for(`unix:${socketPath}`).getState()).toBe("open");
      expect(() => adapter.for(socketPath)).toThrow(
        /^`origin` must be an http: or https: address, or 'unix:' and the path of a socket, got `/,
      );
    } finally {
      here.close();
    }
  });
});

test("imported it has the errors of the imported axios, and required those of the required one", async () => {
  const require = createRequire(join(ROOT, "package.json"));
  const required = require("axios");
  expect(required.AxiosError).not.toBe(AxiosError);
  server.answer = { status: 500 };
  const error = (one: { create: typeof axios.create }, adapter: CircuitAdapter<AnyBreaker>) =>
    one
      .create({ adapter })
      .get(server.origin)
      .catch((error) => error);
  expect(await error(axios, circuitBreaker())).toBeInstanceOf(AxiosError);
  expect(await error(required, require("switchgear/axios").circuitBreaker())).toBeInstanceOf(required.AxiosError);
});

test.each([
  [{ isFailure: () => true }, "`isFailure` is no option here: HTTP says what counts"],
  [{ origin: "https://a.example" }, /^`origin` is not an option; valid are .*adapter/],
  [{ group: new CircuitBreakerGroup(), windowMs: 3 }, "`windowMs` goes with no `group`: give it to the group"],
])("%j is refused at once", (options, message) => {
  expect(() => circuitBreaker(options as never)).toThrow(ConfigError);
  expect(() => circuitBreaker(options as never)).toThrow(message);
});

test("an adapter that there is not is refused at once, in axios's words", () => {
  expect(() => circuitBreaker({ adapter: "carrier pigeon" })).toThrow("Unknown adapter 'carrier pigeon'");
});

test("the Retry-After of a server that the caller was sent to is that server's, where `http` says whose it is", async () => {
  const other = await startOrigin();
  try {
    const adapter = circuitBreaker({ openJitter: 0, clock: () => now, adapter: "http" });
    const http = axios.create({ adapter });
    server.answer = { status: 302, headers: { location: `${other.origin}/there` } };
    other.answer = { status: 503, headers: { "retry-after": "60" } };
    await expect(http.get(server.origin)).rejects.toMatchObject({ response: { status: 503 } });
    expect(adapter.for(server.origin).getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 1 });
    expect(adapter.for(other.origin).getSnapshot()).toMatchObject({ state: "open", remainingOpenMs: 60_000 });
    await expect(http.get(other.origin)).rejects.toThrow(CircuitOpenError);
    adapter.for(other.origin).disable();
    await expect(http.get(server.origin)).rejects.toMatchObject({ response: { status: 503 } });
    expect(adapter.for(other.origin).getSnapshot().mode).toBe("disabled");
  } finally {
    await other.close();
  }
});
