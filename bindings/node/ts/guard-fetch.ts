/** A `fetch` that asks no server which is failing: one circuit per origin, in this page, worker or process. */

import { watched } from "./body";
import type { CircuitBreaker } from "./breaker";
import { checkedBoolean, checkedFunction, checkedWord } from "./config";
import type { Emitter } from "./events";
import { HttpCall } from "./http";
import { native } from "./native";
import { given, httpOrigin, type OriginOptions, Origins } from "./origins";
import { shareTabs } from "./tabs";
import type { Events } from "./types";
import { warn } from "./warn";

/** What {@link guardFetch} takes. `undefined` means left out. */
export interface GuardFetchOptions extends OriginOptions {
  /**
   * Whether the tabs and workers of this page's origin tell each other over a `BroadcastChannel` what opens and closes: then a
   * server that failed in one is spared by all, and one probe is enough for all. Each has circuits of its own all the same.
   * @defaultValue `false`
   */
  shareTabs?: boolean | undefined;
  /**
   * Where WebAssembly may not run, as under a Content-Security-Policy without `'wasm-unsafe-eval'`: `throw` an error that says
   * so, or `pass` every request on unguarded, with one warning.
   * @defaultValue `'throw'`
   */
  onUnavailable?: "throw" | "pass" | undefined;
  /**
   * What sends the requests that are let through.
   * @defaultValue the `fetch` that is global now
   */
  fetch?: typeof fetch | undefined;
}

/** A `fetch` with one circuit per origin. */
export interface GuardedFetch {
  /**
   * Like the global `fetch`.
   * @throws {@link CircuitOpenError}, as a rejection and without touching the network, while the circuit of the origin is open
   */
  (input: Parameters<typeof fetch>[0], init?: Parameters<typeof fetch>[1]): Promise<Response>;
  /**
   * The circuit of an origin (`https://api.example.com`), made if there is none.
   * @throws where WebAssembly may not run
   */
  for(origin: string): CircuitBreaker;
  /**
   * Listens to an event of all circuits, present and future: see `CircuitBreaker.on`.
   * @returns a function that stops listening
   */
  on<K extends keyof Events>(event: K, fn: (e: Events[K]) => void): () => void;
}

/**
 * Makes a `fetch` that fails fast: while an origin's circuit is open, its requests are refused without touching the network.
 *
 * A network error, 429, and 500 to 599 but 501 count as failures, as does a body that breaks off; a request that its caller aborts,
 * or that was never sent because it is invalid, counts nowhere; everything else is a success. A call ends when its body has been
 * read or cancelled: of a body that nobody reads the first 64 KiB are taken in. Only `http:` and `https:` are guarded.
 *
 * @example
 * ```ts
 * const fetch = guardFetch({ failureThreshold: 3, openDurationMs: 10_000 });
 * const response = await fetch(orders);
 * ```
 *
 * @throws {@link ConfigError} naming the option, the value and what is valid; where WebAssembly may not run an error that names
 * what a Content-Security-Policy has to allow, unless `onUnavailable` says `pass`
 */
export function guardFetch(options: GuardFetchOptions = {}): GuardedFetch {
  const send = options?.fetch ?? globalThis.fetch;
  try {
    native();
  } catch (error) {
    if (options?.onUnavailable !== "pass") throw error;
    warn(
      `guardFetch lets every request through: ${error instanceof Error ? error.message : error}`,
      "switchgear_fetch",
    );
    return passing(send, error);
  }
  const origins = new Origins(options, ["shareTabs", "onUnavailable", "fetch"]);
  const { extra, events } = origins;
  given(extra, "onUnavailable", "throw", (name, value) => checkedWord(name, value, ["throw", "pass"]));
  given(extra, "fetch", undefined, checkedFunction);
  if (given(extra, "shareTabs", false, checkedBoolean)) {
    shareTabs(events, (origin) => origins.for(origin), options.clock);
  }
  const guarded = async (...[input, init]: Parameters<typeof fetch>): Promise<Response> => {
    const origin = originOf(input);
    return origin === null ? send(input, init) : ask(origins, origin, send, input, init);
  };
  return Object.assign(guarded, {
    for: (origin: string) => origins.for(origin),
    on: (events as Emitter).on.bind(events) as GuardedFetch["on"],
  });
}

async function ask(
  origins: Origins,
  origin: string,
  send: typeof fetch,
  ...args: Parameters<typeof fetch>
): Promise<Response> {
  const breaker = origins.for(origin);
  const call = new HttpCall(breaker, breaker.acquire(), origins.rules);
  let request: Request;
  try {
    // What is invalid shows here, before anything is sent: it is the caller's fault and says nothing about the server.
    request = new Request(...args);
  } catch (error) {
    call.givenUp();
    throw error;
  }
  let response: Response;
  try {
    response = await send(request);
  } catch (error) {
    call.broke(error, request.signal);
    throw error;
  }
  if (call.answered(response.status, () => response.headers.get("Retry-After"))) return response;
  return watched(response, call, request.signal);
}

/** Whose circuit a request belongs to; null for what no server answers, and for what is no address. */
function originOf(input: Parameters<typeof fetch>[0]): string | null {
  const { document, location } = globalThis as { document?: { baseURI?: string }; location?: { href?: string } };
  try {
    return httpOrigin(input instanceof Request ? input.url : String(input), document?.baseURI ?? location?.href);
  } catch {
    return null;
  }
}

function passing(send: typeof fetch, why: unknown): GuardedFetch {
  return Object.assign((...args: Parameters<typeof fetch>) => send(...args), {
    for(): never {
      throw why;
    },
    on: () => () => undefined,
  });
}
