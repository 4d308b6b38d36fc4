/**
 * Circuit breakers for NestJS 10 and 11: a module, decorators for the methods of providers and controllers, and 503 with
 * `Retry-After` for a refused request, on Express and Fastify.
 *
 * @packageDocumentation
 */

import "../load";

export type { RefusalFields } from "../error";
export type { Problem } from "../problem";
export type { SharedPermit } from "../shared-permit";
export { CircuitOpenException } from "./exception";
export { CircuitBreakerHealthIndicator, type CircuitHealthOptions, type CircuitHealthResult } from "./health";
export { getCircuitBreakerToken, InjectCircuitBreaker } from "./inject";
export { CircuitBreakerModule } from "./module";
export type {
  CircuitBreakerListeners,
  CircuitBreakerModuleAsyncOptions,
  CircuitBreakerModuleOptions,
  CircuitBreakerOptionsFactory,
  SharedModuleOptions,
} from "./options";
export { Retryable, type RetryableOptions, type RetryPolicy } from "./retryable";
export { CircuitBreakerService } from "./service";
export { WithCircuitBreaker, type WithCircuitBreakerOptions } from "./with-circuit-breaker";
