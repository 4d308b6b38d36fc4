// One of the processes of part 2. It makes a call when its parent says so, and reports what became of it: one line of JSON
// in, one out, so that a process in another language can do the same (fleet_process.py).
import { createInterface } from "node:readline";
import { Redis } from "ioredis";
import { CircuitBreaker } from "switchgear";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { guardedCall, POLICY } from "./call.mjs";

const [instance, redisUrl, url, shared] = process.argv.slice(2);

const client = new Redis(redisUrl);
// The deadline is far beyond the default: how busy this machine is shall not decide what the demo shows. Nor shall it decide how
// well each process knows the server's time: all of them are on one host, which has one clock.
const store = new RedisStore(client, { instance, timeoutMs: 20_000, clock: "system" });
const breaker =
  shared === "shared" ? new DistributedCircuitBreaker("billing", store, POLICY) : new CircuitBreaker("billing", POLICY);

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
breaker.on("stateChange", (change) => say({ change }));
createInterface({ input: process.stdin })
  .on("line", async (line) => say({ call: JSON.parse(line).call, result: await guardedCall(breaker, url) }))
  .on("close", () => client.disconnect());

await client.ping();
say({ ready: true });
