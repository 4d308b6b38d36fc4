/** A `fetch` that asks no server which is failing: one circuit per origin, in this page, worker or process. */

import { watched } from "./body";
import type { CircuitBreaker } from "./breaker";
import { checkedBoolean, checkedFunction, checkedWord } from "./config";
import type { Emitter } from "./events";
import { HttpCall } from "./http";
import { native } from "./native";
import { checkedOrigin, given, httpOrigin, type OriginOptions, Origins } from "./origins";
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
   * The circuit of an origin (`https://api.example.com`), made if there is none. An address of that origin will do.
   * @throws {@link ConfigError} for what is no such address; an error where WebAssembly may not run
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
    const circuit = (origin: string) => (originOf(origin) === origin ? origins.for(origin) : null);
    // Other tabs are believed as far as this one goes itself.
    shareTabs(events, circuit, origins.longestMs, options.clock);
  }
  const guarded = async (...[input, init]: Parameters<typeof fetch>): Promise<Response> => {
    const origin = originOf(input);
    return origin === null ? send(input, init) : ask(origins, origin, send, input, init);
  };
  return Object.assign(guarded, {
    for: (origin: string) => origins.for(checkedOrigin(origin)),
    on: (events as Emitter).on.bind(events) as GuardedFetch["on"],
  });
}

async function ask(
  origins: Origins,
  origin: string,
  send: typeof fetch,
  ...args: Parameters<typeof fetch>
): Promise<Response> {
  const call = new HttpCall(origins, origin, origins.for(origin).acquire(), origins.rules);
  const [input, init] = args;
  const own = input instanceof Request;
  let asked: Asked;
  try {
    // What is invalid shows here, before anything is sent: it is the caller's fault and says nothing about the server.
    const request = !own && isRequest(input) ? input : new Request(input, init);
    asked = { args, request, signal: init?.signal ?? request.signal };
  } catch (error) {
    call.givenUp();
    throw error;
  }
  // Nor does what was given up before it was begun, be it by a deadline.
  const early = asked.signal?.aborted;
  let response: Response;
  try {
    // What can be sent as it was given is: whatever sends it may know more options than a request keeps. A body that is a stream is
    // in the request by now.
    const once = own || (init as { duplex?: unknown } | undefined)?.duplex;
    response = await (once ? send(asked.request) : send(input, init));
  } catch (error) {
    if (early) call.givenUp();
    else call.broke(error, asked.signal);
    throw error;
  }
  try {
    const by = response.redirected ? originOf(response.url) : null;
    if (!call.answered(response.status, () => response.headers.get("Retry-After"), by))
      return watched(response, call, asked);
  } catch {
    // An answer that is none: the caller gets what there is.
  }
  // It is settled, unless there was no answer, or a clock has failed.
  call.givenUp();
  return response;
}

/** What was asked, as it was given and as a request of this realm's own. */
interface Asked {
  readonly args: Parameters<typeof fetch>;
  readonly request: Request;
  readonly signal: AbortSignal | undefined;
}

/** Whose circuit a request belongs to; null for what no server answers, and for what is no address. */
function originOf(input: Parameters<typeof fetch>[0]): string | null {
  const { document, location } = globalThis as { document?: { baseURI?: string }; location?: { href?: string } };
  try {
    return httpOrigin(isRequest(input) ? input.url : String(input), document?.baseURI ?? location?.href);
  } catch {
    return null;
  }
}

/** Whether it is a request, be it one of another window, or of the library that sends it. */
function isRequest(input: Parameters<typeof fetch>[0]): input is Request {
  return typeof (input as { url?: unknown } | null)?.url === "string";
}

function passing(send: typeof fetch, why: unknown): GuardedFetch {
  return Object.assign((...args: Parameters<typeof fetch>) => send(...args), {
    for(): never {
      throw why;
    },
    on: () => () => undefined,
  });
}
