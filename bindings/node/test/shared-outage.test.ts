// An outage of the store: this process decides by itself, nobody waits, and everybody hears of it once.
import { Redis } from "ioredis";
import { DistributedCircuitBreaker, RedisStore, type StoreEvent } from "switchgear/redis";
import { afterEach, describe, expect, test, vi } from "vitest";
import { startServer } from "../../../tests/support/servers.mjs";
import { eventsOf, LIMIT, lazily, PATIENT } from "./support/failing-store";
import { intercepting, quiet } from "./support/stores";
import { boom, fail, ManualClock, succeed } from "./support/time";
import { changesOf } from "./support/world";

/** What a store says of its health, in order. */
function healthOf(store: RedisStore): [what: string, event: StoreEvent][] {
  const told: [string, StoreEvent][] = [];
  store.on("degraded", (event) => told.push(["degraded", event]));
  store.on("restored", (event) => told.push(["restored", event]));
  return told;
}

/** What becomes of so many calls: how many end so. */
async function ends(n: number, call: () => Promise<unknown>): Promise<Record<string, number>> {
  const seen: Record<string, number> = {};
  for (let i = 0; i < n; i++) {
    const end = await call().then(String, (error) => error.code);
    seen[end] = (seen[end] ?? 0) + 1;
  }
  return seen;
}

describe("a store that is gone", () => {
  test("scenario 48: the local breaker trips, callers see their own errors, and the store comes back by itself", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const server = await startServer();
    const redis = quiet(new Redis(server.port, { retryStrategy: () => 5, maxRetriesPerRequest: 0 }));
    const store = new RedisStore(redis, { clock: clock.read, timeoutMs: PATIENT });
    const told = healthOf(store);
    const breaker = new DistributedCircuitBreaker("killed", store, { failureThreshold: 5, openDurationMs: 1000 });
    const changes = changesOf(breaker);
    expect(await breaker.execute(succeed)).toBe("ok");
    await server.stop();

    expect(await ends(100, () => breaker.execute(fail))).toEqual({ [boom.code]: 5, circuit_open: 95 });
    expect(told).toMatchObject([["degraded", { error: { code: "store_error" }, at: clock.now }]]);
    expect(told[0]?.[1]).not.toHaveProperty("circuit");
    expect(changes).toMatchObject([{ fromState: "closed", toState: "open", reason: "threshold", source: "local" }]);
    expect(await breaker.getSnapshot()).toMatchObject({ state: "open", remainingOpenMs: 1000 });
    await expect(breaker.reset()).rejects.toMatchObject({ code: "store_unavailable" });

    const again = await startServer({ port: server.port });
    await vi.waitUntil(() => redis.status === "ready", { timeout: LIMIT });
    // Its own probe, not the store's: that is asked by nobody before a second is over.
    clock.now += 1000;
    expect(await breaker.execute(succeed)).toBe("ok");
    await vi.waitUntil(
      async () => {
        clock.now += 1000;
        await breaker.execute(succeed);
        return told.length > 1;
      },
      { timeout: LIMIT, interval: 5 },
    );
    // A restart takes more than one probe, for reading and for writing are looked at one by one; it is said once.
    for (let n = 0; n < 5; n++) {
      clock.now += 1000;
      await breaker.execute(succeed);
    }
    expect(told.map(([what]) => what)).toEqual(["degraded", "restored"]);
    expect(changes.at(-1)).toMatchObject({ fromState: "half-open", toState: "closed" });
    await breaker.recordFailure();
    expect((await breaker.getSnapshot()).failuresInWindow).toBe(1);
    redis.disconnect();
    await again.stop();
  });

  test("what the store had said before is remembered: a known opening goes on", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const server = await startServer();
    const redis = quiet(new Redis(server.port, { maxRetriesPerRequest: 0 }));
    const store = new RedisStore(redis, { clock: clock.read, timeoutMs: PATIENT });
    const policy = { openDurationMs: 5000, openCacheMs: 0 };
    const breaker = new DistributedCircuitBreaker("remembered", store, policy);
    const told = healthOf(store);
    await breaker.trip();
    await server.stop();
    clock.now += 1000;
    expect(await ends(5, () => breaker.execute(succeed))).toEqual({ circuit_open: 5 });
    expect(told).toHaveLength(1);
    clock.now += 4000;
    expect(await breaker.execute(succeed)).toBe("ok");
    redis.disconnect();
  });

  test.each([
    ["fail-open", { ok: 20 }],
    ["fail-closed", { store_unavailable: 20 }],
    ["local", { ok: 20 }],
  ] as const)("under %s each of 20 calls is answered so, by three commands", async (onStoreFailure, expected) => {
    const clock = new ManualClock(1_700_000_000_000);
    let commands = 0;
    const command = async () => {
      commands += 1;
      throw new Error("gone");
    };
    const store = new RedisStore({ command }, { clock: clock.read });
    const told = healthOf(store);
    const breaker = new DistributedCircuitBreaker("answers", store, { onStoreFailure });
    expect(await ends(20, () => breaker.execute(succeed))).toEqual(expected);
    expect(commands).toBe(3);
    expect(told).toMatchObject([["degraded", { error: { message: "gone" } }]]);
    // Once a second a command of the engine's own looks whether it is back; no caller waits for that.
    clock.now += 1000;
    expect(await ends(5, () => breaker.execute(succeed))).toEqual({ [Object.keys(expected)[0] as string]: 5 });
    expect(commands).toBe(4);
  });

  test("the store's trouble with one circuit is that circuit's alone", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const server = await startServer();
    const redis = quiet(new Redis(server.port));
    const store = new RedisStore(redis, { clock: clock.read, timeoutMs: PATIENT });
    const told = healthOf(store);
    await redis.set("{cb:taken}", "text");
    const taken = new DistributedCircuitBreaker("taken", store);
    expect(await ends(10, () => taken.execute(succeed))).toEqual({ ok: 10 });
    expect(told).toMatchObject([["degraded", { circuit: "taken", error: { message: /^WRONGTYPE/ } }]]);
    const free = new DistributedCircuitBreaker("free", store, { failureThreshold: 1 });
    await free.execute(fail).catch(() => undefined);
    expect(await redis.hget("{cb:free}", "state")).toBe("open");
    await redis.del("{cb:taken}");
    clock.now += 1000;
    await taken.execute(succeed);
    await vi.waitUntil(() => told.length > 1, { timeout: LIMIT });
    expect(told[1]).toMatchObject(["restored", { circuit: "taken" }]);
    redis.disconnect();
    await server.stop();
  });

  test("failures that the store did not take hold, whatever it says when it is back", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    let gone = false;
    const server = await startServer();
    const redis = quiet(new Redis(server.port));
    const client = intercepting(
      () => redis,
      (args, through) => (gone && args[0] !== "HMGET" ? Promise.reject(new Error("gone")) : through(args)),
    );
    const store = new RedisStore(client, { clock: clock.read, timeoutMs: PATIENT });
    const breaker = new DistributedCircuitBreaker("untold", store, { failureThreshold: 2, openDurationMs: 1000 });
    const permits = [await breaker.acquire(), await breaker.acquire()];
    gone = true;
    for (const permit of permits) expect(await permit.recordFailure(boom)).toBe("applied");
    gone = false;
    await expect(breaker.execute(succeed)).rejects.toMatchObject({ code: "circuit_open", retryAfterMs: 1000 });
    expect(await redis.exists("{cb:untold}")).toBe(0);
    clock.now += 1000;
    expect(await breaker.execute(succeed)).toBe("ok");
    expect(await breaker.canExecute()).toBe(true);
    redis.disconnect();
    await server.stop();
  });
});

describe("a store that hangs", () => {
  const { server, redis } = lazily();

  test("scenario 49: three deadlines are waited for, then none; the event loop goes on", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const sent: string[] = [];
    const call = (name: string, ...args: string[]) => {
      sent.push(name.toUpperCase());
      return redis().call(name, ...args);
    };
    const client = Object.create(redis(), { call: { value: call } });
    const store = new RedisStore(client, { clock: clock.read, timeoutMs: 30 });
    const told = healthOf(store);
    const events = eventsOf(store);
    const breaker = new DistributedCircuitBreaker("hanging", store, { failureThreshold: 4 });
    await redis().ping();
    server().pause();
    let ticks = 0;
    const ticking = setInterval(() => (ticks += 1), 1);
    expect(await ends(50, () => breaker.execute(succeed))).toEqual({ ok: 50 });
    clearInterval(ticking);
    expect(ticks).toBeGreaterThan(0);
    expect(sent).toEqual(["HMGET", "HMGET", "HMGET"]);
    expect(told).toMatchObject([["degraded", { error: { message: "no answer within 30 ms" } }]]);
    expect(events).toHaveLength(3);
    expect(await ends(10, () => breaker.execute(fail))).toEqual({ [boom.code]: 4, circuit_open: 6 });
    expect(sent).toHaveLength(3);
    server().resume();
    await redis().ping();
  });
});

describe("where nobody listens", () => {
  const warnings: string[] = [];
  const heard = (warning: Error & { code?: string }) => {
    // What else Node warns of is its own affair.
    if (warning.code?.startsWith("switchgear")) warnings.push(`${warning.code}: ${warning.message}`);
  };
  afterEach(() => {
    process.off("warning", heard);
  });

  test("an outage and its end are a process warning each", async () => {
    process.on("warning", heard);
    const clock = new ManualClock(1_700_000_000_000);
    let gone = true;
    const command = async () => {
      if (gone) throw new Error("gone to redis://user:s3cret@host");
      return [null, null, null, null, null];
    };
    const breaker = new DistributedCircuitBreaker("silent", new RedisStore({ command }, { clock: clock.read }));
    expect(await ends(20, () => breaker.execute(succeed))).toEqual({ ok: 20 });
    gone = false;
    clock.now += 1000;
    await breaker.execute(succeed);
    await vi.waitUntil(() => warnings.length === 2, { timeout: LIMIT });
    expect(warnings).toEqual([
      "switchgear_degraded: the store does not answer and is not asked for now: gone to redis://***@host",
      "switchgear_restored: the store is asked again",
    ]);
  });
});
