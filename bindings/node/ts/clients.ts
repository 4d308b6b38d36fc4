/**
 * The user's Redis or Valkey client, made to do the one thing a store needs: send a command and give back the reply.
 *
 * A client is known by its shape. No client library is imported: each stays optional, and any version will do that still
 * has the shape.
 */

import { ConfigError } from "./error";

/** Anything that sends a command, routed by `key` where there is more than one server. */
export interface RedisCommands {
  /** Sends `args`, the command's name first, and gives the reply; rejects with the server's error reply. */
  command(args: string[], key: string): Promise<unknown>;
}

/** Sends one command. It may throw instead of rejecting: a client is foreign code. */
type Send = (args: readonly string[], key: string) => PromiseLike<unknown>;

/** The way to the store. */
export interface Way {
  readonly send: Send;
  /** Whether a plain read goes to the server that takes writes. A client that may ask a replica knows less than it should. */
  readonly readsPrimary: boolean;
}

/**
 * The way through `client`.
 * @throws {@link ConfigError} when it has the shape of none of the clients that are known
 */
export function wayThrough(client: unknown): Way {
  if (typeof client === "object" && client !== null) {
    if (isIoredis(client)) return throughIoredis(client);
    if (isNodeRedis(client)) return throughNodeRedis(client);
    if (isCommands(client)) {
      return { send: (args, key) => Promise.resolve(client.command([...args], key)), readsPrimary: false };
    }
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
  readonly options?: { readonly enableAutoPipelining?: boolean; readonly scaleReads?: unknown };
  call(name: string, ...args: string[]): PromiseLike<unknown>;
  sendCommand(command: unknown): PromiseLike<unknown>;
}

function isIoredis(client: object): client is Ioredis {
  const { status, call, sendCommand } = client as Partial<Ioredis>;
  return typeof status === "string" && typeof call === "function" && typeof sendCommand === "function";
}

function throughIoredis(client: Ioredis): Way {
  const { isCluster = false, options } = client;
  const readsPrimary = !isCluster || options?.scaleReads === "master";
  if (!isCluster || options?.enableAutoPipelining !== true) {
    return { send: (args) => client.call(...(args as [string, ...string[]])), readsPrimary };
  }
  // Auto-pipelining in a cluster may take the first argument of a command for its key (iovalkey): of a script that is the
  // digest, so the pipeline goes to the wrong node. `call` on this view of the client goes by the real keys, one command
  // at a time, and sends through the client as ever.
  const view = {
    options: { ...options, enableAutoPipelining: false },
    sendCommand: (command: unknown) => client.sendCommand(command),
  };
  return { send: (args) => Reflect.apply(client.call, view, args), readsPrimary };
}

/** node-redis from 5 on. Each of its kinds takes the command in another place. */
interface NodeRedis {
  readonly isOpen: boolean;
  sendCommand(...args: unknown[]): PromiseLike<unknown>;
}

function isNodeRedis(client: object): client is NodeRedis {
  const { isOpen, sendCommand } = client as Partial<NodeRedis>;
  return typeof isOpen === "boolean" && typeof sendCommand === "function";
}

function throughNodeRedis(client: NodeRedis): Way {
  // `false`: not a read-only command, so it goes to a master.
  if ("slots" in client) return { send: (args, key) => client.sendCommand(key, false, args), readsPrimary: true };
  if ("getMasterNode" in client) return { send: (args) => client.sendCommand(false, args), readsPrimary: true };
  return { send: (args) => client.sendCommand(args), readsPrimary: true };
}

function isCommands(client: object): client is RedisCommands {
  // Pipelines, transactions and clients of other kinds have a `command` too: Redis' own COMMAND.
  const isForeign = ["exec", "sendCommand", "send_command"].some((name) => name in client);
  return !isForeign && typeof (client as Partial<RedisCommands>).command === "function";
}

/** What was given, by the name of its class alone: a client holds a password. */
function kindOf(client: unknown): string {
  if (typeof client === "function") return `the class or function ${client.name || "without a name"}`;
  if (typeof client !== "object" || client === null) return typeof client === "string" ? "a string" : String(client);
  return client.constructor?.name || "an object";
}
