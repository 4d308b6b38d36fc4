// Measures tasks side by side: in interleaved rounds, so that a slow moment of the machine meets all of them, and
// compared within a round. What is reported is the median over the rounds, of times and of ratios alike.
import { Bench } from "tinybench";

/**
 * Measures `tasks`, a map from names to functions that make one call and give its promise. Returns per task the times of
 * one call, awaited, in ns, round by round. One sample is a loop of `batch` calls: a clock read takes as long as a call.
 */
export async function measure(tasks, { rounds, timeMs, batch }) {
  const times = new Map(Object.keys(tasks).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    // The order rotates, so that nobody always runs right after the same neighbour.
    const entries = Object.entries(tasks);
    const order = entries.map((_, i) => entries[(i + round) % entries.length]);
    const bench = new Bench({
      time: timeMs,
      iterations: 1,
      warmup: round === 0,
      warmupTime: timeMs,
      warmupIterations: 1,
    });
    for (const [name, call] of order) bench.add(name, () => repeat(call, batch), { async: true });
    await bench.run();
    for (const task of bench.tasks) {
      if (task.result.state !== "completed") throw task.result.error ?? new Error(`${task.name}: ${task.result.state}`);
      times.get(task.name).push((task.result.latency.p50 * 1e6) / batch);
    }
  }
  return times;
}

async function repeat(call, times) {
  for (let i = 0; i < times; i++) await call();
}

/** The median over the rounds of how much longer `name` took than `base` in the same round. */
export function ratio(times, name, base) {
  return median(times.get(name).map((time, round) => time / times.get(base)[round]));
}

/** The middle value; of an even number of values the mean of the middle two. */
export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
