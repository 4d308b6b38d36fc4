// Concurrent admissions of one circuit share a round trip, and nobody waits longer for that, nor in vain.
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { describe, expect, test, vi } from "vitest";
import { eventsOf, holdDeadlines, LIMIT, lazily, PATIENT, passDeadline } from "./support/failing-store";
import { intercepting } from "./support/stores";
import { Deferred, ManualClock, succeed } from "./support/time";

const { redis } = lazily();
const clock = new ManualClock(1_700_000_000_000);

/** A store whose commands are written down. */
function counted(): { store: RedisStore; sent: string[] } {
  const sent: string[] = [];
  const call = (name: string, ...args: string[]) => {
    sent.push(name.toUpperCase());
    return redis().call(name, ...args);
  };
  const client = Object.create(redis(), { call: { value: call } });
  return { store: new RedisStore(client, { clock: clock.read, timeoutMs: PATIENT }), sent };
}

async function halfOpen(name: string, policy: object): Promise<void> {
  const store = new RedisStore(redis(), { clock: clock.read, timeoutMs: PATIENT });
  await new DistributedCircuitBreaker(name, store, policy).trip();
  clock.now += 1000;
}

/** How many of the calls went through. */
async function through(calls: Promise<unknown>[]): Promise<number> {
  return (await Promise.allSettled(calls)).filter(({ status }) => status === "fulfilled").length;
}

describe("a flight", () => {
  test("carries all who come meanwhile, for one command", async () => {
    const { store, sent } = counted();
    const breaker = new DistributedCircuitBreaker("crowd", store);
    expect(await through(Array.from({ length: 200 }, () => breaker.execute(succeed)))).toBe(200);
    expect(sent).toEqual(["HMGET"]);
    await breaker.execute(succeed);
    expect(sent).toEqual(["HMGET", "HMGET"]);
  });

  test("brings one refusal to all", async () => {
    const { store, sent } = counted();
    const breaker = new DistributedCircuitBreaker("refused crowd", store, { openCacheMs: 0 });
    await breaker.trip();
    sent.length = 0;
    const calls = await Promise.allSettled(Array.from({ length: 50 }, () => breaker.execute(succeed)));
    const reasons = calls.map((call) => (call as PromiseRejectedResult).reason);
    expect(new Set(reasons).size).toBe(50);
    for (const error of reasons) expect(error).toMatchObject({ code: "circuit_open", retryAfterMs: 30_000 });
    expect(sent).toEqual(["HMGET"]);
  });

  test("scenario 7, in one process: a slot is for the one that asked; of the rest as many more as there are slots get one", async () => {
    const policy = { openDurationMs: 1000, halfOpenMaxCalls: 3, successThreshold: 3 };
    await halfOpen("probing crowd", policy);
    const { store } = counted();
    const breaker = new DistributedCircuitBreaker("probing crowd", store, policy);
    const ended = new Deferred();
    const calls = Array.from({ length: 40 }, () => breaker.execute(() => ended.promise));
    const refused = calls.map((call) =>
      call.then(
        () => false,
        () => true,
      ),
    );
    let running = 40;
    for (const one of refused) void one.then((was) => (running -= Number(was)));
    await vi.waitUntil(() => running === 3, { timeout: LIMIT });
    expect((await breaker.getSnapshot()).halfOpenInFlight).toBe(3);
    ended.resolve("ok");
    expect(await through(calls)).toBe(3);
    expect(await breaker.getState()).toBe("closed");
  });

  test("lands for the others though its first caller has given up", async () => {
    const { store } = counted();
    const breaker = new DistributedCircuitBreaker("led astray", store);
    const controller = new AbortController();
    const leader = breaker.execute(succeed, { signal: controller.signal });
    const others = Array.from({ length: 3 }, () => breaker.execute(succeed));
    controller.abort("gone");
    await expect(leader).rejects.toBe("gone");
    expect(await Promise.all(others)).toEqual(["ok", "ok", "ok"]);
  });

  test("is not joined after this process has told something of the circuit", async () => {
    const { store, sent } = counted();
    // Loads the script, so that it need not be sent twice.
    await new DistributedCircuitBreaker("told before", store).recordFailure();
    const breaker = new DistributedCircuitBreaker("retold", store, { failureThreshold: 1 });
    const permit = await breaker.acquire();
    sent.length = 0;
    const early = breaker.canExecute();
    const told = permit.recordFailure();
    const late = breaker.canExecute();
    expect(await Promise.all([early, told, late])).toEqual([true, "applied", false]);
    expect(sent).toEqual(["HMGET", "EVALSHA", "HMGET"]);
  });

  test("that fails sends nobody back to a store that does not answer", async () => {
    let commands = 0;
    const command = async () => {
      commands += 1;
      throw new Error("gone");
    };
    const store = new RedisStore({ command }, { clock: clock.read });
    const events = eventsOf(store);
    const breaker = new DistributedCircuitBreaker("lost crowd", store);
    expect(await through(Array.from({ length: 50 }, () => breaker.execute(succeed)))).toBe(50);
    expect([commands, events.length]).toEqual([1, 1]);
  });

  test("and the next one do not keep a caller longer than one deadline", async () => {
    await halfOpen("patience", { openDurationMs: 1000 });
    holdDeadlines();
    let hangs = false;
    const hanging = new Deferred<void>();
    const client = intercepting(redis, async (args, through) => {
      if (hangs) {
        hanging.resolve();
        return new Promise(() => undefined);
      }
      const reply = await through(args);
      if (Array.isArray(reply) && reply[0] === 2) {
        // The one slot is taken: whoever joined asks again, and the deadline of that flight begins only now.
        hangs = true;
        vi.advanceTimersByTime(PATIENT - 1);
      }
      return reply;
    });
    const store = new RedisStore(client, { clock: clock.read, timeoutMs: PATIENT });
    const events = eventsOf(store);
    const breaker = new DistributedCircuitBreaker("patience", store, { openDurationMs: 1000 });
    const leader = breaker.acquire();
    const others = [breaker.canExecute(), breaker.canExecute()];
    expect((await leader).probe).toBe(true);
    await hanging.promise;
    vi.advanceTimersByTime(1);
    expect(await Promise.all(others)).toEqual([true, false]);
    expect(events).toEqual([]);
    passDeadline();
    await vi.waitUntil(() => events.length > 0, { timeout: PATIENT });
    expect(events).toMatchObject([{ error: { message: "no answer within 10000 ms" } }]);
  });
});
