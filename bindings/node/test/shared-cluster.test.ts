// What a cluster does to a circuit: forgotten scripts on any node, and slots that move while calls are under way.
import { Redis, Cluster as RedisCluster } from "ioredis";
import { createCluster } from "redis";
import { DistributedCircuitBreaker, type RedisCommands, RedisStore } from "switchgear/redis";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { CLUSTERED, type Cluster, type Server, startCluster, startServer } from "../../../tests/support/servers.mjs";
import { CLUSTER_CLIENTS } from "./support/clients";
import { holdMeasuring } from "./support/failing-store";
import { quiet } from "./support/stores";
import { Deferred, ManualClock } from "./support/time";

let cluster: Cluster;
let admins: Redis[];
beforeAll(async () => {
  cluster = await startCluster();
  admins = cluster.nodes.map(({ port }) => quiet(new Redis(port)));
});
afterAll(async () => {
  for (const admin of admins) admin.disconnect();
  await cluster.stop();
});

/** Which node has the slot of a key. */
async function ownerOf(key: string): Promise<number> {
  const answers = await Promise.allSettled(admins.map((admin) => admin.exists(key)));
  return answers.findIndex(({ status }) => status === "fulfilled");
}

/** Asks again until it is so. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** The way of one slot from the node that has it to another. */
class Move {
  private constructor(
    private readonly slot: string,
    private readonly from: Redis,
    private readonly to: Redis,
    private readonly toNode: Server,
  ) {}

  /** Begins to move the slot of a key. */
  static async of(key: string): Promise<Move> {
    const from = await ownerOf(key);
    const to = (from + 1) % admins.length;
    const [source, target, node] = [admins[from], admins[to], cluster.nodes[to]];
    if (source === undefined || target === undefined || node === undefined) throw new Error("no node has the slot");
    const slot = String(await source.cluster("KEYSLOT", key));
    await target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", String(await source.cluster("MYID")));
    await source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", String(await target.cluster("MYID")));
    return new Move(slot, source, target, node);
  }

  async take(...keys: string[]): Promise<void> {
    await this.from.call("MIGRATE", "127.0.0.1", String(this.toNode.port), "", "0", "5000", "KEYS", ...keys);
  }

  async end(): Promise<void> {
    const owner = String(await this.to.cluster("MYID"));
    for (const node of [this.to, ...admins]) await node.call("CLUSTER", "SETSLOT", this.slot, "NODE", owner);
  }
}

const clock = new ManualClock(1_700_000_000_000);

function breakerThrough(client: object, name: string): DistributedCircuitBreaker {
  const store = new RedisStore(client, { clock: clock.read, timeoutMs: 10_000 });
  return new DistributedCircuitBreaker(name, store, { failureThreshold: 3, openDurationMs: 1000 });
}

function nodes(): { host: string; port: number }[] {
  return cluster.nodes.map(({ port }) => ({ host: "127.0.0.1", port }));
}

describe("each master", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  /** How often each node was asked for its time. */
  async function timesAsked(): Promise<number[]> {
    const stats = await Promise.all(admins.map((admin) => admin.info("commandstats")));
    return stats.map((text) => Number(/cmdstat_time:calls=(\d+)/.exec(text)?.[1] ?? 0));
  }

  test.each(Object.entries(CLUSTER_CLIENTS))(
    "is asked for its own time, once, by a circuit that lives there: %s",
    async (label, connect) => {
      const { client, close } = await connect(cluster.nodes.map(({ port }) => port));
      // However long an answer takes, which may have to wait for a connection: one that took long is asked for again soon.
      holdMeasuring();
      const store = new RedisStore(client, { timeoutMs: 10_000 });
      const circuit = (name: string) => new DistributedCircuitBreaker(`${label} ${name}`, store);
      // The client has learnt where things are.
      await circuit("first").getState();
      const nameless = "command" in client && !("status" in client || "isOpen" in client);
      const asked = new Set<number>();
      for (const name of ["a", "b", "c", "d", "e", "f", "g", "h"]) {
        const owner = await ownerOf(`{cb:${label} ${name}}`);
        const before = await timesAsked();
        for (let n = 0; n < 3; n++) await circuit(name).execute(async () => "ok");
        const more = (await timesAsked()).map((now, node) => now - (before[node] ?? 0));
        expect(more.reduce((sum, n) => sum + n)).toBeLessThanOrEqual(asked.has(owner) || nameless ? 0 : 1);
        expect(more.filter((_, node) => node !== owner)).toEqual([0, 0]);
        asked.add(owner);
      }
      expect(asked.size).toBe(3);
      if (!nameless) expect((await timesAsked()).every((n) => n > 0)).toBe(true);
      close();
    },
  );

  test("counts for itself: one that is gone leaves the circuits of the others alone", async () => {
    const client = quiet(new RedisCluster(nodes()));
    const gone = new Map<string, boolean>();
    const owner = await ownerOf("{cb:lame}");
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
    while ((await ownerOf(`{cb:well ${elsewhere}}`)) === owner) elsewhere += 1;
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
    const inner = new RedisCluster(nodes());
    let commands = 0;
    const client: RedisCommands = {
      async command([name = "", ...args]) {
        commands += 1;
        await Promise.all(admins.map((admin) => admin.script("FLUSH")));
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
    const client = new RedisCluster(nodes());
    const breaker = breakerThrough(client, "moved");
    await breaker.recordFailure();
    const permit = await breaker.acquire();
    const move = await Move.of("{cb:moved}");
    await move.take("{cb:moved}:f");
    await move.end();
    expect(await permit.recordFailure()).toBe("applied");
    expect((await breaker.getSnapshot()).failuresInWindow).toBe(2);
    expect(await breaker.recordFailure()).toBe("applied");
    expect(await breaker.getState()).toBe("open");
    client.disconnect();
  });

  test("a slot on the move is asked again until it has arrived, and the outcome counts once", async () => {
    const inner = createCluster({ rootNodes: cluster.nodes.map(({ url }) => ({ url })) });
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
    const move = await Move.of("{cb:moving}");
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
    const replica = await startServer({ args: CLUSTERED });
    const admin = quiet(new Redis(replica.port));
    const client = quiet(new RedisCluster(nodes()));
    const breaker = breakerThrough(client, "survivor");
    await breaker.recordFailure();
    const permit = await breaker.acquire();

    const owner = await ownerOf("{cb:survivor}");
    const [primary, node] = [admins[owner], cluster.nodes[owner]];
    if (primary === undefined || node === undefined) throw new Error("no node has the slot");
    const id = String(await primary.cluster("MYID"));
    const replicaId = String(await admin.cluster("MYID"));
    const others = admins.filter((other) => other !== primary);
    /** What another node takes the replica for. */
    const seenBy = async (other: Redis) =>
      String(await other.cluster("NODES"))
        .split("\n")
        .find((line) => line.startsWith(replicaId));
    await admin.call("CLUSTER", "MEET", "127.0.0.1", String(node.port));
    await until(async () => String(await admin.cluster("NODES")).includes(id));
    await admin.call("CLUSTER", "REPLICATE", id);
    await until(async () => (await admin.info("replication")).includes("master_link_status:up"));
    await until(async () => (await Promise.all(others.map(seenBy))).every((line) => line !== undefined));
    await node.stop();
    await admin.call("CLUSTER", "FAILOVER", "TAKEOVER");
    await until(async () => (await Promise.all(others.map(seenBy))).every((line) => line?.includes("master")));
    // It may become one before it has heard of the other masters' slots, and says then that the cluster is down.
    const isUp = async (one: Redis) => String(await one.cluster("INFO")).includes("cluster_state:ok");
    await until(async () => (await Promise.all([admin, ...others].map(isUp))).every(Boolean));

    expect(await permit.recordFailure()).toBe("applied");
    expect(await breaker.getSnapshot()).toMatchObject({ state: "closed", failuresInWindow: 2 });
    client.disconnect();
    admin.disconnect();
    await replica.stop();
  });
});
