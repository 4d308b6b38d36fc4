// The vectors' view: files are read and played in the page, as every other runner does.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { startBrowser } from "../../../tests/support/browser.mjs";
import { open, openVectors, ROOT, startPlayground } from "./support.mjs";

const VECTORS = join(ROOT, "tests/vectors");
const files = readdirSync(VECTORS).filter((file) => file.endsWith(".json"));

let browser;
let site;
let folder;
let page;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "switchgear-playground-"));
  [browser, site] = await Promise.all([startBrowser(), startPlayground()]);
  // One page for all files, one after the other, as for somebody who looks at several.
  page = await open(await browser.newContext({ viewport: { width: 1280, height: 1000 } }), site);
  await openVectors(page);
});
after(async () => {
  await browser?.close();
  await site?.close();
  rmSync(folder, { recursive: true });
});
afterEach(() => assert.deepEqual(page.faults, []));

const WHOLE = {
  name: "whole",
  about: "what is changed below",
  config: { failureThreshold: 1 },
  steps: [
    { at: 0, do: "canRequest", as: "a", expect: { allowed: true } },
    { at: 1, do: "recordFailure", permit: "a", expect: { state: "open" } },
    { at: 2, do: "canRequest", as: "refused", expect: { allowed: false, retryAfterMs: 29_999 } },
  ],
};

/** Loads a file as a visitor does, and waits until the page has said something about it. */
async function load(name, content) {
  const path = join(folder, name);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  await loadFile(path, name);
}

async function loadFile(path, name) {
  await page.setInputFiles("#vector-file", path);
  await page.waitForFunction((name) => {
    const said = ["vector-sum", "vector-problem"].map((id) => document.getElementById(id));
    return said.some(({ textContent, hidden }) => !hidden && textContent.startsWith(`${name}:`));
  }, name);
}

const sum = () => page.textContent("#vector-sum");
const spelled = (n) => n.toLocaleString("en");

test("the project's own files are all there", async () => {
  assert.deepEqual(await page.$$eval("#vector-own option", (all) => all.map(({ value }) => value)), files.sort());
});

for (const file of files) {
  test(`${file}: every expectation holds in the page`, async () => {
    const content = JSON.parse(readFileSync(join(VECTORS, file), "utf8"));
    const vectors = content.vectors ?? [content];
    const steps = vectors.flatMap((vector) => vector.steps);
    const expected = steps.reduce((sum, step) => sum + Object.keys(step.expect ?? {}).length, 0);
    await loadFile(join(VECTORS, file), file);
    const counts = `${spelled(vectors.length)} vectors, ${spelled(steps.length)} steps`;
    assert.equal(await sum(), `${file}: ${counts}; all ${spelled(expected)} expectations hold.`);
    assert.equal(await page.locator("#vector option").count(), vectors.length);
    assert.equal(await page.locator("#vector-steps tr").count(), vectors[0].steps.length);
    assert.equal(await page.locator(".differs").count(), 0);
  });
}

test("one vector alone is a file, too; step by step, what is expected stands beside the answer", async () => {
  await load("one.json", WHOLE);
  assert.equal(await sum(), "one.json: 1 vector, 3 steps; all 4 expectations hold.");
  const where = () => page.textContent("#vector-where");
  const row = (name) =>
    page.$$eval(
      "#vector-answer tr",
      (rows, name) =>
        rows.map((row) => [...row.children].map((cell) => cell.textContent)).find(([first]) => first === name),
      name,
    );
  assert.equal(await where(), "step 1 of 3, at 0 ms");
  assert.deepEqual(await row("allowed"), ["allowed", "true", "true", "✓"]);
  await page.click("#vector-on");
  assert.deepEqual(await row("state"), ["state", "open", "open", "✓"]);
  await page.click("#vector-on");
  assert.deepEqual(await row("retryAfterMs"), ["retryAfterMs", "29999", "29999", "✓"]);
  assert.deepEqual(await row("epoch"), ["epoch", "", "1", ""]);
  await page.click("#vector-on");
  assert.equal(await where(), "step 3 of 3, at 2 ms");
  await page.click("#vector-back");
  assert.equal(await where(), "step 2 of 3, at 1 ms");
  await page.click("#vector-first");
  assert.equal(await where(), "step 1 of 3, at 0 ms");
  await page.click("#vector-last");
  assert.equal(await where(), "step 3 of 3, at 2 ms");
  await page.locator("button.step").nth(1).click();
  assert.equal(await where(), "step 2 of 3, at 1 ms");
  const current = await page.$$eval("#vector-steps tr", (rows) => rows.map((row) => row.getAttribute("aria-current")));
  assert.deepEqual(current, [null, "step", null]);
});

test("what differs is found and shown first, with what was expected and what was answered", async () => {
  const steps = WHOLE.steps.with(2, { at: 2, do: "canRequest", expect: { retryAfterMs: 29_998 } });
  await load("wrong.json", { vectors: [WHOLE, { ...WHOLE, name: "other", steps }] });
  assert.equal(await sum(), "wrong.json: 2 vectors, 6 steps; 1 vector differs.");
  assert.deepEqual(await page.$$eval("#vector option", (all) => all.map(({ textContent }) => textContent)), [
    "✓ whole",
    "✗ other",
  ]);
  assert.equal(await page.inputValue("#vector"), "1");
  assert.equal(await page.textContent("#vector-where"), "step 3 of 3, at 2 ms");
  assert.equal(
    await page.textContent("#vector-steps tr:last-child .verdict"),
    "✗ retryAfterMs: got 29999, expected 29998",
  );
  assert.deepEqual(
    await page.$$eval("#vector-answer .differs > *", (cells) => cells.map(({ textContent }) => textContent)),
    ["retryAfterMs", "29998", "29999", "✗"],
  );
});

test("a settlement with the permit of a refused admission says that there is none", async () => {
  await load("refused.json", { ...WHOLE, steps: [...WHOLE.steps, { at: 3, do: "release", permit: "refused" }] });
  assert.match(await page.textContent("#vector-note"), /the admission of "refused" was refused, there is none/);
});

test("what is no vector file is refused, it is said why, and the next file is taken", async () => {
  const broken = {
    "text.json": ["no JSON", "a vector file is JSON, and this is none: "],
    "array.json": [[], "a file must be an object, got `[]`"],
    "key.json": [{ vectors: [WHOLE], surplus: 1 }, "unknown key `surplus`, expected about, vectors"],
    "config.json": [
      { ...WHOLE, config: { failureThreshold: 0 } },
      "whole: `failureThreshold` must be an integer from 1 to 1000000, got `0`",
    ],
    "step.json": [
      { ...WHOLE, steps: [{ at: -1, do: "reset" }] },
      "whole: steps[0]: at must be an integer from 0 to 4503599627370496, got `-1`",
    ],
    "markup.json": [{ ...WHOLE, name: "<img src=x>", steps: [] }, "<img src=x>: steps: none, so nothing to compare"],
    "empty.json": ["", "a vector file is JSON, and this is none: "],
    "nameless.json": [{ vectors: [WHOLE, { steps: [] }] }, "vectors[1]: `name` is missing"],
    "many.json": [longVector(100_001), "`steps`: 100001 in all; at most 100000 are played"],
    "large.json": [" ".repeat(20_000_001), "it is 20000001 bytes long; at most 20000000 are taken"],
    "endless.json": [{ ...WHOLE, about: [..."x".repeat(100_000)] }, "whole: about must be a text, got `["],
  };
  for (const [name, [content, says]] of Object.entries(broken)) {
    await load(name, content);
    const said = await page.textContent("#vector-problem");
    assert.ok(said.startsWith(`${name}: ${says}`), said);
    assert.ok(said.length < 500, `${name}: what is said is ${said.length} characters long`);
    assert.equal(await page.isVisible("#vector-body"), false);
    assert.equal(await sum(), "");
  }
  await load("one.json", WHOLE);
  assert.equal(await page.isVisible("#vector-problem"), false);
  assert.equal(await page.isVisible("#vector-body"), true);
});

/** A vector of so many steps, the last of which differs. */
function longVector(length) {
  const steps = Array.from({ length }, (_, at) => ({ at, do: "snapshot", expect: { epoch: at < length - 1 ? 0 : 1 } }));
  return { name: "long", steps };
}

test("of a vector of many thousand steps those around the step are drawn", async () => {
  await load("long.json", longVector(5_000));
  assert.equal(await sum(), "long.json: 1 vector, 5,000 steps; 1 vector differs.");
  const drawn = () =>
    page.$$eval("#vector-steps tr", (rows) => [rows.length, rows[0].textContent, rows.at(-1).textContent]);
  const current = () => page.textContent("#vector-steps tr[aria-current]");
  assert.match(await current(), /^50004999snapshotclosed✗/);
  assert.equal(await page.textContent("#vector-part"), "Steps 4001 to 5000 of 5000.");
  assert.equal(await page.locator("#vector-strip .bad").count(), 1);
  assert.equal(await page.locator("#vector-strip .state").count(), 1_000);
  await page.click("#vector-first");
  assert.match(await current(), /^10snapshotclosed✓/);
  assert.equal(await page.textContent("#vector-part"), "Steps 1 to 1000 of 5000.");
  await page.locator("button.step").last().click();
  assert.equal(await page.textContent("#vector-where"), "step 1000 of 5000, at 999 ms");
  await page.click("#vector-on");
  assert.equal(await page.textContent("#vector-where"), "step 1001 of 5000, at 1000 ms");
  assert.match(await current(), /^10011000snapshotclosed✓/);
  assert.equal(await page.textContent("#vector-part"), "Steps 501 to 1500 of 5000.");
  assert.equal((await drawn())[0], 1_000);
  await load("one.json", WHOLE);
  assert.equal(await page.isVisible("#vector-part"), false);
});

test("of two files the one asked for last is shown, whichever comes first", async () => {
  let answered;
  const late = new Promise((resolve) => {
    answered = resolve;
  });
  let release;
  const held = new Promise((resolve) => {
    release = resolve;
  });
  await page.route("**/vectors/backoff.json", async (route) => {
    await held;
    await route.continue();
    answered();
  });
  await page.selectOption("#vector-own", "backoff.json");
  await page.selectOption("#vector-own", "open.json");
  await page.waitForFunction(() => document.getElementById("vector-sum").textContent.startsWith("open.json:"));
  const response = page.waitForResponse("**/vectors/backoff.json");
  release();
  await Promise.all([late, response.then((each) => each.finished())]);
  // What the page does with it, it has done by the time that it has fetched the same once more.
  await page.evaluate(async () => void (await (await fetch("vectors/open.json")).text()));
  assert.match(await sum(), /^open\.json:/);
  assert.equal(await page.inputValue("#vector-own"), "open.json");
  await page.unroute("**/vectors/backoff.json");
});

test("what the simulation hands out is a vector that holds", async () => {
  await page.click("#tab-simulation");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
  const path = join(folder, "playground-vector.json");
  await download.saveAs(path);
  await openVectors(page);
  await loadFile(path, "playground-vector.json");
  assert.match(await sum(), /^playground-vector\.json: 1 vector, \d+ steps; all [\d,]+ expectations hold\.$/);
});
