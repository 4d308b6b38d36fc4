// The users' scenarios, each on the local breaker and on the shared one with a real Redis.
import { Redis } from "ioredis";
import { CircuitBreaker } from "switchgear";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { afterAll, beforeAll, describe, test } from "vitest";
import { type Server, startServer } from "../../../tests/support/servers.mjs";
import { SCENARIOS } from "./support/scenarios";
import { ManualClock } from "./support/time";

describe("a local breaker", () => {
  test.each(SCENARIOS)("%s", async (_, run) => {
    const clock = new ManualClock(1_700_000_000_000);
    await run({ clock, breaker: (policy) => new CircuitBreaker("c", { ...policy, clock: clock.read }) });
  });
});

describe("a shared breaker", () => {
  let server: Server;
  let redis: Redis;
  beforeAll(async () => {
    server = await startServer();
    redis = new Redis(server.port);
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  test.each(SCENARIOS)("%s", async (title, run) => {
    const clock = new ManualClock(1_700_000_000_000);
    const store = new RedisStore(redis, { clock: clock.read, timeoutMs: 20_000 });
    let made = 0;
    await run({
      clock,
      breaker: (policy) => new DistributedCircuitBreaker(`${title} ${++made}`, store, policy),
    });
  });
});
