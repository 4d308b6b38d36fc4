import { Redis as Ioredis6, Cluster as Ioredis6Cluster } from "ioredis";
import { Redis as Ioredis5, Cluster as Ioredis5Cluster } from "ioredis5";
import { Redis as Iovalkey, Cluster as IovalkeyCluster } from "iovalkey";
import * as redis6 from "redis";
import * as redis5 from "redis5";
import type { RedisCommands } from "switchgear/redis";

/** A connected client of some library, and how to end it. */
export interface Connected {
  readonly client: object;
  close(): void;
}

/** The client libraries, each as a user would set it up. `key` goes with any command, where the way leads by a key. */
export const CLIENTS: Readonly<Record<string, (port: number) => Promise<Connected>>> = {
  "ioredis 6": async (port) => ended(new Ioredis6(port)),
  "ioredis 6, RESP2, auto-pipelining": async (port) =>
    ended(new Ioredis6(port, { protocol: 2, enableAutoPipelining: true })),
  "ioredis 6, numbers as texts": async (port) => ended(new Ioredis6(port, { stringNumbers: true })),
  "ioredis 5": async (port) => ended(new Ioredis5(port)),
  iovalkey: async (port) => ended(new Iovalkey(port)),
  "node-redis 6": async (port) => opened(redis6.createClient({ url: url(port), RESP: 3 })),
  "node-redis 6, RESP2": async (port) => opened(redis6.createClient({ url: url(port), RESP: 2 })),
  "node-redis 6, Buffers and texts": async (port) =>
    opened(
      redis6.createClient({ url: url(port) }).withTypeMapping({
        [redis6.RESP_TYPES.BLOB_STRING]: Buffer,
        [redis6.RESP_TYPES.NUMBER]: String,
      }),
    ),
  "node-redis 6, a pool": async (port) => opened(redis6.createClientPool({ url: url(port) })),
  "node-redis 5": async (port) => opened(redis5.createClient({ url: url(port) })),
  "anything with command(args, key)": async (port) => {
    const inner = new Ioredis6(port);
    const client: RedisCommands = {
      command: ([name = "", ...args]) => inner.call(name, ...args),
      masters: () => [client],
    };
    return { ...ended(inner), client };
  },
  "anything whose command gives Buffers": async (port) => {
    const inner = new Ioredis6(port);
    const client: RedisCommands = {
      command: ([name = "", ...args]) => inner.callBuffer(name, ...args),
      masters: () => [client],
    };
    return { ...ended(inner), client };
  },
};

/** The same for a cluster, given the ports of its nodes. */
export const CLUSTER_CLIENTS: Readonly<Record<string, (ports: readonly number[]) => Promise<Connected>>> = {
  "ioredis 6": async (ports) => ended(new Ioredis6Cluster(nodes(ports))),
  "ioredis 6, auto-pipelining": async (ports) =>
    ended(new Ioredis6Cluster(nodes(ports), { enableAutoPipelining: true })),
  "ioredis 6, reads from replicas": async (ports) => ended(new Ioredis6Cluster(nodes(ports), { scaleReads: "slave" })),
  "ioredis 5": async (ports) => ended(new Ioredis5Cluster(nodes(ports))),
  iovalkey: async (ports) => ended(new IovalkeyCluster(nodes(ports))),
  "iovalkey, auto-pipelining": async (ports) =>
    ended(new IovalkeyCluster(nodes(ports), { enableAutoPipelining: true })),
  "node-redis 6": async (ports) =>
    opened(redis6.createCluster({ rootNodes: ports.map((port) => ({ url: url(port) })) })),
  "node-redis 5": async (ports) =>
    opened(redis5.createCluster({ rootNodes: ports.map((port) => ({ url: url(port) })) })),
  "anything with command(args, key)": async (ports) => {
    const inner = redis6.createCluster({ rootNodes: ports.map((port) => ({ url: url(port) })) });
    const { close } = await opened(inner);
    const client: RedisCommands = {
      command: (args, key) => inner.sendCommand(key, false, args),
      masters: () =>
        Promise.all(
          inner.masters.map(async (master) => {
            const node = await inner.nodeClient(master);
            return { command: (args: string[]) => node.sendCommand(args) };
          }),
        ),
    };
    return { client, close };
  },
};

/** The same for a master that a sentinel on this port knows by the name. */
export const SENTINEL_CLIENTS: Readonly<Record<string, (port: number, name: string) => Promise<Connected>>> = {
  "ioredis 6": async (port, name) => ended(new Ioredis6({ sentinels: nodes([port]), name })),
  "ioredis 5": async (port, name) => ended(new Ioredis5({ sentinels: nodes([port]), name })),
  iovalkey: async (port, name) => ended(new Iovalkey({ sentinels: nodes([port]), name })),
  "node-redis 6": async (port, name) => opened(redis6.createSentinel({ name, sentinelRootNodes: nodes([port]) })),
  "node-redis 5": async (port, name) => opened(redis5.createSentinel({ name, sentinelRootNodes: nodes([port]) })),
};

function url(port: number): string {
  return `redis://127.0.0.1:${port}`;
}

function nodes(ports: readonly number[]): { host: string; port: number }[] {
  return ports.map((port) => ({ host: "127.0.0.1", port }));
}

function ended(client: { disconnect(): void; on(event: "error", listener: () => void): unknown }): Connected {
  client.on("error", ignore);
  return { client, close: () => client.disconnect() };
}

async function opened(client: {
  connect(): Promise<unknown>;
  destroy(): unknown;
  on(event: "error", listener: () => void): unknown;
}): Promise<Connected> {
  client.on("error", ignore);
  await client.connect();
  return { client, close: () => void client.destroy() };
}

/** Without a listener the clients end the process, or write to the terminal; the breaker says all the tests want to know. */
function ignore(): void {}
