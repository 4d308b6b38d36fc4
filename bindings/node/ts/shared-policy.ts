/** What a policy is to a shared circuit. */

import { checkClock } from "./clock";
import { CALL_OPTIONS, type HostPolicy, type PolicyKind, readPolicy } from "./config";
import { native } from "./native";
import type { SharedConfig } from "./native-shared";

/** The options of a shared breaker: its policy and what `SharedOptions` adds. */
export const SHARED_POLICY: PolicyKind<SharedConfig> = {
  host: [],
  call: CALL_OPTIONS,
  core: ["onStoreFailure", "openCacheMs", "closedCacheMs", "quorum", "idleTtlMs"],
  build: (layers) => new (native().SharedConfig)(layers),
};

/** How a circuit is read and steered by somebody who guards no call with it. */
export interface SteeringPolicy {
  readonly config: SharedConfig;
  /** Replaces the store's clock. */
  readonly clock: HostPolicy["clock"];
}

/**
 * The policy to read and steer circuits by: the store itself answers, or nobody.
 * @throws {@link ConfigError}; {@link TimeError} if its clock gives no time
 */
export function steeringPolicy(policy: unknown): SteeringPolicy {
  const { config, host } = readPolicy([policy], STEERING_POLICY);
  checkClock(host.clock);
  return { config, clock: host.clock };
}

const STEERING_POLICY: PolicyKind<SharedConfig> = {
  ...SHARED_POLICY,
  // Behind what was given, which is checked all the same.
  build: ([given = []]) => SHARED_POLICY.build([[...given, { name: "onStoreFailure", text: "fail-closed" }]]),
};
