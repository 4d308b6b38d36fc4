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

/** Workers without work, by kind: to start a process costs more than most scenarios do. */
const idle = Object.fromEntries(KINDS.map((kind) => [kind, []]));

/** A worker that takes orders, under a name: one that has no work, or a new one. */
export async function hire(kind, who, { skewMs = 0 } = {}) {
  const worker = (skewMs === 0 && idle[kind].pop()) || (await startWorker(kind, skewMs));
  worker.who = who;
  return worker;
}

/** Ends those without work. */
export async function dismissAll() {
  await Promise.all(KINDS.flatMap((kind) => idle[kind].splice(0)).map((worker) => worker.kill()));
}

/** Starts a worker; it ends when it is killed, or with this process. */
async function startWorker(kind, skewMs) {
  const [program, ...args] = PROGRAMS[kind](skewMs);
  const child = spawn(program, args, {
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
    throw new Error(`a worker (${kind}) ended with ${code ?? signal}: ${complaints}`);
  });
  // Whoever waits for it hears of it; that nobody does is how it ends.
  died.catch(() => undefined);

  let id = 0;
  let isDead = false;
  const worker = {
    kind,
    who: kind,
    pid: child.pid,
    /** The changes of state that its calls made, told as they happened. */
    changes: [],
    /** Has an operation done, and gives its result. */
    do(operation, options = {}) {
      id += 1;
      const answer = new Promise((accept, refuse) => waiting.set(id, { accept, refuse }));
      child.stdin.write(`${JSON.stringify({ id, do: operation, ...options })}\n`);
      return Promise.race([answer, died]);
    },
    async kill() {
      isDead = true;
      child.kill("SIGKILL");
      await exit;
    },
    /** Forgets its circuits, and has no work. One that has died, or whose clock is wrong, is no use to others. */
    async leave() {
      if (isDead) return;
      if (skewMs !== 0) {
        await worker.kill();
        return;
      }
      await worker.do("close");
      worker.changes = [];
      idle[kind].push(worker);
    },
  };

  const waiting = new Map();
  const ready = new Promise((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const { id, result, error, ready, change } = JSON.parse(line);
      if (ready) return resolve();
      if (change) return worker.changes.push({ who: worker.who, ...change });
      const { accept, refuse } = waiting.get(id);
      waiting.delete(id);
      return error === undefined ? accept(result) : refuse(new Error(error));
    });
  });
  await Promise.race([ready, died]);

  return worker;
}
