// What becomes of an admission and of memory as one process has more and more shared circuits, each with a failure in its window.
import { fileURLToPath } from "node:url";
import { startChild } from "../child.mjs";
import { MANY } from "../in-flight.mjs";
import { measure as measureRounds, median } from "../measure.mjs";
import { withServer } from "../server.mjs";

const PROGRAM = fileURLToPath(new URL("../growth-process.mjs", import.meta.url));

const SIZES = {
  full: {
    circuits: [1, 10, 100, 1000, 10_000, 100_000],
    rounds: 15,
    calls: { bare: 200, alone: 200, crowd: 4000, known: 20_000 },
  },
  quick: { circuits: [1, 20], rounds: 1, calls: { bare: 5, alone: 5, crowd: 5, known: 5 } },
};

export async function measure(report, size) {
  const { circuits, rounds, calls } = SIZES[size];
  const rows = await withEach(circuits, async (children) => {
    const samplers = {};
    for (const { child, circuits } of children) {
      for (const [what, times] of Object.entries(calls))
        samplers[`${circuits} ${what}`] = () => child.ask({ what, times });
    }
    await measureRounds(samplers, 1); // warms up
    const times = await measureRounds(samplers, rounds);
    return children.map(({ circuits, memory }) => {
      const time = (what, unit) => (median(times.get(`${circuits} ${what}`)) / unit).toFixed(1);
      return [
        String(circuits),
        time("bare", 1000),
        time("alone", 1000),
        time("crowd", 1000),
        time("known", 1),
        // What a few take is less than what a process and a server take up for themselves meanwhile.
        circuits < 1000 ? "-" : memory.process.toFixed(0),
        circuits < 1000 ? "-" : memory.redis.toFixed(0),
      ];
    });
  });
  const heads = [
    "bare EVALSHA, us",
    "admission, us",
    `${MANY} in flight, us`,
    "closedCacheMs, ns",
    "bytes here",
    "bytes in Redis",
  ];
  report.table(["Circuits in one process", ...heads], rows);
}

/** A process and a server of their own for each number of circuits. */
async function withEach([circuits, ...more], measureAll, children = []) {
  if (circuits === undefined) return measureAll(children);
  return withServer(async (_, url) => {
    const child = startChild(PROGRAM, [url, String(circuits)], ["--expose-gc"]);
    try {
      const memory = await child.ask("prepare");
      return await withEach(more, measureAll, [...children, { child, circuits, memory }]);
    } finally {
      child.end();
    }
  });
}
