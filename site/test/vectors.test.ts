import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { vectorOf } from "../src/sim/export";
import { PRESETS } from "../src/sim/presets";
import { runSetup } from "../src/sim/run";
import { MAX_FILE_BYTES, play, readVectors, type Vector } from "../src/sim/vectors";
import { make, setupWith } from "./support";

const folder = new URL("../../tests/vectors/", import.meta.url);
const read = (text: string) => readVectors(text, (config) => make(config).free());

const WHOLE: Vector = {
  name: "whole",
  config: { failureThreshold: 1 },
  steps: [
    { at: 0, do: "canRequest", as: "a", expect: { allowed: true } },
    { at: 1, do: "recordFailure", permit: "a", expect: { state: "open" } },
    { at: 2, do: "canRequest", as: "refused", expect: { allowed: false, retryAfterMs: 29_999 } },
  ],
};

test.each(readdirSync(folder).filter((file) => file.endsWith(".json")))("%s: every expectation holds", (file) => {
  const vectors = read(readFileSync(new URL(file, folder), "utf8"));
  expect(vectors.length).toBeGreaterThan(0);
  for (const vector of vectors) {
    const played = play(vector, make);
    expect(played.steps.flatMap(({ differences }) => differences)).toEqual([]);
    expect(played.steps).toHaveLength(vector.steps.length);
  }
});

test("both shapes: one vector, and many", () => {
  expect(read(JSON.stringify(WHOLE))).toEqual([WHOLE]);
  expect(read(JSON.stringify({ about: "two", vectors: [WHOLE, WHOLE] }))).toEqual([WHOLE, WHOLE]);
});

test("an expectation that is wrong by one is found, at its step", () => {
  const steps = WHOLE.steps.with(2, { at: 2, do: "canRequest", expect: { retryAfterMs: 29_998 } });
  const played = play({ ...WHOLE, steps }, make);
  expect(played.holds).toBe(false);
  const differences = played.steps.map((step) => step.differences);
  expect(differences).toEqual([[], [], ["retryAfterMs: got 29999, expected 29998"]]);
});

test("a settlement with the permit of a refused admission is a step that cannot be done; the rest is played", () => {
  const steps = [...WHOLE.steps, { at: 3, do: "release", permit: "refused" }, { at: 4, do: "reset" }] as const;
  const played = play({ ...WHOLE, steps }, make);
  expect(played.holds).toBe(false);
  expect(played.steps[3]?.got).toBeNull();
  expect(played.steps[3]?.differences[0]).toContain('the admission of "refused" was refused');
  expect(played.steps[4]?.snapshot.state).toBe("closed");
});

test.each([
  ["no JSON", "a vector file is JSON, and this is none: "],
  ["[]", "a file must be an object, got `[]`"],
  ["null", "a file must be an object, got `null`"],
  ['{"vectors": []}', "`vectors`: none, so there is nothing to play"],
  ['{"vectors": [], "more": 1}', "unknown key `more`, expected about, vectors"],
  [JSON.stringify({ ...WHOLE, surplus: 1 }), "whole: unknown key `surplus`"],
  [
    JSON.stringify({ ...WHOLE, config: { failureThreshold: 0 } }),
    "whole: `failureThreshold` must be an integer from 1 to",
  ],
  [JSON.stringify({ ...WHOLE, config: { surplus: 0 } }), "whole: `surplus` is not an option; valid are tripOn"],
  [JSON.stringify({ ...WHOLE, steps: [] }), "whole: steps: none, so nothing to compare"],
  [JSON.stringify({ ...WHOLE, steps: [{ at: -1, do: "reset" }] }), "whole: steps[0]: at must be an integer from 0 to"],
  [JSON.stringify({ ...WHOLE, steps: [{ at: 1, do: "guess" }] }), 'whole: steps[0]: do must be "canRequest" or '],
])("what is no vector file is refused, and it is said why: %s", (text, says) => {
  expect(() => read(text)).toThrow(says);
});

test("a run is a vector, as far as it went: it is a valid file, and every expectation in it holds", () => {
  for (const { setup } of PRESETS) {
    const run = runSetup(setup, make);
    for (const count of [1, 100, run.events.length]) {
      const vector = vectorOf(run, count, make);
      expect(vector.steps).toHaveLength(count);
      const [again] = read(JSON.stringify(vector));
      expect(play(again as Vector, make).holds).toBe(true);
    }
  }
});

test("the longest run that the page simulates is a file that it takes", () => {
  const load = { callsPerSecond: 500, lengthMs: 40_000, failureShare: 0.3 };
  const run = runSetup(setupWith({ policy: { failureThreshold: 1_000_000 }, load }), make);
  const text = JSON.stringify(vectorOf(run, run.events.length, make), null, 1);
  expect(run.events.length).toBeGreaterThan(39_000);
  expect(text.length).toBeLessThan(MAX_FILE_BYTES);
  expect(read(text)[0]?.steps).toHaveLength(run.events.length);
});
