/** One circuit per origin (`https://api.example.com`), and what those who ask may choose. */

import { CircuitBreaker, leaveGroup, PreparedPolicy } from "./breaker";
import { BREAKER_POLICY, CALL_OPTIONS, checkedBoolean, outOfRange, type PolicyKind, readPolicy } from "./config";
import { ConfigError } from "./error";
import { Emitter, EVENT_NAMES } from "./events";
import { type HttpRules, stretched } from "./http";
import { Members } from "./members";
import { type NativeConfig, native } from "./native";
import type { CircuitBreakerPolicy, Events } from "./types";

/** Whether and how long a server is believed that says when to come back. `undefined` means left out. */
export interface RetryAfterOptions {
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
}

/** How the circuit of each origin behaves, and what it makes of answers. `undefined` means left out. */
export interface OriginOptions
  extends Omit<CircuitBreakerPolicy, "isFailure" | "isFailureResult" | "slowCallMs" | "timeoutMs">,
    RetryAfterOptions {
  /**
   * How many origins have a circuit at most, 1 to 1 000 000; the least recently used closed one goes first.
   * @defaultValue `1024`
   */
  maxKeys?: number | undefined;
  /**
   * By how much an opening is stretched at most, as a share of its length, 0 to 1. How much is drawn once per page or process and
   * origin, so that all who were failed by a server at once do not come back in the same second.
   * @defaultValue `0.2`
   */
  openJitter?: number | undefined;
}

/** The local circuits of those origins that somebody asks. */
export class Origins {
  readonly events = new Emitter<Events>(EVENT_NAMES);
  readonly rules: HttpRules;
  /** The further options that were given, unchecked. */
  readonly extra: Readonly<Record<string, unknown>>;
  private readonly kind: PolicyKind<NativeConfig>;
  private readonly members: Members<CircuitBreaker>;

  /**
   * @param options - as the user gave them
   * @param more - the names of further options that the place takes
   * @throws {@link ConfigError} naming the option, the value and what is valid
   */
  constructor(
    private readonly options: OriginOptions,
    more: readonly string[],
  ) {
    for (const name of CALL_OPTIONS) {
      if ((options as Record<string, unknown> | null)?.[name] === undefined) continue;
      throw new ConfigError(`\`${name}\` is no option here: HTTP says what counts`, name);
    }
    this.kind = { ...BREAKER_POLICY, call: [], host: ["maxKeys", ...RETRY_AFTER_OPTIONS, "openJitter", ...more] };
    this.extra = readPolicy([options], this.kind).extra;
    this.rules = { ...retryAfterRules(this.extra), openJitter: given(this.extra, "openJitter", 0.2, checkedShare) };
    const make = (origin: string) => this.make(origin);
    this.members = new Members(this.extra.maxKeys, make, leaveGroup);
    // Found out now, not at the first request.
    make("https://origin");
  }

  /** The circuit of an origin, made if there is none. */
  for(origin: string): CircuitBreaker {
    return this.members.for(origin);
  }

  /** How long the circuit of an origin stays open at most by itself, or because its server says so. */
  get longestMs(): number {
    const [duration, longest] = durationsOf(this.options);
    const { retryAfterMaxMs, openJitter } = this.rules;
    // As the table says it: `10 x openDurationMs`.
    const own = Number(longest) || Number(duration) * Number.parseFloat(String(longest));
    return Math.floor(Math.max(own, retryAfterMaxMs) * (1 + openJitter));
  }

  private make(origin: string): CircuitBreaker {
    const { config, host } = readPolicy([this.options, this.stretchedDurations(origin)], this.kind);
    const closedChanged = (breaker: CircuitBreaker, closed: boolean) => this.members.note(breaker, closed);
    return new CircuitBreaker(
      origin,
      new PreparedPolicy(config, host, this.events, closedChanged) as CircuitBreakerPolicy,
    );
  }

  /** The durations of an opening, as the core's table has them or as they were given, each stretched alike. */
  private stretchedDurations(origin: string): object {
    const [openDurationMs, openDurationMaxMs] = durationsOf(this.options).map(
      // One that is so many times another is none yet.
      (value) => stretched(this.rules, origin, Number(value)) || undefined,
    );
    return { openDurationMs, openDurationMaxMs };
  }
}

/** Names the options of {@link RetryAfterOptions}. */
export const RETRY_AFTER_OPTIONS = ["respectRetryAfter", "retryAfterMaxMs"];

/**
 * Those options, checked.
 * @throws {@link ConfigError}
 */
export function retryAfterRules(options: Readonly<Record<string, unknown>>): Omit<HttpRules, "openJitter"> {
  return {
    respectRetryAfter: given(options, "respectRetryAfter", true, checkedBoolean),
    retryAfterMaxMs: given(options, "retryAfterMaxMs", 300_000, checkedMs),
  };
}

/**
 * One option, checked if it was given.
 * @throws {@link ConfigError}
 */
export function given<T>(
  options: Readonly<Record<string, unknown>>,
  name: string,
  otherwise: T,
  check: (name: string, value: unknown) => T,
): T {
  return options[name] === undefined ? otherwise : check(name, options[name]);
}

/** The origin of an address; null for what no server answers, and for what is no address. */
export function httpOrigin(address: string | URL, base?: string): string | null {
  try {
    const { protocol, origin } = new URL(address, base);
    return /^https?:$/.test(protocol) ? origin : null;
  } catch {
    return null;
  }
}

/**
 * The origin that somebody names.
 * @throws {@link ConfigError} for what no server answers: a circuit of that name would guard nothing
 */
export function checkedOrigin(address: unknown, valid = HTTP_ADDRESS): string {
  const origin = httpOrigin(address as string);
  if (origin === null) throw outOfRange("origin", valid, address);
  return origin;
}

/** What names an origin, as an error says it. */
export const HTTP_ADDRESS = "an http: or https: address";

/** How long an opening lasts, and how long at most: as it was given and was found valid, or as the core's table shows it. */
function durationsOf(options: object): unknown[] {
  const given = options as Record<string, unknown>;
  const table = native().fieldTable();
  return ["openDurationMs", "openDurationMaxMs"].map((wanted) => {
    const row = table.find(({ name }) => name === wanted);
    return given[wanted] ?? given[row?.synonym ?? ""] ?? row?.default;
  });
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
