// A guarded call through Redis, one at a time, on a redis-server of the benchmark's own: switchgear beside the least
// that any script costs, and beside the scheme of two scripts a call.
import { Redis } from "ioredis";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { startServer } from "../tests/support/servers.mjs";
import { measure, sample } from "./measure.mjs";
import { twoScriptsBreaker } from "./two-scripts.mjs";

/** How many commands are counted to find out how many one guarded success takes. */
const COUNTED = 1000;

async function healthy() {
  return 42;
}

/** Times of one call in ns, per task and round, and the commands that one guarded success sends. */
export async function measureRedis() {
  const redis = await startServer();
  const client = new Redis(redis.url);
  try {
    const breaker = new DistributedCircuitBreaker("bench", new RedisStore(client, { timeoutMs: 5000 }));
    const twoScripts = await twoScriptsBreaker(client, "bench");
    const bare = await client.script("LOAD", "return 1");

    const calls = {
      "bare EVALSHA, one key": () => client.evalsha(bare, 1, "{cb:bench}", Date.now()),
      "switchgear, admission": () => breaker.acquire(),
      "switchgear, guarded success": () => breaker.execute(healthy),
      "two scripts, guarded success": () => twoScripts.execute(healthy),
    };
    const samplers = Object.entries(calls).map(([name, call]) => [
      name,
      () => sample(call, { samples: 5, batch: 100 }),
    ]);
    await measure(Object.fromEntries(samplers), 3); // warms up
    const times = await measure(Object.fromEntries(samplers), 101);

    const before = await commandsServed(client);
    for (let i = 0; i < COUNTED; i++) await breaker.execute(healthy);
    const commandsPerSuccess = ((await commandsServed(client)) - before - 1) / COUNTED;
    return { times, commandsPerSuccess };
  } finally {
    client.disconnect();
    await redis.stop();
  }
}

/** How many commands were executed so far, by the server's own count: also those that scripts call. */
async function commandsServed(client) {
  const stats = await client.info("commandstats");
  return [...stats.matchAll(/^cmdstat_.*?:calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}
