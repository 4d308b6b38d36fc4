// A guarded call in Python, each task in a process of its own.
import { execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { measure } from "./measure.mjs";

const ROUNDS = 31;

const PYTHON = fileURLToPath(new URL("../.cache/bench-venv/bin/python", import.meta.url));
const PROGRAM = fileURLToPath(new URL("python/process.py", import.meta.url));

const run = promisify(execFile);

/** The Python that measures, as it names itself. */
export async function pythonVersion() {
  return (await run(PYTHON, ["--version"])).stdout.trim();
}

/** Times of one call in ns, per group of tasks, task and round. */
export async function measurePython() {
  const groups = JSON.parse((await run(PYTHON, [PROGRAM])).stdout);
  const tasks = Object.entries(groups).flatMap(([group, names]) => names.map((name) => [group, name]));
  const processes = tasks.map((task) => startMeasuring(task));
  const samplers = Object.fromEntries(tasks.map(([, name], i) => [name, processes[i].sample]));
  try {
    await measure(samplers, 1); // warms up
    const times = await measure(samplers, ROUNDS);
    const timesOf = (names) => new Map(names.map((name) => [name, times.get(name)]));
    return Object.fromEntries(Object.entries(groups).map(([group, names]) => [group, timesOf(names)]));
  } finally {
    for (const each of processes) each.end();
  }
}

function startMeasuring(task) {
  const child = spawn(PYTHON, [PROGRAM, ...task], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async sample() {
      child.stdin.write("\n");
      const { value, done } = await lines.next();
      if (done) throw new Error(`the process that measures "${task.join(": ")}" ended`);
      return Number(value);
    },
    end: () => child.stdin.end(),
  };
}
