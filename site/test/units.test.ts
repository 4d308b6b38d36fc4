import fc from "fast-check";
import { expect, test } from "vitest";
import { firstMoment } from "../src/sim/foresee";
import { checkLoad, LOAD, LOAD_RANGES, OUTAGE_RANGES, SetupError, valueIn } from "../src/sim/setup";
import { shownIn, typedIn, UNIT } from "../src/sim/units";

test("seconds and percent, there and back, without the noise of binary fractions", () => {
  expect(shownIn(UNIT.percent, 0.07)).toBe("7");
  expect(shownIn(UNIT.percent, 0.29)).toBe("29");
  expect(shownIn(UNIT.seconds, 35_001)).toBe("35.001");
  expect(typedIn(UNIT.percent, "x", " 66 ", OUTAGE_RANGES.share)).toBe(0.66);
  expect(typedIn(UNIT.seconds, "x", "1.1", OUTAGE_RANGES.at)).toBe(1_100);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 3_600_000 }), (ms) => {
      expect(typedIn(UNIT.seconds, "x", shownIn(UNIT.seconds, ms), OUTAGE_RANGES.at)).toBe(ms);
    }),
  );
});

test("what is wrong is said in the unit in which it was typed", () => {
  const typed = (unit: (typeof UNIT)[keyof typeof UNIT], text: string, range: Parameters<typeof typedIn>[3]) => () =>
    typedIn(unit, "from", text, range);
  expect(typed(UNIT.seconds, "3601", OUTAGE_RANGES.at)).toThrow("`from` must be a number from 0 to 3600, got `3601`");
  expect(typed(UNIT.percent, "101", OUTAGE_RANGES.share)).toThrow("`from` must be a number from 0 to 100, got `101`");
  expect(typed(UNIT.percent, "", OUTAGE_RANGES.share)).toThrow("`from` must be a number from 0 to 100, got `''`");
  expect(typed(UNIT.milliseconds, "1.5", LOAD_RANGES.latencyMs)).toThrow("`from` must be an integer from 0 to 600000");
  expect(typed(UNIT.seconds, "abc", OUTAGE_RANGES.at)).toThrow(SetupError);
});

test("what was typed is a number where it looks like one", () => {
  const values = [" 5 ", "0", "1e3", "0x10", "-1", "abc", "", "NaN", "5ms"].map(valueIn);
  expect(values).toEqual([5, 0, 1_000, 16, -1, "abc", "", "NaN", "5ms"]);
});

test("not more calls than a page can simulate", () => {
  expect(checkLoad({ ...LOAD, callsPerSecond: 200, lengthMs: 100_000 })).toMatchObject({ callsPerSecond: 200 });
  expect(() => checkLoad({ ...LOAD, callsPerSecond: 201, lengthMs: 100_000 })).toThrow(
    "`callsPerSecond` must be at most 200 for this length (20000 calls), got `201`",
  );
});

test("the first moment at which something holds", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 5_000 }), fc.integer({ min: 1, max: 5_000 }), (from, span) => {
      for (const then of [from + 1, from + Math.ceil(span / 2), from + span]) {
        expect(firstMoment(from, from + span, (moment) => moment >= then)).toBe(then);
      }
      expect(firstMoment(from, from + span, (moment) => moment > from + span)).toBeNull();
      expect(firstMoment(from, from, () => true)).toBeNull();
    }),
  );
});
