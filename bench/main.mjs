// `make bench`: what a guarded call costs, side by side in one run. Exits with 1 if a promise is not kept.
//
//   scripts/bench.sh [--quick | --write] [PART]...
//
// Without parts it measures all of them. `--quick` makes a few calls of everything, to see that it runs: nothing is judged.
// `--write` puts what was measured into docs/benchmarks.md, and the promises into README.md.
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { checkPlaces, writeParts } from "./pages.mjs";
import { pythonVersion } from "./python-process.mjs";
import { isMet, Report, verdicts } from "./report.mjs";
import { redisVersion } from "./server.mjs";

/** In the order of the report. Each is a module that measures and reports, by the size of the run: `full` or `quick`. */
const PARTS = ["local", "redis", "python", "python-redis", "memory", "cpu", "growth", "processes"];

const { values: options, positionals } = parseArgs({
  options: { quick: { type: "boolean" }, write: { type: "boolean" } },
  allowPositionals: true,
});
const unknown = positionals.filter((part) => !PARTS.includes(part));
if (unknown.length > 0 || (options.quick && options.write)) {
  const problem =
    unknown.length > 0 ? `there is no part \`${unknown[0]}\`` : "what a quick run measures is not to be written";
  console.error(`${problem}; usage: [--quick | --write] [${PARTS.join(" | ")}]...`);
  process.exit(2);
}

if (options.quick || options.write) checkPlaces(PARTS);
const parts = PARTS.filter((part) => positionals.length === 0 || positionals.includes(part));
const machine = `${cpus().length} cores (${cpus()[0].model.trim()})`;
const header = `Node ${process.version}, ${await pythonVersion()}, ${await redisVersion()}, ${machine}.`;
console.log(`${header} Medians over interleaved rounds.`);

const reports = new Map();
for (const part of parts) {
  const report = new Report();
  const { measure } = await import(`./parts/${part}.mjs`);
  const load = () => loadavg()[0].toFixed(1);
  const before = load();
  await measure(report, options.quick ? "quick" : "full");
  report.say("");
  report.say(`(load average ${before} before, ${load()} after)`);
  reports.set(part, report);
}

const targets = [...reports.values()].flatMap((report) => report.targets);
if (options.quick) {
  console.log(
    `\n${reports.size} parts run. A quick run measures nothing: ${targets.length} promises are left to a full one.`,
  );
} else if (targets.length > 0) {
  console.log("\nTargets");
  for (const line of verdicts(targets)) console.log(`  ${line}`);
}
if (options.write) writeParts(header, reports);
process.exitCode = options.quick || targets.every(isMet) ? 0 : 1;
