/**
 * Circuit breakers that a whole fleet shares through Redis or Valkey. The client is yours: ioredis, iovalkey, node-redis, or
 * anything that can send a command.
 *
 * @packageDocumentation
 */

import "./load";

export type { RedisCommands } from "./clients";
export type { CircuitControl } from "./control";
export { DistributedCircuitBreaker, type SharedOptions } from "./distributed";
export { DistributedCircuitBreakerGroup, type SharedGroupOptions } from "./distributed-group";
export {
  CallTimeoutError,
  CircuitOpenError,
  ConfigError,
  NameError,
  StoreError,
  StoreUnavailableError,
  TimeError,
} from "./error";
export type { ListedCircuit } from "./listing";
export type { SharedPermit } from "./shared-permit";
export { RedisStore, type RedisStoreOptions, type StoreEvent, type StoreEvents } from "./store";
