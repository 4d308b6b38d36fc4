/** A `fetch` that asks no server which is failing: one circuit per origin, in this page, worker or process. */

import { watched } from "./body";
import { CircuitBreaker, leaveGroup, PreparedPolicy } from "./breaker";
import { BREAKER_POLICY, checkedFunction, checkedWord, outOfRange, type PolicyKind, readPolicy } from "./config";
import { ConfigError } from "./error";
import { Emitter, EVENT_NAMES } from "./events";
import { Members } from "./members";
import { type NativeConfig, native } from "./native";
import { retryAfterOf } from "./retry-after";
import { spread } from "./spread";
import { shareTabs } from "./tabs";
import type { CircuitBreakerPolicy, Events, Permit } from "./types";
import { warn } from "./warn";

/**
 * What {@link guardFetch} takes: how the circuit of each origin behaves, and what it makes of answers. `undefined` means left
 * out.
 */
export interface GuardFetchOptions
  extends Omit<CircuitBreakerPolicy, "isFailure" | "isFailureResult" | "slowCallMs" | "timeoutMs"> {
  /**
   * How many origins have a circuit at most, 1 to 1 000 000; the least recently used closed one goes first.
   * @defaultValue `1024`
   */
  maxKeys?: number | undefined;
  /**
   * Whether a 429 or 503 with `Retry-After` opens the circuit of its origin for as long as the server says. To a page, a server
   * of another origin has to show that header: `Access-Control-Expose-Headers: Retry-After`.
   * @defaultValue `true`
   */
  respectRetryAfter?: boolean | undefined;
  /**
   * The longest that a `Retry-After` is believed, in milliseconds, 1 to 2 147 483 647.
   * @defaultValue `300000`
   */
  retryAfterMaxMs?: number | undefined;
  /**
   * By how much an opening is stretched at most, as a share of its length, 0 to 1. How much is drawn once per page and origin, so
   * that all the pages that a server failed at once do not come back in the same second.
   * @defaultValue `0.2`
   */
  openJitter?: number | undefined;
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
  const origins = new Origins(options);
  const guarded = async (...[input, init]: Parameters<typeof fetch>): Promise<Response> => {
    const origin = originOf(input);
    return origin === null ? send(input, init) : origins.fetch(origin, send, input, init);
  };
  return Object.assign(guarded, {
    for: (origin: string) => origins.for(origin),
    on: origins.events.on.bind(origins.events) as GuardedFetch["on"],
  });
}

const OPTIONS = [
  "maxKeys",
  "respectRetryAfter",
  "retryAfterMaxMs",
  "openJitter",
  "shareTabs",
  "onUnavailable",
  "fetch",
];
/** Options of a breaker that say something about a function's call or result; here that is HTTP's business. */
const FOREIGN = ["isFailure", "isFailureResult", "slowCallMs", "timeoutMs"];

const KIND: PolicyKind<NativeConfig> = { ...BREAKER_POLICY, host: OPTIONS };

/** The circuits of one guarded `fetch`. */
class Origins {
  readonly events = new Emitter<Events>(EVENT_NAMES);
  private readonly members: Members<CircuitBreaker>;
  private readonly respectRetryAfter: boolean;
  private readonly retryAfterMaxMs: number;
  private readonly openJitter: number;

  constructor(options: GuardFetchOptions) {
    const { extra } = readPolicy([options], KIND);
    for (const name of FOREIGN) {
      if ((options as Record<string, unknown>)[name] === undefined) continue;
      throw new ConfigError(`\`${name}\` is no option here: HTTP says what counts`, name);
    }
    const given = <T>(name: string, otherwise: T, check: (name: string, value: unknown) => T): T =>
      extra[name] === undefined ? otherwise : check(name, extra[name]);
    this.respectRetryAfter = given("respectRetryAfter", true, checkedBoolean);
    this.retryAfterMaxMs = given("retryAfterMaxMs", 300_000, checkedMs);
    this.openJitter = given("openJitter", 0.2, checkedShare);
    given("onUnavailable", "throw", (name, value) => checkedWord(name, value, ["throw", "pass"]));
    given("fetch", undefined, checkedFunction);
    const breaker = (origin: string) => this.breaker(options, origin);
    this.members = new Members(extra.maxKeys, breaker, leaveGroup);
    // Found out now, not at the first request.
    breaker("https://origin");
    if (given("shareTabs", false, checkedBoolean)) shareTabs(this.events, (origin) => this.for(origin), options.clock);
  }

  for(origin: string): CircuitBreaker {
    return this.members.for(origin);
  }

  async fetch(origin: string, send: typeof fetch, ...args: Parameters<typeof fetch>): Promise<Response> {
    const breaker = this.members.for(origin);
    const permit = breaker.acquire();
    let request: Request;
    try {
      // What is invalid shows here, before anything is sent: it is the caller's fault and says nothing about the server.
      request = new Request(...args);
    } catch (error) {
      settle(() => permit.release());
      throw error;
    }
    let response: Response;
    try {
      response = await send(request);
    } catch (error) {
      settle(() => (isAbort(request.signal, error) ? permit.release() : permit.recordFailure(error)));
      throw error;
    }
    if (native().statusCounts(response.status)) {
      const counted = settle(() => permit.recordFailure(new Error(`HTTP ${response.status}`)));
      // What a call of another period brings says nothing about this one.
      if (counted === "applied") this.takeWord(breaker, response);
      return response;
    }
    return watched(response, ending(permit, request.signal));
  }

  /** A server that says when to come back is believed, up to a limit. */
  private takeWord(breaker: CircuitBreaker, response: Response): void {
    if (!this.respectRetryAfter || (response.status !== 429 && response.status !== 503)) return;
    const ms = retryAfterOf(response.headers.get("Retry-After"), Date.now());
    if (ms === null) return;
    const forMs = Math.min(ms, this.retryAfterMaxMs);
    settle(() => breaker.trip({ forMs: this.stretched(breaker.name, forMs) }));
  }

  private breaker(options: GuardFetchOptions, origin: string): CircuitBreaker {
    const { config, host } = readPolicy([options, this.stretchedDurations(options, origin)], KIND);
    const closedChanged = (breaker: CircuitBreaker, closed: boolean) => this.members.note(breaker, closed);
    const prepared = new PreparedPolicy(config, host, this.events, closedChanged);
    return new CircuitBreaker(origin, prepared as CircuitBreakerPolicy);
  }

  /** The durations of an opening, as the core's table has them or as they were given, each stretched alike. */
  private stretchedDurations(options: GuardFetchOptions, origin: string): object {
    const given = options as Record<string, unknown>;
    const row = native()
      .fieldTable()
      .find(({ name }) => name === "openDurationMs");
    const duration = given.openDurationMs ?? given[row?.synonym ?? ""] ?? Number(row?.default);
    const stretch = (value: unknown) => (typeof value === "number" ? this.stretched(origin, value) : undefined);
    return { openDurationMs: stretch(duration), openDurationMaxMs: stretch(given.openDurationMaxMs) };
  }

  private stretched(origin: string, ms: number): number {
    return Math.floor(ms * (1 + this.openJitter * spread(origin)));
  }
}

/** How a call ends whose answer was good so far: with its body. */
function ending(permit: Permit, signal: AbortSignal) {
  return {
    read: () => settle(() => permit.recordSuccess()),
    broken: (error: unknown) => settle(() => (isAbort(signal, error) ? permit.release() : permit.recordFailure(error))),
    cancelled: () => settle(() => permit.release()),
  };
}

/** Whether the caller gave the request up. A signal that is a deadline says of a server what any timeout says. */
function isAbort(signal: AbortSignal, error: unknown): boolean {
  if (!signal.aborted) return false;
  const named = (reason: unknown) => (reason as { name?: unknown } | null | undefined)?.name;
  return named(signal.reason) !== "TimeoutError" && named(error) !== "TimeoutError";
}

/** Settling never hides what the caller gets: a clock that fails is found out by the next request. */
function settle<T>(done: () => T): T | undefined {
  try {
    return done();
  } catch {
    return undefined;
  }
}

/** Whose circuit a request belongs to; null for what no server answers, and for what is no address. */
function originOf(input: Parameters<typeof fetch>[0]): string | null {
  try {
    const { document, location } = globalThis as { document?: { baseURI?: string }; location?: { href?: string } };
    const base = document?.baseURI ?? location?.href;
    const { protocol, origin } = new URL(input instanceof Request ? input.url : String(input), base);
    return protocol === "http:" || protocol === "https:" ? origin : null;
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

function checkedBoolean(name: string, value: unknown): boolean {
  if (typeof value !== "boolean") throw outOfRange(name, "true or false", value);
  return value;
}

function checkedMs(name: string, value: unknown): number {
  const valid = Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 2 ** 31 - 1;
  if (!valid) throw outOfRange(name, "an integer from 1 to 2147483647 (milliseconds)", value);
  return value as number;
}

function checkedShare(name: string, value: unknown): number {
  if (typeof value !== "number" || !(value >= 0 && value <= 1)) throw outOfRange(name, "a number from 0 to 1", value);
  return value;
}
