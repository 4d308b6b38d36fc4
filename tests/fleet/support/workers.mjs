// The processes of a fleet: each a worker that speaks JSON lines, in Node, in Python with threads, in Python with asyncio.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const PYTHON = here("../../../.cache/venv/bin/python");

/** How to start a worker of each kind; with a wall clock that is wrong by so many milliseconds. */
const PROGRAMS = {
  node: (skewMs) => [process.execPath, ...(skewMs ? ["--import", here("skewed.mjs")] : []), here("worker.mjs")],
  python: (skewMs) => [PYTHON, ...(skewMs ? [here("skewed.py")] : []), here("worker.py")],
  asyncio: (skewMs) => [PYTHON, ...(skewMs ? [here("skewed.py")] : []), here("worker_asyncio.py")],
};

/** The kinds of workers. */
export const KINDS = Object.keys(PROGRAMS);

/** Starts a worker; resolves when it takes orders. It ends with `stop`, or with this process. */
export async function startWorker(kind, who, { skewMs = 0 } = {}) {
  const [program, ...args] = PROGRAMS[kind](skewMs);
  const child = spawn(program, [...args, who], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, SKEW_MS: `${skewMs}`, PYTHONDONTWRITEBYTECODE: "1" },
  });
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    complaints += text;
  });
  child.stdin.on("error", () => undefined);
  const exit = once(child, "exit");
  const died = exit.then(([code, signal]) => {
    throw new Error(`worker ${who} ended with ${code ?? signal}: ${complaints}`);
  });
  // Whoever waits for it hears of it; that nobody does is how it ends.
  died.catch(() => undefined);

  const waiting = new Map();
  const changes = [];
  const ready = new Promise((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const { id, result, error, ready, change } = JSON.parse(line);
      if (ready) return resolve();
      if (change) return changes.push({ who, ...change });
      const { accept, refuse } = waiting.get(id);
      waiting.delete(id);
      return error === undefined ? accept(result) : refuse(new Error(error));
    });
  });
  await Promise.race([ready, died]);

  let id = 0;
  return {
    kind,
    who,
    pid: child.pid,
    /** The changes of state that its calls made, told as they happened. */
    changes,
    /** Has an operation done, and gives its result. */
    do(operation, options = {}) {
      id += 1;
      const answer = new Promise((accept, refuse) => waiting.set(id, { accept, refuse }));
      child.stdin.write(`${JSON.stringify({ id, do: operation, ...options })}\n`);
      return Promise.race([answer, died]);
    },
    /** What it printed that nobody asked for. */
    complaints: () => complaints,
    async kill() {
      child.kill("SIGKILL");
      await exit;
    },
    async stop() {
      child.stdin.end();
      await exit;
    },
  };
}
