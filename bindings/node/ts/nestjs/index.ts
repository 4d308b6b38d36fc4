/**
 * Circuit breakers for NestJS 10 and 11: a module, decorators for the methods of providers and controllers, and 503 with
 * `Retry-After` for a refused request, on Express and Fastify.
 *
 * @packageDocumentation
 */

import "../load";

export {
  CallTimeoutError,
  CircuitOpenError,
  ConfigError,
  NameError,
  type RefusalFields,
  StoreError,
  StoreUnavailableError,
  TimeError,
} from "../error";
export type { Problem } from "../problem";
export { CircuitOpenException } from "./exception";
export {
  CircuitBreakerHealthIndicator,
  type CircuitHealthOptions,
  type CircuitHealthResult,
  type OpenCircuit,
} from "./health";
export { getCircuitBreakerToken, InjectCircuitBreaker } from "./inject";
export { CircuitBreakerModule } from "./module";
export type {
  CircuitBreakerListeners,
  CircuitBreakerModuleAsyncOptions,
  CircuitBreakerModuleOptions,
  CircuitBreakerOptionsFactory,
  ModuleOptionsGiven,
  SharedModuleOptions,
} from "./options";
export { Retryable, type RetryableOptions, type RetryPolicy } from "./retryable";
export { CircuitBreakerService } from "./service";
export { type MethodPolicy, WithCircuitBreaker, type WithCircuitBreakerOptions } from "./with-circuit-breaker";
