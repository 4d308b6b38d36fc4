// What a vector file may say, for every JavaScript reader of one, in Node and in a page. The rules, and the words, are those of
// tests/src/vectors.rs; the schema is tests/vector.schema.json.
import { SETTLEMENTS } from "./compare.mjs";

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
 * The vectors of a file's content, whichever of the two shapes it has. `checkConfig` is the core's word on a configuration.
 *
 * @throws Error that names the vector, the place, the value and what is valid
 */
export function vectorsOf(content, checkConfig) {
  check("a file", content, object);
  const many = "vectors" in content;
  if (many) checkKeys(content, FILE, ["vectors"]);
  const vectors = many ? content.vectors : [content];
  for (const [index, vector] of vectors.entries()) {
    check("a vector", vector, object);
    try {
      checkVector(vector, checkConfig);
    } catch (error) {
      throw new Error(`${text[1](vector.name) ? vector.name : `vectors[${index}]`}: ${error.message}`);
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
