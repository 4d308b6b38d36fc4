// What becomes of calls when the store fails: the answer, the deadline, the outcome, and what is said about it.
import { AsyncLocalStorage } from "node:async_hooks";
import { execFileSync } from "node:child_process";
import { inspect } from "node:util";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { StoreUnavailableError } from "switchgear";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { describe, expect, test, vi } from "vitest";
import { startServer } from "../../../tests/support/servers.mjs";
import { CLOSED, eventsOf, holdDeadlines, LIMIT, lazily, PATIENT, passDeadline, reason } from "./support/failing-store";
import { intercepting, quiet } from "./support/stores";
import { boom, Deferred, fail, ManualClock, succeed } from "./support/time";

describe("a store that hangs", () => {
  const { server, redis } = lazily();

  test("scenario 49, its strict part: each call waits one deadline at most, then hears so; the event loop goes on, and all is well afterwards", async () => {
    const store = new RedisStore(redis(), { timeoutMs: 50 });
    const events = eventsOf(store);
    const breaker = new DistributedCircuitBreaker("hanging", store, CLOSED);
    server().pause();
    let ticks = 0;
    const ticking = setInterval(() => (ticks += 1), 1);
    const calls = Array.from({ length: 20 }, () => reason(breaker.execute(succeed)));
    expect(new Set(await Promise.all(calls))).toEqual(new Set(["no answer within 50 ms"]));
    clearInterval(ticking);
    expect(ticks).toBeGreaterThan(0);
    // One question for all of them.
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ circuit: "hanging", at: expect.any(Number), error: { code: "store_error" } });
    await reason(breaker.getState());
    await reason(breaker.trip());
    expect(await breaker.canExecute()).toBe(false);
    server().resume();
    const patient = new DistributedCircuitBreaker("hanging", new RedisStore(redis(), { timeoutMs: PATIENT }));
    // The trip went out before the server woke up: a command that was not answered may still have been heard.
    await patient.reset();
    expect(await patient.execute(succeed)).toBe("ok");
  });

  test("under fail-open the call goes ahead at the deadline, in its caller's context, and counts nowhere", async () => {
    const context = new AsyncLocalStorage<number>();
    // No second goes by, after which the store would be looked at once more.
    const store = new RedisStore(redis(), { timeoutMs: 50, clock: new ManualClock(1_700_000_000_000).read });
    const events = eventsOf(store);
    const breaker = new DistributedCircuitBreaker("open-minded", store, {
      onStoreFailure: "fail-open",
      failureThreshold: 1,
    });
    server().pause();
    const calls = [1, 2, 3].map((n) => context.run(n, () => breaker.execute(() => context.getStore())));
    expect(await Promise.all(calls)).toEqual([1, 2, 3]);
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    expect(await breaker.canExecute()).toBe(true);
    const permit = await breaker.acquire();
    expect(permit.probe).toBe(false);
    expect(await permit.recordFailure()).toBe("stale");
    server().resume();
    // After three deadlines nobody waits any more.
    expect(events).toHaveLength(3);
    const patient = new DistributedCircuitBreaker("open-minded", new RedisStore(redis(), { timeoutMs: PATIENT }));
    expect(await patient.getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 0 });
  });

  test("a fallback steps in at the deadline, in its caller's context", async () => {
    const context = new AsyncLocalStorage<string>();
    const breaker = new DistributedCircuitBreaker("fallen", new RedisStore(redis(), { timeoutMs: 50 }), CLOSED);
    const refused: unknown[] = [];
    breaker.on("refused", ({ error }) => refused.push(error));
    server().pause();
    const fallback = (error: unknown) => [context.getStore(), (error as Error).name];
    const result = context.run("mine", () => breaker.execute<unknown>(succeed, { fallback }));
    expect(await result).toEqual(["mine", "StoreUnavailableError"]);
    expect(refused).toEqual([expect.any(StoreUnavailableError)]);
    server().resume();
  });

  test("a store that hangs while settling hides neither value nor error, and the outcome is said to be stale", async () => {
    holdDeadlines();
    let hangs = false;
    const client = intercepting(redis, (args, through) => {
      // The command is out, and its deadline runs.
      if (hangs) queueMicrotask(passDeadline);
      return through(args);
    });
    const store = new RedisStore(client, { timeoutMs: PATIENT });
    const events = eventsOf(store);
    const breaker = new DistributedCircuitBreaker("settling", store, { tripOn: "consecutive", ...CLOSED });
    const permit = await breaker.acquire();
    const hang = () => {
      hangs = true;
      server().pause();
    };
    const recover = () => {
      hangs = false;
      server().resume();
    };
    const paused = async <T>(result: () => Promise<T>) => {
      hang();
      return result();
    };
    expect(await breaker.execute(() => paused(succeed))).toBe("ok");
    recover();
    await expect(breaker.execute(() => paused(fail))).rejects.toBe(boom);
    recover();
    expect(await permit.recordFailure(boom)).toBe("applied");
    hang();
    expect(await breaker.recordFailure(boom)).toBe("stale");
    recover();
    expect(events.map(({ error }) => (error as Error).message)).toEqual(Array(3).fill("no answer within 10000 ms"));
  });
});

describe("a process that is busy itself", () => {
  const { server, redis } = lazily();

  test("an answer that came in time counts, though nobody looked at it until after the deadline", async () => {
    await redis().ping();
    const store = new RedisStore(redis(), { timeoutMs: 1, clock: "system" });
    const breaker = new DistributedCircuitBreaker("busy", store, CLOSED);
    const call = breaker.execute(succeed);
    // Lets the client send. Then nothing here runs until the server has answered a question that was put after ours.
    await Promise.resolve();
    execFileSync("redis-cli", ["-p", String(server().port), "ping"]);
    expect(await call).toBe("ok");
  });
});

describe("a store that is gone", () => {
  test("scenario 52: a killed server is unavailable, and a call goes on where one comes back", async () => {
    const server = await startServer();
    const redis = quiet(new Redis(server.port, { retryStrategy: () => 5 }));
    const store = new RedisStore(redis, { timeoutMs: PATIENT });
    const breaker = new DistributedCircuitBreaker("killed", store, { failureThreshold: 2 });
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    const hasty = new DistributedCircuitBreaker("killed", new RedisStore(redis, { timeoutMs: 50 }), CLOSED);
    const running = new Deferred();
    const call = breaker.execute(() => running.promise);
    await breaker.getState();
    await server.stop();
    await reason(hasty.execute(succeed));
    const again = await startServer({ port: server.port });
    // The state went with the server; what was admitted before counts in what is there now, once.
    running.reject(boom);
    await expect(call).rejects.toBe(boom);
    expect(await breaker.getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 1 });
    redis.disconnect();
    await again.stop();
  });

  test("a refused connection and a closed client say so, and say no password", async () => {
    const server = await startServer();
    const { port } = server;
    await server.stop();
    const url = `redis://user:s3cret@127.0.0.1:${port}`;
    const refused = quiet(new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => 1 }));
    const closed = quiet(new Redis(url, { lazyConnect: true }));
    closed.disconnect();
    const unopened = createClient({ url });
    for (const [client, text] of [
      [refused, /ECONNREFUSED|retries per request/],
      [closed, /closed/],
      [unopened, /closed/],
    ] as const) {
      const breaker = new DistributedCircuitBreaker("gone", new RedisStore(client, { timeoutMs: PATIENT }), CLOSED);
      const error = await breaker.execute(succeed).catch((thrown) => thrown);
      expect(error.cause.message).toMatch(text);
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain("s3cret");
    }
    refused.disconnect();
  });

  test("a client that queues while it has no connection keeps nobody waiting longer than the deadline", async () => {
    const server = await startServer();
    const { port } = server;
    await server.stop();
    const client = quiet(new Redis(port, { maxRetriesPerRequest: null, retryStrategy: () => 5 }));
    const hasty = new DistributedCircuitBreaker("queued", new RedisStore(client, { timeoutMs: 50 }), CLOSED);
    expect(await reason(hasty.execute(succeed))).toBe("no answer within 50 ms");
    expect(await hasty.recordFailure()).toBe("stale");
    const again = await startServer({ port });
    const patient = new DistributedCircuitBreaker("queued", new RedisStore(client, { timeoutMs: PATIENT }));
    expect(await patient.execute(succeed)).toBe("ok");
    client.disconnect();
    await again.stop();
  });

  test("under observe the call goes ahead, and that it would have been refused is said", async () => {
    const store = new RedisStore({ command: () => Promise.reject(new Error("gone")) });
    const breaker = new DistributedCircuitBreaker("observed", store, { observe: true, ...CLOSED });
    const told: string[] = [];
    for (const event of ["success", "failure", "refused"] as const) {
      breaker.on(event, ({ error }) => told.push(`${event} ${(error as Error).name}`));
    }
    expect(await breaker.execute(succeed)).toBe("ok");
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    expect(await breaker.canExecute()).toBe(true);
    expect(told).toEqual(Array(3).fill("refused StoreUnavailableError"));
  });

  test("a wrong password is told, and appears nowhere", async () => {
    const server = await startServer({ password: "right" });
    const client = quiet(new Redis(`redis://default:s3cret@127.0.0.1:${server.port}`));
    const store = new RedisStore(client, { timeoutMs: PATIENT });
    const events = eventsOf(store);
    const breaker = new DistributedCircuitBreaker("locked", store, CLOSED);
    const text = await reason(breaker.execute(succeed));
    expect(text).toMatch(/WRONGPASS|NOAUTH/);
    const said = inspect([events, await breaker.execute(succeed).catch((error) => error)], {
      depth: 9,
      showHidden: true,
    });
    expect(said).not.toContain("s3cret");
    client.disconnect();
    await server.stop();
  });

  test("a client's error text that holds a URL loses its user part", async () => {
    const client = {
      command: async () => {
        throw new Error("connecting to rediss://app:p@ss/w0rd@cache.internal:6380 failed, tried redis://:x@other:1");
      },
    };
    const breaker = new DistributedCircuitBreaker("talkative", new RedisStore(client), CLOSED);
    expect(await reason(breaker.execute(succeed))).toBe(
      "connecting to rediss://***@cache.internal:6380 failed, tried redis://***@other:1",
    );
  });
});

describe("a store that says no", () => {
  const { server, redis } = lazily();

  test("a key of another type spoils its own circuit only", async () => {
    const store = new RedisStore(redis(), { timeoutMs: PATIENT });
    await redis().set("{cb:taken}", "text");
    const taken = new DistributedCircuitBreaker("taken", store, CLOSED);
    expect(await reason(taken.execute(succeed))).toMatch(/^WRONGTYPE/);
    expect(await reason(taken.getSnapshot())).toMatch(/^WRONGTYPE/);
    expect(await taken.recordFailure()).toBe("stale");
    await expect(new DistributedCircuitBreaker("free", store).execute(fail)).rejects.toBe(boom);
  });

  test("a read-only replica admits while closed, takes no outcome, and hides none", async () => {
    const replica = await startServer({ args: ["--replicaof", `127.0.0.1 ${server().port}`] });
    const client = quiet(new Redis(replica.port));
    // While it takes over what its master has it says another no.
    const inStep = async () => (await client.info("replication")).includes("master_link_status:up");
    await vi.waitUntil(() => inStep().catch(() => false), { timeout: LIMIT });
    const store = new RedisStore(client, { timeoutMs: PATIENT });
    const events = eventsOf(store);
    const breaker = new DistributedCircuitBreaker("readonly", store, { failureThreshold: 1 });
    expect(await breaker.execute(succeed)).toBe("ok");
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    expect(await reason(breaker.trip())).toMatch(/^READONLY/);
    expect(events.map(({ error }) => (error as Error).message)).toEqual(
      Array(2).fill(expect.stringMatching(/^READONLY/)),
    );
    client.disconnect();
    await replica.stop();
  });

  test("missing rights are told", async () => {
    await server().cli("acl", "setuser", "reader", "on", "nopass", "~*", "+hmget", "+info", "+hello", "+client");
    const client = quiet(new Redis({ port: server().port, username: "reader", password: "any" }));
    const store = new RedisStore(client, { timeoutMs: PATIENT });
    const breaker = new DistributedCircuitBreaker("rights", store, CLOSED);
    expect(await breaker.execute(succeed)).toBe("ok");
    expect(await reason(breaker.getState())).toMatch(/^NOPERM/);
    client.disconnect();
  });

  test.each([
    ["OK"],
    [null],
    [[1]],
    [[null, null, "x", null]],
    [{ 0: null }],
    [[1, 0, 0, 0, 0, 0, 0, 0, 0, 0.5]],
    [["", "", "", "", "", "", "", "", "", ""]],
  ])("a reply that none of our commands gets is no answer: %j", async (reply) => {
    const breaker = new DistributedCircuitBreaker("odd", new RedisStore({ command: async () => reply }), CLOSED);
    expect(await reason(breaker.execute(succeed))).toBe("the reply is none that a command of ours gets");
    expect(await reason(breaker.getSnapshot())).toBe("the reply is none that a command of ours gets");
    expect(await breaker.recordFailure()).toBe("stale");
  });

  test("a client that throws, or gives no promise, is survived", async () => {
    const throwing = {
      command: () => {
        throw new TypeError("not today");
      },
    };
    expect(await reason(new DistributedCircuitBreaker("c", new RedisStore(throwing), CLOSED).execute(succeed))).toBe(
      "not today",
    );
    const sync = { command: () => [null, null, null, null, null] as unknown as Promise<unknown> };
    expect(await new DistributedCircuitBreaker("c", new RedisStore(sync)).execute(succeed)).toBe("ok");
  });

  test("a client's error without words is told by its code, its parts or its class", async () => {
    class Unplugged extends Error {}
    const parts = [new Error("connect ECONNREFUSED ::1:6379"), new Error("connect ECONNREFUSED 127.0.0.1:6379")];
    for (const [thrown, text] of [
      [new Unplugged(), "Unplugged"],
      [Object.assign(new Error(), { code: "EPIPE" }), "EPIPE"],
      [new AggregateError(parts, ""), "connect ECONNREFUSED ::1:6379, connect ECONNREFUSED 127.0.0.1:6379"],
      ["a text", "a text"],
      [Object.create(null), "an error that cannot be shown"],
    ] as const) {
      const client = { command: () => Promise.reject(thrown) };
      expect(await reason(new DistributedCircuitBreaker("c", new RedisStore(client), CLOSED).execute(succeed))).toBe(
        text,
      );
    }
  });

  test("scenario 47: FLUSHALL is no exception but a fresh closed circuit, outcomes from before are stale, and who knew it open looks again later", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const store = new RedisStore(redis(), { clock: clock.read, timeoutMs: PATIENT });
    const breaker = new DistributedCircuitBreaker("flushed", store, { failureThreshold: 1, openDurationMs: 1000 });
    await breaker.trip();
    clock.now += 1000;
    const probe = await breaker.acquire();
    await redis().flushall();
    expect(await probe.recordFailure()).toBe("stale");
    expect(await breaker.getSnapshot()).toMatchObject({ state: "closed", epoch: 0, openedAt: null });
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    await redis().flushall();
    // It knew that the circuit is open, and looks again when it may.
    await expect(breaker.execute(succeed)).rejects.toMatchObject({ code: "circuit_open", retryAfterMs: 1000 });
    clock.now += 1000;
    expect(await breaker.execute(succeed)).toBe("ok");
  });
});

describe("scripts that go missing", () => {
  const { redis } = lazily();

  test("scenario 52: with a SCRIPT FLUSH before every command each outcome counts once, for one more round trip", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const sent: string[] = [];
    const client = intercepting(redis, async (args, through) => {
      await redis().script("FLUSH");
      sent.push(args[0] ?? "");
      return through(args);
    });
    const store = new RedisStore(client, { clock: clock.read, timeoutMs: PATIENT });
    const events = eventsOf(store);
    const breaker = new DistributedCircuitBreaker("forgetful", store, { failureThreshold: 3, openDurationMs: 1000 });
    const took = async (what: () => Promise<unknown>) => {
      sent.length = 0;
      await what();
      return [...sent];
    };
    expect(await took(() => breaker.execute(succeed))).toEqual(["EVALSHA", "EVAL"]);
    expect(await took(() => breaker.execute(fail).catch(() => undefined))).toEqual([
      "EVALSHA",
      "EVAL",
      "EVALSHA",
      "EVAL",
    ]);
    expect(await took(() => breaker.getSnapshot())).toEqual(["EVALSHA", "EVAL"]);
    expect((await breaker.getSnapshot()).failuresInWindow).toBe(1);
    await breaker.recordFailure();
    expect((await breaker.getSnapshot()).failuresInWindow).toBe(2);
    await breaker.recordFailure();
    expect(await breaker.getSnapshot()).toMatchObject({ state: "open", trips: 1 });
    clock.now += 1000;
    const probe = await breaker.acquire();
    expect(await breaker.canExecute()).toBe(false);
    expect(await probe.recordSuccess()).toBe("applied");
    expect(await breaker.getState()).toBe("closed");
    expect(events).toEqual([]);
  });

  test("the deadline is one for the whole admission, however many commands it takes", async () => {
    const clock = new ManualClock(1_700_000_000_000);
    const store = new RedisStore(redis(), { clock: clock.read, timeoutMs: PATIENT });
    await new DistributedCircuitBreaker("staged", store, { openDurationMs: 1000 }).trip();
    clock.now += 1000;
    let commands = 0;
    holdDeadlines();
    // Answers the reading, and never what comes after it.
    const client = intercepting(redis, (args, through) => {
      commands += 1;
      if (commands === 1) return through(["EVAL", READ, ...args.slice(2)]);
      queueMicrotask(passDeadline);
      return new Promise(() => undefined);
    });
    const hasty = new RedisStore(client, { clock: clock.read, timeoutMs: PATIENT });
    const breaker = new DistributedCircuitBreaker("staged", hasty, { openDurationMs: 1000, ...CLOSED });
    expect(await reason(breaker.execute(succeed))).toBe("no answer within 10000 ms");
    expect(commands).toBe(2);
  });
});

/** What `admit` reads, so that a test can answer an EVALSHA of it without knowing the script. */
const READ = "return redis.call('HMGET', KEYS[1], 'state', 'mode', 'epoch', 'opened_at', 'open_ms')";
