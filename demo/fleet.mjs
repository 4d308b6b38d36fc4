// Part 2: four processes, three in Node and one in Python, that share one circuit through a Redis which the demo starts
// and stops itself.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startServer } from "../tests/support/servers.mjs";
import { POLICY } from "./call.mjs";
import { startDependency } from "./dependency.mjs";
import { ms, startReport } from "./report.mjs";

const CALL_EVERY_MS = 100;

const local = (path) => fileURLToPath(new URL(path, import.meta.url));
const NODE = [process.execPath, local("fleet-process.mjs")];
const PYTHON = [local("../.cache/venv/bin/python"), local("fleet_process.py")];
const FLEET = { A: NODE, B: NODE, C: NODE, D: PYTHON };

/** Plays part 2 and says whether its claims held. `notShared`: each process has a breaker of its own, for comparison. */
export async function playFleet({ notShared = false } = {}) {
  const report = startReport(
    "2. Four processes, in Node and in Python, one circuit `billing` in Redis, the same policy",
  );
  const redis = await startServer();
  const dependency = await startDependency();
  report.line("redis", `redis-server runs, process ${redis.pid}`);

  const changes = [];
  const wasRefused = ({ results }) => results.some(({ outcome }) => outcome === "refused");
  const refusals = () => fleet.flatMap(({ results }) => results).filter(({ outcome }) => outcome === "refused");
  const onChange = (change) => {
    changes.push(change);
    if (change.toState === "half-open") report.line("fleet", `refused ${refusals().length} calls meanwhile`);
    report.change(change);
  };
  const args = [redis.url, dependency.url, notShared ? "alone" : "shared"];
  const start = ([name, program]) => startProcess(name, program, args, onChange);
  const fleet = await Promise.all(Object.entries(FLEET).map(start));
  const [a, b, c, d] = fleet;
  report.line("fleet", `processes ${fleet.map(({ name, pid }) => `${name} ${pid}`).join(", ")}; D is Python`);

  let probed = false;
  const call = async (member) => {
    const result = await member.call();
    const repeated = result.outcome === "refused" && member.results.at(-2)?.outcome === "refused";
    const isProbe = changes.at(-1)?.instance === member.name && changes.at(-2)?.toState === "half-open";
    const what = `${result.outcome} in ${ms(result.ms)}: ${result.text}`;
    if (!repeated) report.line(`process ${member.name}`, isProbe && !probed ? `PROBE ${what}` : what);
    probed ||= isProbe;
    return result.outcome;
  };

  for (const member of fleet) await call(member);

  dependency.break();
  report.line("dependency", `breaks: 503 after ${dependency.answerMs} ms from now on`);
  for (const member of [a, d, b, c, d]) await call(member);
  const brokenRequests = dependency.requests.length;

  // All of them keep calling at once. The dependency recovers while the circuit is open, as soon as each of them was refused,
  // and nobody tells them.
  let recovered = false;
  const keepCalling = async (member) => {
    for (let i = 0; i < 40; i++) {
      if ((await call(member)) === "answered") return;
      if (!recovered && fleet.every(wasRefused)) {
        recovered = true;
        dependency.recover();
        report.line("dependency", "recovers");
      }
      await sleep(CALL_EVERY_MS);
    }
  };
  await Promise.all(fleet.map(keepCalling));

  await Promise.all(fleet.map((member) => member.stop()));
  await Promise.all([redis.stop(), dependency.stop()]);
  report.line("redis", "stopped");

  const trips = changes.filter(({ toState }) => toState === "open");
  const saved = refusals().length;
  // The circuit closes on the first good answer, so what came between the trip and that answer were probes.
  const firstGoodAnswer = dependency.requests.slice(brokenRequests).find(({ status }) => status === 200)?.answeredAt;
  const probes = dependency.requests.slice(brokenRequests).filter(({ receivedAt }) => receivedAt < firstGoodAnswer);

  report.saved(`${saved} calls not made, ${((saved * dependency.answerMs) / 1000).toFixed(1)} s not waited`);
  report.claim("one trip in the whole fleet, told by the process that caused it", trips.length === 1);
  report.claim(
    "no process had more than two of the five failures: Node's and Python's were counted together",
    fleet.every(({ results }) => results.filter(({ outcome }) => outcome === "failed").length <= 2),
  );
  report.claim("it was the process in Python that tripped it", trips[0]?.instance === d.name);
  report.claim("all four were refused", fleet.every(wasRefused));
  report.claim(
    "no request reached the dependency while open",
    trips.length > 0 && probes.every(({ receivedAt }) => receivedAt - trips[0].at >= POLICY.openDurationMs),
  );
  report.claim(
    "one probe did, from the whole fleet, and it closed the circuit for Node and for Python",
    probes.length === 1,
  );
  report.claim(
    "all four got through in the end",
    fleet.every(({ results }) => results.at(-1).outcome === "answered"),
  );
  report.claim("the redis-server is gone", !isAlive(redis.pid));
  return report.close();
}

/** Starts one process of the fleet, whose lines are JSON; resolves when it is connected. */
async function startProcess(name, [program, script], args, onChange) {
  const child = spawn(program, [script, name, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const exit = once(child, "exit");
  const died = exit.then(([code]) => {
    throw new Error(`process ${name} ended with ${code}`);
  });
  // Whoever waits for it hears of it; that nobody does is how it ends.
  died.catch(() => undefined);

  const answers = new Map();
  const results = [];
  const ready = new Promise((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      if (message.ready) resolve();
      else if (message.change) onChange(message.change);
      else answers.get(message.call)(message.result);
    });
  });
  await Promise.race([ready, died]);

  return {
    name,
    pid: child.pid,
    results,
    /** Lets it make one guarded call; resolves with what became of it. */
    async call() {
      const answer = new Promise((resolve) => answers.set(results.length, resolve));
      child.stdin.write(`${JSON.stringify({ call: results.length })}\n`);
      const result = await Promise.race([answer, died]);
      results.push(result);
      return result;
    },
    async stop() {
      child.stdin.end();
      await exit;
    },
  };
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
