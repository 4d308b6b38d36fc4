// Whose time it is: that of the store, unless the user says otherwise.
import { Redis } from "ioredis";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { describe, expect, test } from "vitest";
import { runScript } from "./support/child";
import { eventsOf, lazily, PATIENT } from "./support/failing-store";
import { intercepting, quiet } from "./support/stores";
import { fail, succeed } from "./support/time";

const { server, redis } = lazily();

function counted(options?: { clock?: "server" | "system" }): { store: RedisStore; sent: string[] } {
  const sent: string[] = [];
  const call = (name: string, ...args: string[]) => {
    sent.push(name);
    return redis().call(name, ...args);
  };
  const client = Object.create(redis(), { call: { value: call } });
  return { store: new RedisStore(client, { timeoutMs: PATIENT, ...options }), sent };
}

/** The server's time in ms. */
async function serverNow(): Promise<number> {
  const [seconds, micros] = (await redis().time()) as unknown as [number, number];
  return Number(seconds) * 1000 + Number(micros) / 1000;
}

test("the store is asked for its time ahead of the first command, once for all its circuits", async () => {
  const { store, sent } = counted();
  await new DistributedCircuitBreaker("first", store).execute(succeed);
  await new DistributedCircuitBreaker("second", store).execute(succeed);
  expect(sent).toEqual(["TIME", "HMGET", "HMGET"]);
});

test("the wall clock asks nobody", async () => {
  const { store, sent } = counted({ clock: "system" });
  await new DistributedCircuitBreaker("wall", store).execute(succeed);
  expect(sent).toEqual(["HMGET"]);
});

describe("scenario 50: a host whose clock is ten minutes wrong", () => {
  test.each([600_000, -600_000])(
    "by %d ms trips with the fleet, and neither probes early nor keeps others from it",
    async (skew) => {
      const name = `skewed ${skew}`;
      const policy = { failureThreshold: 2, openDurationMs: 300_000 };
      const mine = new DistributedCircuitBreaker(name, new RedisStore(redis(), { timeoutMs: PATIENT }), policy);
      await mine.execute(fail).catch(() => undefined);
      const ran = await runScript(`
      // Both of the host's clocks, from before the package is loaded.
      const [now, origin] = [Date.now, performance.timeOrigin];
      Date.now = () => now() + ${skew};
      Object.defineProperty(performance, "timeOrigin", { value: origin + ${skew} });
      const { Redis } = await import("ioredis");
      const { DistributedCircuitBreaker, RedisStore } = await import("switchgear/redis");
      const redis = new Redis(${server().port});
      const store = new RedisStore(redis, { timeoutMs: ${PATIENT} });
      const breaker = new DistributedCircuitBreaker("${name}", store, ${JSON.stringify(policy)});
      await breaker.execute(async () => { throw new Error("down") }).catch(() => {});
      const fresh = new DistributedCircuitBreaker("${name}", store, ${JSON.stringify(policy)});
      const error = await fresh.execute(async () => "early").catch((error) => error);
      // A little more than the time open may be left: its own idea of the store's time is as exact as its round trips are quick.
      console.log(error.code, error.retryAfterMs > 0 && error.retryAfterMs < 400_000 || error.retryAfterMs);
      redis.disconnect();
    `);
      expect(ran).toEqual({ code: 0, stdout: "circuit_open true\n", stderr: "" });
      const { state, openedAt, trips } = await mine.getSnapshot();
      expect([state, trips]).toEqual(["open", 1]);
      // Long before the skew could be made up for by a slow machine.
      expect(Math.abs((openedAt ?? 0) - (await serverNow()))).toBeLessThan(300_000);
      expect(await mine.canExecute()).toBe(false);
    },
  );
});

test("a store that does not say its time is told the host's", async () => {
  await server().cli("acl", "setuser", "timeless", "on", "nopass", "~*", "+@all", "-time");
  const client = quiet(new Redis({ port: server().port, username: "timeless", password: "any" }));
  const store = new RedisStore(client, { timeoutMs: PATIENT });
  const events = eventsOf(store);
  const breaker = new DistributedCircuitBreaker("timeless", store, { failureThreshold: 1 });
  await breaker.execute(fail).catch(() => undefined);
  expect(await breaker.getState()).toBe("open");
  expect(events).toEqual([]);
  client.disconnect();
});

test("a TIME that is no time is none", async () => {
  const client = intercepting(redis, (args, through) => (args[0] === "TIME" ? ["soon"] : through(args)));
  const breaker = new DistributedCircuitBreaker("soon", new RedisStore(client, { timeoutMs: PATIENT }));
  expect(await breaker.execute(succeed)).toBe("ok");
});
