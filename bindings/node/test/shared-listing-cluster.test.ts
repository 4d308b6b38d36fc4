// Which circuits there are in a cluster: on every master, also on one that the client has not heard of, and while slots move.
import { type Redis, Cluster as RedisCluster } from "ioredis";
import { Cluster as Ioredis5Cluster } from "ioredis5";
import { Cluster as IovalkeyCluster } from "iovalkey";
import { type ListedCircuit, RedisStore } from "switchgear/redis";
import { describe, expect, test } from "vitest";
import { CLUSTER_CLIENTS, type Connected } from "./support/clients";
import { beginMove, clustered, join, type Node, ownerOf } from "./support/cluster";
import { PATIENT, reason } from "./support/failing-store";
import { OF_A_CLIENT, RIGHTS } from "./support/rights";
import { quiet } from "./support/stores";
import { ManualClock } from "./support/time";

const clock = new ManualClock(1_700_000_000_000);
const { nodes } = clustered();

function storeOf(client: object, prefix: string, timeoutMs = PATIENT): RedisStore {
  return new RedisStore(client, { clock: clock.read, prefix, timeoutMs });
}

function seeds(): { host: string; port: number }[] {
  return nodes.map(({ server: { port } }) => ({ host: "127.0.0.1", port }));
}

const namesOf = (circuits: readonly ListedCircuit[]) => circuits.map(({ name }) => name);

/** Names that every node has some of, sorted. */
const NAMES = Array.from({ length: 30 }, (_, n) => `c{${n}}`).sort();

/** Makes the circuits. */
async function filled(prefix: string): Promise<void> {
  const client = quiet(new RedisCluster(seeds()));
  const store = storeOf(client, prefix);
  await Promise.all(NAMES.map((name) => store.control(name).trip()));
  client.disconnect();
}

/** A client of ioredis whose masters are what a test makes of them. */
function viewOf(client: RedisCluster, change: (masters: Redis[]) => object[]): object {
  return Object.create(client, { nodes: { value: () => change(client.nodes("master")) } });
}

const atPort = (masters: Redis[], { server }: Node) =>
  masters.find(({ options }) => options.port === server.port) as Redis;

describe("three masters", () => {
  test.each(Object.entries(CLUSTER_CLIENTS))("%s", async (label, connect) => {
    const prefix = `${label}[*]:`;
    await filled(prefix);
    const owners = await Promise.all(NAMES.map((name) => ownerOf(`{${prefix}${name}}`, nodes)));
    expect(new Set(owners).size).toBe(3);
    const { client, close } = await connect(nodes.map(({ server }) => server.port));
    const listed = await storeOf(client, prefix).circuits();
    expect(namesOf(listed)).toEqual(NAMES);
    expect(new Set(listed.map(({ snapshot }) => snapshot.state))).toEqual(new Set(["open"]));
    close();
  });

  test.each(
    Object.entries({
      "ioredis 6": () => new RedisCluster(seeds(), { keyPrefix: "six*:", lazyConnect: true }),
      "ioredis 5": () => new Ioredis5Cluster(seeds(), { keyPrefix: "five*:", lazyConnect: true }),
      iovalkey: () => new IovalkeyCluster(seeds(), { keyPrefix: "valkey*:", lazyConnect: true }),
    }),
  )("behind the key prefix of the client, by one that has not begun to connect: %s", async (_, make) => {
    const client = quiet(make());
    const store = storeOf(client, "cb:");
    expect(await store.circuits()).toEqual([]);
    await Promise.all(NAMES.map((name) => store.control(name).trip()));
    expect(namesOf(await store.circuits())).toEqual(NAMES);
    client.disconnect();
  });

  test("with the rights that lua/README.md gives; without one of them the error says which", async () => {
    await filled("cb:");
    const given = ["~{cb:*", ...RIGHTS, ...OF_A_CLIENT, "+cluster|slots", "+cluster|info"];
    for (const { server } of nodes) {
      await server.cli("acl", "setuser", "operator", "on", ">secret", ...given, "+scan", "+cluster|nodes");
      await server.cli("acl", "setuser", "breaker", "on", ">secret", ...given, "+scan");
    }
    const as = (username: string) =>
      quiet(new RedisCluster(seeds(), { redisOptions: { username, password: "secret" } }));
    const [operator, breaker] = [as("operator"), as("breaker")];
    expect(namesOf(await storeOf(operator, "cb:").circuits())).toEqual(NAMES);
    await storeOf(breaker, "cb:")
      .control(NAMES[0] as string)
      .reset();
    expect(await reason(storeOf(breaker, "cb:").circuits())).toMatch(/no permissions.*'cluster/i);
    operator.disconnect();
    breaker.disconnect();
  });

  test("one that hangs: an error that names it, not the circuits of the others", async () => {
    await filled("hang:");
    const client = quiet(new RedisCluster(seeds()));
    const patient = storeOf(client, "hang:");
    expect(namesOf(await patient.circuits())).toEqual(NAMES);
    const hung = nodes[1] as Node;
    hung.server.pause();
    try {
      const call = storeOf(client, "hang:", 1000).circuits();
      await expect(call).rejects.toMatchObject({ code: "store_unavailable", circuit: "*" });
      expect(await reason(call)).toMatch(/^127\.0\.0\.1:\d+: no answer within 1000 ms$/);
    } finally {
      hung.server.resume();
    }
    expect(namesOf(await patient.circuits())).toEqual(NAMES);
    client.disconnect();
  });

  test("one that the client does not know and cannot be led to: an error that says where it is", async () => {
    const client = quiet(new RedisCluster(seeds()));
    const hidden = nodes[2] as Node;
    const view = viewOf(client, (masters) => masters.filter((master) => master !== atPort(masters, hidden)));
    await client.call("CLUSTER", "NODES");
    const text = await reason(storeOf(view, "hidden:", 1500).circuits());
    expect(text).toBe(`the cluster has a master at 127.0.0.1:${hidden.server.port} that the client does not know`);
    client.disconnect();
  });
});

describe("a slot that moves", () => {
  /** A circuit that the first node has, and one more of the same slot. */
  async function circuitsAt(node: Node, prefix: string): Promise<string> {
    for (let n = 0; ; n++) if ((await ownerOf(`{${prefix}${n}}`, nodes)) === node) return String(n);
  }

  test("behind a master that was looked through already: it is found by looking again", async () => {
    const [from, to] = [nodes[0] as Node, nodes[1] as Node];
    const name = await circuitsAt(from, "slips:");
    const client = quiet(new RedisCluster(seeds()));
    const store = storeOf(client, "slips:");
    await store.control(name).trip();
    // The other master is looked through, then the circuit moves there, and then its own is looked through.
    let scans = 0;
    let looked: () => void;
    const lookedThrough = new Promise<void>((resolve) => {
      looked = resolve;
    });
    const moved = lookedThrough.then(async () => {
      const move = await beginMove(`{slips:${name}}`, to, nodes);
      await move.take(`{slips:${name}}`);
      await move.end();
    });
    const view = viewOf(client, (masters) => {
      const [source, target] = [atPort(masters, from), atPort(masters, to)];
      const slipping =
        (master: Redis) =>
        async (command: string, ...args: string[]) => {
          const isScan = command.toUpperCase() === "SCAN";
          if (isScan && master === source) await moved;
          const reply = await master.call(command, ...args);
          if (isScan) scans += 1;
          if (isScan && master === target) looked();
          return reply;
        };
      return masters.map((master) => Object.create(master, { call: { value: slipping(master) } }));
    });
    expect(namesOf(await storeOf(view, "slips:").circuits())).toEqual([name]);
    expect(scans).toBe(6);
    client.disconnect();
  });

  test("while its circuit has not arrived whole the listing waits, and in the end says which", async () => {
    const name = await circuitsAt(nodes[1] as Node, "slow:");
    const client = quiet(new RedisCluster(seeds()));
    const store = storeOf(client, "slow:");
    await store.control(name).trip();
    const move = await beginMove(`{slow:${name}}`, nodes[0] as Node, nodes);
    await expect(storeOf(client, "slow:", 2000).circuits()).rejects.toMatchObject({
      code: "store_unavailable",
      circuit: name,
    });
    const listing = store.circuits();
    await move.take(`{slow:${name}}`);
    await move.end();
    expect(namesOf(await listing)).toEqual([name]);
    client.disconnect();
  });
});

// The last test: one more node joins, for good.
test("a master that is new: each client is led there, and lists its circuits", async () => {
  await filled("new:");
  const clients: [string, Connected][] = [];
  for (const [label, connect] of Object.entries(CLUSTER_CLIENTS)) {
    // Whoever names his masters himself names all of them.
    if (label.startsWith("anything")) continue;
    clients.push([label, await connect(nodes.map(({ server }) => server.port))]);
  }
  for (const [label, { client }] of clients)
    expect(namesOf(await storeOf(client, "new:").circuits()), label).toEqual(NAMES);
  const joined = await join(nodes);
  for (const name of NAMES.slice(0, 10)) {
    const move = await beginMove(`{new:${name}}`, joined, nodes);
    await move.take(`{new:${name}}`);
    await move.end();
  }
  expect(await joined.admin.dbsize()).toBe(10);
  for (const [label, { client, close }] of clients) {
    expect(namesOf(await storeOf(client, "new:").circuits()), label).toEqual(NAMES);
    close();
  }
});
