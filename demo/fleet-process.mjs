// One of the three processes of part 2. It makes a call when its parent says so, and reports what became of it.
import { Redis } from "ioredis";
import { CircuitBreaker } from "switchgear";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { guardedCall, POLICY } from "./call.mjs";

const [instance, redisUrl, url, shared] = process.argv.slice(2);

const client = new Redis(redisUrl);
// The deadline is ten times the default: how busy this machine is shall not decide what the demo shows.
const store = new RedisStore(client, { instance, timeoutMs: 1000 });
const breaker =
  shared === "shared" ? new DistributedCircuitBreaker("billing", store, POLICY) : new CircuitBreaker("billing", POLICY);

breaker.on("stateChange", (change) => process.send({ change }));
process.on("message", async ({ call }) => process.send({ call, result: await guardedCall(breaker, url) }));
process.on("disconnect", () => client.disconnect());

await client.ping();
process.send({ ready: true });
