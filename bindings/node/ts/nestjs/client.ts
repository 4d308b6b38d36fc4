/** The client of a store, where the options give its injection token. */

import { Inject, type InjectionToken } from "@nestjs/common";
import { ModuleRef, type ModulesContainer } from "@nestjs/core";
import { ConfigError } from "../error";
import { withoutCredentials } from "../redact";
import { isToken } from "./options";

/**
 * The client that the options name, made by Nest first where it has not been. Its module need neither be global nor imported.
 * @throws {@link ConfigError} if no module has it
 */
export async function clientOf(
  redis: object | InjectionToken | undefined,
  container: ModulesContainer,
): Promise<object | undefined> {
  if (!isToken(redis)) return redis;
  for (const module of container.values()) {
    if (!module.providers.has(redis)) continue;
    class Carrier {
      constructor(@Inject(redis as InjectionToken) readonly client: object) {}
    }
    const { instance } = module.getProviderByKey<ModuleRef>(ModuleRef);
    return (await instance.create(Carrier)).client;
  }
  // A string may be the URL that somebody took for a client.
  const shown = typeof redis === "function" ? redis.name : withoutCredentials(String(redis));
  throw new ConfigError(`\`redis\` must be the token of a provider of some module, got \`${shown}\``, "redis", shown);
}
