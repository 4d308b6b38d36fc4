// `make bench`: what a guarded call costs, side by side in one run. Exits with 1 if a target is missed.
// `scripts/bench.sh local`, `scripts/bench.sh redis` or `scripts/bench.sh python` measures one part.
import { cpus } from "node:os";
import { measureLocal } from "./local.mjs";
import { median, ratio } from "./measure.mjs";
import { measurePython, pythonVersion } from "./python.mjs";
import { measureRedis } from "./redis.mjs";

const PARTS = { local, redis, python };

const wanted = process.argv[2];
const runtimes = `Node ${process.version}, ${await pythonVersion()}`;
console.log(`${runtimes}, ${cpus().length} cores (${cpus()[0].model}). Medians over interleaved rounds.`);

/** What the project promises: [what, measured, at most]. */
const targets = [];
for (const [part, measured] of Object.entries(PARTS)) {
  if (wanted === undefined || wanted === part) targets.push(...(await measured()));
}

console.log("\nTargets");
const width = Math.max(...targets.map(([what]) => what.length));
for (const [what, got, most] of targets) {
  const verdict = got <= most ? "met   " : "MISSED";
  console.log(`  ${verdict}  ${what.padEnd(width)} ${got.toFixed(2).padStart(6)}   at most ${most.toFixed(2)}`);
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
  const { alone, crowd, free, commandsPerSuccess } = await measureRedis();
  table("Through Redis, one call at a time", alone, "us", "bare EVALSHA, one key");
  table("Through Redis, 200 calls in flight", crowd, "us", "bare EVALSHA, one key");
  table("Through Redis, known to be closed", free, "ns", "local breaker");
  const success = "switchgear, guarded success";
  return [
    ["admission / bare EVALSHA", ratio(alone, "switchgear, admission", "bare EVALSHA, one key"), 1.15],
    ["guarded success / bare EVALSHA", ratio(alone, success, "bare EVALSHA, one key"), 1.15],
    ["200 in flight / two scripts", ratio(crowd, success, "two scripts, guarded success"), 1 / 10],
    ["known to be closed / local breaker", ratio(free, "switchgear, closedCacheMs", "local breaker"), 2],
    ["commands per guarded success", commandsPerSuccess, 1],
  ];
}

async function python() {
  const { decorated, entered, awaited, refused } = await measurePython();
  table("In Python, a plain call", decorated, "ns", "bare call");
  table("In Python, `with`", entered, "ns", "switchgear, with");
  table("In Python, asyncio", awaited, "ns", "bare await");
  table("In Python, refused", refused, "ns", "switchgear, refused");
  return [
    ...["switchgear, decorator", "switchgear, execute"].map((name) => halfOfTheFastest(decorated, name)),
    ...["switchgear, async decorator", "switchgear, execute_async"].map((name) => halfOfTheFastest(awaited, name)),
  ];
}

/** The target that `name` takes at most half of what the fastest guarded call of another library in the table takes. */
function halfOfTheFastest(times, name) {
  const others = [...times.keys()].filter((other) => !/^(?:switchgear|bare)/.test(other));
  const [fastest] = others.sort((a, b) => median(times.get(a)) - median(times.get(b)));
  return [`Python: ${name.replace("switchgear, ", "")} / ${fastest}`, ratio(times, name, fastest), 1 / 2];
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
