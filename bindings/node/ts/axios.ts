/**
 * An adapter for axios: one circuit per origin.
 *
 * @packageDocumentation
 */

import "./load";

import axios from "axios";
import { adapterFor, type MakeAdapter } from "./axios-adapter";

export type { Adapter, AdapterOptions, CircuitAdapter, MakeAdapter } from "./axios-adapter";
export { CircuitOpenError, ConfigError, NameError, StoreUnavailableError, TimeError } from "./error";
export type { AnyBreaker, AnyGroup, Circuits, GroupOptions } from "./http-circuits";
export type { OriginOptions, RetryAfterOptions } from "./origins";

/**
 * Makes an adapter that fails fast: while an origin's circuit is open, its requests are refused without touching the network.
 *
 * A network error, a timeout, 429, and 500 to 599 but 501 count as failures, as does a body that breaks off; a request that its
 * caller cancels, or that was never sent because it is invalid, counts nowhere; everything else is a success, whatever
 * `validateStatus` says. A streamed response (`responseType: "stream"`) ends its call with its stream.
 *
 * @example
 * ```ts
 * const http = axios.create({ adapter: circuitBreaker({ failureThreshold: 3, openDurationMs: 10_000 }) });
 * const { data } = await http.get(orders);
 * ```
 *
 * @param options - how the circuits behave, or the `group` that has them
 * @throws {@link ConfigError} naming the option, the value and what is valid
 */
export const circuitBreaker: MakeAdapter = adapterFor(axios);
