// What a process need not ask, for how long, and what corrects it.
import { DistributedCircuitBreaker, RedisStore, type SharedOptions } from "switchgear/redis";
import { expect, test } from "vitest";
import { place } from "./support/stores";
import { fail, ManualClock, succeed } from "./support/time";

const here = place();
const clock = new ManualClock(1_700_000_000_000);
const sent: string[] = [];

/** Another process with the same circuit, whose commands are written down. */
function process(name: string, options?: SharedOptions & { failureThreshold?: number }): DistributedCircuitBreaker {
  const call = (command: string, ...args: string[]) => {
    sent.push(command.toUpperCase());
    return here.redis.call(command, ...args);
  };
  const client = Object.create(here.redis, { call: { value: call } });
  const store = new RedisStore(client, { clock: clock.read, timeoutMs: 10_000 });
  return new DistributedCircuitBreaker(name, store, { openDurationMs: 60_000, ...options });
}

async function commands(what: () => Promise<unknown>): Promise<string[]> {
  sent.length = 0;
  await what();
  return [...sent];
}

async function calls(breaker: DistributedCircuitBreaker, n: number): Promise<void> {
  for (let i = 0; i < n; i++) await breaker.execute(succeed).catch(() => undefined);
}

test("with closedCacheMs a closed circuit admits for that long without a command, and no longer", async () => {
  const breaker = process("closed", { closedCacheMs: 200 });
  expect(await commands(() => calls(breaker, 100))).toEqual(["HMGET"]);
  clock.now += 199;
  expect(await commands(() => calls(breaker, 100))).toEqual([]);
  clock.now += 1;
  expect(await commands(() => calls(breaker, 100))).toEqual(["HMGET"]);
});

test("the triad and permits are admitted from the cache, too, and their outcomes count", async () => {
  const breaker = process("closed by hand", { closedCacheMs: 200, failureThreshold: 2 });
  await breaker.canExecute();
  expect(await commands(() => breaker.canExecute())).toEqual([]);
  const permits = [await breaker.acquire(), await breaker.acquire()];
  for (const permit of permits) expect(await permit.recordFailure()).toBe("applied");
  expect(await commands(() => calls(breaker, 5))).toEqual([]);
  expect(await breaker.getState()).toBe("open");
});

test("without it each call asks", async () => {
  expect(await commands(() => calls(process("asked"), 3))).toEqual(["HMGET", "HMGET", "HMGET"]);
});

test("a trip of its own is known at once, one of another process at the end of closedCacheMs at the latest", async () => {
  const [mine, other] = [process("tripped", { closedCacheMs: 200, failureThreshold: 1 }), process("tripped")];
  await mine.execute(succeed);
  await mine.execute(fail).catch(() => undefined);
  expect(await mine.canExecute()).toBe(false);
  await mine.reset();
  expect(await mine.canExecute()).toBe(true);
  await other.trip();
  clock.now += 199;
  expect(await mine.canExecute()).toBe(true);
  clock.now += 1;
  expect(await mine.canExecute()).toBe(false);
});

test("an open circuit refuses for openCacheMs without a command: so late at most is the reset of another heard", async () => {
  const [mine, other] = [process("opened"), process("opened")];
  await other.trip();
  expect(await commands(() => calls(mine, 100))).toEqual(["HMGET"]);
  await other.reset();
  clock.now += 999;
  expect(await mine.canExecute()).toBe(false);
  clock.now += 1;
  expect(await mine.canExecute()).toBe(true);
});

test("but never past the reopening", async () => {
  const [mine, other] = [process("short"), process("short")];
  await other.trip({ forMs: 300 });
  expect(await mine.canExecute()).toBe(false);
  clock.now += 299;
  expect(await commands(() => mine.canExecute())).toEqual([]);
  clock.now += 1;
  expect(await mine.canExecute()).toBe(true);
});

test("an openCacheMs of 0 asks each time", async () => {
  const breaker = process("never cached", { openCacheMs: 0 });
  await breaker.trip();
  expect(await commands(() => calls(breaker, 3))).toEqual(["HMGET", "HMGET", "HMGET"]);
});

test("scenario 57: of two openings the one stored at the trip counts", async () => {
  const long = process("two minds", { failureThreshold: 1, openCacheMs: 0 });
  const short = new DistributedCircuitBreaker(
    "two minds",
    new RedisStore(here.redis, { clock: clock.read, timeoutMs: 10_000 }),
    { openDurationMs: 1000, openCacheMs: 0 },
  );
  await long.recordFailure();
  clock.now += 1000;
  await expect(short.execute(succeed)).rejects.toMatchObject({ retryAfterMs: 59_000 });
  clock.now += 59_000;
  expect(await short.canExecute()).toBe(true);
});
