// The package in a real browser, against real servers that count what reaches them.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { startOrigin } from "../../bindings/node/test/support/origin.mjs";
import { openPage, startBrowser, startSite } from "../support/browser.mjs";
import { ROOT } from "../support/consumer.mjs";

const STRICT = "default-src 'none'; connect-src *; script-src 'self'";
const module = (text) => `<!doctype html><title>t</title><script type="module">${text}</script>`;
const SHOW = `import * as switchgear from "/switchgear/index.mjs"; window.switchgear = switchgear;`;
const WORKER = `
  import { CircuitBreaker, guardFetch } from "/switchgear/index.mjs";
  const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
  breaker.recordFailure();
  const fetch = guardFetch({ failureThreshold: 1 });
  addEventListener("message", async ({ data }) => {
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push(await fetch(data).then(({ status }) => status, ({ code }) => code));
    postMessage({ state: breaker.getState(), statuses });
  });
`;

let browser;
let site;
let server;
let context;

before(async () => {
  browser = await startBrowser();
  const strict = (more = "") => ({ "content-security-policy": `${STRICT}${more}` });
  site = await startSite({
    folders: { switchgear: join(ROOT, "dist/wasm") },
    pages: {
      "/": { text: module(SHOW) },
      "/show.mjs": { text: SHOW },
      "/worker.mjs": { text: WORKER },
      "/strict": { text: '<!doctype html><script type="module" src="/show.mjs"></script>', headers: strict() },
      "/allowed": {
        text: '<!doctype html><script type="module" src="/show.mjs"></script>',
        headers: strict(" 'wasm-unsafe-eval'"),
      },
    },
  });
});
after(async () => {
  await browser?.close();
  await site?.close();
});
beforeEach(async () => {
  server = await startOrigin();
  context = await browser.newContext();
});
afterEach(async () => {
  await context?.close();
  await server?.close();
});

/** A page of our own on which the package was imported, and nothing more. */
async function open(path = "/") {
  const page = await openPage(context, site.origin + path);
  await page.waitForFunction(() => "switchgear" in window);
  return page;
}

/** Guards calls to the server in a page and gives what each came to: a status, or the code of a refusal. */
const guard = (page, options) =>
  page.evaluate((options) => {
    // A clock that stands still until the test moves it on: no test waits, and none is late.
    window.now = 1_000_000;
    window.guarded = window.switchgear.guardFetch({ clock: () => window.now, ...options });
  }, options);
const call = (page, times = 1) =>
  page.evaluate(
    async ([url, times]) => {
      const ends = [];
      for (let i = 0; i < times; i++) {
        try {
          const response = await window.guarded(url);
          await response.text();
          ends.push(response.status);
        } catch (error) {
          ends.push(error.code ?? error.name);
        }
      }
      return ends;
    },
    [`${server.origin}/orders`, times],
  );
const state = (page) => page.evaluate((origin) => window.guarded.for(origin).getState(), server.origin);

test("importing is enough, from a plain module script, without cross-origin isolation", async () => {
  const page = await open();
  const seen = await page.evaluate(async () => {
    const { CircuitBreaker, CircuitOpenError } = window.switchgear;
    const breaker = new CircuitBreaker("billing", { failureThreshold: 1, clock: () => 0 });
    const down = await breaker.execute(() => Promise.reject(new Error("down"))).catch((error) => error.message);
    const refusal = await breaker.execute(() => 1).catch((error) => error);
    return [down, refusal instanceof CircuitOpenError, refusal.message, window.crossOriginIsolated];
  });
  assert.deepEqual(seen, ["down", true, "circuit `billing` is open, retry in 30.0 s (last failure: down)", false]);
  assert.deepEqual(page.faults, []);
});

test("the entry for Redis stands on the same classes", async () => {
  const page = await open();
  const seen = await page.evaluate(async () => {
    const redis = await import("/switchgear/redis.mjs");
    const store = new redis.RedisStore({ command: async () => [null, null, null, null, null] });
    const shared = new redis.DistributedCircuitBreaker("billing", store);
    return [redis.CircuitOpenError === window.switchgear.CircuitOpenError, await shared.execute(() => "through")];
  });
  assert.deepEqual(seen, [true, "through"]);
  assert.deepEqual(page.faults, []);
});

test("guardFetch: a failing server is left alone, probed once, and asked again when it is well", async () => {
  const page = await open();
  const later = (ms) => page.evaluate((ms) => (window.now += ms), ms);
  await guard(page, { failureThreshold: 3, openDurationMs: 300, openJitter: 0 });
  server.answer = { status: 500, body: "no" };
  assert.deepEqual(await call(page, 5), [500, 500, 500, "circuit_open", "circuit_open"]);
  await later(299);
  assert.deepEqual(await call(page), ["circuit_open"]);
  assert.equal(server.requests, 3);

  await later(1);
  assert.deepEqual(await call(page, 2), [500, "circuit_open"]);
  assert.equal(server.requests, 4);

  server.answer = { status: 200, body: "well" };
  await later(300);
  assert.deepEqual(await call(page, 3), [200, 200, 200]);
  assert.equal(server.requests, 7);
  assert.equal(await state(page), "closed");
});

test("guardFetch: what names no origin by itself names no circuit, though the page has an origin to go by", async () => {
  const page = await open();
  await guard(page, {});
  const said = await page.evaluate(() =>
    ["api.example.com", "/orders"].map((address) => {
      try {
        return window.guarded.for(address).name;
      } catch (error) {
        return error.message;
      }
    }),
  );
  const message = (address) => `\`origin\` must be an http: or https: address, got \`'${address}'\``;
  assert.deepEqual(said, [message("api.example.com"), message("/orders")]);
});

test("guardFetch: a server's Retry-After is believed, if it shows it, up to the cap", async () => {
  const page = await open();
  await guard(page, { openJitter: 0, retryAfterMaxMs: 5_000 });
  server.answer = { status: 503, headers: { "retry-after": "3600", "access-control-expose-headers": "retry-after" } };
  assert.deepEqual(await call(page, 2), [503, "circuit_open"]);
  const left = await page.evaluate((origin) => window.guarded.for(origin).getSnapshot().remainingOpenMs, server.origin);
  assert.equal(left, 5_000);
  assert.equal(server.requests, 1);
});

test("guardFetch: network errors and broken bodies count; what the caller gives up does not", async () => {
  const page = await open();
  await guard(page, { failureThreshold: 1 });
  server.answer = { chunks: ["begun"], hang: true };
  const ended = await page.evaluate(async (url) => {
    const response = await window.guarded(url);
    await response.body.cancel();
    const controller = new AbortController();
    const aborted = (await window.guarded(url, { signal: controller.signal })).text();
    controller.abort();
    return [response.url, response.type, await aborted.catch((error) => error.name)];
  }, `${server.origin}/big`);
  assert.deepEqual(ended, [`${server.origin}/big`, "cors", "AbortError"]);
  assert.equal(await state(page), "closed");

  server.answer = { chunks: ["begun"], breaks: true };
  assert.deepEqual(await call(page, 2), ["TypeError", "circuit_open"]);
  assert.equal(await state(page), "open");

  await guard(page, { failureThreshold: 1 });
  await server.close();
  assert.deepEqual(await call(page, 2), ["TypeError", "circuit_open"]);
});

test("a module worker", async () => {
  const page = await open();
  server.answer = { status: 500 };
  const said = await page.evaluate(
    (url) =>
      new Promise((resolve, reject) => {
        const worker = new Worker("/worker.mjs", { type: "module" });
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = ({ message }) => reject(new Error(message));
        worker.postMessage(url);
      }),
    server.origin,
  );
  assert.deepEqual(said, { state: "open", statuses: [500, "circuit_open", "circuit_open"] });
  assert.equal(server.requests, 1);
});

test("two tabs have circuits of their own, and closing one changes nothing in the other", async () => {
  const [one, two] = [await open(), await open()];
  for (const page of [one, two]) await guard(page, { failureThreshold: 1 });
  server.answer = { status: 500 };
  assert.deepEqual(await call(one, 2), [500, "circuit_open"]);
  assert.equal(await state(two), "closed");
  await one.close();
  assert.equal(await state(two), "closed");
  assert.deepEqual(await call(two, 2), [500, "circuit_open"]);
  assert.equal(server.requests, 2);
});

test("two tabs that share what they know: one failure, one probe, and closing one changes nothing in the other", async () => {
  const [one, two] = [await open(), await open()];
  for (const page of [one, two]) await guard(page, { failureThreshold: 1, openJitter: 0, shareTabs: true });
  const becomes = (page, state) =>
    page.waitForFunction(([origin, state]) => window.guarded.for(origin).getState() === state, [server.origin, state]);
  server.answer = { status: 500 };
  assert.deepEqual(await call(one), [500]);
  await becomes(two, "open");
  await one.close();
  assert.equal(await state(two), "open");
  assert.deepEqual(await call(two), ["circuit_open"]);
  assert.equal(server.requests, 1);

  const three = await open();
  await guard(three, { failureThreshold: 1, openJitter: 0, shareTabs: true });
  assert.equal(await state(three), "closed", "what was said before it came it has not heard");
  server.answer = { status: 200 };
  for (const page of [two, three]) await page.evaluate(() => (window.now += 30_000));
  assert.deepEqual(await call(two), [200]);
  assert.equal(await state(two), "closed");
  assert.deepEqual([two.faults, three.faults], [[], []]);
});

test("tabs of different policies, and a page that says what is not so", async () => {
  const [strict, patient, liar] = [await open(), await open(), await open()];
  await guard(strict, { failureThreshold: 1, openDurationMs: 3_600_000, openJitter: 0, shareTabs: true });
  await guard(patient, { openDurationMs: 10_000, retryAfterMaxMs: 20_000, openJitter: 0, shareTabs: true });
  const left = (page) =>
    page.evaluate((origin) => window.guarded.for(origin).getSnapshot().remainingOpenMs, server.origin);
  const hears = (page, ms) =>
    page.waitForFunction(
      ([origin, ms]) => window.guarded.for(origin).getSnapshot().remainingOpenMs === ms,
      [server.origin, ms],
    );
  server.answer = { status: 500 };
  assert.deepEqual(await call(strict), [500]);
  await hears(patient, 100_000);
  assert.equal(await left(strict), 3_600_000);

  await liar.evaluate((origin) => {
    const channel = new BroadcastChannel("switchgear");
    const word = { switchgear: 1, origin, at: 1_000_000, openMs: null };
    const said = [
      ...[
        null,
        [],
        "close",
        new Blob(["x"]),
        new ArrayBuffer(9),
        new Map([["switchgear", 1]]),
        1n,
        Symbol.iterator.description,
      ],
      ...[
        { ...word, switchgear: 2 },
        { ...word, at: 1e300 },
        { ...word, origin: [origin] },
        { ...word, origin: `${origin}/` },
      ],
      ...Array.from({ length: 2_000 }, (_, i) => ({
        ...word,
        origin: `https://\u202e${i}<script>.example`,
        openMs: 5,
      })),
      // The last of them is true.
      { ...word, at: 1_000_000, openMs: 7_200_000 },
    ];
    for (const each of said) channel.postMessage(each);
  }, server.origin);
  await hears(strict, 7_200_000);
  await liar.close();
  assert.deepEqual(await call(patient), ["circuit_open"]);
  assert.equal(await left(patient), 100_000);
  // Chromium itself says of the first answer that it was a 500.
  const thrown = [...strict.faults, ...patient.faults].filter((fault) => !fault.startsWith("Failed to load resource"));
  assert.deepEqual(thrown, []);
});

test("guardFetch: a request of another window is for its own server", async () => {
  const page = await open();
  await guard(page, { failureThreshold: 1 });
  server.answer = { status: 500 };
  const ends = await page.evaluate(async (url) => {
    const frame = document.createElement("iframe");
    document.body.append(frame);
    const request = () => new frame.contentWindow.Request(url, { method: "POST", body: "from within" });
    const first = await window.guarded(request());
    return [first.status, await window.guarded(request()).catch(({ circuit }) => circuit)];
  }, `${server.origin}/orders`);
  assert.deepEqual(ends, [500, server.origin]);
  assert.equal(server.last.body, "from within");
});

test("a reload while open starts closed", async () => {
  const page = await open();
  await guard(page, { failureThreshold: 1 });
  server.answer = { status: 500 };
  assert.deepEqual(await call(page, 2), [500, "circuit_open"]);
  await page.reload();
  await page.waitForFunction(() => "switchgear" in window);
  await guard(page, { failureThreshold: 1 });
  assert.equal(await state(page), "closed");
  assert.deepEqual(await call(page), [500]);
});

test("a strict CSP: importing works, first use names the directive", async () => {
  const page = await open("/strict");
  const errors = await page.evaluate(() =>
    [() => new window.switchgear.CircuitBreaker("c"), () => window.switchgear.guardFetch()].map((use) => {
      try {
        use();
        return null;
      } catch (error) {
        return error.message;
      }
    }),
  );
  for (const message of errors)
    assert.match(message, /^switchgear: WebAssembly may not run here; .*'wasm-unsafe-eval'/);
  assert.equal(await page.evaluate(() => typeof window.switchgear.version), "string");
});

test("a strict CSP: onUnavailable 'pass' lets everything through", async () => {
  const page = await open("/strict");
  await guard(page, { failureThreshold: 1, onUnavailable: "pass" });
  server.answer = { status: 500 };
  assert.deepEqual(await call(page, 3), [500, 500, 500]);
  assert.equal(server.requests, 3);
});

test("a CSP that allows WebAssembly and nothing else", async () => {
  const page = await open("/allowed");
  await guard(page, { failureThreshold: 1 });
  server.answer = { status: 500 };
  assert.deepEqual(await call(page, 2), [500, "circuit_open"]);
});
