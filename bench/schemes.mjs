// The ways to guard a call through Redis that are compared where many processes do it.
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { PATIENT } from "./server.mjs";
import { healthy } from "./tasks.mjs";
import { twoScriptsBreaker } from "./two-scripts.mjs";

export const SCHEMES = ["switchgear", "bare EVALSHA", "two scripts"];

/** One call of each scheme. */
export async function callsThrough(client) {
  const shared = new DistributedCircuitBreaker("bench", new RedisStore(client, PATIENT));
  const twoScripts = await twoScriptsBreaker(client, "bench");
  const digest = await client.script("LOAD", "return 1");
  return {
    switchgear: () => shared.execute(healthy),
    "bare EVALSHA": () => client.evalsha(digest, 1, "{cb:bench}", Date.now()),
    "two scripts": () => twoScripts.execute(healthy),
  };
}
