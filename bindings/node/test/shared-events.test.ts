// `events: true`: what other instances bring about is heard at once.
import { Redis } from "ioredis";
import type { StateChange } from "switchgear";
import { DistributedCircuitBreaker, RedisStore, type RedisStoreOptions } from "switchgear/redis";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Cluster, startCluster } from "../../../tests/support/servers.mjs";
import { CLIENTS, CLUSTER_CLIENTS, type Connected } from "./support/clients";
import { LIMIT, PATIENT } from "./support/failing-store";
import { place, quiet } from "./support/stores";
import { ManualClock } from "./support/time";
import { changesOf } from "./support/world";

const clock = new ManualClock(1_700_000_000_000);

function storeOf(client: object, options?: RedisStoreOptions): RedisStore {
  return new RedisStore(client, { clock: clock.read, timeoutMs: PATIENT, ...options });
}

/** Waits until as many listen to the channel. */
async function listening(admin: Redis, channel: string, n = 1): Promise<void> {
  const count = async () => Number(((await admin.pubsub("NUMSUB", channel)) as unknown[])[1]);
  await vi.waitUntil(async () => (await count()) >= n, { timeout: LIMIT, interval: 10 });
}

async function until(changes: StateChange[], n: number): Promise<void> {
  await vi.waitUntil(() => changes.length >= n, { timeout: LIMIT, interval: 5 });
}

/** One trips, another one hears it. */
async function hears(connected: Connected, admins: Redis[], prefix: string, name: string): Promise<void> {
  const store = storeOf(connected.client, { prefix, instance: "ears", events: true });
  await vi.waitUntil(
    async () => {
      const counts = await Promise.all(admins.map((admin) => admin.pubsub("NUMSUB", `${prefix}events`)));
      return counts.some((answer) => Number((answer as unknown[])[1]) > 0);
    },
    { timeout: LIMIT, interval: 10 },
  );
  const breaker = new DistributedCircuitBreaker(name, store, { closedCacheMs: 60_000 });
  const changes = changesOf(breaker);
  expect(await breaker.canExecute()).toBe(true);
  const other = new DistributedCircuitBreaker(name, storeOf(connected.client, { prefix, instance: "mouth" }), {
    failureThreshold: 1,
  });
  await other.recordFailure();
  await until(changes, 1);
  expect(changes).toMatchObject([
    { circuit: name, fromState: "closed", toState: "open", reason: "threshold", source: "remote", instance: "mouth" },
  ]);
  expect(await breaker.canExecute()).toBe(false);
  await store.close();
}

describe("on one server", () => {
  const here = place();

  test.each(Object.entries(CLIENTS).filter(([label]) => !/pool|anything/.test(label)))("%s", async (label, connect) => {
    const connected = await connect(here.server.port);
    await hears(connected, [here.redis], `${label}:`, "GET /a b");
    connected.close();
  });

  test.each(Object.entries(CLIENTS).filter(([label]) => /pool|anything/.test(label)))(
    "%s cannot, and says so",
    async (_, connect) => {
      const connected = await connect(here.server.port);
      expect(() => storeOf(connected.client, { events: true })).toThrow(
        expect.objectContaining({ code: "config_invalid", field: "client" }),
      );
      expect(() => storeOf(connected.client, { events: 1 as unknown as boolean })).toThrow(
        expect.objectContaining({ code: "config_invalid", field: "events" }),
      );
      connected.close();
    },
  );

  test("one's own changes are told once, as one's own; nothing is told after close, and the client goes on", async () => {
    const store = storeOf(here.redis, { prefix: "own:", instance: "me", events: true });
    await listening(here.redis, "own:events");
    const breaker = new DistributedCircuitBreaker("c", store, { failureThreshold: 1 });
    const changes = changesOf(breaker);
    await breaker.recordFailure();
    const other = new DistributedCircuitBreaker("c", storeOf(here.redis, { prefix: "own:", instance: "you" }));
    await other.reset();
    await until(changes, 2);
    expect(changes.map(({ toState, source, instance }) => [toState, source, instance])).toEqual([
      ["open", "local", "me"],
      ["closed", "remote", "you"],
    ]);
    await store.close();
    await vi.waitUntil(async () => Number(((await here.redis.pubsub("NUMSUB", "own:events")) as unknown[])[1]) === 0, {
      timeout: LIMIT,
    });
    await other.trip();
    expect(await here.redis.ping()).toBe("PONG");
    expect(changes).toHaveLength(2);
  });

  test("a message of somebody else, late or doubled changes nothing", async () => {
    const store = storeOf(here.redis, { prefix: "noise:", events: true });
    await listening(here.redis, "noise:events");
    const breaker = new DistributedCircuitBreaker("c", store, { closedCacheMs: 60_000 });
    const changes = changesOf(breaker);
    await breaker.canExecute();
    const trip = `1 0 1 0 ${clock.now} ${clock.now} 5 30000 00000000000000aa c\nthem`;
    for (const message of [
      "",
      "hello",
      "2 0 1 0 1 1 5 1 00000000000000aa c\nx",
      trip,
      trip,
      trip.replace("1 0 1 0", "1 1 0 4"),
    ])
      await here.redis.publish("noise:events", message);
    await until(changes, 1);
    await here.redis.publish("noise:events", `1 1 2 1 ${clock.now + 9} ${clock.now + 9} 0 -1 00000000000000aa c\nthem`);
    await until(changes, 2);
    expect(changes.map(({ toState }) => toState)).toEqual(["open", "half-open"]);
    await store.close();
  });

  test("it listens again after its connection was cut", async () => {
    const client = quiet(new Redis(here.server.port, { retryStrategy: () => 5 }));
    const store = storeOf(client, { prefix: "cut:", events: true });
    await listening(here.redis, "cut:events");
    await here.redis.call("CLIENT", "KILL", "TYPE", "pubsub");
    const breaker = new DistributedCircuitBreaker("c", store, { closedCacheMs: 60_000 });
    const changes = changesOf(breaker);
    await breaker.canExecute();
    await listening(here.redis, "cut:events");
    await new DistributedCircuitBreaker("c", storeOf(here.redis, { prefix: "cut:" })).trip();
    await until(changes, 1);
    expect(await breaker.canExecute()).toBe(false);
    await store.close();
    client.disconnect();
  });
});

describe("on a cluster", () => {
  let cluster: Cluster;
  let admins: Redis[];
  beforeAll(async () => {
    cluster = await startCluster();
    admins = cluster.nodes.map(({ port }) => quiet(new Redis(port)));
  });
  afterAll(async () => {
    for (const admin of admins) admin.disconnect();
    await cluster.stop();
  });

  test.each(Object.entries(CLUSTER_CLIENTS).filter(([label]) => !/anything/.test(label)))(
    "%s",
    async (label, connect) => {
      const connected = await connect(cluster.nodes.map(({ port }) => port));
      for (const name of ["a", "b", "c"]) await hears(connected, admins, `${label}:${name}:`, name);
      connected.close();
    },
  );
});
