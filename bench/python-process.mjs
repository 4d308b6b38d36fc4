// Tasks in Python, each measured in a process of its own: python/process.py.
import { execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { measure } from "./measure.mjs";

const PYTHON = fileURLToPath(new URL("../.cache/bench-venv/bin/python", import.meta.url));
const PROGRAM = fileURLToPath(new URL("python/process.py", import.meta.url));

const run = promisify(execFile);

/** The Python that measures, as it names itself. */
export async function pythonVersion() {
  return (await run(PYTHON, ["--version"])).stdout.trim();
}

/** Runs a program of the folder python/ to its end. */
export async function runPython(program, ...args) {
  await run(PYTHON, [fileURLToPath(new URL(`python/${program}`, import.meta.url)), ...args.map(String)]);
}

/** The names of the tasks of a module in the folder python/, by group. */
export async function tasksOf(module) {
  return JSON.parse((await run(PYTHON, [PROGRAM, module])).stdout);
}

/**
 * Times of one call in ns, per group of a module's tasks, task and round; `calls` for each sample, so many as take 20 ms if it
 * is missing.
 */
export async function measurePython(module, { rounds, calls, environment }) {
  const groups = await tasksOf(module);
  const tasks = Object.entries(groups).flatMap(([group, names]) => names.map((name) => [group, name]));
  const processes = tasks.map(([group, name]) => startPython([module, group, name], environment));
  const samplers = Object.fromEntries(tasks.map((task, i) => [task.join(": "), () => processes[i].sample(calls)]));
  try {
    await measure(samplers, 1); // warms up
    const times = await measure(samplers, rounds);
    const timesOf = (group, names) => new Map(names.map((name) => [name, times.get(`${group}: ${name}`)]));
    return Object.fromEntries(Object.entries(groups).map(([group, names]) => [group, timesOf(group, names)]));
  } finally {
    for (const each of processes) each.end();
  }
}

/** Starts the process of one task, [module, group, name]. */
export function startPython(task, environment = {}) {
  const child = spawn(PYTHON, [PROGRAM, ...task], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, ...environment },
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    /** The time of one call, in ns, measured over so many. */
    async sample(calls = "") {
      child.stdin.write(`${calls}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`the process that measures "${task.join(": ")}" ended`);
      return Number(value);
    },
    end: () => child.stdin.end(),
  };
}
