// A test of the runners: each of them must fail a vector whose expectation is wrong by one, say where, and refuse what is
// no vector. They run as the real commands.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const cargo = (bin) => ["cargo", "run", "--quiet", "-p", "switchgear-tests", "--bin", bin, "--"];
const COMMANDS = [
  { runners: ["core", "core-hints"], command: cargo("vectors-core") },
  { runners: ["lua"], command: cargo("vectors-lua") },
  { runners: ["node", "node-hints"], command: ["node", "bindings/node/test/vectors.mjs"] },
  { runners: ["python", "python-hints"], command: [".cache/venv/bin/python", "bindings/python/tests/vectors.py"] },
  { runners: ["wasm", "wasm-hints"], command: ["node", "bindings/wasm/test/vectors.mjs"] },
  { runners: ["browser", "browser-hints"], command: ["node", "bindings/wasm/test/vectors-browser.mjs"] },
  {
    runners: ["component", "component-hints"],
    command: [".cache/venv/bin/python", "bindings/component/tests/vectors_component.py"],
  },
];
const RUNNERS = COMMANDS.flatMap(({ runners }) => runners);
const FIELDS = [
  ...["allowed", "retryAfterMs", "status", "state", "mode", "failuresInWindow", "callsInWindow", "consecutiveFailures"],
  ...["halfOpenSuccesses", "halfOpenInFlight", "openedAt", "remainingOpenMs", "trips", "epoch"],
];
// A run lists no more than 500 failures.
const BATCH = 450;

let folder;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "switchgear-runners-"));
});
after(() => rmSync(folder, { recursive: true }));

function run(command, ...args) {
  const [program, ...rest] = [...command, ...args];
  const options = { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26 };
  const { status, stdout, stderr, error } = spawnSync(program, rest, options);
  if (error) throw error;
  return { status, stdout, stderr };
}

function write(name, document) {
  const path = join(folder, name);
  writeFileSync(path, typeof document === "string" ? document : JSON.stringify(document));
  return path;
}

function allVectors() {
  const vectors = join(ROOT, "tests/vectors");
  return readdirSync(vectors, { recursive: true })
    .filter((file) => file.endsWith(".json"))
    .sort()
    .map((file) => JSON.parse(readFileSync(join(vectors, file), "utf8")))
    .flatMap((file) => file.vectors ?? [file]);
}

/** The expectation next to this one: wrong by as little as can be. */
function nextTo(value, turn) {
  const WORDS = [
    ["applied", "stale"],
    ["closed", "open", "half-open"],
    ["auto", "forced-open", "disabled"],
  ];
  if (value === null) return 0;
  if (typeof value === "boolean") return !value;
  if (typeof value === "number") return value > 0 && turn % 2 === 1 ? value - 1 : value + 1;
  const words = WORDS.find((list) => list.includes(value));
  return words[(words.indexOf(value) + 1 + (turn % (words.length - 1))) % words.length];
}

/** A copy of the vector with one expectation wrong, and the line by which a runner must say so. */
function mutant(vector, index, field, turn) {
  const copy = structuredClone(vector);
  copy.name = `mutant ${turn} of ${vector.name}`;
  const step = copy.steps[index];
  const got = step.expect[field];
  step.expect[field] = nextTo(got, turn);
  const [shown, wrong] = [JSON.stringify(got), JSON.stringify(step.expect[field])];
  const line = `${copy.name} steps[${index}] (${step.do} at ${step.at}): ${field}: got ${shown}, expected ${wrong}`;
  return { vector: copy, line };
}

/** At least one mutant of every vector, and at least forty of every field, at the beginning, middle and end of timelines. */
function mutants(vectors) {
  const made = [];
  const count = new Map(FIELDS.map((field) => [field, 0]));
  const add = (vector, field) => {
    const places = vector.steps.flatMap((step, index) => (field in (step.expect ?? {}) ? [index] : []));
    if (places.length === 0) return false;
    const turn = made.length;
    made.push(mutant(vector, places[(turn * 7919) % places.length], field, turn));
    count.set(field, count.get(field) + 1);
    return true;
  };
  for (const vector of vectors) {
    const rarestFirst = [...FIELDS].sort((a, b) => count.get(a) - count.get(b));
    assert.ok(
      rarestFirst.some((field) => add(vector, field)),
      `${vector.name} expects nothing`,
    );
  }
  for (const field of FIELDS) {
    for (let i = 0; count.get(field) < 40; i++) {
      assert.ok(i < vectors.length, `too few vectors expect ${field}`);
      add(vectors[(i * 31) % vectors.length], field);
    }
  }
  return made;
}

test("every runner fails every vector whose expectation is wrong by one, and says where", () => {
  const made = mutants(allVectors());
  for (let begin = 0; begin < made.length; begin += BATCH) {
    const batch = made.slice(begin, begin + BATCH);
    const path = write("mutants.json", { vectors: batch.map(({ vector }) => vector) });
    for (const { runners, command } of COMMANDS) {
      const { status, stderr } = run(command, path);
      assert.equal(status, 1, `${command.join(" ")} exits ${status}: ${stderr.slice(0, 2000)}`);
      const said = stderr.split("\n").filter(Boolean).sort();
      const expected = runners.flatMap((runner) => batch.map(({ line }) => `${runner}: ${line}`)).sort();
      assert.deepEqual(said, expected);
    }
  }
});

const WHOLE = {
  name: "whole",
  about: "what is changed below",
  config: { failureThreshold: 1 },
  steps: [
    { at: 0, do: "canRequest", as: "a", expect: { allowed: true } },
    { at: 1, do: "recordFailure", permit: "a", expect: { state: "open" } },
    { at: 2, do: "canRequest", as: "refused", expect: { allowed: false } },
  ],
};

/** `WHOLE` with another value at this place; undefined: without it. */
function changed(place, value) {
  const vector = structuredClone(WHOLE);
  const keys = place.split("/");
  const last = keys.pop();
  keys.reduce((part, key) => part[key], vector)[last] = value;
  return vector;
}

test("every runner refuses unknown keys on every level, and runs nothing", () => {
  const documents = {
    "file.json": { vectors: [WHOLE], surplus: 1 },
    "vector.json": changed("surplus", 1),
    "config.json": changed("config/surplus", 1),
    "step.json": changed("steps/1/surplus", 1),
    "expect.json": changed("steps/2/expect/surplus", 1),
    "expect-null.json": changed("steps/2/expect/surplus", null),
  };
  for (const [name, document] of Object.entries(documents)) {
    const path = write(name, document);
    for (const { command } of COMMANDS) {
      const { status, stdout, stderr } = run(command, path);
      assert.equal(status, 2, `${command.join(" ")} on ${name} exits ${status}`);
      assert.equal(stdout, "", `${command.join(" ")} ran ${name}`);
      assert.match(stderr, new RegExp(`${name}: .*surplus`), command.join(" "));
    }
  }
});

test("every runner refuses what is malformed, and runs nothing", () => {
  const documents = {
    "text.json": "no JSON",
    "array.json": [],
    "empty.json": { vectors: [] },
    "nameless.json": changed("name", undefined),
    "stepless.json": changed("steps", []),
    "zero.json": changed("config/failureThreshold", 0),
    "rate.json": changed("config/failureRate", 0.5),
    "operation.json": changed("steps/0/do", "guess"),
    "time.json": changed("steps/0/at", -1),
    "late.json": changed("steps/0/at", 2 ** 52 + 1),
    "label.json": changed("steps/1/permit", "b"),
    "label-late.json": changed("steps", WHOLE.steps.toReversed()),
    "as.json": changed("steps/1/as", "b"),
    "permit.json": changed("steps/2/permit", "a"),
    "for.json": changed("steps/0/forMs", 1),
    "status.json": changed("steps/0/expect/status", "applied"),
    "allowed.json": changed("steps/1/expect/allowed", true),
    "null.json": changed("steps/1/expect/state", null),
    "word.json": changed("steps/1/expect/state", "ajar"),
    "negative.json": changed("steps/1/expect/trips", -1),
  };
  for (const [name, document] of Object.entries(documents)) {
    const path = write(name, document);
    for (const { command } of COMMANDS) {
      const { status, stdout, stderr } = run(command, path);
      assert.equal(status, 2, `${command.join(" ")} on ${name} exits ${status}: ${stderr}`);
      assert.equal(stdout, "", `${command.join(" ")} ran ${name}`);
      assert.ok(stderr.includes(name), `${command.join(" ")} does not name ${name}: ${stderr}`);
      assert.doesNotMatch(stderr, /panicked|\n +at |Traceback/, `${command.join(" ")} crashes on ${name}`);
    }
  }
});

test("every runner fails the step that settles with the permit of a refused admission", () => {
  const release = { at: 3, do: "release", permit: "refused" };
  const path = write("refused.json", changed("steps/3", release));
  for (const { runners, command } of COMMANDS) {
    const { status, stderr } = run(command, path);
    assert.equal(status, 1, command.join(" "));
    const said = stderr.split("\n").filter(Boolean);
    assert.equal(said.length, runners.length, stderr);
    for (const runner of runners) {
      assert.ok(
        said.some((line) => line.startsWith(`${runner}: whole steps[3] (release at 3): permit: `)),
        stderr,
      );
    }
  }
});

test("one command runs them all, on a file and on a folder, and their counts agree", () => {
  const path = write("whole.json", WHOLE);
  const sums = run(["scripts/vectors.sh"], relative(ROOT, path));
  assert.equal(sums.status, 0, sums.stderr);
  assert.deepEqual(
    sums.stdout.trim().split("\n"),
    RUNNERS.map((runner) => `${runner}: 1 vectors, 3 steps`),
  );
  const all = run(["scripts/vectors.sh"]);
  assert.equal(all.status, 0, all.stderr);
  const vectors = allVectors();
  const steps = vectors.reduce((sum, vector) => sum + vector.steps.length, 0);
  assert.deepEqual(
    all.stdout.trim().split("\n"),
    RUNNERS.map((runner) => `${runner}: ${vectors.length} vectors, ${steps} steps`),
  );
});

test("one command fails if a runner does, after all of them ran", () => {
  const path = write("wrong.json", changed("steps/2/expect/retryAfterMs", 29_998));
  const { status, stdout, stderr } = run(["scripts/vectors.sh"], path);
  assert.equal(status, 1);
  assert.equal(stdout.trim().split("\n").length, RUNNERS.length);
  for (const runner of RUNNERS) {
    const line = `${runner}: whole steps[2] (canRequest at 2): retryAfterMs: got 29999, expected 29998`;
    assert.ok(stderr.split("\n").includes(line), `${line} is missing in:\n${stderr}`);
  }
});

test("one command says so when there is nothing there", () => {
  const { status, stdout, stderr } = run(["scripts/vectors.sh"], join(folder, "missing.json"));
  assert.equal(status, 2);
  assert.equal(stdout, "");
  assert.match(stderr, /missing\.json: no such file or folder/);
});
