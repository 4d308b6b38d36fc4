// What becomes of throughput and of latency as more and more processes share one circuit.
import { fileURLToPath } from "node:url";
import { startChild } from "../child.mjs";
import { measure as measureRounds, median } from "../measure.mjs";
import { SCHEMES } from "../schemes.mjs";
import { withServer } from "../server.mjs";
import { merged, quantile } from "../spread.mjs";

const PROGRAM = fileURLToPath(new URL("../fleet-process.mjs", import.meta.url));

/** Calls that each process has in flight. */
const IN_FLIGHT = 10;

const SIZES = {
  full: { processes: [1, 2, 4, 8, 16, 32, 64], rounds: 5, ms: 500 },
  quick: { processes: [1, 2], rounds: 1, ms: 5 },
};

export async function measure(report, size) {
  const { processes, rounds, ms } = SIZES[size];
  await withServer(async (_, url) => {
    const children = Array.from({ length: Math.max(...processes) }, () =>
      startChild(PROGRAM, [url, String(IN_FLIGHT)]),
    );
    try {
      const samplers = {};
      for (const many of processes) {
        for (const scheme of SCHEMES) {
          samplers[`${many} ${scheme}`] = async () => {
            const answers = await Promise.all(children.slice(0, many).map((child) => child.ask({ scheme, ms })));
            const spread = merged(answers.map((answer) => answer.latencies));
            return {
              rate: answers.reduce((sum, { calls, tookMs }) => sum + calls / tookMs, 0),
              median: quantile(spread, 0.5),
              p99: quantile(spread, 0.99),
            };
          };
        }
      }
      const found = await measureRounds(samplers, rounds);
      const row = (many) => {
        const cells = SCHEMES.flatMap((scheme) => {
          const of = (what) => median(found.get(`${many} ${scheme}`).map((each) => each[what]));
          return [of("rate").toFixed(1), (of("median") / 1000).toFixed(2), (of("p99") / 1000).toFixed(2)];
        });
        return [String(many), ...cells];
      };
      const heads = SCHEMES.flatMap((scheme) => [`${scheme}, k/s`, "p50 ms", "p99 ms"]);
      report.table([`Processes, ${IN_FLIGHT} calls in flight each`, ...heads], processes.map(row));
    } finally {
      for (const child of children) child.end();
    }
  });
}
