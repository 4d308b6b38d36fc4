// What a circuit takes in Redis, by what it is doing: ours, and those of the Python libraries that keep circuits there.
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { inFlight, MANY } from "../in-flight.mjs";
import { runPython, tasksOf } from "../python-process.mjs";
import { PATIENT, usedMemory, withServer } from "../server.mjs";

/** How many circuits are made; fewer of the libraries that send one command after another. */
const SIZES = { full: { ours: 10_000, others: 2000 }, quick: { ours: 5, others: 2 } };

export async function measure(report, size) {
  const { ours, others } = SIZES[size];
  const rows = [];
  await withServer(async (client, url) => {
    for (const [what, make] of Object.entries(OURS)) {
      rows.push([`switchgear, ${what}`, ...(await taken(client, ours, () => makeOurs(client, ours, make)))]);
    }
    for (const [library, states] of Object.entries(await tasksOf("redis_circuits"))) {
      for (const state of states) {
        const make = () => runPython("redis_circuits.py", library, state, others, url);
        rows.push([`${library}, ${state}`, ...(await taken(client, others, make))]);
      }
    }
  });
  report.table(["One circuit in Redis", "keys", "bytes by MEMORY USAGE", "bytes of used_memory"], rows);
}

/** What is done to each circuit, with the clock in the circuits' hands. */
const OURS = {
  "idle: no failure in its window": (circuit) => circuit.execute(async () => 42),
  "active: 1 failure in its window": (circuit) => fail(circuit, 1),
  "active: 4 failures in its window": (circuit) => fail(circuit, 4),
  "active: consecutive, 4 in a row": { policy: { tripOn: "consecutive" }, make: (circuit) => fail(circuit, 4) },
  "active: rate, a full window": {
    policy: { tripOn: "rate", minimumCalls: 1000 },
    async make(circuit, clock) {
      for (let bucket = 0; bucket < 10; bucket++) {
        clock.now = START + bucket * 1000;
        await fail(circuit, 1);
      }
    },
  },
  open: (circuit) => fail(circuit, 5),
  "half-open, with a probe in flight": async (circuit, clock) => {
    await fail(circuit, 5);
    clock.now = START + 30_000;
    await circuit.acquire();
  },
  "idle: closed again": async (circuit, clock) => {
    await fail(circuit, 5);
    clock.now = START + 30_000;
    await circuit.execute(async () => 42);
  },
};

/** Any moment will do; this one divides by the width of a bucket. */
const START = 1_800_000_000_000;

async function fail(circuit, times) {
  for (let i = 0; i < times; i++) await circuit.recordFailure();
}

async function makeOurs(client, circuits, how) {
  const { policy, make } = typeof how === "function" ? { policy: {}, make: how } : how;
  let next = 0;
  const one = async () => {
    const clock = { now: START };
    const store = new RedisStore(client, { ...PATIENT, clock: () => clock.now });
    await make(new DistributedCircuitBreaker(nameOf(next++), store, policy), clock);
  };
  await inFlight(one, { width: MANY, calls: circuits });
}

/** As long as the names that the Python libraries get. */
function nameOf(i) {
  return `service-${String(i).padStart(6, "0")}`;
}

/** Keys and bytes per circuit, by the keys themselves, and by what the server has taken for all of them. */
async function taken(client, circuits, make) {
  await client.flushall();
  const before = await usedMemory(client);
  await make();
  const used = (await usedMemory(client)) - before;
  const keys = await client.keys("*");
  const sizes = await Promise.all(keys.map((key) => client.call("MEMORY", "USAGE", key, "SAMPLES", "0")));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  return [
    (keys.length / circuits).toFixed(0),
    (bytes / circuits).toFixed(0),
    // Less than a byte or so is the server's own.
    Math.max(0, used / circuits).toFixed(0),
  ];
}
