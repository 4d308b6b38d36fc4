// A guarded call in the process, each task in a process of its own.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { measure } from "./measure.mjs";
import { CLOSED, REFUSED } from "./tasks.mjs";

/** Times of one call in ns, per task and round. */
export async function measureLocal() {
  const closed = await inProcesses(Object.keys(CLOSED), { rounds: 31, samples: 1, batch: 1_000_000 });
  const refused = await inProcesses(Object.keys(REFUSED), { rounds: 21, samples: 20, batch: 1000 });
  return new Map([...closed, ...refused]);
}

async function inProcesses(names, { rounds, ...options }) {
  const program = fileURLToPath(new URL("local-process.mjs", import.meta.url));
  const children = names.map((name) => fork(program, [name]));
  const samplers = Object.fromEntries(names.map((name, i) => [name, () => answer(children[i], options)]));
  try {
    await measure(samplers, 1); // warms up
    return await measure(samplers, rounds);
  } finally {
    for (const child of children) child.disconnect();
  }
}

/** What a child says to its next measurement. */
function answer(child, options) {
  return new Promise((resolve, reject) => {
    const died = (code) => reject(new Error(`a measuring process ended with ${code}`));
    child.once("exit", died);
    child.once("message", (time) => {
      child.off("exit", died);
      resolve(time);
    });
    child.send(options);
  });
}
