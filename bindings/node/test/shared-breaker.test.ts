// The surface of shared breakers and groups, where it differs from the local one.
import { Redis } from "ioredis";
import * as local from "switchgear";
import { CircuitOpenError, ConfigError, StoreUnavailableError } from "switchgear";
import * as redis from "switchgear/redis";
import { DistributedCircuitBreaker, DistributedCircuitBreakerGroup, RedisStore } from "switchgear/redis";
import { describe, expect, test } from "vitest";
import { runScript } from "./support/child";
import { place } from "./support/stores";
import { boom, Deferred, fail, ManualClock, succeed } from "./support/time";

const here = place();
const clock = new ManualClock(1_700_000_000_000);

function store(): RedisStore {
  return new RedisStore(here.redis, { clock: clock.read, timeoutMs: 10_000 });
}

/** A breaker of a circuit that nobody has used. */
let made = 0;
function fresh(policy?: ConstructorParameters<typeof DistributedCircuitBreaker>[2]): DistributedCircuitBreaker {
  return new DistributedCircuitBreaker(`fresh ${++made}`, store(), policy);
}

describe("construction", () => {
  const unused = { command: async () => null };

  test.each<[object, string, string]>([
    [{ cacheMs: 5 }, "cacheMs", "`cacheMs` is not an option; valid are tripOn, failureThreshold,"],
    [{ openCacheMs: -1 }, "openCacheMs", "must be an integer from 0 to 3155760000000 (milliseconds), got `-1`"],
    [{ closedCacheMs: 0.5 }, "closedCacheMs", "must be an integer from 0 to 3155760000000 (milliseconds), got `0.5`"],
    [{ closedCacheMs: "1" }, "closedCacheMs", "got `'1'`"],
    [{ quorum: 6 }, "quorum", "must be an integer from 1 to 5 (`failureThreshold`), got `6`"],
    [{ quorum: 0 }, "quorum", "got `0`"],
    [{ events: true }, "events", "is not an option"],
    [{ maxKeys: 5 }, "maxKeys", "is not an option"],
    [{ onStoreFailure: "ask" }, "onStoreFailure", "must be 'local', 'fail-open' or 'fail-closed', got `'ask'`"],
    [{ onStoreFailure: true }, "onStoreFailure", "got `true`"],
    [
      { idleTtlMs: 1000 },
      "idleTtlMs",
      "must be at least 120000 (twice the longest duration of this breaker plus 60000)",
    ],
    [{ failureThreshold: 0 }, "failureThreshold", "must be an integer from 1 to 1000000, got `0`"],
    [{ failureRate: 0.5 }, "failureRate", "needs tripOn: 'rate'"],
  ])("%j is refused before any I/O", (policy, field, message) => {
    const make = () => new DistributedCircuitBreaker("c", new RedisStore(unused), policy);
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(message);
    expect(make).toThrow(expect.objectContaining({ field }));
  });

  test.each<[unknown]>([[undefined], [null], [{}], ["redis://u:s3cret@h"], [unused]])("%j is no store", (given) => {
    const make = () => new DistributedCircuitBreaker("c", given as RedisStore);
    expect(make).toThrow(expect.objectContaining({ code: "config_invalid", field: "store" }));
    expect(make).toThrow(/^`store` must be a RedisStore \(new RedisStore\(client\)\), got `(?!.*s3cret)/);
  });

  test("the entries share their error classes, and what is local stays out of `switchgear/redis`", () => {
    const { ConfigError, NameError, TimeError, CircuitOpenError, StoreError, StoreUnavailableError } = local;
    expect(redis).toMatchObject({
      ConfigError,
      NameError,
      TimeError,
      CircuitOpenError,
      StoreError,
      StoreUnavailableError,
    });
    expect(Object.keys(redis)).not.toContain("CircuitBreaker");
    expect(DistributedCircuitBreaker.prototype).not.toHaveProperty("executeSync");
  });
});

describe("calls", () => {
  test.each([[undefined], [null], [5], ["fn"]])("%j is no function to guard", async (fn) => {
    await expect(fresh().execute(fn as unknown as () => void)).rejects.toThrow(TypeError);
    expect(() => fresh().guard(fn as unknown as () => void)).toThrow(TypeError);
  });

  test.each([
    [{ fallback: 5 }],
    [{ fallbackOn: "always" }],
    [{ signal: {} }],
    [{ timeoutMs: -1 }],
    [{ retries: 3 }],
    [5],
  ])("%j are no options of a call, and nothing is run", async (options) => {
    let ran = 0;
    await expect(fresh().execute(() => (ran += 1), options as object)).rejects.toMatchObject({
      code: "config_invalid",
    });
    expect(ran).toBe(0);
  });

  test("guard keeps name, length, `this` and arguments, and hands them to the fallback", async () => {
    const breaker = fresh({ failureThreshold: 1 });
    class Client {
      base = 40;
      async add(n: number): Promise<number> {
        return this.base + n;
      }
    }
    const guarded = breaker.guard(Client.prototype.add, {
      fallback: (error, n) => (error instanceof CircuitOpenError ? -n : 0),
    });
    expect([guarded.name, guarded.length]).toEqual(["add", 1]);
    expect(await Reflect.apply(guarded, new Client(), [2])).toBe(42);
    await breaker.trip();
    expect(await guarded(7)).toBe(-7);
    const sync = fresh().guard((n: number) => n + 1);
    expect(await sync(1)).toBe(2);
  });

  test("an async generator is guarded from its first step to its end, a sync one is refused", async () => {
    const breaker = fresh({ failureThreshold: 2 });
    const stream = breaker.guard(async function* (n: number) {
      yield n;
      throw boom;
    });
    const seen: number[] = [];
    const read = async () => {
      for await (const n of stream(1)) seen.push(n);
    };
    await expect(read()).rejects.toBe(boom);
    await expect(read()).rejects.toBe(boom);
    await expect(read()).rejects.toBeInstanceOf(CircuitOpenError);
    expect(seen).toEqual([1, 1]);
    expect(() => breaker.guard(function* () {})).toThrow(/cannot guard a sync generator: use an async one/);
  });

  test.each([[{ forMs: 0 }], [{ forMs: "1" }], [{ forMs: Number.NaN }], [{ ms: 5 }], [5]])(
    "trip(%j) is refused",
    async (options) => {
      const breaker = fresh();
      await expect(breaker.trip(options as object)).rejects.toMatchObject({ code: "config_invalid" });
      expect(await breaker.getState()).toBe("closed");
    },
  );

  test("a success of `consecutive` and `rate` is told, so that rows end and rates hold", async () => {
    const row = fresh({ tripOn: "consecutive", failureThreshold: 2 });
    await row.execute(fail).catch(() => undefined);
    await row.execute(succeed);
    await row.execute(fail).catch(() => undefined);
    expect(await row.getSnapshot()).toMatchObject({ state: "closed", consecutiveFailures: 1 });
    const rate = fresh({ tripOn: "rate", minimumCalls: 4, failureRate: 0.5 });
    for (const run of [succeed, succeed, fail]) await rate.execute(run).catch(() => undefined);
    expect(await rate.getSnapshot()).toMatchObject({ callsInWindow: 3, failuresInWindow: 1 });
    await rate.execute(fail).catch(() => undefined);
    expect(await rate.getState()).toBe("open");
  });

  test("a policy's clock replaces the store's for its circuit", async () => {
    const own = new ManualClock(5000);
    const breaker = fresh({ clock: own.read, failureThreshold: 1, openDurationMs: 1000 });
    await breaker.recordFailure();
    expect((await breaker.getSnapshot()).openedAt).toBe(5000);
    own.now = 6000;
    expect(await breaker.canExecute()).toBe(true);
  });
});

describe("round trips", () => {
  const sent: string[] = [];
  /** The client, with each of its commands written down. */
  function counted(): RedisStore {
    const call = (name: string, ...args: string[]) => {
      sent.push(name.toUpperCase());
      return here.redis.call(name, ...args);
    };
    const client = Object.create(here.redis, { call: { value: call } });
    return new RedisStore(client, { clock: clock.read, timeoutMs: 10_000 });
  }

  async function commands(what: () => Promise<unknown>): Promise<string[]> {
    sent.length = 0;
    await what();
    return [...sent];
  }

  test("an admission is one, none while the circuit is known to be open, two around a half-open period, refused or not; a success none while closed, a failure and a probe's end one", async () => {
    // The scripts are loaded first, by another circuit that goes through all of them.
    const policy = { failureThreshold: 2, openDurationMs: 1000 };
    const warm = fresh(policy);
    await warm.trip();
    clock.now += 1000;
    await warm.execute(succeed);
    await warm.recordFailure();

    const breaker = new DistributedCircuitBreaker("counted", counted(), policy);
    const failing = () => breaker.execute(fail).catch(() => undefined);
    expect(await commands(() => breaker.execute(succeed))).toEqual(["HMGET"]);
    expect(await commands(failing)).toEqual(["HMGET", "EVALSHA"]);
    expect(await commands(failing)).toEqual(["HMGET", "EVALSHA"]);
    expect(await commands(failing)).toEqual([]);
    clock.now += 1000;
    const running = new Deferred<void>();
    const ended = new Deferred();
    const probing = commands(() =>
      breaker.execute(() => {
        running.resolve();
        return ended.promise;
      }),
    );
    await running.promise;
    // Meets the half-open period whose one slot is taken.
    const met = sent.length;
    await expect(breaker.execute(succeed)).rejects.toMatchObject({ code: "circuit_open", state: "half-open" });
    expect(sent.splice(met)).toEqual(["HMGET", "EVALSHA"]);
    ended.resolve("ok");
    expect(await probing).toEqual(["HMGET", "EVALSHA", "EVALSHA"]);
    expect(await breaker.getState()).toBe("closed");
  });
});

describe("groups", () => {
  test("keys have circuits of their own, shared by whoever asks for them", async () => {
    const here1 = new DistributedCircuitBreakerGroup("hosts", store(), { failureThreshold: 1 });
    const there = new DistributedCircuitBreakerGroup("hosts", store(), { failureThreshold: 1 });
    const changes: string[] = [];
    here1.on("stateChange", ({ circuit }) => changes.push(circuit));
    expect(here1.for("a")).toBe(here1.for("a"));
    expect(here1.for("a").name).toBe("hosts:a");
    await here1.for("a").recordFailure();
    expect(await there.for("a").canExecute()).toBe(false);
    expect(await there.for("b").canExecute()).toBe(true);
    expect(changes).toEqual(["hosts:a"]);
    expect([...here1].map(({ name }) => name)).toEqual(["hosts:a"]);
  });

  test("what goes is the object alone, closed ones first; a key that comes back finds its circuit", async () => {
    const group = new DistributedCircuitBreakerGroup("small", store(), { failureThreshold: 1, maxKeys: 2 });
    const open = group.for("open");
    await open.recordFailure();
    group.for("one");
    for (let i = 0; i < 10; i++) group.for(`other ${i}`);
    expect(group.size).toBe(2);
    expect(group.for("open")).toBe(open);
    expect(group.delete("open")).toBe(true);
    expect(group.delete("open")).toBe(false);
    expect(group.for("open")).not.toBe(open);
    expect(await group.for("open").getState()).toBe("open");
  });

  test("bad names, keys and options are refused", () => {
    expect(() => new DistributedCircuitBreakerGroup("", store())).toThrow(
      expect.objectContaining({ code: "name_invalid" }),
    );
    expect(() => new DistributedCircuitBreakerGroup("g", {} as RedisStore)).toThrow(
      expect.objectContaining({ field: "store" }),
    );
    expect(() => new DistributedCircuitBreakerGroup("g", store(), { maxKeys: 0 })).toThrow(
      expect.objectContaining({ field: "maxKeys" }),
    );
    const group = new DistributedCircuitBreakerGroup("g", store());
    expect(() => group.for("a\nb")).toThrow(expect.objectContaining({ code: "name_invalid" }));
    expect(() => group.for("k".repeat(512))).toThrow(expect.objectContaining({ code: "name_invalid" }));
    const noText = { code: "name_invalid", message: "`key` must be a string, got `7`" };
    expect(() => group.for(7 as unknown as string)).toThrow(expect.objectContaining(noText));
    expect(() => new local.CircuitBreakerGroup().for(7 as unknown as string)).toThrow(expect.objectContaining(noText));
    expect(group.size).toBe(0);
  });
});

describe("the life of a process", () => {
  test("scenario 41: it ends by itself when its own client has ended", async () => {
    const ran = await runScript(`
      import { Redis } from "ioredis";
      import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
      const redis = new Redis(${here.server.port});
      const store = new RedisStore(redis, { timeoutMs: 60_000 });
      const breaker = new DistributedCircuitBreaker("ending", store, { onStoreFailure: "fail-closed" });
      await breaker.execute(async () => "ok");
      await breaker.recordFailure();
      redis.disconnect();
      console.log(await breaker.getState().catch((error) => error.code));
    `);
    expect(ran).toEqual({ code: 0, stdout: "store_unavailable\n", stderr: "" });
  });

  test("the heap is flat over a million calls, let through or refused", async () => {
    const ran = await runScript(
      `
      import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
      const closed = Promise.resolve([null, null, "7", null, null]);
      const open = Promise.resolve(["open", null, "7", "1700000000000", "30000"]);
      const clock = () => 1700000000000;
      const through = new DistributedCircuitBreaker("a", new RedisStore({ command: () => closed }, { clock }));
      const refused = new DistributedCircuitBreaker("b", new RedisStore({ command: () => open }, { clock }));
      const used = () => {
        gc();
        return process.memoryUsage().heapUsed;
      };
      const call = async () => {
        await through.execute(() => 1);
        await refused.execute(() => 1).catch(() => undefined);
      };
      let before;
      for (let n = 1; n <= 500_000; n++) {
        await call();
        if (n === 100_000) before = used();
      }
      console.log(used() - before);
      `,
      ["--expose-gc"],
    );
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(Number(ran.stdout)).toBeLessThan(1_000_000);
  });
});

test("what a store's outage leaves behind is a refusal like any other for HTTP frameworks", async () => {
  const gone = new Redis({ lazyConnect: true });
  gone.disconnect();
  const breaker = new DistributedCircuitBreaker("http", new RedisStore(gone), { onStoreFailure: "fail-closed" });
  const error = await breaker.execute(succeed).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(StoreUnavailableError);
  expect(error).toMatchObject({ status: 503, statusCode: 503, circuit: "http", retryable: false, expose: false });
  expect(error.message).toBe("the store of circuit `http` did not answer: Connection is closed.");
});
