// A guarded call in the process, each task in a process of its own.
import { fileURLToPath } from "node:url";
import { startChild } from "../child.mjs";
import { measure as measureRounds, ratio } from "../measure.mjs";
import { CLOSED, REFUSED } from "../tasks.mjs";

const PROGRAM = fileURLToPath(new URL("../local-process.mjs", import.meta.url));

const SIZES = {
  full: {
    closed: { rounds: 31, samples: 1, batch: 1_000_000 },
    refused: { rounds: 21, samples: 20, batch: 1000 },
  },
  quick: {
    closed: { rounds: 1, samples: 1, batch: 100 },
    refused: { rounds: 1, samples: 1, batch: 10 },
  },
};

export async function measure(report, size) {
  const { closed, refused } = SIZES[size];
  const times = new Map([
    ...(await inProcesses(Object.keys(CLOSED), closed)),
    ...(await inProcesses(Object.keys(REFUSED), refused)),
  ]);
  report.times("In the process", times, "ns", "bare await");
  const promise = (what, name, base, most) => report.atMost(what, ratio(times, name, base), most);
  promise("closed (rolling) / bare await", "switchgear, closed (rolling)", "bare await", 1.6);
  promise("closed (consecutive) / bare await", "switchgear, closed (consecutive)", "bare await", 1.6);
  promise("closed (rolling) / cockatiel", "switchgear, closed (rolling)", "cockatiel 3, closed", 1 / 2);
  promise("closed (consecutive) / cockatiel", "switchgear, closed (consecutive)", "cockatiel 3, closed", 1 / 2);
  promise("refused / cockatiel refused", "switchgear, refused", "cockatiel 3, refused", 1 / 3);
}

async function inProcesses(names, { rounds, ...options }) {
  const children = names.map((name) => startChild(PROGRAM, [name]));
  const samplers = Object.fromEntries(names.map((name, i) => [name, () => children[i].ask(options)]));
  try {
    await measureRounds(samplers, 1); // warms up
    return await measureRounds(samplers, rounds);
  } finally {
    for (const child of children) child.end();
  }
}
