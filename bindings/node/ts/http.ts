/** What HTTP says of a server: one table, which `guardFetch` and the adapters of HTTP clients all go by. */

import type { CircuitBreaker } from "./breaker";
import type { DistributedCircuitBreaker } from "./distributed";
import { CircuitOpenError, StoreUnavailableError } from "./error";
import { native } from "./native";
import { retryAfterOf } from "./retry-after";
import type { SharedPermit } from "./shared-permit";
import { spread } from "./spread";
import { isThenable } from "./thenable";
import type { Awaitable, Permit, Settled, Snapshot } from "./types";

/** What those who ask a server may choose. */
export interface HttpRules {
  readonly respectRetryAfter: boolean;
  readonly retryAfterMaxMs: number;
  readonly openJitter: number;
}

/** A breaker of either kind. */
type AnyBreaker = CircuitBreaker | DistributedCircuitBreaker;

/** What a caller gives a request up with: a signal, or a controller of undici's. */
interface Abort {
  readonly aborted: boolean;
  readonly reason: unknown;
}

/**
 * One request that was let through. It is settled once, by what comes first:
 *
 * | counts | neutral | a success |
 * | --- | --- | --- |
 * | 429, 500 to 599 but 501 | what the caller gives up, unless by a deadline | every other answer, at the end of its body |
 * | it broke, before its head or in its body | what is invalid and was never sent | |
 *
 * Settling never throws: what fails is found out by the next request.
 */
export class HttpCall {
  /** When it is settled: undefined where that is done at once. */
  settled: Promise<unknown> | undefined;

  /**
   * @param circuits - those of all origins
   * @param origin - who is asked
   */
  constructor(
    private readonly circuits: { for(origin: string): AnyBreaker },
    private readonly origin: string,
    private readonly permit: Permit | SharedPermit,
    private readonly rules: HttpRules,
  ) {}

  /**
   * The head of an answer has come. Whether that settled it; if not, the end of its body does.
   * @param retryAfter - gives the header `Retry-After`
   * @param by - whose answer it is: another's than was asked, if that one has redirected
   */
  answered(status: number, retryAfter: () => string | null | undefined, by?: string | null): boolean {
    if (!native().statusCounts(status)) return false;
    const error = Object.assign(new Error(`HTTP ${status}`), { status });
    this.settle(
      () => this.permit.recordFailure(error),
      // What a call of another period brings says nothing about this one.
      (counted) => (counted === "applied" ? this.takeWord(status, retryAfter, by ?? this.origin) : undefined),
    );
    return true;
  }

  /** Its answer has come whole. */
  succeeded(): void {
    this.settle(() => this.permit.recordSuccess());
  }

  /**
   * It threw, or its body broke off.
   * @param by - what its caller gives it up with
   */
  broke(error: unknown, by?: Abort | null): void {
    // A refusal is one of a breaker further down: the server was not asked.
    if (isGivenUp(error, by) || error instanceof CircuitOpenError || error instanceof StoreUnavailableError)
      this.givenUp();
    else this.settle(() => this.permit.recordFailure(error));
  }

  /** Its caller does not want it any more, or it was no request. */
  givenUp(): void {
    this.settle(() => this.permit.release());
  }

  /** A server that says when to come back is believed, up to a limit. */
  private takeWord(status: number, retryAfter: () => string | null | undefined, origin: string): Awaitable<void> {
    const { respectRetryAfter, retryAfterMaxMs } = this.rules;
    if (!respectRetryAfter || (status !== 429 && status !== 503)) return;
    const ms = retryAfterOf(retryAfter() ?? null, Date.now());
    if (ms === null) return;
    const breaker = this.circuits.for(origin);
    const forMs = stretched(this.rules, origin, Math.min(ms, retryAfterMaxMs));
    return origin === this.origin ? breaker.trip({ forMs }) : openFor(breaker, forMs);
  }

  private settle(by: () => Awaitable<Settled>, then: (counted: Settled) => unknown = () => undefined): void {
    try {
      const done = after(by(), then);
      if (!isThenable(done)) return;
      const settled = Promise.resolve(done).catch(() => undefined);
      this.settled ??= settled;
    } catch {
      // A clock that fails, or an answer without headers.
    }
  }
}

/** Opens a circuit for so long, unless it is open for longer, or an operator has a hand on it. */
export function openFor(breaker: AnyBreaker, forMs: number): Awaitable<void> {
  return after(breaker.getSnapshot(), ({ mode, remainingOpenMs }: Snapshot) =>
    mode === "auto" && forMs > remainingOpenMs ? breaker.trip({ forMs }) : undefined,
  );
}

/** How long an opening of an origin's circuit is, of which the rule says so many milliseconds. */
export function stretched({ openJitter }: HttpRules, origin: string, ms: number): number {
  return Math.floor(ms * (1 + openJitter * spread(origin)));
}

/** Goes on with a value, at once where it is there. */
function after<T, U>(value: Awaitable<T>, then: (value: T) => Awaitable<U>): Awaitable<U> {
  return isThenable(value) ? (value as Promise<T>).then(then) : then(value as T);
}

/** Whether the caller gave the request up. A signal that is a deadline says of a server what any timeout says. */
function isGivenUp(error: unknown, by: Abort | null | undefined): boolean {
  const isDeadline = (reason: unknown) => (reason as { name?: unknown } | null | undefined)?.name === "TimeoutError";
  return by?.aborted === true && !isDeadline(by.reason) && !isDeadline(error);
}
