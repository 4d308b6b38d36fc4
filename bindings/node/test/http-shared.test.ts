// Requests that are guarded by circuits of a fleet: two clients of one name and one Redis are two processes.
import axios from "axios";
import { CircuitOpenError, StoreUnavailableError } from "switchgear";
import { circuitBreaker as circuitAdapter } from "switchgear/axios";
import { DistributedCircuitBreakerGroup, RedisStore, type SharedGroupOptions } from "switchgear/redis";
import { circuitBreaker as circuitInterceptor } from "switchgear/undici";
import { Agent, request } from "undici";
import { Agent as Agent6, request as request6 } from "undici6";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Origin, startOrigin } from "./support/origin.mjs";
import { intercepting, place, quiet } from "./support/stores";
import { ManualClock } from "./support/time";

const here = place();
const clock = new ManualClock(1_700_000_000_000);
let server: Origin;
let opened: { destroy(): Promise<void> }[] = [];

beforeEach(async () => {
  server = await startOrigin();
});
afterEach(async () => {
  await Promise.all(opened.map((agent) => agent.destroy()));
  opened = [];
  await server.close();
});

type Ask = (signal?: AbortSignal) => Promise<number>;

/** By name, what asks the server through a group, reads the answer whole and gives its status. */
const CLIENTS: Record<string, (group: DistributedCircuitBreakerGroup) => Ask> = {
  "undici 7": (group) => {
    const agent = new Agent();
    opened.push(agent);
    const dispatcher = agent.compose(circuitInterceptor({ group }));
    return async (signal) => {
      const { statusCode, body } = await request(server.origin, { dispatcher, ...(signal && { signal }) });
      await body.text();
      return statusCode;
    };
  },
  "undici 6": (group) => {
    const agent = new Agent6();
    opened.push(agent);
    const dispatcher = agent.compose(circuitInterceptor({ group }));
    return async (signal) => {
      const { statusCode, body } = await request6(server.origin, { dispatcher, ...(signal && { signal }) });
      await body.text();
      return statusCode;
    };
  },
  axios: (group) => {
    const http = axios.create({ adapter: circuitAdapter({ group }), validateStatus: null });
    return async (signal) => (await http.get(server.origin, { ...(signal && { signal }) })).status;
  },
};

describe.each(Object.entries(CLIENTS))("%s", (name, make) => {
  const group = (client: object = here.redis, options: SharedGroupOptions = {}) => {
    const store = new RedisStore(client, { clock: clock.read, timeoutMs: 20_000 });
    return new DistributedCircuitBreakerGroup(`${name} ${server.origin}`, store, {
      failureThreshold: 2,
      openDurationMs: 1000,
      ...options,
    });
  };
  const snapshot = (of: DistributedCircuitBreakerGroup) => of.for(server.origin).getSnapshot();

  test("the fleet trips together, spares the server, and one probe is enough for all", async () => {
    const groups = [group(), group()];
    const [one, two] = groups.map(make) as [Ask, Ask];
    server.answer = { status: 500 };
    expect(await one()).toBe(500);
    expect(await two()).toBe(500);
    await vi.waitFor(async () => expect((await snapshot(groups[0] as never)).state).toBe("open"), 60_000);
    for (const ask of [one, two]) await expect(ask()).rejects.toThrow(CircuitOpenError);
    expect(server.requests).toBe(2);
    server.answer = { status: 200 };
    clock.now += 1000;
    expect(await one()).toBe(200);
    await vi.waitFor(async () => expect((await snapshot(groups[1] as never)).state).toBe("closed"), 60_000);
    expect(await two()).toBe(200);
  });

  test("a Retry-After opens it for the whole fleet, for just as long", async () => {
    const here = group();
    server.answer = { status: 503, headers: { "retry-after": "60" } };
    expect(await make(group())()).toBe(503);
    await vi.waitFor(async () => expect((await snapshot(here)).remainingOpenMs).toBe(60_000), 60_000);
    await expect(make(here)()).rejects.toMatchObject({ retryAfterMs: 60_000 });
    expect(server.requests).toBe(1);
  });

  test("a probe that its caller gives up frees the fleet's slot", async () => {
    const circuits = group();
    await circuits.for(server.origin).trip({ forMs: 1 });
    clock.now += 1;
    server.answer = { hang: true };
    const controller = new AbortController();
    const probe = make(circuits)(controller.signal);
    await server.reached(1);
    controller.abort();
    await expect(probe).rejects.toThrow();
    await vi.waitFor(async () => {
      expect(await snapshot(circuits)).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
    }, 60_000);
  });

  test("who gives up while the store is being asked sends nothing, and leaves no slot taken", async () => {
    const controller = new AbortController();
    const client = intercepting(
      () => here.redis,
      async (args, through) => {
        const answer = await through(args);
        if (args[0] !== "TIME") controller.abort();
        return answer;
      },
    );
    const circuits = group(client);
    await group().for(server.origin).trip({ forMs: 1 });
    clock.now += 1;
    await expect(make(circuits)(controller.signal)).rejects.toThrow();
    await vi.waitFor(async () => expect((await snapshot(group())).halfOpenInFlight).toBe(0), 60_000);
    // Whatever was sent before is there when this is.
    await fetch(server.origin);
    expect(server.requests).toBe(1);
  });

  test("where the store decides and does not answer, nothing is sent", async () => {
    const client = quiet(here.redis.duplicate());
    client.disconnect();
    const ask = make(group(client, { onStoreFailure: "fail-closed" }));
    await expect(ask()).rejects.toThrow(StoreUnavailableError);
    expect(server.requests).toBe(0);
  });
});

test("axios: the Retry-After of a server that the caller was sent to is for the whole fleet, too", async () => {
  const other = await startOrigin();
  try {
    const store = new RedisStore(here.redis, { clock: clock.read, timeoutMs: 20_000 });
    const group = new DistributedCircuitBreakerGroup(`redirected ${server.origin}`, store);
    const http = axios.create({ adapter: circuitAdapter({ group }), validateStatus: null });
    server.answer = { status: 302, headers: { location: `${other.origin}/there` } };
    other.answer = { status: 503, headers: { "retry-after": "60" } };
    expect((await http.get(server.origin)).status).toBe(503);
    expect(await group.for(server.origin).getState()).toBe("closed");
    expect(await group.for(other.origin).getSnapshot()).toMatchObject({ state: "open", remainingOpenMs: 60_000 });
  } finally {
    await other.close();
  }
});
