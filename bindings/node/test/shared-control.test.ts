// Steering from anywhere: without a breaker, for the whole fleet, announced like any other control.
import { ConfigError, NameError, type StateChange, TimeError } from "switchgear";
import { type CircuitControl, DistributedCircuitBreaker, RedisStore, type RedisStoreOptions } from "switchgear/redis";
import { describe, expect, test, vi } from "vitest";
import { CLIENTS } from "./support/clients";
import { lazily, PATIENT, reason } from "./support/failing-store";
import { intercepting } from "./support/stores";
import { fail, ManualClock, succeed } from "./support/time";
import { changesOf } from "./support/world";

const { server, redis } = lazily();
const clock = new ManualClock(1_700_000_000_000);

function storeOf(client: object = redis(), options?: RedisStoreOptions): RedisStore {
  return new RedisStore(client, { clock: clock.read, timeoutMs: PATIENT, ...options });
}

/** A breaker that asks each time. */
function breakerOf(name: string, policy?: object): DistributedCircuitBreaker {
  return new DistributedCircuitBreaker(name, storeOf(), { openCacheMs: 0, ...policy });
}

describe("steering", () => {
  test.each(Object.entries(CLIENTS))("holds for every breaker of the circuit: %s", async (label, connect) => {
    const connected = await connect(server().port);
    const name = `GET /users/{id} ${label}`;
    const breaker = breakerOf(name);
    const control = storeOf(connected.client).control(name);
    expect(control.name).toBe(name);
    expect(await control.getState()).toBe("closed");
    await control.trip({ forMs: 700 });
    await expect(breaker.execute(succeed)).rejects.toMatchObject({ code: "circuit_open", retryAfterMs: 700 });
    expect(await control.getSnapshot()).toEqual(await breaker.getSnapshot());
    await control.forceOpen();
    await expect(breaker.execute(succeed)).rejects.toMatchObject({ state: "open", retryAfterMs: null });
    await control.disable();
    await expect(breaker.execute(fail)).rejects.toThrow("no answer");
    expect(await control.getSnapshot()).toMatchObject({ state: "closed", mode: "disabled" });
    await control.reset();
    expect(await breaker.execute(succeed)).toBe("ok");
    expect(await breaker.getSnapshot()).toMatchObject({ state: "closed", mode: "auto", trips: 0 });
    connected.close();
  });

  test("asks nothing and changes nothing before it is used; a circuit that nobody knows may be steered", async () => {
    const sent: string[] = [];
    const client = intercepting(redis, (args, through) => {
      sent.push(args[0] ?? "");
      return through(args);
    });
    const control = storeOf(client).control("unheard of");
    expect(sent).toEqual([]);
    await control.forceOpen();
    expect(await breakerOf("unheard of").canExecute()).toBe(false);
  });

  test("a trip lasts as the policy says that was given, and 30 s without one", async () => {
    const store = storeOf();
    const remaining = async (control: CircuitControl) => {
      await control.trip();
      return (await control.getSnapshot()).remainingOpenMs;
    };
    expect(await remaining(store.control("long"))).toBe(30_000);
    await store.control("long").reset();
    const backingOff = store.control("long", { openDurationMs: 1000, openBackoff: 2 });
    expect([await remaining(backingOff), await remaining(backingOff)]).toEqual([1000, 2000]);
  });

  test.each([
    ["rolling", { failureThreshold: 4, quorum: 2 }],
    ["consecutive", { failureThreshold: 4, quorum: 2 }],
    ["rate", { minimumCalls: 4, failureRate: 1, quorum: 2 }],
  ] as const)("a circuit is reset whole, whatever it counts by: %s", async (tripOn, policy) => {
    const name = `whole ${tripOn}`;
    const pods = ["pod-1", "pod-2"].map(
      (instance) => new DistributedCircuitBreaker(name, storeOf(redis(), { instance }), { tripOn, ...policy }),
    );
    const failing = async (n: number) => {
      for (let at = 0; at < n; at++) await pods[at % 2]?.recordFailure();
      return pods[0]?.getSnapshot();
    };
    expect(await failing(3)).toMatchObject({ state: "closed" });
    await storeOf().control(name).reset();
    const fresh = { failuresInWindow: 0, callsInWindow: 0, consecutiveFailures: 0 };
    expect(await pods[0]?.getSnapshot()).toMatchObject({ state: "closed", ...fresh });
    expect(await failing(3)).toMatchObject({ state: "closed" });
    expect(await failing(4)).toMatchObject({ state: "open" });
  });
});

test("each operation is announced, by the instance of the store, also to breakers of this process", async () => {
  const ears = storeOf(redis(), { instance: "ears", events: true });
  const breaker = new DistributedCircuitBreaker("announced", ears, { closedCacheMs: 60_000 });
  const changes: StateChange[] = changesOf(breaker);
  const subscribers = async () => Number(((await redis().pubsub("NUMSUB", "cb:events")) as unknown[])[1]);
  await vi.waitUntil(async () => (await subscribers()) > 0, { timeout: PATIENT, interval: 10 });
  expect(await breaker.canExecute()).toBe(true);
  const control = storeOf(redis(), { instance: "the console" }).control("announced");
  await control.trip({ forMs: 700 });
  await control.reset();
  await control.forceOpen();
  await control.disable();
  await vi.waitUntil(() => changes.length >= 4, { timeout: PATIENT, interval: 5 });
  expect(changes.map(({ toState, openMs }) => [toState, openMs])).toEqual([
    ["open", 700],
    ["closed", null],
    ["open", null],
    ["closed", null],
  ]);
  for (const change of changes)
    expect(change).toMatchObject({ circuit: "announced", reason: "manual", source: "remote", instance: "the console" });
  await ears.close();
});

describe("input", () => {
  test("names are checked as those of breakers", () => {
    const store = storeOf();
    for (const name of ["", "a\nb", "n".repeat(513), "\ud800", 7, undefined, null])
      expect(() => store.control(name as string)).toThrow(NameError);
    expect(store.control("n".repeat(512)).name).toHaveLength(512);
  });

  test("so are the policy and how long a trip lasts, before anything is sent", async () => {
    const store = storeOf();
    expect(() => store.control("c", { openDurationMs: 0 })).toThrow(
      expect.objectContaining({ code: "config_invalid", field: "openDurationMs" }),
    );
    expect(() => store.control("c", { failureRate: 0.5 })).toThrow(ConfigError);
    expect(() => store.control("c", { onStoreFailure: "ajar" as "local" })).toThrow(ConfigError);
    expect(() => store.control("c", { clock: () => -1 })).toThrow(TimeError);
    const control = store.control("never tripped");
    for (const forMs of [0, -1, 1.5, Number.NaN, "5", null]) {
      await expect(control.trip({ forMs: forMs as number })).rejects.toMatchObject({
        code: "config_invalid",
        field: "forMs",
      });
    }
    await expect(control.trip({ forMS: 5 } as object)).rejects.toBeInstanceOf(ConfigError);
    await expect(control.trip(5 as never)).rejects.toBeInstanceOf(ConfigError);
    expect(await control.getSnapshot()).toMatchObject({ state: "closed", epoch: 0 });
  });
});

test("a store that is away is an error every time, and never an answer of this process", async () => {
  const away = intercepting(redis, () => Promise.reject(new Error("away")));
  const control = storeOf(away).control("lost", { onStoreFailure: "local" });
  const operations = ["reset", "trip", "forceOpen", "disable", "getState", "getSnapshot"] as const;
  // More often than it takes for the store not to be asked by calls any more.
  for (let n = 0; n < 3; n++)
    for (const operation of operations) expect(await reason(control[operation]())).toBe("away");
  await expect(control.reset()).rejects.toMatchObject({ circuit: "lost" });
});

test("a store that hangs is waited for as long as its `timeoutMs` says", async () => {
  const control = storeOf(redis(), { timeoutMs: 300 }).control("hangs");
  server().pause();
  expect(await reason(control.forceOpen())).toBe("no answer within 300 ms");
});
