// A guarded call through Redis, on a redis-server of the benchmark's own, one at a time and many at once: switchgear beside the
// least that any script costs, and beside the scheme of two scripts a call; and beside a local breaker, where nothing is asked.
import { Redis } from "ioredis";
import { CircuitBreaker } from "switchgear";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { startServer } from "../tests/support/servers.mjs";
import { measure, sample } from "./measure.mjs";
import { twoScriptsBreaker } from "./two-scripts.mjs";

/** How many commands are counted to find out how many one guarded success takes. */
const COUNTED = 1000;

async function healthy() {
  return 42;
}

/** Calls in flight at once in what is measured side by side. */
const IN_FLIGHT = 200;

/**
 * Times of one call in ns, per task and round: one at a time, with 200 in flight, and where a closed circuit is known to be so;
 * and the commands that one guarded success sends.
 */
export async function measureRedis() {
  const redis = await startServer();
  const client = new Redis(redis.url);
  try {
    const store = new RedisStore(client, { timeoutMs: 5000 });
    const breaker = new DistributedCircuitBreaker("bench", store);
    const cached = new DistributedCircuitBreaker("cached", store, { closedCacheMs: 1000 });
    const local = new CircuitBreaker("local");
    const twoScripts = await twoScriptsBreaker(client, "bench");
    const bare = await client.script("LOAD", "return 1");

    const strict = {
      "bare EVALSHA, one key": () => client.evalsha(bare, 1, "{cb:bench}", Date.now()),
      "switchgear, admission": () => breaker.acquire(),
      "switchgear, guarded success": () => breaker.execute(healthy),
      "two scripts, guarded success": () => twoScripts.execute(healthy),
    };
    const together = {
      "bare EVALSHA, one key": strict["bare EVALSHA, one key"],
      "switchgear, guarded success": () => breaker.execute(healthy),
      "two scripts, guarded success": () => twoScripts.execute(healthy),
    };
    const known = {
      "local breaker": () => local.execute(healthy),
      "switchgear, closedCacheMs": () => cached.execute(healthy),
    };
    const [alone, crowd, free] = await measured(
      samplers(strict, (call) => sample(call, { samples: 5, batch: 100 })),
      samplers(together, (call) => sample(() => inFlight(call), { samples: 5, batch: 1 }).then((ns) => ns / EACH)),
      samplers(known, (call) => sample(call, { samples: 5, batch: 1000 })),
    );

    const before = await commandsServed(client);
    for (let i = 0; i < COUNTED; i++) await breaker.execute(healthy);
    const commandsPerSuccess = ((await commandsServed(client)) - before - 1) / COUNTED;
    return { alone, crowd, free, commandsPerSuccess };
  } finally {
    client.disconnect();
    await redis.stop();
  }
}

/** How many calls one sample of a crowd makes. */
const EACH = 10 * IN_FLIGHT;

/** Makes calls, so many at once: each that ends makes room for another. */
async function inFlight(call) {
  let left = EACH;
  const caller = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, caller));
}

function samplers(calls, measureOne) {
  return Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, () => measureOne(call)]));
}

/** Each table is measured by itself, after a warm-up. */
async function measured(...tables) {
  const times = [];
  for (const table of tables) {
    await measure(table, 3);
    times.push(await measure(table, 101));
  }
  return times;
}

/**
 * How many commands were executed so far, by the server's own count: also those that scripts call. TIME is not: it is asked
 * every half minute, whatever the calls.
 */
async function commandsServed(client) {
  const stats = await client.info("commandstats");
  return [...stats.matchAll(/^cmdstat_(?!time:).*?:calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}
