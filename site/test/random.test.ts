import { expect, test } from "vitest";
import { draw, STREAM } from "../src/sim/random";

test("the same three give the same number, at or above 0 and below 1", () => {
  for (const seed of [0, 1, 7, 2 ** 31, 2 ** 32 - 1]) {
    for (let index = 0; index < 1_000; index++) {
      const number = draw(seed, index, STREAM.latency);
      expect(number).toBe(draw(seed, index, STREAM.latency));
      expect(number).toBeGreaterThanOrEqual(0);
      expect(number).toBeLessThan(1);
    }
  }
});

test("each tenth is hit about as often as the others, and neighbours have nothing to do with each other", () => {
  for (const stream of Object.values(STREAM)) {
    const numbers = Array.from({ length: 20_000 }, (_, index) => draw(3, index, stream));
    const tenths = Array.from({ length: 10 }, (_, tenth) => numbers.filter((n) => Math.floor(n * 10) === tenth).length);
    for (const count of tenths) expect(Math.abs(count - 2_000)).toBeLessThan(250);
    const products = numbers.slice(1).map((n, index) => (n - 0.5) * ((numbers[index] as number) - 0.5));
    const correlation = (12 * products.reduce((sum, n) => sum + n, 0)) / products.length;
    expect(Math.abs(correlation)).toBeLessThan(0.03);
  }
});

test("another seed and another stream give other numbers", () => {
  const row = (seed: number, stream: number) => Array.from({ length: 50 }, (_, index) => draw(seed, index, stream));
  const rows = [row(1, 1), row(2, 1), row(1, 2), row(1, 3), row(0, 1)].map((numbers) => numbers.join());
  expect(new Set(rows).size).toBe(rows.length);
});
