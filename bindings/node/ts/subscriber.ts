/**
 * One more connection, for what other instances announce. It is made by the client's own `duplicate()`, so it goes where the
 * client goes, and comes back by itself as the client does.
 */

import { kindOf } from "./clients";
import { ConfigError } from "./error";

/** A connection that listens until it is closed. */
export interface Subscription {
  close(): Promise<void>;
}

/** What is done with a message, and with what goes wrong meanwhile. */
export interface Ears {
  readonly heard: (message: string) => void;
  readonly failed: (error: unknown) => void;
}

/** Listens to a channel. Throws nothing: what goes wrong is told. */
export type Subscribe = (channel: string, ears: Ears) => Subscription;

/**
 * How to listen through a client like this.
 * @throws {@link ConfigError} when it cannot be duplicated, or cannot subscribe
 */
export function subscribeThrough(client: object): Subscribe {
  const { status, isOpen, duplicate } = client as Partial<Ioredis & NodeRedis>;
  if (typeof duplicate === "function") {
    if (typeof status === "string") return (channel, ears) => throughIoredis(client as Ioredis, channel, ears);
    if (typeof isOpen === "boolean") return (channel, ears) => throughNodeRedis(client as NodeRedis, channel, ears);
  }
  const shown = kindOf(client);
  const valid =
    "a client that has `duplicate()` and can subscribe (ioredis, iovalkey, node-redis; no pool), for `events: true`";
  throw new ConfigError(`\`client\` must be ${valid}, got \`${shown}\``, "client", shown);
}

interface Listening {
  on(event: "error", listener: (error: unknown) => void): unknown;
}

interface Ioredis extends Listening {
  readonly status: string;
  duplicate(): Ioredis;
  subscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (...args: never[]) => void): unknown;
  disconnect(): void;
}

function throughIoredis(client: Ioredis, channel: string, { heard, failed }: Ears): Subscription {
  const own = client.duplicate();
  let closed = false;
  own.on("error", (error: unknown) => failed(error));
  own.on("message", (from: string, message: string) => {
    if (from === channel) heard(message);
  });
  // It subscribes again by itself whenever it is connected again.
  own.subscribe(channel).catch((error: unknown) => {
    if (!closed) failed(error);
  });
  return {
    close: async () => {
      closed = true;
      own.disconnect();
    },
  };
}

interface NodeRedis extends Listening {
  readonly isOpen: boolean;
  duplicate(): NodeRedis;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  destroy(): unknown;
}

function throughNodeRedis(client: NodeRedis, channel: string, { heard, failed }: Ears): Subscription {
  const own = client.duplicate();
  let closed = false;
  own.on("error", failed);
  const listening = own
    .connect()
    .then(() => (closed ? undefined : own.subscribe(channel, heard)))
    .catch((error: unknown) => {
      if (!closed) failed(error);
    });
  return {
    close: async () => {
      closed = true;
      try {
        await own.destroy();
      } catch {
        // It was never open.
      }
      await listening;
    },
  };
}
