// A process with many shared circuits: `growth-process.mjs URL CIRCUITS`. First it is asked to prepare, and says what they take;
// then for the time of one call in ns, of one kind.
import { Redis } from "ioredis";
import { DistributedCircuitBreakerGroup, RedisStore } from "switchgear/redis";
import { inFlight, MANY } from "./in-flight.mjs";
import { PATIENT, usedMemory } from "./server.mjs";
import { HOUR_MS, healthy } from "./tasks.mjs";

const [url, circuits] = [process.argv[2], Number(process.argv[3])];
const client = new Redis(url);
const store = new RedisStore(client, PATIENT);
// Their breakers are held from the start, so each takes what it will take.
const asking = new DistributedCircuitBreakerGroup("asking", store, { maxKeys: circuits });
const knowing = new DistributedCircuitBreakerGroup("knowing", store, { maxKeys: circuits, closedCacheMs: HOUR_MS });
const keys = Array.from({ length: circuits }, (_, i) => `service-${String(i).padStart(6, "0")}`);

/** Each of the circuits in turn, but not in the order in which they lie in memory. */
const STRIDE = 7919;
let turn = 0;
function next(group) {
  turn = (turn + STRIDE) % circuits;
  return group.for(keys[turn]);
}

const digest = await client.script("LOAD", "return 1");
const CALLS = {
  bare: () => client.evalsha(digest, 1, "{cb:bench}", Date.now()),
  alone: () => next(asking).execute(healthy),
  crowd: () => next(asking).execute(healthy),
  known: () => next(knowing).execute(healthy),
};

process.on("message", async (question) => {
  process.send(question === "prepare" ? await prepare() : await timeOf(question));
});
process.on("disconnect", () => process.exit());

async function timeOf({ what, times }) {
  const begin = performance.now();
  await inFlight(CALLS[what], { width: what === "crowd" ? MANY : 1, calls: times });
  return ((performance.now() - begin) * 1e6) / times;
}

/** Makes the circuits, with a failure each; says what one takes here and in Redis. */
async function prepare() {
  const [before, redisBefore] = [memoryHere(), await usedMemory(client)];
  await each((key) => asking.for(key).recordFailure());
  const memory = {
    process: (memoryHere() - before) / circuits,
    redis: ((await usedMemory(client)) - redisBefore) / circuits,
  };
  await each((key) => knowing.for(key).execute(healthy));
  return memory;
}

async function each(call) {
  let i = 0;
  await inFlight(() => call(keys[i++]), { width: MANY, calls: circuits });
}

/** What JavaScript and the native module hold. */
function memoryHere() {
  globalThis.gc();
  return process.memoryUsage.rss();
}
