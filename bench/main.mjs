// `make bench`: what a guarded call costs, side by side in one run. Exits with 1 if a target is missed.
// `scripts/bench.sh local` or `scripts/bench.sh redis` measures one half.
import { cpus } from "node:os";
import { measureLocal } from "./local.mjs";
import { median, ratio } from "./measure.mjs";
import { measureRedis } from "./redis.mjs";

const half = process.argv[2];
console.log(`Node ${process.version}, ${cpus().length} cores (${cpus()[0].model}). Medians over interleaved rounds.`);

/** What the project promises: [what, measured, at most]. */
const targets = [];
if (half !== "redis") targets.push(...(await local()));
if (half !== "local") targets.push(...(await redis()));

console.log("\nTargets");
for (const [what, got, most] of targets) {
  const verdict = got <= most ? "met   " : "MISSED";
  console.log(`  ${verdict}  ${what.padEnd(36)} ${got.toFixed(2).padStart(6)}   at most ${most.toFixed(2)}`);
}
process.exitCode = targets.every(([, got, most]) => got <= most) ? 0 : 1;

async function local() {
  const times = await measureLocal();
  table("In the process", times, "ns", "bare await");
  return [
    ["closed (rolling) / bare await", ratio(times, "switchgear, closed (rolling)", "bare await"), 1.6],
    ["closed (consecutive) / bare await", ratio(times, "switchgear, closed (consecutive)", "bare await"), 1.6],
    ["closed (rolling) / cockatiel", ratio(times, "switchgear, closed (rolling)", "cockatiel 3, closed"), 1 / 2],
    [
      "closed (consecutive) / cockatiel",
      ratio(times, "switchgear, closed (consecutive)", "cockatiel 3, closed"),
      1 / 2,
    ],
    ["refused / cockatiel refused", ratio(times, "switchgear, refused", "cockatiel 3, refused"), 1 / 3],
  ];
}

async function redis() {
  const { times, commandsPerSuccess } = await measureRedis();
  table("Through Redis, one call at a time", times, "us", "bare EVALSHA, one key");
  return [
    ["admission / bare EVALSHA", ratio(times, "switchgear, admission", "bare EVALSHA, one key"), 1.15],
    ["commands per guarded success", commandsPerSuccess, 1],
  ];
}

/** Prints the median time of one call per task, and its ratio to `base`. */
function table(title, times, unit, base) {
  console.log(`\n${title.padEnd(38)} ${`one call, ${unit}`.padStart(14)}   x ${base}`);
  for (const [name, values] of times) {
    const time = median(values) / (unit === "us" ? 1000 : 1);
    const factor = ratio(times, name, base);
    console.log(`  ${name.padEnd(36)} ${time.toFixed(1).padStart(14)}   ${factor.toFixed(2)}`);
  }
}
