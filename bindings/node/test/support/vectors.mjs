// Vectors: reading them, and saying what came of them. The rules, and the words, are those of
// tests/src/vectors.rs; the schema is tests/vector.schema.json.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run, SETTLEMENTS } from "./compare.mjs";
import { WAYS } from "./machines.mjs";

/** Failures listed of one run. */
const LISTED_PER_RUN = 500;

const MAX_TIME = 2 ** 52;
const OPERATIONS = ["canRequest", ...SETTLEMENTS, "reset", "trip", "forceOpen", "disable", "snapshot"];

const word = (...words) => [words.map((each) => `"${each}"`).join(" or "), (value) => words.includes(value)];
const whole = ["an integer from 0", (value) => Number.isSafeInteger(value) && value >= 0];
const orNull = ([valid, check]) => [`${valid} or null`, (value) => value === null || check(value)];
const text = ["a text", (value) => typeof value === "string"];
const bool = ["true or false", (value) => typeof value === "boolean"];
const object = ["an object", (value) => typeof value === "object" && value !== null && !Array.isArray(value)];
const list = ["an array", Array.isArray];

/** What may be expected: of the answer, then of the snapshot. */
const EXPECT = {
  allowed: bool,
  retryAfterMs: orNull(whole),
  status: word("applied", "stale"),
  state: word("closed", "open", "half-open"),
  mode: word("auto", "forced-open", "disabled"),
  failuresInWindow: whole,
  callsInWindow: whole,
  consecutiveFailures: whole,
  halfOpenSuccesses: whole,
  halfOpenInFlight: whole,
  openedAt: orNull(whole),
  remainingOpenMs: whole,
  trips: whole,
  epoch: whole,
};
const STEP = {
  at: [`an integer from 0 to ${MAX_TIME}`, (value) => whole[1](value) && value <= MAX_TIME],
  do: word(...OPERATIONS),
  as: text,
  permit: text,
  forMs: whole,
  expect: object,
};
const VECTOR = { name: text, about: text, config: object, steps: list };
const FILE = { about: text, vectors: list };

/** Which operations a key of a step or of its expectation belongs to. */
const OWNERS = {
  as: ["canRequest", ["canRequest"]],
  permit: ["a settlement", SETTLEMENTS],
  forMs: ["trip", ["trip"]],
  "expect.allowed": ["canRequest", ["canRequest"]],
  "expect.retryAfterMs": ["canRequest", ["canRequest"]],
  "expect.status": ["a settlement", SETTLEMENTS],
};

/**
 * Runs a file or a folder in each way on a build of the package, and prints what came of it. What a process should exit with: 1
 * if anything differs, 2 if there is nothing to run.
 */
export function runAll(build, switchgear, path) {
  const vectors = loadFor(switchgear, path);
  if (vectors === null) return 2;
  const held = Object.entries(WAYS).map(([way, start]) => print(run(build + way, vectors, start(switchgear))));
  return held.every(Boolean) ? 0 : 1;
}

/** The vectors of a file or a folder, by default all of the project; null, and a word on stderr, if there is nothing to run. */
export function loadFor(switchgear, path = ALL) {
  try {
    return load(path, (config) => checkConfig(switchgear, config));
  } catch (error) {
    console.error(error.message);
    return null;
  }
}

const ALL = fileURLToPath(new URL("../../../../tests/vectors", import.meta.url));

/** A configuration is the machine's alone: no option that only concerns running functions belongs into a vector. */
function checkConfig({ CircuitBreakerState }, config) {
  for (const name of ["timeoutMs", "slowCallMs", "observe", "refusalStack"]) {
    if (Object.hasOwn(config, name)) throw new Error(`config: unknown key \`${name}\``);
  }
  new CircuitBreakerState(config);
}

/** A file, or every `*.json` of a folder and of the folders in it, in the order of the paths. */
function load(path, checkConfig) {
  const files = statSync(path).isDirectory()
    ? readdirSync(path, { recursive: true })
        .filter((file) => file.endsWith(".json"))
        .map((file) => join(path, file))
        .sort()
    : [path];
  const vectors = files.flatMap((file) => {
    try {
      return loadFile(file, checkConfig);
    } catch (error) {
      throw new Error(`${file}: ${error.message}`);
    }
  });
  if (vectors.length === 0) throw new Error(`${path}: no vector in it`);
  return vectors;
}

/** The counts on stdout, the failures on stderr; whether there were none. */
export function print({ runner, vectors, steps, failures }) {
  console.log(`${runner}: ${vectors} vectors, ${steps} steps`);
  for (const failure of failures.slice(0, LISTED_PER_RUN)) console.error(failure);
  if (failures.length > LISTED_PER_RUN) console.error(`${runner}: ${failures.length - LISTED_PER_RUN} more`);
  return failures.length === 0;
}

function loadFile(file, checkConfig) {
  const content = JSON.parse(readFileSync(file, "utf8"));
  check("a file", content, object);
  const many = "vectors" in content;
  if (many) checkKeys(content, FILE, ["vectors"]);
  const vectors = many ? content.vectors : [content];
  for (const vector of vectors) {
    check("a vector", vector, object);
    try {
      checkVector(vector, checkConfig);
    } catch (error) {
      throw new Error(`${vector.name}: ${error.message}`);
    }
  }
  return vectors;
}

function checkVector(vector, checkConfig) {
  checkKeys(vector, VECTOR, ["name", "steps"]);
  checkConfig(vector.config ?? {});
  if (vector.steps.length === 0) throw new Error("steps: none, so nothing to compare");
  const labels = new Set();
  for (const [index, step] of vector.steps.entries()) {
    try {
      checkStep(step, labels);
    } catch (error) {
      throw new Error(`steps[${index}]: ${error.message}`);
    }
  }
}

function checkStep(step, labels) {
  check("a step", step, object);
  checkKeys(step, STEP, ["at", "do"]);
  checkKeys(step.expect ?? {}, EXPECT, []);
  const given = [...Object.keys(step), ...Object.keys(step.expect ?? {}).map((field) => `expect.${field}`)];
  for (const key of given) {
    const [owner, operations] = OWNERS[key] ?? [];
    if (operations && !operations.includes(step.do))
      throw new Error(`\`${key}\` belongs to ${owner}, not to ${step.do}`);
  }
  if (step.permit !== undefined && !labels.has(step.permit)) {
    throw new Error(`permit: no earlier step has \`as\`: "${step.permit}"`);
  }
  if (step.as !== undefined) labels.add(step.as);
}

function checkKeys(value, keys, required) {
  for (const [key, each] of Object.entries(value)) {
    if (!Object.hasOwn(keys, key)) throw new Error(`unknown key \`${key}\`, expected ${Object.keys(keys).join(", ")}`);
    check(key, each, keys[key]);
  }
  for (const key of required) if (!Object.hasOwn(value, key)) throw new Error(`\`${key}\` is missing`);
}

function check(what, value, [valid, isValid]) {
  if (!isValid(value)) throw new Error(`${what} must be ${valid}, got \`${JSON.stringify(value)}\``);
}
