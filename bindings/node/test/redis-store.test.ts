// What a store takes, and what it says of everything else.
import { Cluster, Redis } from "ioredis";
import { createClient } from "redis";
import { ConfigError } from "switchgear";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { describe, expect, test } from "vitest";
import { place } from "./support/stores";

/** A client that is never used. */
const client = { command: async () => null };

function refused(make: () => unknown): ConfigError {
  try {
    make();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("scenario 55: a client of the wrong kind is refused at construction", () => {
  class Memcached {
    password = "s3cret";
    get() {}
  }
  const idle = new Redis({ lazyConnect: true });
  const unopened = createClient();

  test.each<[string, unknown, string]>([
    ["nothing", undefined, "undefined"],
    ["null", null, "null"],
    ["a URL", "redis://user:s3cret@host", "a string"],
    ["a number", 6379, "6379"],
    ["options", { host: "localhost", password: "s3cret" }, "Object"],
    ["another client", new Memcached(), "Memcached"],
    ["a class", Redis, "the class or function Redis"],
    ["a bare object", Object.create(null), "an object"],
    ["a pipeline", idle.pipeline(), "Pipeline"],
    ["a transaction", unopened.multi(), "Class"],
    ["a node-redis of long ago", { send_command() {}, command() {} }, "Object"],
  ])("%s", (_, given, shown) => {
    const error = refused(() => new RedisStore(given as object));
    expect(error).toMatchObject({ code: "config_invalid", field: "client", value: shown });
    expect(error.message).toBe(
      "`client` must be a client of ioredis, iovalkey or node-redis (standalone, sentinel or cluster) " +
        `or an object with \`command(args, key)\`, got \`${shown}\``,
    );
  });

  test("what is of a right kind is taken, connected or not", () => {
    const cluster = new Cluster([{ port: 1 }], { lazyConnect: true });
    for (const right of [client, idle, cluster, unopened]) expect(new RedisStore(right)).toBeInstanceOf(RedisStore);
  });
});

describe("options", () => {
  test.each<[object, string, string]>([
    [{ timeoutMs: 0 }, "timeoutMs", "`timeoutMs` must be an integer from 1 to 2147483647 (milliseconds), got `0`"],
    [{ timeoutMs: "100" }, "timeoutMs", "got `'100'`"],
    [{ timeoutMs: Number.NaN }, "timeoutMs", "got `NaN`"],
    [
      { timeoutMs: 2 ** 31 },
      "timeoutMs",
      "`timeoutMs` must be an integer from 1 to 2147483647 (milliseconds), got `2147483648`",
    ],
    [{ clock: "redis" }, "clock", "`clock` must be 'server', 'system' or a function, got `'redis'`"],
    [{ clock: 5 }, "clock", "got `5`"],
    [{ instance: "" }, "instance", "`instance` must be a text that is not empty, got `''`"],
    [{ events: true }, "events", "`events` is not an option; valid are prefix, timeoutMs, clock, instance"],
    [{ quorum: 2 }, "quorum", "`quorum` is not an option"],
  ])("%j", (options, field, message) => {
    const error = refused(() => new RedisStore(client, options));
    expect(error).toMatchObject({ code: "config_invalid", field });
    expect(error.message).toContain(message);
  });

  test.each([[5], ["cb:"], [null], [[]]])("%j are no options", (options) => {
    expect(refused(() => new RedisStore(client, options as object)).field).toBe("options");
  });

  test("left out or undefined is the same, and listeners are checked", () => {
    const store = new RedisStore(client, {
      prefix: undefined,
      timeoutMs: undefined,
      clock: "system",
      instance: undefined,
    });
    expect(() => store.on("gone" as "storeError", () => undefined)).toThrow(
      "no event is called 'gone'; there are degraded, restored, storeError, configMismatch",
    );
    expect(() => store.on("storeError", 5 as unknown as () => void)).toThrow(TypeError);
    const stop = store.on("storeError", () => undefined);
    expect(stop()).toBeUndefined();
  });
});

describe("a connected client", () => {
  const here = place();

  test("answers after its store was closed", async () => {
    const store = new RedisStore(here.redis);
    expect(await new DistributedCircuitBreaker("closing", store).execute(async () => "ok")).toBe("ok");
    await store.close();
    expect(await here.redis.ping()).toBe("PONG");
  });
});

test("closing a store leaves the client alone, any number of times", async () => {
  let ended = 0;
  const mine = { command: async () => null, quit: () => (ended += 1), disconnect: () => (ended += 1) };
  const store = new RedisStore(mine);
  await store.close();
  await store.close();
  await store[Symbol.asyncDispose]();
  expect(ended).toBe(0);
});
