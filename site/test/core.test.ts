import { CircuitBreakerState, ConfigError } from "switchgear";
import { expect, test } from "vitest";
import { fields, problemsOf } from "../src/core";
import { make } from "./support";

/** What the package in Node says of the same options. */
function inNode(policy: Record<string, unknown>): { field: string; message: string } {
  try {
    new CircuitBreakerState(policy);
  } catch (error) {
    if (error instanceof ConfigError) return { field: error.field, message: error.message };
  }
  throw new Error("taken");
}

test("each option that is wrong is named, in the words that Node has for it", () => {
  for (const { name, usedBy } of fields()) {
    for (const value of [0, -1, 1e15, Number.NaN, "abc", "", null, true]) {
      const policy = name === "tripOn" ? { tripOn: value } : { tripOn: usedBy[0], [name]: value };
      expect(problemsOf(policy)).toEqual([inNode(policy)]);
    }
  }
});

test("several problems are all told", () => {
  const policy = { failureThreshold: 0, windowMs: 1.5, openDurationMs: 1_000, openDurationMaxMs: 10 };
  expect(problemsOf(policy).map(({ message }) => message)).toEqual([
    "`failureThreshold` must be an integer from 1 to 1000000, got `0`",
    "`windowMs` must be an integer from 1 to 3155760000000 (milliseconds), got `1.5`",
    "`openDurationMaxMs` must be at least openDurationMs (1000), got `10`",
  ]);
});

test("a problem that is no given option's is told once, and the search ends", () => {
  // The default of a field follows another: what is given alone is too small for it.
  expect(problemsOf({ openDurationMs: 1_000, resetTimeoutMs: 2_000 })).toHaveLength(1);
  expect(problemsOf({ nothing: 1 })).toHaveLength(1);
  expect(problemsOf({})).toEqual([]);
});

test("the table's defaults are what is in force when nothing is given", () => {
  const inForce = make({}).policy();
  for (const { name, default: usual, of, usedBy } of fields()) {
    if (!usedBy.includes("rolling")) continue;
    expect(inForce[name]).toBe(of === null ? usual : Number(usual) * Number(inForce[of]));
  }
});
