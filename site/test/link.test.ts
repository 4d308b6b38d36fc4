import fc from "fast-check";
import { expect, test } from "vitest";
import { problemsOf } from "../src/core";
import { linkOf, type Shared, setupOf } from "../src/sim/link";
import { PRESETS } from "../src/sim/presets";
import {
  HAND_CALLS,
  HAND_CONTROLS,
  LOAD,
  LOAD_RANGES,
  MAX_ACTS,
  MAX_OUTAGES,
  OUTAGE_KINDS,
  type Policy,
  SetupError,
} from "../src/sim/setup";
import { setupWith } from "./support";

const check = (policy: Readonly<Record<string, unknown>>) => problemsOf(policy)[0];
const read = (hash: string) => setupOf(hash, check);

test("there and back: every preset", () => {
  for (const { setup, at } of PRESETS) expect(read(`#${linkOf({ setup, at })}`)).toEqual({ setup, at });
});

test("there and back: whatever can be set", () => {
  const ms = fc.integer({ min: 0, max: 3_600_000 });
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  const shared = fc.record({
    policy: fc.constantFrom<Policy>(
      {},
      { failureThreshold: 3 },
      { tripOn: "rate", failureRate: 0.25 },
      { resetTimeoutMs: 5 },
    ),
    load: fc.record({
      callsPerSecond: fc.double({ min: 0.1, max: 5, noNaN: true }),
      latencyMs: fc.integer({ min: 0, max: LOAD_RANGES.latencyMs.max }),
      failureShare: share,
      timeoutMs: fc.integer({ min: 1, max: LOAD_RANGES.timeoutMs.max }),
      lengthMs: fc.constantFrom(1_000, LOAD.lengthMs, 3_600_000),
      seed: fc.integer({ min: 0, max: LOAD_RANGES.seed.max }),
    }),
    outages: fc.array(
      fc.record({
        at: ms,
        forMs: fc.integer({ min: 1, max: 3_600_000 }),
        kind: fc.constantFrom(...OUTAGE_KINDS),
        share,
      }),
      { maxLength: MAX_OUTAGES },
    ),
    acts: fc.array(fc.record({ at: ms, do: fc.constantFrom(...HAND_CALLS, ...HAND_CONTROLS) }), {
      maxLength: MAX_ACTS,
    }),
  });
  fc.assert(
    fc.property(shared, fc.integer({ min: 0, max: 1_000 }), (setup, at) => {
      const given = { setup, at } as Shared;
      expect(read(linkOf(given))).toEqual(given);
    }),
  );
});

test("a link names only what is not usual", () => {
  const setup = setupWith({ policy: { failureThreshold: 3 }, load: { failureShare: LOAD.failureShare, seed: 8 } });
  expect(linkOf({ setup, at: 5 })).toBe("v=1&policy.failureThreshold=3&load.seed=8&at=5");
  expect(read("v=1")).toEqual({ setup: { policy: {}, load: LOAD, outages: [], acts: [] }, at: 0 });
});

const BROKEN: readonly (readonly [hash: string, says: string])[] = [
  ["", "`v` must be `1`, got `nothing`"],
  ["at=5", "`v` must be `1`, got `nothing`"],
  ["v=2", "`v` must be `1`, got `2`"],
  ["v=1&v=1", "`v` is given twice; give it once"],
  ["v=1&speed=3", "`speed` is no part of a link; valid are v, policy.*, load.callsPerSecond, "],
  ["v=1&load.toString=3", "`load.toString` is no part of a link"],
  ["v=1&load.seed=1&load.seed=2", "`load.seed` is given twice"],
  ["v=1&load.latencyMs=-1", "`latencyMs` must be an integer from 0 to 600000, got `-1`"],
  ["v=1&load.latencyMs=1.5", "`latencyMs` must be an integer from 0 to 600000, got `1.5`"],
  ["v=1&load.latencyMs=fast", "`latencyMs` must be an integer from 0 to 600000, got `'fast'`"],
  ["v=1&load.latencyMs=", "`latencyMs` must be an integer from 0 to 600000, got `''`"],
  [
    "v=1&load.callsPerSecond=500&load.lengthMs=3600000",
    "`callsPerSecond` must be at most 5.5 for this length (20000 calls), got `500`",
  ],
  ["v=1&load.lengthMs=Infinity", "`lengthMs` must be an integer from 1000 to 3600000, got `Infinity`"],
  ["v=1&at=75001", "`at` must be an integer from 0 to 75000, got `75001`"],
  ["v=1&at=now", "`at` must be an integer from 0 to 75000, got `now`"],
  ["v=1&outage=1~2", "`outage 1` must be begin~length~hang or error~share, got `1~2`"],
  ["v=1&outage=1~2~hang~1~9", "`outage 1` must be begin~length~hang or error~share"],
  ["v=1&outage=1~2~hang~1&outage=1~2~slow~1", "`outage 2.kind` must be 'hang' or 'error', got `'slow'`"],
  ["v=1&outage=1~0~hang~1", "`outage 1.forMs` must be an integer from 1 to 3600000, got `0`"],
  ["v=1&outage=1~2~hang~2", "`outage 1.share` must be a number from 0 to 1, got `2`"],
  ["v=1&act=5", "`act 1` must be time~what, got `5`"],
  ["v=1&act=5~explode", "`act 1.do` must be 'succeed' or 'fail' or "],
  ["v=1&act=x~trip", "`act 1.at` must be an integer from 0 to 3600000, got `'x'`"],
  [`v=1${"&act=1~trip".repeat(101)}`, "`act` may be given 100 times, got `101`"],
  [`v=1${"&outage=1~2~hang~1".repeat(21)}`, "`outage` may be given 20 times, got `21`"],
  [`v=1&x=${"y".repeat(9_000)}`, "characters long; at most 8192 are valid"],
  ["v=1&policy.failureTreshold=3", "`failureTreshold` is not an option; valid are tripOn, "],
  ["v=1&policy.failureThreshold=0", "`failureThreshold` must be an integer from 1 to 1000000, got `0`"],
  ["v=1&policy.failureRate=0.5", "`failureRate` needs tripOn: 'rate'"],
  ["v=1&policy.openDurationMs=5&policy.resetTimeoutMs=5", "two names of one option"],
  ["v=1&policy.__proto__=3", "`__proto__` is not an option"],
  ["%E0%A4%A=1", "`v` must be `1`"],
  ["<script>alert(1)</script>", "`v` must be `1`"],
];

test.each(BROKEN)("a broken link says what is wrong: %#", (hash, says) => {
  expect(() => read(hash)).toThrow(SetupError);
  expect(() => read(hash)).toThrow(says);
});

test("whatever stands there, it is a set-up or a SetupError", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.webQueryParameters(),
        fc.string().map((text) => `v=1&${text}`),
      ),
      (hash) => {
        try {
          read(hash);
        } catch (error) {
          expect(error).toBeInstanceOf(SetupError);
        }
      },
    ),
  );
});
