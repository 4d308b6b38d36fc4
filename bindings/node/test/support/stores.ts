import { Redis } from "ioredis";
import type { RedisCommands } from "switchgear/redis";
import { afterAll, beforeAll } from "vitest";
import { type Server, type ServerOptions, startServer } from "../../../../tests/support/servers.mjs";

/** A real server with a connected client, for the tests of one file or one `describe`. */
export interface Place {
  readonly server: Server;
  readonly redis: Redis;
}

/** Starts a server before the tests and ends it after them. */
export function place(options?: ServerOptions): Place {
  const here: { server?: Server; redis?: Redis } = {};
  beforeAll(async () => {
    here.server = await startServer(options);
    here.redis = quiet(new Redis(here.server.port));
  });
  afterAll(async () => {
    here.redis?.disconnect();
    await here.server?.stop();
  });
  return here as Place;
}

/** A client whose connection errors are nobody's business but the breaker's. */
export function quiet<C extends { on(event: "error", listener: () => void): unknown }>(client: C): C {
  client.on("error", () => undefined);
  return client;
}

/** What a client would do with a command. */
export type Through = (args: string[]) => Promise<unknown>;

/** A client that hands every command to the test, which decides what becomes of it. */
export function intercepting(
  redis: () => Redis,
  intercept: (args: string[], through: Through) => unknown,
): RedisCommands {
  const through: Through = ([name = "", ...args]) => redis().call(name, ...args);
  return { command: async (args) => intercept(args, through) };
}
