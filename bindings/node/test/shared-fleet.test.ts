// What several processes, breakers and threads on one store must agree on.
import { Redis } from "ioredis";
import { CircuitBreaker, NameError } from "switchgear";
import { DistributedCircuitBreaker, DistributedCircuitBreakerGroup, RedisStore } from "switchgear/redis";
import { describe, expect, test } from "vitest";
import { runScript } from "./support/child";
import { intercepting, place } from "./support/stores";
import { boom, fail, ManualClock, succeed } from "./support/time";

const here = place();
const PATIENT = 10_000;

function storeOf(clock: ManualClock): RedisStore {
  return new RedisStore(here.redis, { clock: clock.read, timeoutMs: PATIENT });
}

/** The keys of a circuit that exist, with what is left of their time in milliseconds. */
async function lifetimes(name: string): Promise<Record<string, number>> {
  const keys = [`{cb:${name}}`, `{cb:${name}}:f`, `{cb:${name}}:p`, `{cb:${name}}:r`];
  const left: Record<string, number> = {};
  for (const key of keys) {
    const ms = await here.redis.pttl(key);
    if (ms !== -2) left[key] = ms;
  }
  return left;
}

describe("one circuit, many users", () => {
  test("scenario 07: 64 admissions at the reopening time from 8 processes are exactly halfOpenMaxCalls", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const policy = { halfOpenMaxCalls: 5, successThreshold: 5, openDurationMs: 1000 };
    await new DistributedCircuitBreaker("eight", storeOf(clock), policy).trip();
    const child = `
      import { Redis } from "ioredis";
      import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
      const redis = new Redis(${here.server.port});
      const store = new RedisStore(redis, { clock: () => ${clock.now + 1000}, timeoutMs: ${PATIENT} });
      const breaker = new DistributedCircuitBreaker("eight", store, ${JSON.stringify(policy)});
      await redis.incr("ready");
      await redis.brpop("go", 0);
      const answers = await Promise.all(Array.from({ length: 8 }, () => breaker.canExecute()));
      console.log(answers.filter(Boolean).length);
      redis.disconnect();
    `;
    const children = Array.from({ length: 8 }, () => runScript(child));
    while ((await here.redis.get("ready")) !== "8") await new Promise((resolve) => setTimeout(resolve, 10));
    await here.redis.lpush("go", ...Array(8).fill("go"));
    const ran = await Promise.all(children);
    expect(ran.map(({ code, stderr }) => [code, stderr])).toEqual(Array(8).fill([0, ""]));
    const admitted = ran.map(({ stdout }) => Number(stdout));
    expect(admitted.reduce((sum, n) => sum + n, 0)).toBe(5);
  });

  test("scenario 45: of 32 workers that see OPEN none moves openedAt, and the first probe comes at its time", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const zero = clock.now;
    const workers = Array.from(
      { length: 32 },
      () => new DistributedCircuitBreaker("herd", storeOf(clock), { failureThreshold: 1, openDurationMs: 60_000 }),
    );
    await expect(workers[0]?.execute(fail)).rejects.toBe(boom);
    for (const [index, worker] of workers.entries()) {
      clock.now = zero + 1000 * (index + 1);
      await expect(worker.execute(succeed)).rejects.toMatchObject({ retryAfterMs: 60_000 - 1000 * (index + 1) });
      expect((await worker.getSnapshot()).openedAt).toBe(zero);
    }
    clock.now = zero + 59_999;
    expect(await Promise.all(workers.map((worker) => worker.canExecute()))).toEqual(Array(32).fill(false));
    clock.now = zero + 60_000;
    const admitted = await Promise.all(workers.map((worker) => worker.canExecute()));
    expect(admitted.filter(Boolean)).toHaveLength(1);
  });

  test("scenario 46: making a store, a breaker or a group asks nothing and changes nothing", async () => {
    const sent: string[][] = [];
    const client = intercepting(
      () => here.redis,
      (args, through) => {
        sent.push(args);
        return through(args);
      },
    );
    const clock = new ManualClock(1_700_000_000_000);
    const breaker = new DistributedCircuitBreaker("made", storeOf(clock), { failureThreshold: 1 });
    await breaker.recordFailure();
    const before = await breaker.getSnapshot();
    for (const openDurationMs of [1, 1000, 100_000]) {
      const store = new RedisStore(client, { clock: clock.read });
      new DistributedCircuitBreaker("made", store, { openDurationMs });
      new DistributedCircuitBreakerGroup("group", store, { openDurationMs }).for("key");
    }
    expect(await breaker.getSnapshot()).toEqual(before);
    // After that round trip: what was put off would have been sent by now.
    expect(sent).toEqual([]);
  });

  test("scenario 57: the open duration of whoever trips counts for all", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const short = new DistributedCircuitBreaker("two", storeOf(clock), { failureThreshold: 1, openDurationMs: 1000 });
    const long = new DistributedCircuitBreaker("two", storeOf(clock), { failureThreshold: 1, openDurationMs: 9000 });
    await long.recordFailure();
    clock.now += 1000;
    await expect(short.execute(succeed)).rejects.toMatchObject({ retryAfterMs: 8000 });
    clock.now += 8000;
    expect(await short.execute(succeed)).toBe("ok");
    await short.recordFailure();
    await expect(long.execute(succeed)).rejects.toMatchObject({ retryAfterMs: 1000 });
  });

  test("a half-open period runs by the configuration of who began it, and the others are told once", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const ours = storeOf(clock);
    const theirs = storeOf(clock);
    const mismatches: unknown[] = [];
    theirs.on("configMismatch", (event) => mismatches.push(event));
    ours.on("configMismatch", () => mismatches.push("ours"));
    const one = new DistributedCircuitBreaker("config", ours, { openDurationMs: 1000 });
    const three = new DistributedCircuitBreaker("config", theirs, { openDurationMs: 1000, halfOpenMaxCalls: 3 });
    await one.trip();
    clock.now += 1000;
    expect(await one.canExecute()).toBe(true);
    for (let i = 0; i < 3; i++) expect(await three.canExecute()).toBe(false);
    expect(mismatches).toEqual([{ at: clock.now, circuit: "config" }]);
  });

  test("scenario 58: two failures of one time both count, and a command sent twice counts once", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const twice = intercepting(
      () => here.redis,
      async (args, through) => {
        await through(args);
        return through(args);
      },
    );
    const store = new RedisStore(twice, { clock: clock.read, timeoutMs: PATIENT });
    const policy = { failureThreshold: 10, openDurationMs: 1000, halfOpenMaxCalls: 2, successThreshold: 2 };
    const echo = new DistributedCircuitBreaker("twice", store, policy);
    const plain = new DistributedCircuitBreaker("twice", storeOf(clock), policy);
    const failures = Array.from({ length: 3 }, () => echo.execute(fail).catch((error) => error));
    expect(await Promise.all(failures)).toEqual([boom, boom, boom]);
    await plain.recordFailure();
    await echo.recordFailure();
    expect((await plain.getSnapshot()).failuresInWindow).toBe(5);
    await plain.trip();
    clock.now += 1000;
    const probe = await echo.acquire();
    expect((await plain.getSnapshot()).halfOpenInFlight).toBe(1);
    await probe.recordSuccess();
    expect(await plain.getSnapshot()).toMatchObject({ state: "half-open", halfOpenSuccesses: 1 });
  });

  test("breakers of one name in one process, and in worker threads, give their calls different ids", async () => {
    const port = here.server.port;
    const ran = await runScript(`
      import { Worker } from "node:worker_threads";
      const body = \`
        const { Redis } = require("ioredis");
        const { DistributedCircuitBreaker, RedisStore } = require("switchgear/redis");
        (async () => {
          const redis = new Redis(${port});
          const store = new RedisStore(redis, { clock: () => 1700000000000, timeoutMs: ${PATIENT} });
          for (let i = 0; i < 3; i++) await new DistributedCircuitBreaker("ids", store, { failureThreshold: 1000 }).recordFailure();
          redis.disconnect();
        })();
      \`;
      const workers = [1, 2, 3].map(() => new Worker(body, { eval: true, execArgv: [] }));
      await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once("exit", resolve))));
    `);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    const ids = await here.redis.zrange("{cb:ids}:f", "0", "-1");
    expect(ids).toHaveLength(9);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{29}$/);
    expect(new Set(ids.map((id) => id.slice(0, 16))).size).toBe(9);
  });

  test("transitions name the instance that made them, and only it tells of them", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const named = new RedisStore(here.redis, { clock: clock.read, timeoutMs: PATIENT, instance: "pod-7" });
    const ours = new DistributedCircuitBreaker("named", named, { failureThreshold: 1 });
    const other = new DistributedCircuitBreaker("named", storeOf(clock), { failureThreshold: 1 });
    const changes: unknown[] = [];
    ours.on("stateChange", (change) => changes.push(change));
    other.on("stateChange", () => changes.push("not ours"));
    await ours.recordFailure();
    expect(changes).toEqual([
      {
        circuit: "named",
        fromState: "closed",
        toState: "open",
        at: clock.now,
        failures: 1,
        openMs: 30_000,
        reason: "threshold",
        source: "local",
        instance: "pod-7",
      },
    ]);
  });
});

describe("scenario 51: every key has a lifetime", () => {
  test.each(["rolling", "consecutive", "rate"] as const)("after every operation, tripOn %s", async (tripOn) => {
    const clock = new ManualClock(1_700_000_000_000);
    const name = `ttl ${tripOn}`;
    const limits = tripOn === "rate" ? { minimumCalls: 2, failureRate: 1 } : { failureThreshold: 2 };
    const policy = { tripOn, ...limits, openDurationMs: 1000, halfOpenMaxCalls: 2, successThreshold: 2 } as const;
    const breaker = new DistributedCircuitBreaker(name, storeOf(clock), { ...policy, idleTtlMs: 100_000 });
    const alive = async () => {
      const left = Object.values(await lifetimes(name));
      expect(left.length).toBeGreaterThan(0);
      for (const ms of left) expect(ms).toBeGreaterThan(90_000);
    };
    await breaker.recordFailure();
    await alive();
    await breaker.recordFailure();
    await alive();
    expect(await breaker.getState()).toBe("open");
    clock.now += 1000;
    const probes = [await breaker.acquire(), await breaker.acquire()];
    await alive();
    await probes[0]?.recordSuccess();
    await alive();
    await probes[1]?.release();
    await alive();
    await breaker.recordFailure();
    await alive();
    await breaker.forceOpen();
    expect(new Set(Object.values(await lifetimes(name)))).toEqual(new Set([-1]));
    await breaker.reset();
    await alive();
    await breaker.disable();
    expect(new Set(Object.values(await lifetimes(name)))).toEqual(new Set([-1]));
    await breaker.trip();
    await alive();
  });

  test("refused calls and questions extend nothing", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const breaker = new DistributedCircuitBreaker("still", storeOf(clock), { openDurationMs: 1000 });
    await breaker.trip();
    await here.redis.pexpire("{cb:still}", 50_000);
    expect(await breaker.canExecute()).toBe(false);
    await breaker.getSnapshot();
    clock.now += 1000;
    expect(await breaker.canExecute()).toBe(true);
    for (const key of Object.keys(await lifetimes("still"))) await here.redis.pexpire(key, 50_000);
    expect(await breaker.canExecute()).toBe(false);
    await breaker.getSnapshot();
    for (const ms of Object.values(await lifetimes("still"))) expect(ms).toBeLessThanOrEqual(50_000);
  });
});

describe("scenario 53: names", () => {
  test.each([
    ["an empty one", ""],
    ["10 KB", "n".repeat(10_240)],
    ["NUL", "a\0b"],
    ["a newline", "a\nb"],
    ["a lone surrogate", "a\ud800b"],
    ["no text", 7 as unknown as string],
  ])("%s is refused before any I/O", (_, name) => {
    const sent: unknown[] = [];
    const store = new RedisStore({ command: async (args: string[]) => sent.push(args) });
    expect(() => new DistributedCircuitBreaker(name, store)).toThrow(NameError);
    expect(() => new CircuitBreaker(name)).toThrow(NameError);
    expect(sent).toEqual([]);
  });

  test.each([[""], ["}"], ["}cb:"], ["a\nb"], ["\udc00"], ["p".repeat(513)], [7 as unknown as string]])(
    "the prefix %j is refused by the store",
    (prefix) => {
      expect(() => new RedisStore(here.redis, { prefix })).toThrow(NameError);
    },
  );

  test("prefix and name make the keys, and a client's own prefix comes before them", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const prefixed = new Redis(here.server.port, { keyPrefix: "app:" });
    const store = new RedisStore(prefixed, { prefix: "mine:", clock: clock.read, timeoutMs: PATIENT });
    const breaker = new DistributedCircuitBreaker("GET /users/{id}", store, { failureThreshold: 2 });
    await breaker.recordFailure();
    expect(await here.redis.keys("app:*")).toEqual(["app:{mine:GET /users/{id}}:f"]);
    expect((await breaker.getSnapshot()).failuresInWindow).toBe(1);
    prefixed.disconnect();
  });
});
