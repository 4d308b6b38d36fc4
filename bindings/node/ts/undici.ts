/**
 * An interceptor for undici, and so for Node's own `fetch`: one circuit per origin.
 *
 * @packageDocumentation
 */

import "./load";

import type { CircuitBreaker } from "./breaker";
import { outOfRange } from "./config";
import type { DistributedCircuitBreaker } from "./distributed";
import type { DistributedCircuitBreakerGroup } from "./distributed-group";
import type { CircuitBreakerGroup } from "./group";
import type { HttpCall } from "./http";
import { type AnyBreaker, type AnyGroup, type Circuits, type GroupOptions, httpCircuits } from "./http-circuits";
import { checkedOrigin, given, httpOrigin, type OriginOptions } from "./origins";
import { isThenable } from "./thenable";
import { guardedHandler, type Handler, refuse } from "./undici-handler";
import { notingUpload } from "./upload";

export { CircuitOpenError, ConfigError, NameError, StoreUnavailableError, TimeError } from "./error";
export type { AnyBreaker, AnyGroup, Circuits, GroupOptions } from "./http-circuits";
export type { OriginOptions, RetryAfterOptions } from "./origins";

/** What an interceptor takes beside its circuits. */
export interface InterceptorOptions {
  /**
   * Whose requests they are where a dispatcher does not say so: undici 6 and 7 do not for a `Client` or `Pool`, which ask one
   * origin only. An `Agent` always does.
   */
  origin?: string | URL | undefined;
}

/**
 * What undici's `compose` takes, with its circuits.
 * @typeParam B - the breakers that it asks
 */
export interface CircuitInterceptor<B extends AnyBreaker> extends Circuits<B> {
  /**
   * Puts the circuits in front of a dispatcher.
   * @typeParam D - how a dispatcher of this version of undici sends
   * @param dispatch - what sends
   * @param origin - whose requests they are, as undici 8 says for a `Client` or `Pool`
   * @returns what sends in its place
   */
  // biome-ignore lint/suspicious/noExplicitAny: undici's types differ from version to version, and need not be installed.
  <D extends (options: any, handler: any) => boolean>(dispatch: D, origin?: string | null): D;
}

/**
 * Makes an interceptor that fails fast: while an origin's circuit is open, its requests are refused without touching the network.
 *
 * A network error, a timeout, 429, and 500 to 599 but 501 count as failures, as does a body that breaks off; a request that its
 * caller aborts, or that was never sent because it is invalid, counts nowhere; everything else is a success, at the end of its body.
 * What is composed after it goes around it: a retry's attempts are admitted one by one, each hop of a redirect by its own origin.
 *
 * `fetch` hides a refusal: it rejects with a `TypeError` whose `cause` is the {@link CircuitOpenError}.
 *
 * @example
 * ```ts
 * const agent = new Agent().compose(circuitBreaker({ failureThreshold: 3, openDurationMs: 10_000 }));
 * const { statusCode, body } = await request(orders, { dispatcher: agent });
 * ```
 *
 * @param options - how the circuits behave, or the `group` that has them
 * @throws {@link ConfigError} naming the option, the value and what is valid
 */
export function circuitBreaker(options?: OriginOptions & InterceptorOptions): CircuitInterceptor<CircuitBreaker>;
/** The same, with the circuits of a local group. */
export function circuitBreaker(
  options: GroupOptions<CircuitBreakerGroup> & InterceptorOptions,
): CircuitInterceptor<CircuitBreaker>;
/** The same, with circuits that a whole fleet shares. */
export function circuitBreaker(
  options: GroupOptions<DistributedCircuitBreakerGroup> & InterceptorOptions,
): CircuitInterceptor<DistributedCircuitBreaker>;
export function circuitBreaker(
  options: (OriginOptions | GroupOptions<AnyGroup>) & InterceptorOptions = {},
): CircuitInterceptor<never> {
  const circuits = httpCircuits(options, ["origin"]);
  const own = given(circuits.extra, "origin", undefined, (_name, address) => checkedOrigin(address));
  const intercepted = (dispatch: Dispatch, composedOn?: string | null) => (sent: Sent, handler: Handler) => {
    const address = sent?.origin ?? own ?? composedOn;
    if (address === undefined || address === null) {
      // Never unguarded, and without a word: nobody would notice.
      throw outOfRange(
        "origin",
        "given to circuitBreaker, where a Client or Pool does not name it with a request",
        address,
      );
    }
    const origin = httpOrigin(address);
    if (origin === null) return dispatch(sent, handler);
    const broken = { upload: false };
    const body = notingUpload(sent.body, broken);
    const guarded = body === sent.body ? sent : { ...sent, body };
    const send = (call: HttpCall) => {
      try {
        return dispatch(guarded, guardedHandler(handler, call, { broken, signal: sent.signal }));
      } catch (error) {
        // What undici throws here is about the arguments, or a dispatcher that is closed.
        call.givenUp();
        throw error;
      }
    };
    let call: ReturnType<typeof circuits.ask>;
    try {
      call = circuits.ask(origin);
    } catch (error) {
      refuse(handler, error);
      return true;
    }
    if (!isThenable(call)) return send(call as HttpCall);
    (call as Promise<HttpCall>).then(send).catch((error) => refuse(handler, error));
    return true;
  };
  return Object.assign(intercepted, { for: circuits.for, on: circuits.on }) as unknown as CircuitInterceptor<never>;
}

/** What a dispatcher is given of a request, as far as it is looked at here. */
interface Sent {
  readonly origin?: string | URL | null;
  readonly body?: unknown;
  readonly signal?: unknown;
}

type Dispatch = (sent: Sent, handler: Handler) => boolean;
