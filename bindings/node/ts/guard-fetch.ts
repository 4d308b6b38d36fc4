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
import { openFor, shareTabs } from "./tabs";
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
   * The circuit of an origin (`https://api.example.com`), made if there is none. An address of that origin will do.
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
    for: (origin: string) => origins.for((typeof origin === "string" && originOf(origin)) || origin),
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
    if (given("shareTabs", false, checkedBoolean)) this.share(options);
  }

  for(origin: string): CircuitBreaker {
    return this.members.for(origin);
  }

  async fetch(origin: string, send: typeof fetch, ...args: Parameters<typeof fetch>): Promise<Response> {
    const permit = this.members.for(origin).acquire();
    const [input, init] = args;
    const own = input instanceof Request;
    let call: Call;
    try {
      // What is invalid shows here, before anything is sent: it is the caller's fault and says nothing about the server.
      const request = !own && isRequest(input) ? input : new Request(input, init);
      call = { permit, args, request, signal: init?.signal ?? request.signal };
    } catch (error) {
      settle(() => permit.release());
      throw error;
    }
    // Nor does what was given up before it was begun, be it by a deadline.
    const early = call.signal?.aborted;
    let response: Response;
    try {
      // What can be sent as it was given is: whatever sends it may know more options than a request keeps. A body that is a stream is
      // in the request by now.
      const once = own || (init as { duplex?: unknown } | undefined)?.duplex;
      response = await (once ? send(call.request) : send(input, init));
    } catch (error) {
      settle(() => (early || isAbort(call, error) ? permit.release() : permit.recordFailure(error)));
      throw error;
    }
    try {
      if (!native().statusCounts(response.status)) return watched(response, ending(call));
      // What a call of another period brings says nothing about this one.
      if (permit.recordFailure(new Error(`HTTP ${response.status}`)) === "applied") this.takeWord(origin, response);
    } catch {
      // A clock that fails, or an answer that is none: the caller gets what there is.
      settle(() => permit.release());
    }
    return response;
  }

  /** A server that says when to come back is believed, up to a limit. It may be another than was asked, which sent the caller there. */
  private takeWord(asked: string, response: Response): void {
    if (!this.respectRetryAfter || (response.status !== 429 && response.status !== 503)) return;
    const ms = retryAfterOf(response.headers.get("Retry-After"), Date.now());
    if (ms === null) return;
    const origin = (response.redirected && originOf(response.url)) || asked;
    const breaker = this.for(origin);
    const forMs = this.stretched(origin, Math.min(ms, this.retryAfterMaxMs));
    if (origin === asked) breaker.trip({ forMs });
    else openFor(breaker, forMs);
  }

  private breaker(options: GuardFetchOptions, origin: string): CircuitBreaker {
    const { config, host } = readPolicy([options, this.stretchedDurations(options, origin)], KIND);
    const closedChanged = (breaker: CircuitBreaker, closed: boolean) => this.members.note(breaker, closed);
    const prepared = new PreparedPolicy(config, host, this.events, closedChanged);
    return new CircuitBreaker(origin, prepared as CircuitBreakerPolicy);
  }

  /** Other tabs are believed as far as this one goes itself. */
  private share(options: GuardFetchOptions): void {
    const { longest, duration, times } = durationsOf(options);
    const own = (longest as number | undefined) ?? (duration as number) * times;
    const mostMs = Math.floor(Math.max(own, this.retryAfterMaxMs) * (1 + this.openJitter));
    const circuit = (origin: string) => (originOf(origin) === origin ? this.for(origin) : null);
    shareTabs(this.events, circuit, mostMs, options.clock);
  }

  /** The durations of an opening, as the core's table has them or as they were given, each stretched alike. */
  private stretchedDurations(options: GuardFetchOptions, origin: string): object {
    const { duration, longest } = durationsOf(options);
    const stretch = (value: unknown) => (typeof value === "number" ? this.stretched(origin, value) : undefined);
    return { openDurationMs: stretch(duration), openDurationMaxMs: stretch(longest) };
  }

  private stretched(origin: string, ms: number): number {
    return Math.floor(ms * (1 + this.openJitter * spread(origin)));
  }
}

/** How long an opening lasts, at most if that was given, and how many times as long that is if not: as given, or as the core has it. */
function durationsOf(options: object): { duration: unknown; longest: unknown; times: number } {
  const given = options as Record<string, unknown>;
  const table = native().fieldTable();
  const row = (wanted: string) => table.find(({ name }) => name === wanted);
  const duration = row("openDurationMs");
  return {
    duration: given.openDurationMs ?? given[duration?.synonym ?? ""] ?? Number(duration?.default),
    longest: given.openDurationMaxMs,
    // As the table says it: `10 x openDurationMs`.
    times: Number.parseFloat(row("openDurationMaxMs")?.default ?? ""),
  };
}

/** A call under way. As long as its answer is, so is what was asked: of a request that is gone, Node no longer hears that it is aborted. */
interface Call {
  readonly permit: Permit;
  readonly args: Parameters<typeof fetch>;
  readonly request: Request;
  readonly signal: AbortSignal | undefined;
}

/** How a call ends whose answer was good so far: with its body. */
function ending(call: Call) {
  const { permit } = call;
  return {
    read: () => settle(() => permit.recordSuccess()),
    broken: (error: unknown) => settle(() => (isAbort(call, error) ? permit.release() : permit.recordFailure(error))),
    cancelled: () => settle(() => permit.release()),
  };
}

/** Whether the caller gave the request up. A signal that is a deadline says of a server what any timeout says. */
function isAbort({ signal }: Call, error: unknown): boolean {
  if (!signal?.aborted) return false;
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
    const { protocol, origin } = new URL(isRequest(input) ? input.url : String(input), base);
    return protocol === "http:" || protocol === "https:" ? origin : null;
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
