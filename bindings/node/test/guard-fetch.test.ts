// A fetch with one circuit per origin, against a real server that counts what reaches it.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { CircuitOpenError, ConfigError, type GuardFetchOptions, guardFetch } from "switchgear";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Origin, startOrigin } from "./support/origin.mjs";

let server: Origin;
let now: number;

beforeEach(async () => {
  server = await startOrigin();
  now = 1_000_000;
});
afterEach(() => server.close());

/** A guarded fetch on a clock of the test, without jitter unless asked for. */
function guarded(options: GuardFetchOptions = {}) {
  return guardFetch({ failureThreshold: 2, openDurationMs: 1000, openJitter: 0, clock: () => now, ...options });
}

/** The two old forms of a date in HTTP. */
const asctime = (date: Date) =>
  date
    .toUTCString()
    .replace(/^(\w+), (\d+) (\w+) (\d+) (\S+) GMT$/, (_, weekday, day, month, year, time) =>
      [weekday, month, String(Number(day)).padStart(2), time, year].join(" "),
    );
const rfc850 = (date: Date) =>
  date
    .toUTCString()
    .replace(
      /^\w+, (\d+) (\w+) \d\d(\d+) (\S+ GMT)$/,
      (_, day, month, year, time) =>
        `${date.toLocaleDateString("en", { weekday: "long", timeZone: "UTC" })}, ${day}-${month}-${year} ${time}`,
    );

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const state = (fetch: ReturnType<typeof guarded>) => fetch.for(server.origin).getState();

describe("a failing server", () => {
  test("is not asked while its circuit is open, and is asked once when the time is over", async () => {
    const fetch = guarded();
    server.answer = { status: 500 };
    for (let i = 0; i < 2; i++) expect((await fetch(server.origin)).status).toBe(500);
    expect(server.requests).toBe(2);
    const refusal = await fetch(`${server.origin}/any?path`).catch((error) => error);
    expect(refusal).toBeInstanceOf(CircuitOpenError);
    expect(refusal).toMatchObject({ circuit: server.origin, retryAfterMs: 1000, lastFailure: "HTTP 500" });
    expect(server.requests).toBe(2);

    server.answer = { status: 200, body: "well" };
    now += 1000;
    const probe = fetch(server.origin);
    await expect(fetch(server.origin)).rejects.toMatchObject({ state: "half-open" });
    expect(await (await probe).text()).toBe("well");
    expect(state(fetch)).toBe("closed");
    expect(server.requests).toBe(3);
  });

  test.each([
    [200, "closed"],
    [301, "closed"],
    [404, "closed"],
    [429, "open"],
    [500, "open"],
    [501, "closed"],
    [503, "open"],
    [599, "open"],
  ])("a %d leaves the circuit %s", async (status, expected) => {
    const fetch = guarded({ failureThreshold: 1 });
    server.answer = { status };
    await fetch(server.origin, { redirect: "manual" });
    expect(state(fetch)).toBe(expected);
  });

  test("one that cannot be reached counts", async () => {
    const fetch = guarded({ failureThreshold: 1 });
    const { origin } = server;
    await server.close();
    const error = await fetch(origin).catch((error) => error);
    expect(error).toBeInstanceOf(TypeError);
    expect(fetch.for(origin).getState()).toBe("open");
    await expect(fetch(origin)).rejects.toMatchObject({ lastFailure: "ECONNREFUSED" });
  });

  test("one that fails does not take another with it", async () => {
    const other = await startOrigin();
    try {
      const fetch = guarded({ failureThreshold: 1 });
      server.answer = { status: 500 };
      await fetch(server.origin);
      await expect(fetch(server.origin)).rejects.toThrow(CircuitOpenError);
      expect((await fetch(new URL(other.origin))).status).toBe(200);
    } finally {
      await other.close();
    }
  });
});

describe("what the caller does", () => {
  test("aborts: neutral, and the slot of a probe is free again", async () => {
    const fetch = guarded({ failureThreshold: 1 });
    fetch.for(server.origin).trip({ forMs: 1 });
    now += 1;
    server.answer = { hang: true };
    const controller = new AbortController();
    const probe = fetch(server.origin, { signal: controller.signal });
    await server.reached(1);
    controller.abort(new Error("not interested"));
    await expect(probe).rejects.toThrow("not interested");
    expect(fetch.for(server.origin).getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
  });

  test("a deadline is no abort: it counts", async () => {
    const fetch = guarded({ failureThreshold: 1 });
    server.answer = { hang: true };
    await expect(fetch(server.origin, { signal: AbortSignal.timeout(20) })).rejects.toMatchObject({
      name: "TimeoutError",
    });
    expect(state(fetch)).toBe("open");
  });

  test("a deadline that was over before the request began says nothing of the server", async () => {
    const fetch = guarded({ failureThreshold: 1 });
    const signal = AbortSignal.abort(new DOMException("too late", "TimeoutError"));
    await expect(fetch(server.origin, { signal })).rejects.toMatchObject({ name: "TimeoutError" });
    expect(state(fetch)).toBe("closed");
    expect(server.requests).toBe(0);
  });

  test("an invalid request: neutral, and nothing is sent", async () => {
    const fetch = guarded({ failureThreshold: 1 });
    await expect(fetch(server.origin, { method: "A B" })).rejects.toThrow(TypeError);
    await expect(fetch(server.origin, { headers: { "a b": "c" } })).rejects.toThrow(TypeError);
    await expect(fetch("http://")).rejects.toThrow(TypeError);
    expect(state(fetch)).toBe("closed");
    expect(server.requests).toBe(0);
  });

  test("sends what it wants, and gets what the server gives", async () => {
    const fetch = guarded();
    server.answer = { status: 201, body: "made", headers: { "x-id": "7" } };
    const response = await fetch(new Request(`${server.origin}/orders`, { method: "POST", body: "two" }));
    expect(response).toBeInstanceOf(Response);
    expect([response.status, response.statusText, response.headers.get("x-id")]).toEqual([201, "Created", "7"]);
    expect([response.url, response.redirected, response.type]).toEqual([`${server.origin}/orders`, false, "basic"]);
    const copy = response.clone();
    expect(copy.url).toBe(response.url);
    expect([await response.text(), await copy.text()]).toEqual(["made", "made"]);
    expect(server.last).toMatchObject({ method: "POST", url: "/orders", body: "two" });
  });

  test("what no server answers is passed on", async () => {
    const fetch = guarded();
    expect(await (await fetch("data:text/plain,here")).text()).toBe("here");
  });
});

describe("what sends the requests", () => {
  test("gets them as they were given; a body that can be read once is in a request by then", async () => {
    const given: unknown[][] = [];
    const send = ((...args: [Request, RequestInit]) => {
      given.push(args);
      return globalThis.fetch(...args);
    }) as typeof globalThis.fetch;
    const fetch = guarded({ fetch: send });
    const init = { method: "POST", body: "text", next: { revalidate: 60 } };
    await fetch(server.origin, init);
    expect(given[0]).toEqual([server.origin, init]);
    expect(given[0]?.[1]).toBe(init);
    const stream = { method: "POST", body: new Blob(["stream"]).stream(), duplex: "half" } as RequestInit;
    await fetch(server.origin, stream);
    expect(given[1]?.[0]).toBeInstanceOf(Request);
    expect(server.last?.body).toBe("stream");
    const request = new Request(server.origin, { method: "POST", body: "request" });
    await fetch(request);
    expect(server.last?.body).toBe("request");
  });

  test("may be a library with requests of its own, or have those of another window", async () => {
    class Foreign {
      constructor(readonly url: string) {}
    }
    const fetch = guarded({ fetch: (async () => new Response(null, { status: 500 })) as typeof globalThis.fetch });
    const input = new Foreign(`${server.origin}/orders`) as unknown as Request;
    for (let i = 0; i < 2; i++) await fetch(input);
    await expect(fetch(input)).rejects.toMatchObject({ circuit: server.origin });
  });

  const headers = new Headers();
  const locked = () => {
    const response = new Response("read by another");
    response.body?.getReader();
    return response;
  };
  test.each([
    ["a body of another library", () => ({ status: 200, headers, body: { pipe: () => undefined } }), "closed"],
    ["no body", () => ({ status: 200, headers }), "closed"],
    ["a body that somebody reads", locked, "closed"],
    ["a 503 without headers", () => ({ status: 503 }), "open"],
    ["no answer", () => undefined, "half-open"],
  ])("whatever answers, the caller gets it, and a probe keeps no slot: %s", async (_, answer, expected) => {
    const given = answer();
    const fetch = guarded({ fetch: (async () => given) as unknown as typeof globalThis.fetch });
    fetch.for(server.origin).trip({ forMs: 1 });
    now += 1;
    expect(await fetch(server.origin)).toBe(given);
    expect(fetch.for(server.origin).getSnapshot()).toMatchObject({ state: expected, halfOpenInFlight: 0 });
  });
});

describe("bodies", () => {
  const probing = () => {
    const fetch = guarded({ failureThreshold: 1 });
    fetch.for(server.origin).trip({ forMs: 1 });
    now += 1;
    return fetch;
  };

  test("one that breaks off counts", async () => {
    const fetch = guarded({ failureThreshold: 1 });
    server.answer = { chunks: ["one"], breaks: true };
    const response = await fetch(server.origin);
    await expect(response.text()).rejects.toThrow();
    expect(state(fetch)).toBe("open");
  });

  test("one that the caller cancels does not", async () => {
    const fetch = probing();
    server.answer = { chunks: ["one"], hang: true };
    const response = await fetch(server.origin);
    expect(fetch.for(server.origin).getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 1 });
    await response.body?.cancel();
    expect(fetch.for(server.origin).getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
  });

  test("nor does one whose request the caller aborts", async () => {
    const fetch = guarded({ failureThreshold: 1 });
    server.answer = { chunks: ["one"], hang: true };
    const controller = new AbortController();
    const response = await fetch(server.origin, { signal: controller.signal });
    const text = response.text();
    controller.abort();
    await expect(text).rejects.toMatchObject({ name: "AbortError" });
    expect(state(fetch)).toBe("closed");
  });

  test.each([
    ["an address", (signal: AbortSignal) => [server.origin, { signal }]],
    ["a request", (signal: AbortSignal) => [new Request(server.origin, { signal })]],
  ])("an abort reaches a body whose request nobody holds any more: %s", async (_, args) => {
    const fetch = probing();
    server.answer = { chunks: ["begun"], hang: true };
    const controller = new AbortController();
    const response = await fetch(...(args(controller.signal) as [string]));
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    for (let i = 0; i < 5; i++) {
      collectGarbage();
      await new Promise(setImmediate);
    }
    const rest = reader.read();
    controller.abort();
    await expect(rest).rejects.toMatchObject({ name: "AbortError" });
    expect(fetch.for(server.origin).getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
  });

  test("a probe has succeeded when its body has ended, read or not, or when there is none", async () => {
    for (const body of ["x".repeat(30_000), ""]) {
      const fetch = probing();
      server.answer = { body };
      await fetch(server.origin);
      await vi.waitFor(() => expect(state(fetch)).toBe("closed"), 60_000);
    }
  });

  test("a big one arrives whole and in order", async () => {
    const fetch = guarded();
    const chunks = Array.from({ length: 40 }, (_, i) => String.fromCharCode(65 + (i % 26)).repeat(20_000));
    server.answer = { chunks };
    const text = await (await fetch(server.origin)).text();
    expect(text === chunks.join("")).toBe(true);
  });
});

describe("Retry-After", () => {
  test.each([
    [503, "3", 3000],
    [429, "3", 3000],
    [503, () => new Date(Date.now() + 60_000).toUTCString(), 60_000],
    [503, () => asctime(new Date(Date.now() + 60_000)), 60_000],
    [503, () => rfc850(new Date(Date.now() + 60_000)), 60_000],
    [503, "999999999", 300_000],
    [503, "9".repeat(400), 300_000],
  ])("a %d with %s opens for that long", async (status, header, ms) => {
    // A date of HTTP is none of the place where it is read.
    vi.stubEnv("TZ", "Asia/Tokyo");
    const fetch = guarded({ failureThreshold: 5 });
    const text = typeof header === "string" ? header : header();
    server.answer = { status, headers: { "retry-after": text } };
    await fetch(server.origin).finally(() => vi.unstubAllEnvs());
    const { state, remainingOpenMs } = fetch.for(server.origin).getSnapshot();
    expect(state).toBe("open");
    // Until a date, some time has gone by: on a machine that is busy, quite some.
    expect(remainingOpenMs).toBeGreaterThan(typeof header === "string" ? ms - 1 : ms / 2);
    expect(remainingOpenMs).toBeLessThanOrEqual(ms);
  });

  test.each([
    [500, "3"],
    [503, "0"],
    [503, "soon"],
    [503, "-5"],
    [503, "1.5"],
    [503, "Thu, 01 Jan 1970 00:00:00 GMT"],
    [503, "Sunday, 06-Nov-94 08:49:37 GMT"],
    [503, "wait 2 may 2099"],
    [503, "2099-01-01T00:00:00Z"],
    [503, "120, 120"],
    [503, "1e3"],
  ])("a %d with %s counts as one failure and no more", async (status, header) => {
    const fetch = guarded();
    server.answer = { status, headers: { "retry-after": header } };
    await fetch(server.origin);
    expect(fetch.for(server.origin).getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 1 });
  });

  test("is believed up to retryAfterMaxMs, and not at all with respectRetryAfter: false", async () => {
    server.answer = { status: 503, headers: { "retry-after": "60" } };
    const capped = guarded({ retryAfterMaxMs: 2500 });
    await capped(server.origin);
    expect(capped.for(server.origin).getSnapshot().remainingOpenMs).toBe(2500);
    const deaf = guarded({ respectRetryAfter: false });
    await deaf(server.origin);
    expect(state(deaf)).toBe("closed");
  });

  test("of a server that the caller was sent to is that server's", async () => {
    const other = await startOrigin();
    try {
      const fetch = guarded();
      server.answer = { status: 302, headers: { location: `${other.origin}/there` } };
      other.answer = { status: 503, headers: { "retry-after": "60" } };
      expect((await fetch(server.origin)).status).toBe(503);
      expect(fetch.for(server.origin).getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 1 });
      expect(fetch.for(other.origin).getSnapshot()).toMatchObject({ state: "open", remainingOpenMs: 60_000 });
      await expect(fetch(`${other.origin}/here`)).rejects.toThrow(CircuitOpenError);
      fetch.for(other.origin).disable();
      await fetch(server.origin);
      expect(fetch.for(other.origin).getSnapshot().mode).toBe("disabled");
    } finally {
      await other.close();
    }
  });

  test("an answer from before the circuit opened says nothing any more", async () => {
    const fetch = guarded();
    server.answer = { hang: true };
    const late = fetch(server.origin);
    await server.reached(1);
    fetch.for(server.origin).trip({ forMs: 100 });
    server.release({ status: 503, headers: { "retry-after": "60" } });
    await late;
    expect(fetch.for(server.origin).getSnapshot().remainingOpenMs).toBe(100);
  });
});

describe("openJitter", () => {
  test("stretches by one factor per origin, which stays, and differs from origin to origin", () => {
    const lengths = Array.from({ length: 50 }, (_, i) => {
      const fetch = guarded({ openJitter: 0.5, maxKeys: 1, openDurationMs: 100_000, openDurationMaxMs: 100_000 });
      const measure = (origin: string) => {
        const breaker = fetch.for(origin);
        breaker.trip();
        return breaker.getSnapshot().remainingOpenMs;
      };
      const first = measure(`https://${i}.example`);
      measure("https://another.example");
      expect(measure(`https://${i}.example`)).toBe(first);
      return first;
    });
    for (const length of lengths) {
      expect(length).toBeGreaterThanOrEqual(100_000);
      expect(length).toBeLessThanOrEqual(150_000);
    }
    // Fifty draws: they lie apart, and on both sides.
    expect(new Set(lengths).size).toBeGreaterThan(45);
    expect(Math.min(...lengths)).toBeLessThan(115_000);
    expect(Math.max(...lengths)).toBeGreaterThan(135_000);
  });
});

describe("shareTabs", () => {
  const together = (options: GuardFetchOptions = {}) => guarded({ shareTabs: true, failureThreshold: 1, ...options });
  const becomes = (fetch: ReturnType<typeof guarded>, expected: string) =>
    vi.waitFor(() => expect(state(fetch)).toBe(expected), 60_000);
  /** Whatever was said before is heard when this is. */
  const post = async (fetch: ReturnType<typeof guarded>, ...words: unknown[]) => {
    const channel = new BroadcastChannel("switchgear");
    const last = `https://${crypto.randomUUID()}.example`;
    for (const word of words) channel.postMessage(word);
    channel.postMessage({ switchgear: 1, origin: last, at: now, openMs: 500 });
    await vi.waitFor(() => expect(fetch.for(last).getState()).toBe("open"), 60_000);
    channel.close();
  };

  test("a server that failed in one is spared by all, and one probe is enough for all", async () => {
    const [one, two, alone] = [together(), together(), guarded()];
    server.answer = { status: 500 };
    await one(server.origin);
    await becomes(two, "open");
    await expect(two(server.origin)).rejects.toMatchObject({ retryAfterMs: 1000 });
    expect(state(alone)).toBe("closed");
    expect(server.requests).toBe(1);

    now += 1000;
    server.answer = { status: 200 };
    await (await two(server.origin)).text();
    await becomes(one, "closed");
    expect(server.requests).toBe(2);
  });

  test("takes what is left of an opening, and nothing that is over or shorter than its own", async () => {
    const fetch = together();
    const word = { switchgear: 1, origin: server.origin };
    await post(fetch, { ...word, at: now - 400, openMs: 1000 });
    expect(fetch.for(server.origin).getSnapshot().remainingOpenMs).toBe(600);
    await post(fetch, { ...word, at: now, openMs: 300 });
    expect(fetch.for(server.origin).getSnapshot().remainingOpenMs).toBe(600);
    await post(fetch, { ...word, at: now + 5_000_000, openMs: 900 });
    expect(fetch.for(server.origin).getSnapshot().remainingOpenMs).toBe(900);
    await post(fetch, { ...word, at: now - 1, openMs: null });
    expect(state(fetch)).toBe("open");
    await post(fetch, { ...word, at: now, openMs: null }, { ...word, at: now - 2000, openMs: 1000 });
    expect(state(fetch)).toBe("closed");
  });

  test("leaves alone what this tab's operator has decided", async () => {
    const fetch = together();
    const word = { switchgear: 1, origin: server.origin, at: now };
    fetch.for(server.origin).disable();
    await post(fetch, { ...word, openMs: 1000 });
    expect(fetch.for(server.origin).getSnapshot().mode).toBe("disabled");
    fetch.for(server.origin).forceOpen();
    await post(fetch, { ...word, openMs: null });
    expect(fetch.for(server.origin).getSnapshot().mode).toBe("forced-open");
  });

  test("what is none of its words changes nothing", async () => {
    const fetch = together();
    const word = { switchgear: 1, origin: server.origin, at: now, openMs: 1000 };
    const strange = [null, 7, "x", [], {}, { ...word, switchgear: 2 }, { ...word, origin: 3 }, { ...word, at: -1 }];
    await post(fetch, ...strange, { ...word, at: "now" }, { ...word, openMs: 0.5 }, { ...word, openMs: Number.NaN });
    expect(state(fetch)).toBe("closed");
  });

  test("what is claimed is believed for as long as a tab would stay open by itself, and of origins only", async () => {
    const year = 365 * 24 * 3_600_000;
    const claim = async (options: GuardFetchOptions) => {
      const fetch = together(options);
      await post(fetch, { switchgear: 1, origin: server.origin, at: now, openMs: year });
      return fetch.for(server.origin).getSnapshot().remainingOpenMs;
    };
    expect(await claim({})).toBe(300_000);
    expect(await claim({ openJitter: 0.5 })).toBe(450_000);
    expect(await claim({ retryAfterMaxMs: 1 })).toBe(10_000);
    expect(await claim({ openDurationMs: 3_600_000 })).toBe(36_000_000);
    expect(await claim({ openDurationMs: 3_600_000, openDurationMaxMs: 7_200_000 })).toBe(7_200_000);
    const fetch = together({ maxKeys: 2, failureThreshold: 5 });
    fetch.for(server.origin).recordFailure();
    const no = [
      "",
      "x",
      "\u0000",
      "x".repeat(10_000),
      "https://",
      "file:///x",
      `${server.origin}/`,
      "HTTPS://a.example",
    ];
    await post(fetch, ...no.map((origin) => ({ switchgear: 1, origin, at: now, openMs: 1000 })));
    // Nothing but the last word has made a circuit: this one has kept its place.
    expect(fetch.for(server.origin).getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 1 });
  });

  test("a flood keeps no more circuits than maxKeys, and the tab goes on", async () => {
    const fetch = together({ maxKeys: 8 });
    const word = (_: unknown, i: number) => ({ switchgear: 1, origin: `https://${i}.example`, at: now, openMs: 500 });
    await post(fetch, ...Array.from({ length: 500 }, word));
    expect(fetch.for("https://499.example").getState()).toBe("open");
    expect(fetch.for("https://0.example").getState(), "it has been forgotten").toBe("closed");
    server.answer = { status: 200, body: "well" };
    expect(await (await fetch(server.origin)).text()).toBe("well");
  });

  test("says so where there is no BroadcastChannel", () => {
    vi.stubGlobal("BroadcastChannel", undefined);
    expect(() => together()).toThrow("`shareTabs` needs BroadcastChannel, which is not there");
    vi.unstubAllGlobals();
  });
});

describe("bounds and bad input", () => {
  test("any address of an origin names its circuit", () => {
    const fetch = guarded();
    const breaker = fetch.for("https://api.example");
    for (const address of ["https://api.example/", "HTTPS://API.example:443/orders?id=1"])
      expect(fetch.for(address)).toBe(breaker);
    expect(fetch.for("http://api.example")).not.toBe(breaker);
  });

  test("keeps at most maxKeys circuits", async () => {
    const fetch = guarded({ maxKeys: 2 });
    fetch.for("https://a.example").recordFailure();
    fetch.for("https://b.example");
    fetch.for("https://c.example");
    expect(fetch.for("https://a.example").getSnapshot().failuresInWindow).toBe(0);
  });

  test.each([
    [{ openJitter: 2 }, "`openJitter` must be a number from 0 to 1, got `2`"],
    [{ openJitter: Number.NaN }, "`openJitter` must be a number from 0 to 1, got `NaN`"],
    [{ retryAfterMaxMs: 0 }, "`retryAfterMaxMs` must be an integer from 1 to 2147483647 (milliseconds), got `0`"],
    [{ respectRetryAfter: 1 }, "`respectRetryAfter` must be true or false, got `1`"],
    [{ shareTabs: "yes" }, "`shareTabs` must be true or false, got `'yes'`"],
    [{ onUnavailable: "ignore" }, "`onUnavailable` must be 'throw' or 'pass', got `'ignore'`"],
    [{ fetch: "fetch" }, "`fetch` must be a function, got `'fetch'`"],
    [{ maxKeys: 0 }, "`maxKeys` must be an integer from 1 to 1000000, got `0`"],
    [{ failureThreshold: 0 }, "`failureThreshold` must be an integer from 1 to 1000000, got `0`"],
    [{ isFailure: () => true }, "`isFailure` is no option here: HTTP says what counts"],
    [{ origins: 3 }, /^`origins` is not an option; valid are .*openJitter/],
    [null, "`policy` must be an object, got `null`"],
  ])("%j is refused at once", (options, message) => {
    expect(() => guardFetch(options as never)).toThrow(ConfigError);
    expect(() => guardFetch(options as never)).toThrow(message);
  });

  test("the events of all circuits", async () => {
    const fetch = guarded({ failureThreshold: 1 });
    const heard: string[] = [];
    const stop = fetch.on("stateChange", ({ circuit, toState }) => heard.push(`${circuit} ${toState}`));
    server.answer = { status: 500 };
    await fetch(server.origin);
    stop();
    expect(heard).toEqual([`${server.origin} open`]);
  });
});
