// `make bench`: what a guarded call costs, side by side in one run. Exits with 1 if a target is missed.
import { cpus } from "node:os";
import { measureLocal } from "./local.mjs";
import { median, ratio } from "./measure.mjs";
import { measureRedis } from "./redis.mjs";

console.log(`Node ${process.version}, ${cpus().length} cores (${cpus()[0].model}). Medians over interleaved rounds.`);

const local = await measureLocal();
const { times: redis, commandsPerSuccess } = await measureRedis();
table("In the process", local, "ns", "bare await");
table("Through Redis, one call at a time", redis, "us", "bare EVALSHA, one key");

/** What the project promises. A ratio is the median over rounds of the ratio within a round. */
const targets = [
  ["closed (rolling) / bare await", ratio(local, "switchgear, closed (rolling)", "bare await"), 1.6],
  ["closed (consecutive) / bare await", ratio(local, "switchgear, closed (consecutive)", "bare await"), 1.6],
  ["closed (rolling) / cockatiel", ratio(local, "switchgear, closed (rolling)", "cockatiel 3, closed"), 1 / 2],
  ["refused / cockatiel refused", ratio(local, "switchgear, refused", "cockatiel 3, refused"), 1 / 3],
  ["admission / bare EVALSHA", ratio(redis, "switchgear, admission", "bare EVALSHA, one key"), 1.15],
  ["commands per guarded success", commandsPerSuccess, 1],
];

console.log("\nTargets");
for (const [what, got, most] of targets) {
  const verdict = got <= most ? "met   " : "MISSED";
  console.log(`  ${verdict}  ${what.padEnd(36)} ${got.toFixed(2).padStart(6)}   at most ${most.toFixed(2)}`);
}
process.exitCode = targets.every(([, got, most]) => got <= most) ? 0 : 1;

/** Prints the median time of one call per task, and its ratio to `base`. */
function table(title, times, unit, base) {
  console.log(`\n${title.padEnd(38)} ${`one call, ${unit}`.padStart(14)}   x ${base}`);
  for (const [name, rounds] of times) {
    const time = median(rounds) / (unit === "us" ? 1000 : 1);
    const factor =
      rounds.length === times.get(base).length ? ratio(times, name, base) : median(rounds) / median(times.get(base));
    console.log(`  ${name.padEnd(36)} ${time.toFixed(1).padStart(14)}   ${factor.toFixed(2)}`);
  }
}
