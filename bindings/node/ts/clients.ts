/**
 * The user's Redis or Valkey client, made to do the one thing a store needs: send a command and give back the reply.
 *
 * A client is known by its shape. No client library is imported: each stays optional, and any version will do that still
 * has the shape.
 */

import { ConfigError } from "./error";
import { slotOf } from "./slots";
import type { Awaitable } from "./types";

/** Anything that sends a command, routed by `key` where there is more than one server. */
export interface RedisCommands {
  /** Sends `args`, the command's name first, and gives the reply; rejects with the server's error reply. */
  command(args: string[], key: string): Promise<unknown>;
  /**
   * The servers that take writes, each to be asked by itself (with an empty key): needed to list circuits, and for nothing else.
   * `[this]` where there is one; else one for each master. That none of them is missing is not checked.
   */
  masters?(): Awaitable<readonly RedisCommands[]>;
}

/** Sends one command. It may throw instead of rejecting: a client is foreign code. */
type Send = (args: readonly string[], key: string) => PromiseLike<unknown>;

/** One server that takes writes. */
export interface Master {
  /** What it is called, where there are several. */
  readonly name: string | undefined;
  /** Sends it a command that names no key. It may throw instead of rejecting. */
  readonly send: (args: readonly string[]) => PromiseLike<unknown>;
  /** Tells when it is connected anew, if anything does. */
  readonly connection: unknown;
}

/** The way to the store. */
export interface Way {
  readonly send: Send;
  /** Sends a command without a key to the server that has `key`; where that is not known, to one that the client picks. */
  readonly sendBeside: Send;
  /** Whether a plain read goes to the server that takes writes. A client that may ask a replica knows less than it should. */
  readonly readsPrimary: boolean;
  /**
   * The name of the server that has a key, by what the client knows now; none where there is one server only, or where that
   * is not known. Never throws.
   */
  readonly serverOf: (key: string) => () => string | undefined;
  /** What the client puts in front of every key by itself. */
  readonly keyPrefix: string;
  /** Whether the servers share circuits among them by their slots, and know of each other. */
  readonly isCluster: boolean;
  /** All servers that take writes, as far as the client knows; undefined where it has no way to name them. */
  readonly masters: (() => PromiseLike<readonly Master[]>) | undefined;
}

/**
 * The way through `client`.
 * @throws {@link ConfigError} when it has the shape of none of the clients that are known
 */
export function wayThrough(client: unknown): Way {
  if (typeof client === "object" && client !== null) {
    if (isIoredis(client)) return throughIoredis(client);
    if (isNodeRedis(client)) return throughNodeRedis(client);
    if (isCommands(client)) return throughCommands(client);
  }
  const shown = kindOf(client);
  throw new ConfigError(`\`client\` must be ${VALID}, got \`${shown}\``, "client", shown);
}

const VALID =
  "a client of ioredis, iovalkey or node-redis (standalone, sentinel or cluster) or an object with `command(args, key)`";

/** ioredis and iovalkey, `Redis` and `Cluster` alike. Their pipelines look much the same, but have no `status`. */
interface Ioredis {
  readonly status: string;
  readonly isCluster?: boolean;
  readonly options?: {
    readonly enableAutoPipelining?: boolean;
    readonly scaleReads?: unknown;
    readonly keyPrefix?: unknown;
  };
  /** By slot the names of the servers that have it, the master first. */
  readonly slots?: readonly (readonly string[] | undefined)[];
  nodes?(
    role: "master",
  ): readonly (Ioredis & { readonly options?: { readonly host?: unknown; readonly port?: unknown } })[];
  call(name: string, ...args: string[]): PromiseLike<unknown>;
  sendCommand(command: unknown, stream?: undefined, node?: { slot: number }): PromiseLike<unknown>;
}

function isIoredis(client: object): client is Ioredis {
  const { status, call, sendCommand } = client as Partial<Ioredis>;
  return typeof status === "string" && typeof call === "function" && typeof sendCommand === "function";
}

function throughIoredis(client: Ioredis): Way {
  const { isCluster = false, options } = client;
  const send: Send = (args) => client.call(...lowered(args));
  const keyPrefix = typeof options?.keyPrefix === "string" ? options.keyPrefix : "";
  if (!isCluster) return { ...throughOne(send, client), keyPrefix };

  const slot = (key: string) => slotOf(keyPrefix + key);
  // `call` on a view of the client makes a command, and hands it to this.
  const sendThrough = (args: readonly string[], sendCommand: (command: unknown) => PromiseLike<unknown>) =>
    Reflect.apply(client.call, { options: { ...options, enableAutoPipelining: false }, sendCommand }, lowered(args));
  return {
    // Auto-pipelining in a cluster may take the first argument of a command for its key (iovalkey): of a script that is the
    // digest, so the pipeline goes to the wrong node. Without it a command goes by its real keys, through the client as ever.
    send:
      options?.enableAutoPipelining === true
        ? (args) => sendThrough(args, (command) => client.sendCommand(command))
        : send,
    sendBeside: (args, key) =>
      sendThrough(args, (command) => client.sendCommand(command, undefined, { slot: slot(key) })),
    readsPrimary: options?.scaleReads === "master",
    serverOf: (key) => {
      const of = slot(key);
      return () => named(() => client.slots?.[of]?.[0]);
    },
    keyPrefix,
    isCluster,
    masters: async () => {
      // A client that has not begun yet, or begins again, knows none: a command makes it look, and is answered after that.
      if (client.status !== "ready") await client.call("cluster", "NODES");
      return (client.nodes?.("master") ?? []).map((node) => ({
        name: named(() => `${node.options?.host}:${node.options?.port}`),
        send: (args) => node.call(...lowered(args)),
        connection: node,
      }));
    },
  };
}

/** iovalkey knows where a command has its keys, to route it and to prefix them, only if its name is in lower case. */
function lowered([name = "", ...args]: readonly string[]): [string, ...string[]] {
  return [name.toLowerCase(), ...args];
}

/** node-redis from 5 on. Each of its kinds takes the command in another place. */
interface NodeRedis {
  readonly isOpen: boolean;
  sendCommand(...args: unknown[]): PromiseLike<unknown>;
}

/** A cluster of node-redis. */
interface NodeRedisCluster extends NodeRedis {
  readonly slots: readonly ({ readonly master?: { readonly address?: string } } | undefined)[];
  readonly masters?: readonly { readonly address?: string; readonly client?: unknown }[];
  nodeClient?(node: unknown): NodeRedis | PromiseLike<NodeRedis>;
}

function isNodeRedis(client: object): client is NodeRedis {
  const { isOpen, sendCommand } = client as Partial<NodeRedis>;
  return typeof isOpen === "boolean" && typeof sendCommand === "function";
}

function throughNodeRedis(client: NodeRedis): Way {
  if ("slots" in client) return throughNodeRedisCluster(client as NodeRedisCluster);
  const send: Send =
    "getMasterNode" in client
      ? // `false`: not a read-only command, so it goes to the master.
        (args) => client.sendCommand(false, args)
      : (args) => client.sendCommand(args);
  return throughOne(send, client);
}

function throughNodeRedisCluster(client: NodeRedisCluster): Way {
  // `false`: not a read-only command, so it goes to a master.
  const send: Send = (args, key) => client.sendCommand(key, false, args);
  return {
    send,
    // A command without a key goes anywhere (node-redis 6), whatever key is given for it.
    sendBeside: async (args, key) => {
      const master = client.slots[slotOf(key)]?.master;
      if (master === undefined || client.nodeClient === undefined) return send(args, key);
      return (await client.nodeClient(master)).sendCommand(args);
    },
    readsPrimary: true,
    serverOf: (key) => {
      const slot = slotOf(key);
      return () => named(() => client.slots[slot]?.master?.address);
    },
    keyPrefix: "",
    isCluster: true,
    masters: async () =>
      (client.masters ?? []).map((master) => ({
        name: named(() => master.address),
        send: async (args) => (await client.nodeClient?.(master))?.sendCommand(args),
        connection: master.client,
      })),
  };
}

function throughCommands(client: RedisCommands): Way {
  const send: Send = (args, key) => Promise.resolve(client.command([...args], key));
  const masters = async () =>
    Array.from((await client.masters?.()) ?? [], (master) => ({
      name: undefined,
      send: (args: readonly string[]) => Promise.resolve(master.command([...args], "")),
      connection: master,
    }));
  return {
    ...throughOne(send, client),
    readsPrimary: false,
    masters: typeof client.masters === "function" ? masters : undefined,
  };
}

/** There is one server, or the client sees to it that it looks like one. */
function throughOne(send: Send, connection: object): Way {
  return {
    send,
    sendBeside: send,
    readsPrimary: true,
    serverOf: onlyServer,
    keyPrefix: "",
    isCluster: false,
    masters: async () => [{ name: undefined, send: (args) => send(args, ""), connection }],
  };
}

/** There is one server, or nobody knows which. */
function onlyServer(): () => undefined {
  return () => undefined;
}

/** What a foreign object says a server is called, if it is a name at all. */
function named(ask: () => unknown): string | undefined {
  try {
    const name = ask();
    return typeof name === "string" ? name : undefined;
  } catch {
    return undefined;
  }
}

function isCommands(client: object): client is RedisCommands {
  // Pipelines, transactions and clients of other kinds have a `command` too: Redis' own COMMAND.
  const isForeign = ["exec", "sendCommand", "send_command"].some((name) => name in client);
  return !isForeign && typeof (client as Partial<RedisCommands>).command === "function";
}

/** What was given, by the name of its class alone: a client holds a password. */
export function kindOf(client: unknown): string {
  if (typeof client === "function") return `the class or function ${client.name || "without a name"}`;
  if (typeof client !== "object" || client === null) return typeof client === "string" ? "a string" : String(client);
  return client.constructor?.name || "an object";
}
