/**
 * Circuit breakers that live in this process, and the types that all breakers share. Breakers that a whole fleet shares
 * are in `switchgear/redis`.
 *
 * @packageDocumentation
 */

import "./load";

export { CircuitBreaker } from "./breaker";

export {
  CallTimeoutError,
  CircuitOpenError,
  ConfigError,
  NameError,
  type RefusalFields,
  StoreError,
  StoreUnavailableError,
  TimeError,
} from "./error";
export { CircuitBreakerGroup, type GroupOptions } from "./group";
export { type GuardedFetch, type GuardFetchOptions, guardFetch } from "./guard-fetch";
export type { SharedPermit } from "./shared-permit";
export { CircuitBreakerState, type StatePermit } from "./state";
export type {
  Awaitable,
  Breaker,
  CallEvent,
  CallLimits,
  CallOptions,
  CircuitBreakerPolicy,
  Events,
  FailureFallback,
  Fallback,
  Guarded,
  GuardOptions,
  InterruptedCall,
  Mode,
  Permit,
  Reason,
  Refusal,
  RefusalFallback,
  Settled,
  SharedGuarded,
  Snapshot,
  State,
  StateChange,
  SyncCallOptions,
  TripOn,
} from "./types";
export { version } from "./version";
