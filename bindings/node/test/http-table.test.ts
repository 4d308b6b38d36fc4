// The HTTP table of guardFetch and of the adapters of HTTP clients: the same outcome leads to the same decision, whoever sends.
// A real server counts what reaches it, and the request is the probe of a half-open circuit, which tells the three outcomes apart.
import { CircuitOpenError, ConfigError } from "switchgear";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CLIENTS, type HttpClient, type Options } from "./support/http-clients";
import { type Origin, startOrigin } from "./support/origin.mjs";

let server: Origin;
let now: number;
let opened: HttpClient[] = [];

beforeEach(async () => {
  server = await startOrigin();
  now = 1_000_000;
});
afterEach(async () => {
  await Promise.all(opened.map((client) => client.close()));
  opened = [];
  await server.close();
});

type Decision = "counts" | "neutral" | "success";

describe.each(Object.entries(CLIENTS))("%s", (_name, make) => {
  const client = (options: Options = {}) => {
    const made = make({ failureThreshold: 2, openDurationMs: 1000, openJitter: 0, clock: () => now, ...options });
    opened.push(made);
    return made;
  };
  /** A client whose next request is a probe. */
  const probing = () => {
    const made = client();
    made.for(server.origin).trip({ forMs: 1 });
    now += 1;
    return made;
  };
  const decided = (made: HttpClient, origin = server.origin): Decision | "nothing yet" => {
    const { state, halfOpenInFlight } = made.for(origin).getSnapshot();
    if (state === "closed") return "success";
    if (state === "half-open") return halfOpenInFlight === 0 ? "neutral" : "nothing yet";
    // Still open: it was never asked, which is as neutral.
    return made.for(origin).getSnapshot().remainingOpenMs === 0 ? "neutral" : "counts";
  };
  const decides = (made: HttpClient, decision: Decision) =>
    vi.waitFor(() => expect(decided(made)).toBe(decision), 60_000);

  test.each([
    [200, "success"],
    [204, "success"],
    [301, "success"],
    [404, "success"],
    [429, "counts"],
    [500, "counts"],
    [501, "success"],
    [503, "counts"],
    [599, "counts"],
  ] as const)("a %d: %s", async (status, decision) => {
    const made = probing();
    server.answer = { status };
    const head = await made.ask(server.origin);
    expect(head.status).toBe(status);
    await head.read();
    await decides(made, decision);
  });

  test("a server that cannot be reached counts", async () => {
    const { origin } = server;
    await server.close();
    const made = client({ failureThreshold: 1 });
    await expect(made.ask(origin)).rejects.not.toBeInstanceOf(CircuitOpenError);
    expect(decided(made, origin)).toBe("counts");
    // What the adapter of axios on fetch throws says no more than that.
    await expect(made.ask(origin)).rejects.toMatchObject({
      code: "circuit_open",
      lastFailure: expect.stringMatching(/^(?:ECONNREFUSED|ERR_NETWORK)$/),
    });
  });

  test("one that hangs up before it answers counts", async () => {
    const made = probing();
    server.answer = { breaks: true };
    await expect(made.ask(server.origin)).rejects.toThrow();
    await decides(made, "counts");
  });

  test("a body that breaks off counts", async () => {
    const made = probing();
    server.answer = { chunks: ["one"], breaks: true };
    const reading = made.ask(server.origin).then((head) => head.read());
    await expect(reading).rejects.toThrow();
    await decides(made, "counts");
  });

  test("a body is a success at its end, and not before", async () => {
    const made = probing();
    server.answer = { chunks: ["one"], hang: true };
    const head = await made.ask(server.origin);
    expect(decided(made)).toBe("nothing yet");
    await head.cancel();
    const other = probing();
    server.answer = { chunks: ["one", "two"] };
    expect(await (await other.ask(server.origin)).read()).toBe("onetwo");
    await decides(other, "success");
  });

  test("a body that the caller cancels is neutral", async () => {
    const made = probing();
    server.answer = { chunks: ["one"], hang: true };
    await (await made.ask(server.origin)).cancel();
    await decides(made, "neutral");
  });

  test.each([
    ["gives up", () => new Error("not interested"), "neutral"],
    ["has a deadline", () => new DOMException("too late", "TimeoutError"), "counts"],
  ] as const)("a caller who %s before the answer", async (_who, reason, decision) => {
    const made = probing();
    server.answer = { hang: true };
    const controller = new AbortController();
    const asking = made.ask(server.origin, { signal: controller.signal });
    await server.reached(1);
    controller.abort(reason());
    await expect(asking).rejects.toThrow();
    await decides(made, decision);
  });

  test.each([
    ["gives up", () => new Error("not interested"), "neutral"],
    ["has a deadline", () => new DOMException("too late", "TimeoutError"), "counts"],
  ] as const)("a caller who %s within the body", async (_who, reason, decision) => {
    const made = probing();
    server.answer = { chunks: ["one"], hang: true };
    const controller = new AbortController();
    const head = await made.ask(server.origin, { signal: controller.signal });
    const reading = head.read();
    controller.abort(reason());
    await expect(reading).rejects.toThrow();
    await decides(made, decision);
  });

  test("a deadline that was over before the request began is neutral, and nothing is sent", async () => {
    const made = probing();
    const signal = AbortSignal.abort(new DOMException("too late", "TimeoutError"));
    await expect(made.ask(server.origin, { signal })).rejects.toThrow();
    await decides(made, "neutral");
    expect(server.requests).toBe(0);
  });

  test("any address of an origin names its circuit", () => {
    const made = client();
    const breaker = made.for("https://api.example");
    for (const address of ["https://api.example/", "HTTPS://API.example:443/orders?id=1"])
      expect(made.for(address)).toBe(breaker);
    expect(made.for("http://api.example")).not.toBe(breaker);
  });

  test.each(["api.example.com", "/orders", "ftp://api.example", "", 3, null, Symbol("api.example")])(
    "%s names no circuit, for no request would ever ask it",
    (address) => {
      const made = client();
      expect(() => made.for(address as never)).toThrow(ConfigError);
      expect(() => made.for(address as never)).toThrow("`origin` must be an http: or https: address");
      expect(() => made.for("api.example.com")).toThrow("got `'api.example.com'`");
    },
  );

  test("an option that there is not is told with those that there are, and no others", () => {
    const told = (options: object) => {
      try {
        client(options);
      } catch (error) {
        return (error as Error).message;
      }
      return "";
    };
    const [, listed = ""] = told({ failureTreshold: 3 }).split("is not an option; valid are ");
    const valid = listed.split(", ");
    expect(valid).toEqual(expect.arrayContaining(["failureThreshold", "observe", "clock", "maxKeys", "openJitter"]));
    for (const name of valid) expect(told({ [name]: Symbol(name) }), name).not.toMatch(/option/);
    for (const name of ["isFailure", "isFailureResult", "slowCallMs", "timeoutMs"]) {
      expect(valid).not.toContain(name);
      expect(told({ [name]: 1 })).toBe(`\`${name}\` is no option here: HTTP says what counts`);
    }
  });

  test.each([
    ["method", { method: "A B" }],
    ["header", { headers: { "a b": "c" } }],
  ])("a request whose %s is invalid is neutral, and is not sent", async (_what, asked) => {
    const made = probing();
    await expect(made.ask(server.origin, asked)).rejects.toThrow();
    await decides(made, "neutral");
    expect(server.requests).toBe(0);
  });

  test("while the circuit is open the server is not asked, and once when the time is over", async () => {
    const made = client();
    server.answer = { status: 500 };
    for (let i = 0; i < 2; i++) await (await made.ask(server.origin)).read();
    for (const path of ["/", "/any?path"]) {
      const refusal = await made.ask(server.origin + path).catch((error) => error);
      expect(refusal).toBeInstanceOf(CircuitOpenError);
      expect(refusal).toMatchObject({ circuit: server.origin, retryAfterMs: 1000, lastFailure: "HTTP 500" });
    }
    expect(server.requests).toBe(2);
    server.answer = { status: 200, body: "well" };
    now += 1000;
    const probe = made.ask(server.origin);
    await expect(made.ask(server.origin)).rejects.toMatchObject({ state: "half-open" });
    expect(await (await probe).read()).toBe("well");
    await decides(made, "success");
    expect(server.requests).toBe(3);
  });

  test("an origin that fails does not take another with it", async () => {
    const other = await startOrigin();
    try {
      const made = client({ failureThreshold: 1 });
      server.answer = { status: 500 };
      await (await made.ask(server.origin)).read();
      await expect(made.ask(server.origin)).rejects.toThrow(CircuitOpenError);
      expect((await made.ask(other.origin)).status).toBe(200);
    } finally {
      await other.close();
    }
  });

  test.each([
    [503, "3", {}, 3000],
    [429, "3", {}, 3000],
    [503, "999999999", {}, 300_000],
    [503, "60", { retryAfterMaxMs: 2500 }, 2500],
    [503, "60", { respectRetryAfter: false }, 0],
    [500, "3", {}, 0],
    [503, "soon", {}, 0],
  ])("a %d with Retry-After: %s and %j opens for %d ms", async (status, header, options, ms) => {
    const made = client({ failureThreshold: 5, ...options });
    server.answer = { status, headers: { "retry-after": header } };
    await (await made.ask(server.origin)).read();
    expect(made.for(server.origin).getSnapshot()).toMatchObject({
      state: ms === 0 ? "closed" : "open",
      remainingOpenMs: ms,
      failuresInWindow: ms === 0 ? 1 : 0,
    });
  });

  test("an answer from before the circuit opened says nothing any more", async () => {
    const made = client();
    server.answer = { hang: true };
    const late = made.ask(server.origin);
    await server.reached(1);
    made.for(server.origin).trip({ forMs: 100 });
    server.release({ status: 503, headers: { "retry-after": "60" } });
    await (await late).read();
    expect(made.for(server.origin).getSnapshot().remainingOpenMs).toBe(100);
  });

  test("openJitter stretches by one factor, the same for all of a process", async () => {
    const lengthOf = (made: HttpClient) => {
      made.for("https://a.example").trip();
      return made.for("https://a.example").getSnapshot().remainingOpenMs;
    };
    const options = { openJitter: 0.5, openDurationMs: 100_000 };
    const first = CLIENTS.guardFetch?.({ clock: () => now, ...options }) as HttpClient;
    expect(lengthOf(client(options))).toBe(lengthOf(first));
  });

  test("keeps at most maxKeys circuits, and tells of all of them", async () => {
    const made = client({ maxKeys: 2, failureThreshold: 1 });
    const heard: string[] = [];
    const stop = made.on("stateChange", ({ circuit, toState }) => heard.push(`${circuit} ${toState}`));
    for (const name of ["a", "b", "c"]) made.for(`https://${name}.example`).recordFailure();
    stop();
    made.for("https://d.example").recordFailure();
    expect(made.for("https://a.example").getState()).toBe("closed");
    expect(heard).toEqual(["https://a.example open", "https://b.example open", "https://c.example open"]);
  });
});
