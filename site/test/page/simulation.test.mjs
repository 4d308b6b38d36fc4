// The simulation's view: it is the core that answers, it can be shared, and time runs both ways.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { CircuitBreakerState } from "switchgear";
import { run } from "../../../bindings/node/test/support/compare.mjs";
import { WAYS } from "../../../bindings/node/test/support/machines.mjs";
import * as switchgear from "../../../dist/index.mjs";
import { PATIENT, startBrowser } from "../../../tests/support/browser.mjs";
import { open, PATH, ready, seen, startPlayground } from "./support.mjs";

let browser;
let site;
let context;
before(async () => {
  [browser, site] = await Promise.all([startBrowser(), startPlayground()]);
});
after(async () => {
  await browser?.close();
  await site?.close();
});
beforeEach(async () => {
  context = await browser.newContext({ viewport: { width: 1280, height: 1000 } });
});
afterEach(() => context?.close());

/** Two outages, a probe by hand, and manual control: all that a set-up may hold. */
const EVENTFUL =
  "#v=1&policy.failureThreshold=3&policy.openDurationMs=4000&policy.halfOpenMaxCalls=2&policy.successThreshold=2" +
  "&load.callsPerSecond=10&load.seed=3&load.lengthMs=40000&load.failureShare=0.05" +
  "&outage=8000~9000~hang~1&outage=24000~3000~error~0.9&act=2000~trip&act=31000~forceOpen&act=33000~reset&act=34000~hang&at=17500";

const fact = (page, name) =>
  page.evaluate(
    (name) =>
      [...document.querySelectorAll("dt")].find((dt) => dt.textContent === name)?.nextElementSibling.textContent,
    name,
  );
const value = (page, id) => page.inputValue(`#${id}`);

/** What the page hands out of what has happened, as a vector. */
async function saved(page) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
  return JSON.parse(readFileSync(await download.path(), "utf8"));
}

test("it asks for its own files alone, and runs under the policy that it carries", async () => {
  const asked = [];
  context.on("request", (request) => asked.push(request.url()));
  const page = await open(context, site);
  await page.click("#tab-vectors");
  await page.waitForSelector("#vector-body:not([hidden])");
  const own = `${site.origin}${PATH}`;
  assert.deepEqual(
    asked.filter((url) => !url.startsWith(own) && !url.startsWith("blob:")),
    [],
  );
  for (const file of ["main.js", "theme.js", "style.css", "objects.wasm", "inter.woff2", "vectors/index.json"]) {
    assert.ok(asked.includes(own + file), file);
  }
  const policy = await page.getAttribute('meta[http-equiv="Content-Security-Policy"]', "content");
  assert.match(policy, /^default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self';/);
  // It is in force: nothing that is written into the page is run. That it was refused is said apart from the answer.
  const refused = page.waitForEvent("console", (message) => message.type() === "error");
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script);
    return window.ran === true;
  });
  assert.equal(ran, false);
  await refused;
  assert.equal(page.faults.length, 1);
  assert.match(page.faults[0], /Content Security Policy/);
});

test("without WebAssembly it says so, and what would have to be allowed", async () => {
  const strict = await startPlayground({ "content-security-policy": "script-src 'self'" });
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENT);
    await page.goto(strict.origin + PATH);
    await page.waitForSelector("#problem:not([hidden])");
    assert.match(await page.textContent("#problem-text"), /^The core could not be started: .*'?wasm-unsafe-eval'?/s);
  } finally {
    await strict.close();
  }
});

test("a scripted outage: the numbers are those of the native core in Node for the same calls", async () => {
  const page = await open(context, site, EVENTFUL);
  await page.click("#to-end");
  const vector = await saved(page);
  assert.deepEqual(page.faults, []);

  // The answers, expectation by expectation, on the native module alone and on a breaker with hints.
  for (const [way, start] of Object.entries(WAYS)) {
    const { failures, steps } = run(`node${way}`, [vector], start(switchgear));
    assert.deepEqual(failures, []);
    assert.ok(steps > 500, `only ${steps} steps`);
  }

  // The sums: the same inputs, asked and counted here.
  const native = new CircuitBreakerState(vector.config);
  const permits = new Map();
  const counted = { calls: 0, refused: 0, probes: 0, stale: 0, changes: [] };
  for (const { at, do: operation, as, permit } of vector.steps) {
    const before = native.getState();
    if (operation === "canRequest") {
      const admitted = native.acquire(at);
      counted.calls += 1;
      if (admitted === null) counted.refused += 1;
      else permits.set(as, admitted);
      if (admitted !== null && native.getState() === "half-open") counted.probes += 1;
    } else if (permit !== undefined) {
      if (permits.get(permit)[operation](at) === "stale") counted.stale += 1;
    } else native[operation](at);
    if (native.getState() !== before) counted.changes.push(`${(at / 1000).toFixed(3)} s ${native.getState()}`);
  }
  assert.equal(await fact(page, "calls"), String(counted.calls));
  assert.match(await fact(page, "refused at once"), new RegExp(`^${counted.refused} \\(`));
  assert.equal(await fact(page, "probes so far"), String(counted.probes));
  assert.equal(await fact(page, "came too late to count"), String(counted.stale));
  const changes = await page.$$eval(".jump", (all) =>
    all.map((each) =>
      [...each.children]
        .slice(0, 2)
        .map((c) => c.textContent)
        .join(" "),
    ),
  );
  assert.deepEqual(changes, counted.changes);
  assert.ok(
    counted.refused > 50 && counted.probes > 3 && counted.stale > 5 && changes.length > 8,
    JSON.stringify(counted),
  );
});

test("back and on again: every step shows the very same", async () => {
  const page = await open(context, site, EVENTFUL);
  const there = await seen(page);
  for (const [away, back, steps] of [
    ["#on", "#back", 12],
    ["#next-change", "#last-change", 6],
  ]) {
    // From a place that both ways lead to.
    await page.click(away);
    await page.click(back);
    const here = await seen(page);
    const way = [];
    for (let i = 0; i < steps; i++) {
      await page.click(away);
      way.push(await seen(page));
    }
    assert.notDeepEqual(way[0], here);
    for (let i = steps - 1; i >= 0; i--) {
      assert.deepEqual(await seen(page), way[i], `${back}, ${i}`);
      await page.click(back);
    }
    assert.deepEqual(await seen(page), here);
  }
  const slide = (at) =>
    page.$eval(
      "#slider",
      (slider, at) => {
        slider.value = String(at);
        slider.dispatchEvent(new Event("input", { bubbles: true }));
      },
      at,
    );
  await page.click("#to-end");
  await slide(17_500);
  assert.deepEqual(await seen(page), there);
  await page.click("#to-start");
  assert.equal(await fact(page, "calls"), "0");
  await slide(17_500);
  assert.deepEqual(await seen(page), there);
  assert.deepEqual(page.faults, []);
});

test("a press on the timeline goes there", async () => {
  const page = await open(context, site, EVENTFUL);
  const { x, y, width } = await page.evaluate(() => document.querySelector(".graph").getBoundingClientRect().toJSON());
  await page.mouse.click(x + width / 4, y + 100);
  const at = Number.parseFloat(await page.textContent("#where"));
  assert.ok(Math.abs(at - 10) < 0.1, `${at}`);
});

test("playing goes on until the end, and stops there", async () => {
  const page = await open(context, site, "#v=1&load.lengthMs=3000&at=0");
  await page.selectOption("#speed", "30");
  await page.click("#play");
  await page.waitForFunction(() => document.getElementById("where").textContent === "3.000 s");
  assert.equal(await page.textContent("#play"), "Play");
  const played = await seen(page);
  await page.click("#to-start");
  await page.click("#to-end");
  assert.deepEqual(await seen(page), played);
});

test("where motion is unwelcome nothing glides, and playing still arrives", async () => {
  await context.close();
  context = await browser.newContext({ reducedMotion: "reduce" });
  const page = await open(context, site, "#v=1&load.lengthMs=3000&at=0");
  const moving = await page.evaluate(() =>
    [...document.querySelectorAll("*")].flatMap((each) => {
      const { transitionDuration, animationName } = getComputedStyle(each);
      const still = transitionDuration === "0s" && animationName === "none";
      return still ? [] : [`${each.tagName} ${each.id}: ${transitionDuration} ${animationName}`];
    }),
  );
  assert.deepEqual(moving, []);
  await page.selectOption("#speed", "30");
  await page.click("#play");
  await page.waitForFunction(() => document.getElementById("where").textContent === "3.000 s");
});

test("shared by a link: another page shows the very same", async () => {
  const page = await open(context, site);
  await page.fill("#policy-failureThreshold", "4");
  await page.fill("#policy-windowMs", "7000");
  await page.fill("#load-callsPerSecond", "7.5");
  await page.fill("#load-failureShare", "3");
  await page.click("#add-outage");
  await page.locator("#outages .outage").last().locator("select").selectOption("error");
  await page.click("#next-change");
  await page.click("#hand-hang");
  await page.click("#hand-forceOpen");
  await page.click("#copy");
  const link = await value(page, "link");
  assert.ok(link.startsWith(`${site.origin}${PATH}#v=1&policy.`), link);

  const other = await browser.newContext({ viewport: { width: 1280, height: 1000 } });
  try {
    const copy = await open(other, site, link.slice(link.indexOf("#")));
    assert.deepEqual(await seen(copy), await seen(page));
    assert.equal(await value(copy, "policy-failureThreshold"), "4");
    assert.equal(await copy.locator("#outages .outage").count(), 2);
    assert.equal(await copy.locator(".chip").count(), 2);
    assert.deepEqual(copy.faults, []);
  } finally {
    await other.close();
  }
  // The address says it, too: a reload changes nothing.
  await page.waitForFunction((link) => location.href === link, link);
  const before = await seen(page);
  await page.reload();
  await ready(page);
  assert.deepEqual(await seen(page), before);
  assert.deepEqual(page.faults, []);
});

test("a broken link says what is wrong with it, and nothing breaks", async () => {
  const usual = await seen(await open(context, site));
  const broken = {
    "#nonsense": "`v` must be `1`, got `nothing`",
    "#v=1&load.latencyMs=-5": "`latencyMs` must be an integer from 0 to 600000, got `-5`",
    "#v=1&policy.failureThreshold=0": "`failureThreshold` must be an integer from 1 to 1000000, got `0`",
    "#v=1&policy.x=%3Cimg%20src%3Dx%3E": "`x` is not an option",
    "#v=1&outage=1~2": "`outage 1` must be begin~length~hang or error~share",
    "#%E0%A4%A": "`v` must be `1`",
  };
  for (const [hash, says] of Object.entries(broken)) {
    const page = await open(context, site, hash);
    const text = await page.textContent("#problem-text");
    assert.ok(text.startsWith("This link holds no set-up: ") && text.includes(says), `${hash}: ${text}`);
    assert.deepEqual(await seen(page), usual, hash);
    assert.deepEqual(page.faults, []);
    await page.close();
  }
  // One that comes later is refused likewise; the next good one is followed.
  const page = await open(context, site, EVENTFUL);
  const before = await seen(page);
  await page.evaluate(() => (location.hash = "#v=9"));
  await page.waitForSelector("#problem:not([hidden])");
  assert.deepEqual(await seen(page), before);
  await page.evaluate(() => (location.hash = "#v=1&policy.failureThreshold=9"));
  await page.waitForSelector("#problem", { state: "hidden" });
  assert.equal(await value(page, "policy-failureThreshold"), "9");
  assert.deepEqual(page.faults, []);
});

test("every option of the core's table has its field, with its default, and the core's word at it where it is wrong", async () => {
  const page = await open(context, site, "#v=1");
  const table = { rolling: {}, consecutive: {}, rate: {} };
  for (const tripOn of Object.keys(table)) {
    await page.selectOption("#policy-tripOn", tripOn);
    for (const id of await page.$$eval("#policy input:enabled", (all) => all.map(({ id }) => id))) {
      const name = id.replace("policy-", "");
      table[tripOn][name] = Number(await page.getAttribute(`#${id}`, "placeholder"));
      for (const typed of ["0", "-3", "abc"]) {
        await page.fill(`#${id}`, typed);
        const said = await page.textContent(`#${id}-problem`);
        assert.equal(said, messageInNode({ tripOn, [name]: Number.isNaN(Number(typed)) ? typed : Number(typed) }));
        assert.equal(await page.getAttribute(`#${id}`, "aria-invalid"), "true");
        assert.ok((await page.getAttribute(`#${id}`, "aria-describedby")).split(" ").includes(`${id}-problem`));
      }
      await page.fill(`#${id}`, "");
      assert.equal(await page.isVisible(`#${id}-problem`), false);
    }
  }
  assert.deepEqual(table.rolling, {
    ...{ failureThreshold: 5, windowMs: 10_000, openDurationMs: 30_000, openBackoff: 1, openDurationMaxMs: 300_000 },
    ...{ halfOpenMaxCalls: 1, successThreshold: 1, probeTimeoutMs: 30_000 },
  });
  assert.equal(table.consecutive.windowMs, undefined);
  assert.equal(table.rate.failureRate, 0.5);
  assert.equal(new Set(Object.values(table).flatMap(Object.keys)).size, 10);
  assert.deepEqual(page.faults, []);
});

function messageInNode(policy) {
  try {
    return `taken: ${new CircuitBreakerState(policy).getState()}`;
  } catch (error) {
    return error.message;
  }
}

test("what is not valid is said at its field, and what was shown stays", async () => {
  const page = await open(context, site, EVENTFUL);
  const before = (await seen(page)).said;
  const wrong = {
    "#load-latencyMs": ["-1", "`Latency` must be an integer from 0 to 600000, got `-1`"],
    "#load-lengthMs": ["soon", "`Length of the run` must be a number from 1 to 3600, got `'soon'`"],
    "#load-callsPerSecond": ["501", "`Calls` must be a number from 0.1 to 500, got `501`"],
    "#load-failureShare": ["101", "`Fail while all is well` must be a number from 0 to 100, got `101`"],
    "#outages .outage:nth-child(2) .field:nth-child(2) input": [
      "0",
      "`for` must be a number from 0.001 to 3600, got `0`",
    ],
    "#policy-openDurationMaxMs": ["5", "`openDurationMaxMs` must be at least openDurationMs (4000), got `5`"],
  };
  for (const [field, [typed, says]] of Object.entries(wrong)) {
    const right = await page.inputValue(field);
    await page.fill(field, typed);
    const id = await page.getAttribute(field, "id");
    assert.equal(await page.textContent(`#${id}-problem`), says);
    assert.equal(await page.isVisible("#stale"), true);
    assert.deepEqual((await seen(page)).said, before);
    await page.fill(field, right);
    assert.equal(await page.isVisible("#stale"), false);
    assert.deepEqual((await seen(page)).said, before);
  }
  await page.fill("#load-lengthMs", "3600");
  await page.fill("#load-callsPerSecond", "100");
  assert.match(await page.textContent("#load-callsPerSecond-problem"), /^`Calls` must be at most 5\.5 for this length/);
  assert.deepEqual(page.faults, []);
});

test("by hand: what is done counts at the moment shown, and can be taken back", async () => {
  const page = await open(
    context,
    site,
    "#v=1&load.callsPerSecond=0.1&load.lengthMs=9000&policy.failureThreshold=2&at=4000",
  );
  const state = () => page.textContent(".lamp");
  const before = await seen(page);
  await page.click("#hand-fail");
  await page.click("#hand-fail");
  assert.equal(await state(), "closed");
  await page.click("#next-change");
  assert.equal(await state(), "open");
  assert.equal(await page.textContent("#where"), "4.120 s");
  await page.click("#hand-reset");
  assert.equal(await state(), "closed");
  await page.click("#hand-disable");
  assert.equal(await fact(page, "mode"), "disabled");
  assert.equal(await page.locator(".chip").count(), 4);
  for (let left = 4; left > 0; left--) await page.locator(".chip").first().click();
  await page.click("#to-start");
  await page.$eval("#slider", (slider) => {
    slider.value = "4000";
    slider.dispatchEvent(new Event("input", { bubbles: true }));
  });
  assert.deepEqual(await seen(page), before);
  assert.deepEqual(page.faults, []);
});

test("the window, as failures stand in it and age out", async () => {
  const page = await open(
    context,
    site,
    "#v=1&load.callsPerSecond=0.1&load.lengthMs=9000&policy.windowMs=2000&act=1000~fail&act=2000~fail&at=2200",
  );
  const window = async () => [
    await page.textContent("#card-window .big"),
    await page.locator("#card-window circle").count(),
  ];
  assert.deepEqual(await window(), ["2 of 5 failures in the window", 2]);
  // Counted at 1120, so in the window until 3119.
  assert.equal(await page.textContent("#card-window .says"), "The oldest leaves the window in 920 ms.");
  const slide = (at) =>
    page.$eval(
      "#slider",
      (slider, at) => {
        slider.value = String(at);
        slider.dispatchEvent(new Event("input", { bubbles: true }));
      },
      at,
    );
  await slide(3_119);
  assert.deepEqual(await window(), ["2 of 5 failures in the window", 2]);
  await slide(3_120);
  assert.deepEqual(await window(), ["1 of 5 failures in the window", 1]);
  await slide(4_120);
  assert.deepEqual(await window(), ["0 of 5 failures in the window", 0]);
});
