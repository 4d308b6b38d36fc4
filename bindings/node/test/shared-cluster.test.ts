// What a cluster does to a circuit: forgotten scripts on any node, and slots that move while calls are under way.
import { Cluster as RedisCluster } from "ioredis";
import { createCluster } from "redis";
import { DistributedCircuitBreaker, type RedisCommands, RedisStore } from "switchgear/redis";
import { afterEach, describe, expect, test, vi } from "vitest";
import { CLUSTER_CLIENTS } from "./support/clients";
import { beginMove, clustered, join, type Node, ownerOf, until } from "./support/cluster";
import { holdMeasuring } from "./support/failing-store";
import { quiet } from "./support/stores";
import { Deferred, ManualClock } from "./support/time";

const { nodes } = clustered();
const clock = new ManualClock(1_700_000_000_000);

/** A node that has not the slot of a key. */
async function another(key: string): Promise<Node> {
  const owner = await ownerOf(key, nodes);
  const other = nodes.find((node) => node !== owner);
  if (other === undefined) throw new Error("a cluster has more nodes than one");
  return other;
}

function breakerThrough(client: object, name: string): DistributedCircuitBreaker {
  const store = new RedisStore(client, { clock: clock.read, timeoutMs: 10_000 });
  return new DistributedCircuitBreaker(name, store, { failureThreshold: 3, openDurationMs: 1000 });
}

function addresses(): { host: string; port: number }[] {
  return nodes.map(({ server }) => ({ host: "127.0.0.1", port: server.port }));
}

describe("each master", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  /** How often each node was asked for its time. */
  async function timesAsked(): Promise<number[]> {
    const stats = await Promise.all(nodes.map(({ admin }) => admin.info("commandstats")));
    return stats.map((text) => Number(/cmdstat_time:calls=(\d+)/.exec(text)?.[1] ?? 0));
  }

  test.each(Object.entries(CLUSTER_CLIENTS))(
    "is asked for its own time, once, by a circuit that lives there: %s",
    async (label, connect) => {
      const { client, close } = await connect(nodes.map(({ server }) => server.port));
      // However long an answer takes, which may have to wait for a connection: one that took long is asked for again soon.
      holdMeasuring();
      const store = new RedisStore(client, { timeoutMs: 10_000 });
      const circuit = (name: string) => new DistributedCircuitBreaker(`${label} ${name}`, store);
      // The client has learnt where things are.
      await circuit("first").getState();
      const nameless = "command" in client && !("status" in client || "isOpen" in client);
      const asked = new Set<Node>();
      for (const name of ["a", "b", "c", "d", "e", "f", "g", "h"]) {
        const owner = await ownerOf(`{cb:${label} ${name}}`, nodes);
        const before = await timesAsked();
        for (let n = 0; n < 3; n++) await circuit(name).execute(async () => "ok");
        const more = (await timesAsked()).map((now, node) => now - (before[node] ?? 0));
        expect(more.reduce((sum, n) => sum + n)).toBeLessThanOrEqual(asked.has(owner) || nameless ? 0 : 1);
        expect(more.filter((_, at) => nodes[at] !== owner)).toEqual([0, 0]);
        asked.add(owner);
      }
      expect(asked.size).toBe(3);
      if (!nameless) expect((await timesAsked()).every((n) => n > 0)).toBe(true);
      close();
    },
  );

  test("counts for itself: one that is gone leaves the circuits of the others alone", async () => {
    const client = quiet(new RedisCluster(addresses()));
    const gone = new Map<string, boolean>();
    const owner = await ownerOf("{cb:lame}", nodes);
    // The commands to one node fail, whatever they are.
    const call = (name: string, ...args: string[]) =>
      [...gone.keys()].some((key) => args.includes(key))
        ? Promise.reject(new Error("gone"))
        : client.call(name, ...args);
    const view = Object.create(client, { call: { value: call } });
    const store = new RedisStore(view, { clock: clock.read, timeoutMs: 10_000 });
    const told: unknown[] = [];
    store.on("degraded", (event) => told.push(event));
    await new DistributedCircuitBreaker("lame", store).getState();
    let elsewhere = 0;
    while ((await ownerOf(`{cb:well ${elsewhere}}`, nodes)) === owner) elsewhere += 1;
    gone.set("{cb:lame}", true);
    const lame = new DistributedCircuitBreaker("lame", store);
    for (let n = 0; n < 5; n++) expect(await lame.execute(async () => "ok")).toBe("ok");
    expect(told).toHaveLength(1);
    const well = new DistributedCircuitBreaker(`well ${elsewhere}`, store);
    await expect(
      well.execute(async () => {
        throw new Error("counted");
      }),
    ).rejects.toThrow("counted");
    expect((await well.getSnapshot()).failuresInWindow).toBe(1);
    await well.trip();
    expect(await well.canExecute()).toBe(false);
    client.disconnect();
  });
});

describe("scenario 52", () => {
  test("scripts that every node has forgotten cost one more round trip each, and nothing counts twice", async () => {
    const inner = new RedisCluster(addresses());
    let commands = 0;
    const client: RedisCommands = {
      async command([name = "", ...args]) {
        commands += 1;
        await Promise.all(nodes.map(({ admin }) => admin.script("FLUSH")));
        return inner.call(name, ...args);
      },
    };
    for (const name of ["a", "b", "c", "d"]) {
      const breaker = breakerThrough(client, `flushed ${name}`);
      const permit = await breaker.acquire();
      expect(commands).toBe(2);
      expect(await permit.recordFailure()).toBe("applied");
      expect(commands).toBe(4);
      expect((await breaker.getSnapshot()).failuresInWindow).toBe(1);
      commands = 0;
    }
    inner.disconnect();
  });

  test("a slot that moved between admission and settlement is followed to its new node", async () => {
    const client = new RedisCluster(addresses());
    const breaker = breakerThrough(client, "moved");
    await breaker.recordFailure();
    const permit = await breaker.acquire();
    const move = await beginMove("{cb:moved}", await another("{cb:moved}"), nodes);
    await move.take("{cb:moved}:f");
    await move.end();
    expect(await permit.recordFailure()).toBe("applied");
    expect((await breaker.getSnapshot()).failuresInWindow).toBe(2);
    expect(await breaker.recordFailure()).toBe("applied");
    expect(await breaker.getState()).toBe("open");
    client.disconnect();
  });

  test("a slot on the move is asked again until it has arrived, and the outcome counts once", async () => {
    const inner = createCluster({ rootNodes: nodes.map(({ server }) => ({ url: server.url })) });
    await inner.connect();
    const turnedAway = new Deferred<void>();
    let refusals = 0;
    const client: RedisCommands = {
      command: (args, key) =>
        inner.sendCommand(key, false, args).catch((error) => {
          if (/^TRYAGAIN/.test(error.message)) refusals += 1;
          if (refusals === 3) turnedAway.resolve();
          throw error;
        }),
    };
    const breaker = breakerThrough(client, "moving");
    // A probe under way: the circuit has a hash and a set of probes, which arrive one after the other.
    await breaker.trip();
    clock.now += 1000;
    const probe = await breaker.acquire();
    const move = await beginMove("{cb:moving}", await another("{cb:moving}"), nodes);
    await move.take("{cb:moving}");
    const settled = probe.recordFailure();
    await turnedAway.promise;
    await move.take("{cb:moving}:p");
    await move.end();
    expect(await settled).toBe("applied");
    expect(await breaker.getSnapshot()).toMatchObject({ state: "open", trips: 2 });
    await inner.close();
  });

  // The last test: it kills a node.
  test("the replica of a killed primary goes on with the circuit, and the outcome counts once", async () => {
    const client = quiet(new RedisCluster(addresses()));
    const breaker = breakerThrough(client, "survivor");
    await breaker.recordFailure();
    const permit = await breaker.acquire();

    const owner = await ownerOf("{cb:survivor}", nodes);
    const others = nodes.filter((node) => node !== owner);
    // All know it and it knows all: afterwards nobody is left who would tell it of the others.
    const replica = await join([...nodes]);
    const id = String(await owner.admin.cluster("MYID"));
    const replicaId = String(await replica.admin.cluster("MYID"));
    /** Whether the others take the replica for this. */
    const isTakenFor = async (role: string) => {
      const views = await Promise.all(others.map(async ({ admin }) => String(await admin.cluster("NODES"))));
      return views.every((view) => new RegExp(`^${replicaId} .* ${role} `, "m").test(view));
    };
    await replica.admin.call("CLUSTER", "REPLICATE", id);
    await until(async () => (await replica.admin.info("replication")).includes("master_link_status:up"));
    await until(() => isTakenFor(`slave ${id}`));
    await owner.server.stop();
    await replica.admin.call("CLUSTER", "FAILOVER", "TAKEOVER");
    await until(() => isTakenFor("master -"));
    // It may become one before it has heard of the other masters' slots, and says then that the cluster is down.
    const isUp = async ({ admin }: Node) => String(await admin.cluster("INFO")).includes("cluster_state:ok");
    await until(async () => (await Promise.all([replica, ...others].map(isUp))).every(Boolean));

    expect(await permit.recordFailure()).toBe("applied");
    expect(await breaker.getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 2 });
    client.disconnect();
    replica.admin.disconnect();
    await replica.server.stop();
  });
});
