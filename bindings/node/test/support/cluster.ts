/** A cluster for the tests of one file: its nodes, and slots that move between them. */
import { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { CLUSTERED, type Server, startCluster, startServer } from "../../../../tests/support/servers.mjs";
import { quiet } from "./stores";

/** A node, and whoever administers it. */
export interface Node {
  readonly server: Server;
  readonly admin: Redis;
}

/** Starts a cluster of three masters before the tests, and ends it after them with all that joined. The nodes are in `nodes`. */
export function clustered(): { readonly nodes: Node[] } {
  const nodes: Node[] = [];
  beforeAll(async () => {
    const cluster = await startCluster();
    nodes.push(...cluster.nodes.map(administered));
  });
  afterAll(async () => {
    for (const { admin } of nodes) admin.disconnect();
    await Promise.all(nodes.map(({ server }) => server.stop()));
  });
  return { nodes };
}

/** One more master, without a slot, that all others know. */
export async function join(nodes: Node[]): Promise<Node> {
  const node = administered(await startServer({ args: CLUSTERED }));
  const others = [...nodes];
  nodes.push(node);
  for (const { server } of others) await node.admin.call("CLUSTER", "MEET", "127.0.0.1", String(server.port));
  const id = String(await node.admin.cluster("MYID"));
  for (const { admin } of others) {
    // A handshake goes under a name that is not yet its own.
    await until(async () => new RegExp(`^${id} .* master `, "m").test(String(await admin.cluster("NODES"))));
  }
  await until(async () => String(await node.admin.cluster("INFO")).includes("cluster_state:ok"));
  return node;
}

/** Which node has the slot of a key. */
export async function ownerOf(key: string, nodes: readonly Node[]): Promise<Node> {
  const answers = await Promise.allSettled(nodes.map(({ admin }) => admin.exists(key)));
  const owner = nodes[answers.findIndex(({ status }) => status === "fulfilled")];
  if (owner === undefined) throw new Error("no node has the slot");
  return owner;
}

/** Begins to move the slot of a key to a node. */
export async function beginMove(key: string, to: Node, nodes: readonly Node[]): Promise<Move> {
  const from = await ownerOf(key, nodes);
  const slot = String(await to.admin.cluster("KEYSLOT", key));
  await to.admin.call("CLUSTER", "SETSLOT", slot, "IMPORTING", String(await from.admin.cluster("MYID")));
  await from.admin.call("CLUSTER", "SETSLOT", slot, "MIGRATING", String(await to.admin.cluster("MYID")));
  return {
    take: async (...keys) => {
      await from.admin.call("MIGRATE", "127.0.0.1", String(to.server.port), "", "0", "5000", "KEYS", ...keys);
    },
    end: async () => {
      const owner = String(await to.admin.cluster("MYID"));
      for (const { admin } of [to, ...nodes]) await admin.call("CLUSTER", "SETSLOT", slot, "NODE", owner);
    },
  };
}

/** The way of one slot from the node that has it to another. */
export interface Move {
  take(...keys: string[]): Promise<void>;
  end(): Promise<void>;
}

/** Asks again until it is so. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}

function administered(server: Server): Node {
  return { server, admin: quiet(new Redis(server.port)) };
}
