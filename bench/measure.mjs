// Measures side by side: in interleaved rounds, so that a slow stretch of the machine meets all tasks alike. What is
// reported are medians over the rounds, and their ratios: within one round chance weighs more than what is compared.
import { Bench } from "tinybench";

/**
 * Asks each sampler (name: a function that promises the time of one call in ns) once per round. Returns per name the
 * times, round by round. The order rotates, so that nobody always comes right after the same neighbour.
 */
export async function measure(samplers, rounds) {
  const entries = Object.entries(samplers);
  const times = new Map(entries.map(([name]) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < entries.length; i++) {
      const [name, sample] = entries[(i + round) % entries.length];
      times.get(name).push(await sample());
    }
  }
  return times;
}

/**
 * The time of one call, awaited, in ns: the median of `samples` loops of `batch` calls each. A loop, for reading the clock
 * takes as long as a call; long enough to have its share of garbage collection.
 */
export async function sample(call, { samples, batch }) {
  const bench = new Bench({ time: 0, iterations: samples, warmup: false });
  bench.add("call", () => repeat(call, batch), { async: true });
  const [{ result }] = await bench.run();
  if (result.state !== "completed") throw result.error ?? new Error(`the measurement was ${result.state}`);
  return (result.latency.p50 * 1e6) / batch;
}

async function repeat(call, times) {
  for (let i = 0; i < times; i++) await call();
}

/** How much longer a call of `name` took than one of `base`. */
export function ratio(times, name, base) {
  return median(times.get(name)) / median(times.get(base));
}

/** The middle value; of an even number of values the mean of the middle two. */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
