// Every client library, on one server and on a cluster: the whole life of a circuit, the same answers through each.
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Cluster,
  type Server,
  startCluster,
  startSentinel,
  startServer,
} from "../../../tests/support/servers.mjs";
import { CLIENTS, CLUSTER_CLIENTS, type Connected, SENTINEL_CLIENTS } from "./support/clients";
import { boom, fail, ManualClock, succeed } from "./support/time";

/** A name, some of which land on each node of a cluster. */
const NAMES = ["billing", "GET /users/{id}", "}x", "a{b}c", "\u{1f4b3}", "{}", "n".repeat(512)];

/** Trips, refuses, probes, closes, and is controlled by hand; the clock stands where the test puts it. */
async function live(connected: Connected, prefix: string, name: string): Promise<void> {
  const clock = new ManualClock(1_700_000_000_000);
  const store = new RedisStore(connected.client, { prefix, clock: clock.read, timeoutMs: 20_000 });
  const errors: unknown[] = [];
  store.on("storeError", ({ error }) => errors.push(error));
  const breaker = new DistributedCircuitBreaker(name, store, { failureThreshold: 2, openDurationMs: 1000 });

  await expect(breaker.execute(succeed)).resolves.toBe("ok");
  await expect(breaker.execute(fail)).rejects.toBe(boom);
  expect(await breaker.getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 1, openedAt: null });
  await expect(breaker.execute(fail)).rejects.toBe(boom);
  clock.now += 100;
  await expect(breaker.execute(succeed)).rejects.toMatchObject({
    code: "circuit_open",
    state: "open",
    retryAfterMs: 900,
  });
  expect(await breaker.getSnapshot()).toEqual({
    state: "open",
    mode: "auto",
    failuresInWindow: 0,
    callsInWindow: 0,
    consecutiveFailures: 0,
    halfOpenSuccesses: 0,
    halfOpenInFlight: 0,
    openedAt: 1_700_000_000_000,
    remainingOpenMs: 900,
    trips: 1,
    epoch: 1_700_000_000_000,
  });
  clock.now += 900;
  const probe = await breaker.acquire();
  expect(probe.probe).toBe(true);
  await expect(breaker.acquire()).rejects.toMatchObject({ state: "half-open", retryAfterMs: 1000 });
  expect(await probe.recordSuccess()).toBe("applied");
  expect(await breaker.getState()).toBe("closed");
  const closed = await breaker.acquire();
  expect(closed.probe).toBe(false);
  await breaker.forceOpen();
  await expect(breaker.execute(succeed)).rejects.toMatchObject({ state: "open", retryAfterMs: null });
  await breaker.disable();
  await expect(breaker.execute(succeed)).resolves.toBe("ok");
  await breaker.trip({ forMs: 50 });
  expect(await closed.recordFailure()).toBe("stale");
  expect(await breaker.getSnapshot()).toMatchObject({ state: "open", remainingOpenMs: 50 });
  await breaker.reset();
  expect(await breaker.canExecute()).toBe(true);
  expect(errors).toEqual([]);
}

describe("scenario 54: one server", () => {
  let server: Server;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server.stop());

  test.each(Object.entries(CLIENTS))("%s", async (label, connect) => {
    const connected = await connect(server.port);
    for (const name of NAMES) await live(connected, `${label}:`, name);
    connected.close();
  });
});

describe("a master that a sentinel watches", () => {
  let server: Server;
  let sentinel: Server;
  beforeAll(async () => {
    server = await startServer();
    sentinel = await startSentinel(server, "mymaster");
  });
  afterAll(async () => {
    await sentinel.stop();
    await server.stop();
  });

  test.each(Object.entries(SENTINEL_CLIENTS))("%s", async (label, connect) => {
    const connected = await connect(sentinel.port, "mymaster");
    for (const name of NAMES) await live(connected, `${label}:`, name);
    connected.close();
  });
});

describe("a cluster of three masters", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster.stop());

  test.each(Object.entries(CLUSTER_CLIENTS))("%s", async (label, connect) => {
    const connected = await connect(cluster.nodes.map(({ port }) => port));
    await Promise.all(NAMES.map((name) => live(connected, `${label}:`, name)));
    connected.close();
  });
});
