// Which circuits there are: through each client, whatever they are called, all of them or an error.

import { Redis } from "ioredis";
import { Redis as Ioredis5 } from "ioredis5";
import { Redis as Iovalkey } from "iovalkey";
import { ConfigError, StoreError, TimeError } from "switchgear";
import {
  DistributedCircuitBreaker,
  type ListedCircuit,
  type RedisCommands,
  RedisStore,
  type RedisStoreOptions,
} from "switchgear/redis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Server, startSentinel, startServer } from "../../../tests/support/servers.mjs";
import { CLIENTS, SENTINEL_CLIENTS } from "./support/clients";
import { eventsOf, PATIENT, reason } from "./support/failing-store";
import { OF_A_CLIENT, RIGHTS } from "./support/rights";
import { place, quiet } from "./support/stores";
import { ManualClock } from "./support/time";

const clock = new ManualClock(1_700_000_000_000);

function storeOf(client: object, options?: RedisStoreOptions): RedisStore {
  return new RedisStore(client, { clock: clock.read, timeoutMs: PATIENT, ...options });
}

const namesOf = (circuits: readonly ListedCircuit[]) => circuits.map(({ name }) => name);

/** Names of every kind, in the order in which they are listed. */
const NAMES = [
  "GET /users/{id}",
  "[a-z]*?",
  "a b",
  "a\\b",
  "billing",
  "n".repeat(512),
  "x}:f",
  "{}",
  "}x",
  "\u{1f4b3}",
].sort();

/** Keys that are nobody's circuit under the prefix, or somebody else's. */
const foreign = (prefix: string) => [
  `{${prefix}x}:other`,
  `{${prefix}}`,
  `${prefix}x`,
  `{${prefix.slice(0, -1)}x}`,
  `{x${prefix}x}`,
  `app:{${prefix}x}`,
];

/** Makes circuits that have not much in common, and lists them, as they are and by their names. */
async function lists(client: object, prefix: string, admin: Redis): Promise<void> {
  const store = storeOf(client, { prefix });
  expect(await store.circuits()).toEqual([]);
  for (const name of NAMES) await new DistributedCircuitBreaker(name, store, { failureThreshold: 2 }).recordFailure();
  await admin.mset(...foreign(prefix).flatMap((key) => [key, "foreign"]));
  const rate = new DistributedCircuitBreaker("a rate", store, { tripOn: "rate" });
  await rate.recordFailure();
  await new DistributedCircuitBreaker("again closed", store).reset();
  const open = new DistributedCircuitBreaker("open", store);
  await open.trip({ forMs: 5000 });
  const forced = new DistributedCircuitBreaker("forced", store);
  await forced.forceOpen();

  const listed = await store.circuits();
  expect(namesOf(listed)).toEqual(["a rate", "again closed", "forced", "open", ...NAMES].sort());
  const of = new Map(listed.map(({ name, snapshot }) => [name, snapshot]));
  expect(of.get("open")).toEqual(await open.getSnapshot());
  expect(of.get("open")).toMatchObject({ state: "open", mode: "auto", remainingOpenMs: 5000 });
  expect(of.get("forced")).toMatchObject({ state: "open", mode: "forced-open" });
  expect(of.get("billing")).toMatchObject({ state: "closed", failuresInWindow: 1 });
  expect(of.get("again closed")).toMatchObject({ state: "closed", failuresInWindow: 0 });
  const byRate = await store.circuits({ tripOn: "rate" });
  expect(byRate.find(({ name }) => name === "a rate")?.snapshot).toMatchObject({
    failuresInWindow: 1,
    callsInWindow: 1,
  });
}

/** Gives the server more keys than there are on one page of SCAN. */
async function filled(admin: Redis): Promise<void> {
  const filling = admin.pipeline();
  for (let n = 0; n < 3000; n++) filling.set(`filling ${n}`, "");
  await filling.exec();
}

/** What in a prefix means something to SCAN. */
const GLOBS = "[^a]*?\\-";

describe("on one server", () => {
  const here = place();

  test.each(Object.entries(CLIENTS))("%s", async (label, connect) => {
    const connected = await connect(here.server.port);
    await lists(connected.client, `${label}${GLOBS}:`, here.redis);
    connected.close();
  });

  test.each(
    Object.entries({
      "ioredis 6": (port: number, keyPrefix: string) => new Redis(port, { keyPrefix }),
      "ioredis 5": (port: number, keyPrefix: string) => new Ioredis5(port, { keyPrefix }),
      iovalkey: (port: number, keyPrefix: string) => new Iovalkey(port, { keyPrefix }),
    }),
  )("behind the key prefix of the client: %s", async (label, connect) => {
    const client = quiet(connect(here.server.port, `{${label}}*:`));
    await lists(client, "app:", here.redis);
    expect(await here.redis.exists(`{${label}}*:{app:open}`)).toBe(1);
    client.disconnect();
  });

  test("a client's prefix is part of where a circuit is: neither sees those of the other", async () => {
    const client = quiet(new Redis(here.server.port, { keyPrefix: "mine:" }));
    const [mine, bare] = [client, here.redis].map((of) => storeOf(of, { prefix: "part:" }));
    await mine?.control("mine").trip();
    await bare?.control("bare").trip();
    expect(namesOf((await mine?.circuits()) ?? [])).toEqual(["mine"]);
    expect(namesOf((await bare?.circuits()) ?? [])).toEqual(["bare"]);
    client.disconnect();
  });

  test("each once, however many there are and however often SCAN finds one of their keys", async () => {
    const names = Array.from({ length: 3000 }, (_, n) => `c${n}`);
    const writing = here.redis.pipeline();
    for (const name of names) {
      writing.hset(`{many:${name}}`, "state", "half-open", "epoch", "7");
      writing.zadd(`{many:${name}}:f`, "1", "a");
      writing.zadd(`{many:${name}}:p`, String(clock.now), "b");
    }
    await writing.exec();
    // Every page twice: SCAN may do that where the store grows or shrinks.
    let pages = 0;
    const client: RedisCommands = {
      command: async ([name = "", ...args]) => {
        const reply = await here.redis.call(name, ...args);
        if (name !== "SCAN") return reply;
        pages += 1;
        const [cursor, keys] = reply as [string, string[]];
        return [cursor, [...keys, ...keys]];
      },
      masters: () => [client],
    };
    const listed = await storeOf(client, { prefix: "many:" }).circuits();
    expect(namesOf(listed)).toEqual([...names].sort());
    expect(listed.every(({ snapshot }) => snapshot.state === "half-open" && snapshot.halfOpenInFlight === 1)).toBe(
      true,
    );
    expect(pages).toBeGreaterThan(1);
  });

  test("what is listed cannot be changed, and what it costs the store is reading alone", async () => {
    const store = storeOf(here.redis, { prefix: "read:" });
    await store.control("c").trip();
    const before = await here.redis.dump("{read:c}");
    const [circuit] = await store.circuits();
    expect(Object.isFrozen(circuit) && Object.isFrozen(circuit?.snapshot)).toBe(true);
    expect(await here.redis.dump("{read:c}")).toEqual(before);
  });
});

describe("a master that a sentinel watches", () => {
  let server: Server;
  let sentinel: Server;
  let admin: Redis;
  beforeAll(async () => {
    server = await startServer();
    admin = quiet(new Redis(server.port));
    sentinel = await startSentinel(server, "mymaster");
  });
  afterAll(async () => {
    admin.disconnect();
    await sentinel.stop();
    await server.stop();
  });

  test.each(Object.entries(SENTINEL_CLIENTS))("%s", async (label, connect) => {
    const connected = await connect(sentinel.port, "mymaster");
    await lists(connected.client, `${label}${GLOBS}:`, admin);
    connected.close();
  });
});

describe("input", () => {
  const here = place();
  const unasked: RedisCommands = {
    command: async ([name]) => {
      throw new Error(`${name} was sent`);
    },
    masters: () => [unasked],
  };

  test("a policy is checked before anything is sent", async () => {
    const store = storeOf(unasked);
    for (const [policy, field] of [
      [{ failureThreshold: 0 }, "failureThreshold"],
      [{ failureRate: 0.5 }, "failureRate"],
      [{ onStoreFailure: "open" }, "onStoreFailure"],
      [{ idleTtlMs: 1 }, "idleTtlMs"],
      [{ failures: 1 }, "failures"],
      [null, "policy"],
    ] as const) {
      const call = store.circuits(policy as never);
      await expect(call).rejects.toBeInstanceOf(ConfigError);
      await expect(call).rejects.toMatchObject({ field });
    }
    await expect(store.circuits({ clock: () => Number.NaN })).rejects.toBeInstanceOf(TimeError);
  });

  test("the policy of a breaker will do, whatever it says of a store that fails", async () => {
    const store = storeOf(here.redis, { prefix: "policy:" });
    const policy = {
      tripOn: "consecutive",
      failureThreshold: 3,
      onStoreFailure: "fail-open",
      isFailure: () => true,
    } as const;
    await new DistributedCircuitBreaker("c", store, policy).recordFailure();
    expect((await store.circuits(policy))[0]?.snapshot).toMatchObject({ consecutiveFailures: 1, failuresInWindow: 0 });
    const hidden = storeOf(unasked);
    expect(await reason(hidden.circuits(policy))).toBe("SCAN was sent");
  });

  test("an object with `command` has to name its masters, and the error says how", async () => {
    const { command } = unasked;
    await expect(storeOf({ command }).circuits()).rejects.toMatchObject({
      code: "config_invalid",
      field: "client",
      message: expect.stringMatching(/`client` must have `masters\(\)`/),
    });
    expect(await reason(storeOf({ command, masters: () => [] }).circuits())).toMatch(/knows no server/);
    const broken = () => {
      throw new Error("no masters today");
    };
    expect(await reason(storeOf({ command, masters: broken }).circuits())).toBe("no masters today");
  });
});

describe("the rights that lua/README.md gives", () => {
  const here = place();

  test("list circuits and steer them, together with `+scan`; without that the error says so", async () => {
    await here.server.cli("acl", "setuser", "operator", "on", ">secret", "~{cb:*", ...RIGHTS, "+scan", ...OF_A_CLIENT);
    await here.server.cli("acl", "setuser", "breaker", "on", ">secret", "~{cb:*", ...RIGHTS, ...OF_A_CLIENT);
    const as = (username: string) => quiet(new Redis({ port: here.server.port, username, password: "secret" }));
    const [operator, breaker] = [as("operator"), as("breaker")];
    const control = storeOf(operator).control("c");
    await control.trip();
    await control.forceOpen();
    await control.disable();
    await control.reset();
    await here.redis.set("{other:x}", "not ours");
    expect(namesOf(await storeOf(operator).circuits())).toEqual(["c"]);
    await storeOf(breaker).control("c").trip();
    const text = await reason(storeOf(breaker).circuits());
    expect(text).toMatch(/no permissions.*'scan'/i);
    expect(text).not.toContain("secret");
    operator.disconnect();
    breaker.disconnect();
  });
});

describe("a store that does not answer", () => {
  const here = place();

  test("is an error, of all circuits, which its listeners hear of too", async () => {
    const failing: RedisCommands = {
      command: () => Promise.reject(new Error("redis://user:secret@host is away")),
      masters: () => [failing],
    };
    const store = storeOf(failing);
    const events = eventsOf(store);
    const call = store.circuits();
    await expect(call).rejects.toMatchObject({ code: "store_unavailable", circuit: "*" });
    expect(await reason(call)).toMatch(/ is away$/);
    expect(JSON.stringify(await call.catch(String))).not.toContain("secret");
    expect(events).toHaveLength(1);
    expect(events[0]?.error).toBeInstanceOf(StoreError);
  });

  test("is one that has to be waited for too long", async () => {
    const hung: RedisCommands = { command: () => new Promise(() => undefined), masters: () => [hung] };
    expect(await reason(storeOf(hung, { timeoutMs: 20 }).circuits())).toBe("no answer within 20 ms");
    const hangsBefore = { ...hung, masters: () => new Promise<never>(() => undefined) };
    expect(await reason(storeOf(hangsBefore, { timeoutMs: 20 }).circuits())).toBe("no answer within 20 ms");
  });

  test("is one that hangs, and it is listed again when it goes on", async () => {
    const store = storeOf(here.redis, { prefix: "hangs:", timeoutMs: 500 });
    await storeOf(here.redis, { prefix: "hangs:" }).control("c").trip();
    here.server.pause();
    expect(await reason(store.circuits())).toBe("no answer within 500 ms");
    here.server.resume();
    expect(namesOf(await storeOf(here.redis, { prefix: "hangs:" }).circuits())).toEqual(["c"]);
  });

  test("is one that breaks off between two pages: nothing of it is given", async () => {
    let pages = 0;
    const breaking: RedisCommands = {
      command: async ([name = "", ...args]) => {
        if (name === "SCAN" && ++pages === 2) throw new Error("gone");
        return here.redis.call(name, ...args);
      },
      masters: () => [breaking],
    };
    await filled(here.redis);
    expect(await reason(storeOf(breaking).circuits())).toBe("gone");
  });

  test("is asked from the start when it is connected anew between two pages, for a cursor is one server's own", async () => {
    const client = quiet(new Redis(here.server.port));
    await client.ping();
    const begun: string[] = [];
    const breaking = (times: number) =>
      Object.create(client, {
        call: {
          value: async (name: string, ...args: string[]) => {
            if (name.toUpperCase() === "SCAN") {
              if (args[0] === "0") begun.push(name);
              else if (begun.length <= times) await here.redis.client("KILL", "ID", String(await client.client("ID")));
            }
            return client.call(name, ...args);
          },
        },
      });
    await filled(here.redis);
    await storeOf(here.redis, { prefix: "anew:" }).control("c").trip();
    expect(namesOf(await storeOf(breaking(1), { prefix: "anew:" }).circuits())).toEqual(["c"]);
    expect(begun).toHaveLength(2);
    begun.length = 0;
    expect(await reason(storeOf(breaking(100), { prefix: "anew:" }).circuits())).toMatch(/again and again/);
    expect(client.listenerCount("topology-change")).toBe(0);
    client.disconnect();
  });

  test.each([[[]], [["0"]], [["x", []]], [["0", "keys"]], ["OK"], [null], [7]])(
    "is one that answers %j to SCAN",
    async (reply) => {
      const strange: RedisCommands = { command: async () => reply, masters: () => [strange] };
      expect(await reason(storeOf(strange).circuits())).toBe("the reply is none that SCAN gives");
    },
  );

  test("is one whose circuit cannot be read, by its name", async () => {
    const store = storeOf(here.redis, { prefix: "wrong:" });
    await store.control("fine").trip();
    await here.redis.set("{wrong:text}", "no circuit");
    await expect(store.circuits()).rejects.toMatchObject({ code: "store_unavailable", circuit: "text" });
    expect(await reason(store.circuits())).toMatch(/WRONGTYPE/);
  });
});
