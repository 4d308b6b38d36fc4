// What becomes of answers that come late or never, and of what was told meanwhile: slots, the last failure, the clock.
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { describe, expect, test } from "vitest";
import { CLOSED, eventsOf, holdDeadlines, lazily, PATIENT, passDeadline, reason } from "./support/failing-store";
import { intercepting } from "./support/stores";
import { boom, Deferred, fail, ManualClock, succeed } from "./support/time";

describe("answers that come late, or not at all", () => {
  const { redis } = lazily();

  async function halfOpen(name: string, clock: ManualClock): Promise<DistributedCircuitBreaker> {
    const store = new RedisStore(redis(), { clock: clock.read, timeoutMs: PATIENT });
    const breaker = new DistributedCircuitBreaker(name, store, { openDurationMs: 1000 });
    await breaker.trip();
    clock.now += 1000;
    await breaker.acquire().then((permit) => permit.release());
    return breaker;
  }

  test("a slot that was granted after the deadline is given back", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const breaker = await halfOpen("late", clock);
    const held = new Deferred<void>();
    const released = new Deferred<void>();
    const client = intercepting(redis, async (args, through) => {
      const reply = await through(args);
      // The engine asks: the reading, the admission (held back here), and then the release of what it granted.
      if (Array.isArray(reply) && reply[0] === 2) {
        passDeadline();
        await held.promise;
      }
      if (Array.isArray(reply) && reply.length === 10 && reply[0] === 1) released.resolve();
      return reply;
    });
    const store = new RedisStore(client, { clock: clock.read, timeoutMs: PATIENT });
    const hasty = new DistributedCircuitBreaker("late", store, { openDurationMs: 1000, ...CLOSED });
    holdDeadlines();
    await reason(hasty.execute(succeed));
    expect((await breaker.getSnapshot()).halfOpenInFlight).toBe(1);
    held.resolve();
    await released.promise;
    expect((await breaker.getSnapshot()).halfOpenInFlight).toBe(0);
    expect(await breaker.execute(succeed)).toBe("ok");
  });

  test("a slot whose grant was lost with the connection is given back", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const breaker = await halfOpen("lost", clock);
    const released = new Deferred<void>();
    const client = intercepting(redis, async (args, through) => {
      const reply = await through(args);
      if (Array.isArray(reply) && reply[0] === 2) throw new Error("Connection is closed.");
      if (Array.isArray(reply) && reply.length === 10 && reply[0] === 1) released.resolve();
      return reply;
    });
    const store = new RedisStore(client, { clock: clock.read, timeoutMs: PATIENT });
    const unlucky = new DistributedCircuitBreaker("lost", store, { openDurationMs: 1000, ...CLOSED });
    expect(await reason(unlucky.execute(succeed))).toBe("Connection is closed.");
    await released.promise;
    expect((await breaker.getSnapshot()).halfOpenInFlight).toBe(0);
  });

  test("a caller who gives up while the store is asked is not served, and gives the slot back", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const breaker = await halfOpen("impatient", clock);
    const controller = new AbortController();
    let ran = 0;
    const result = breaker.execute(() => (ran += 1), { signal: controller.signal });
    controller.abort("gone");
    await expect(result).rejects.toBe("gone");
    expect(ran).toBe(0);
    expect((await breaker.getSnapshot()).halfOpenInFlight).toBe(0);
  });
});

describe("the last failure that a refusal names", () => {
  const { redis } = lazily();

  /** What a refusal says of it. */
  async function lastFailure(breaker: DistributedCircuitBreaker): Promise<string | null> {
    return (await breaker.execute(succeed).catch((refusal) => refusal)).lastFailure;
  }

  test("is one that counted, whatever else was told at the same time", async () => {
    const store = new RedisStore(redis(), { timeoutMs: PATIENT });
    const breaker = new DistributedCircuitBreaker("last-of-two", store, { failureThreshold: 1 });
    const stale = await breaker.acquire();
    await breaker.reset();
    const current = await breaker.acquire();
    const told = [stale.recordFailure(new Error("stale")), current.recordFailure(new Error("current"))];
    expect(await Promise.all(told)).toEqual(["stale", "applied"]);
    expect(await lastFailure(breaker)).toBe("current");
  });

  test("is none where nothing counted", async () => {
    const store = new RedisStore(redis(), { timeoutMs: PATIENT });
    const breaker = new DistributedCircuitBreaker("last-of-none", store, { failureThreshold: 1 });
    const permits = [await breaker.acquire(), await breaker.acquire()];
    await breaker.trip();
    await Promise.all(permits.map((permit, n) => permit.recordFailure(new Error(`stale ${n}`))));
    expect(await lastFailure(breaker)).toBeNull();
  });

  test("is known to who hears of its trip", async () => {
    const store = new RedisStore(redis(), { timeoutMs: PATIENT });
    const breaker = new DistributedCircuitBreaker("last-at-the-trip", store, { failureThreshold: 1 });
    const heard = new Promise((resolve) => breaker.on("stateChange", () => resolve(lastFailure(breaker))));
    await breaker.execute(fail).catch(() => undefined);
    expect(await heard).toBe("ECONNREFUSED");
  });

  test("is one that was told too late for its caller, but counted", async () => {
    holdDeadlines();
    const answers: Deferred<void>[] = [];
    const client = intercepting(redis, async (args, through) => {
      const reply = await through(args);
      // The outcome counts at the store; its answer is what is late.
      if (answers.length > 0) await answers.pop()?.promise;
      return reply;
    });
    const breaker = new DistributedCircuitBreaker("last-late", new RedisStore(client, { timeoutMs: PATIENT }), {
      failureThreshold: 1,
      ...CLOSED,
    });
    expect(await breaker.execute(succeed)).toBe("ok");
    const held = new Deferred<void>();
    answers.push(held);
    const tripped = new Promise((resolve) => breaker.on("stateChange", resolve));
    const told = breaker.recordFailure(new Error("late"));
    await new Promise((resolve) => setImmediate(resolve));
    passDeadline();
    expect(await told).toBe("stale");
    held.resolve();
    await tripped;
    expect(await lastFailure(breaker)).toBe("late");
  });
});

describe("a clock that fails", () => {
  const { redis } = lazily();

  test.each([Number.NaN, -1, 1.5, 2 ** 52 + 1, Number.POSITIVE_INFINITY])(
    "a reading of %d is told before anything is asked",
    async (reading) => {
      const sent: string[][] = [];
      const client = intercepting(redis, (args) => sent.push(args));
      let now = 0;
      const breaker = new DistributedCircuitBreaker("c", new RedisStore(client, { clock: () => now }));
      now = reading;
      const told = {
        code: "time_invalid",
        name: "TimeError",
        message: expect.stringContaining("`now` must be an integer"),
      };
      await expect(breaker.execute(succeed)).rejects.toMatchObject(told);
      await expect(breaker.canExecute()).rejects.toMatchObject(told);
      await expect(breaker.getSnapshot()).rejects.toMatchObject(told);
      await expect(breaker.reset()).rejects.toMatchObject(told);
      expect(sent).toEqual([]);
    },
  );

  test("a clock that throws while settling hides nothing", async () => {
    let broken = false;
    const clock = () => {
      if (broken) throw new Error("no time");
      return 1_700_000_000_000;
    };
    const store = new RedisStore(redis(), { clock, timeoutMs: PATIENT });
    const events = eventsOf(store);
    const breaker = new DistributedCircuitBreaker("untimely", store);
    const call = breaker.execute(async () => {
      broken = true;
      throw boom;
    });
    await expect(call).rejects.toBe(boom);
    expect(events).toMatchObject([{ error: { message: "no time" } }]);
    await expect(breaker.execute(succeed)).rejects.toThrow("no time");
  });
});
