import type { CircuitOpenError, StoreUnavailableError } from "./error";

/** What a circuit does with a call: let it through, refuse it, or let a few through to see. */
export type State = "closed" | "open" | "half-open";

/** Who decides: the rules, or an operator who holds the circuit open or has switched it off. */
export type Mode = "auto" | "forced-open" | "disabled";

/** A value, now or later. */
export type Awaitable<T> = T | Promise<T>;

/**
 * Whether an outcome counted: `applied`; `stale`, it came from another period and changed nothing; `duplicate`, this
 * permit was settled before and nothing was done.
 */
export type Settled = "applied" | "stale" | "duplicate";

/** Why a guarded function was not run. */
export type Refusal = CircuitOpenError | StoreUnavailableError;

/** What makes a closed circuit trip. */
export type TripOn = "rolling" | "consecutive" | "rate";

/**
 * How a circuit breaker behaves. Every option may be left out; `undefined` means left out, and a given 0 is never
 * replaced by a default. All durations are whole milliseconds, 1 to 3 155 760 000 000 (100 years).
 *
 * An option with an unknown name, a wrong type, a value out of range, or one that the `tripOn` in force does not use, is
 * a {@link ConfigError} from the constructor.
 */
export interface CircuitBreakerPolicy {
  /**
   * What trips a closed circuit: `rolling`, {@link failureThreshold} failures within {@link windowMs}; `consecutive`, so
   * many in a row; `rate`, a share {@link failureRate} of at least {@link minimumCalls} calls within {@link windowMs}.
   * @defaultValue `'rolling'`
   */
  tripOn?: TripOn | undefined;
  /**
   * Failures that trip, 1 to 1 000 000 (`rolling`, `consecutive`).
   * @defaultValue `5`
   */
  failureThreshold?: number | undefined;
  /**
   * The window in milliseconds (`rolling`, `rate`).
   * @defaultValue `10000`
   */
  windowMs?: number | undefined;
  /**
   * The share of failed calls that trips, above 0 and at most 1 (`rate`).
   * @defaultValue `0.5`
   */
  failureRate?: number | undefined;
  /**
   * Calls within the window before the rate means anything, 1 to 1 000 000 (`rate`).
   * @defaultValue `20`
   */
  minimumCalls?: number | undefined;
  /**
   * How long the circuit stays open before a probe is admitted, in milliseconds.
   * @defaultValue `30000`
   */
  openDurationMs?: number | undefined;
  /**
   * Each re-opening without a close in between multiplies the open duration by this, 1 to 100, fractions allowed.
   * @defaultValue `1`
   */
  openBackoff?: number | undefined;
  /**
   * The longest opening in milliseconds that the backoff may reach; at least {@link openDurationMs}.
   * @defaultValue 10 x {@link openDurationMs}
   */
  openDurationMaxMs?: number | undefined;
  /**
   * Probes in flight at once while half-open, 1 to 1 000 000.
   * @defaultValue `1`
   */
  halfOpenMaxCalls?: number | undefined;
  /**
   * Successful probes that close the circuit, 1 to 1 000 000.
   * @defaultValue `1`
   */
  successThreshold?: number | undefined;
  /**
   * After how many milliseconds a probe that never reported loses its slot.
   * @defaultValue {@link openDurationMs}
   */
  probeTimeoutMs?: number | undefined;
  /** Another name for {@link openDurationMs}; give one of the two. */
  resetTimeoutMs?: number | undefined;
  /** Another name for {@link halfOpenMaxCalls}; give one of the two. */
  halfOpenMaxProbes?: number | undefined;
  /**
   * Whether an error says that the dependency failed; one that does not is rethrown as it is and counts nowhere. Only
   * `false` says that it does not; a classifier that forgets to answer, throws, or gives a promise counts the call as a
   * failure. A refusal by this very circuit, of a guarded call within a guarded call, never counts, and is not asked about.
   * @defaultValue every error counts
   */
  isFailure?: ((error: unknown) => boolean) | undefined;
  /**
   * Whether a returned value says that the dependency failed (a 503 response, say). Such a value counts as a failure and
   * is still returned. The answer is taken as a condition is; a classifier that throws, or gives a promise, counts the
   * call as a failure.
   * @defaultValue no value counts
   */
  // biome-ignore lint/suspicious/noExplicitAny: one breaker guards calls of many types, its classifier knows which.
  isFailureResult?: ((value: any) => boolean) | undefined;
  /**
   * A success that took longer than this many milliseconds counts as a failure; its value is still returned.
   * @defaultValue none
   */
  slowCallMs?: number | undefined;
  /**
   * After this many milliseconds the signal given to the function is aborted, the call rejects with
   * {@link CallTimeoutError} and counts as a failure; what the function does later is ignored. At most 2 147 483 647, the
   * longest timer. Sync functions cannot be interrupted: they have no timeout. Of a generator it bounds each step.
   * @defaultValue none
   */
  timeoutMs?: number | undefined;
  /**
   * The machine runs and refusals are announced (`refused` events), but every call is let through. A call that would
   * have been refused is not counted.
   * @defaultValue `false`
   */
  observe?: boolean | undefined;
  /**
   * Whether a refusal carries a stack trace, which makes it dearer.
   * @defaultValue `false`
   */
  refusalStack?: boolean | undefined;
  /**
   * The time in whole milliseconds, 0 to 2^52, for tests and simulations. A reading that is none is a {@link TimeError};
   * it is read once by the constructor, so that a clock which never works is found out at once.
   * @defaultValue the host's monotonic clock, anchored once to the wall clock
   */
  clock?: (() => number) | undefined;
}

/**
 * What one call may say. `undefined` means left out. An option with an unknown name or a wrong type is a
 * {@link ConfigError}, and nothing was run.
 *
 * @typeParam F - what the fallback gives
 * @typeParam A - what the fallback gets after the error
 */
export type CallOptions<F = never, A extends unknown[] = []> = CallLimits & Fallback<Awaitable<F>, A>;

/** What one call of `executeSync` may say: a sync function can be neither cancelled nor timed out. */
export type SyncCallOptions<F = never> = Fallback<F>;

/** What a guarded function does with each of its calls. The fallback gets the error, then the arguments of the call. */
export type GuardOptions<F = never, A extends unknown[] = []> = CallLimits & Fallback<F, A>;

/** When a call is given up. */
export interface CallLimits {
  /**
   * Cancels the call: it rejects with the signal's reason at once and counts nowhere. An `AbortSignal.timeout` is such a
   * signal, too: a deadline that is to count against the dependency is {@link timeoutMs}.
   */
  signal?: AbortSignal | undefined;
  /**
   * As in the policy, for this call.
   * @defaultValue the policy's
   */
  timeoutMs?: number | undefined;
}

/**
 * What gives the result instead, and of which calls. It runs at most once, with the error first. If it throws, its error
 * gets the original one as `cause`. A returned value that counts as a failure is returned, never replaced.
 *
 * @typeParam G - what it gives
 * @typeParam A - what it gets after the error
 */
export type Fallback<G = never, A extends unknown[] = []> = RefusalFallback<G, A> | FailureFallback<G, A>;

/** A fallback for refused calls, the default. */
export interface RefusalFallback<G, A extends unknown[]> {
  /** Gives the result of a refused call. `refusal.code` says whether the circuit refused it or its store did not answer. */
  fallback?: ((refusal: Refusal, ...args: A) => G) | undefined;
  /**
   * Only a refused call falls back.
   * @defaultValue `'refusal'`
   */
  fallbackOn?: "refusal" | undefined;
}

/** A fallback for failed calls as well. */
export interface FailureFallback<G, A extends unknown[]> {
  /** Gives the result of a refused call, of one whose error counted, and of one that timed out. */
  fallback?: ((error: unknown, ...args: A) => G) | undefined;
  /** Errors that counted and timeouts fall back, too; neutral errors never do. */
  fallbackOn: "failure";
}

/** The options of a call whose function is sure to get a signal. */
export type InterruptedCall =
  | {
      /** Goes to the function as it is, or by way of one that is aborted with it. */
      signal: AbortSignal;
    }
  | {
      /** Aborts the function's signal. */
      timeoutMs: number;
    };

/**
 * What a guarded function gives: what it gave before, or what the fallback gives, in a promise where the function gives
 * promises.
 */
export type Guarded<R, F> = [F] extends [never]
  ? R
  : R extends AsyncGenerator | Generator
    ? R
    : R extends PromiseLike<infer T>
      ? Promise<T | Awaited<F>>
      : R | F;

/** The same of a shared breaker, which has to ask its store first: a promise always, but of an async generator. */
export type SharedGuarded<R, F> = R extends AsyncGenerator ? R : Promise<Awaited<R> | Awaited<F>>;

/** The right to one call. It settles once; a second settlement does nothing and answers `duplicate`. */
export interface Permit {
  /** Whether it holds one of the slots of a half-open circuit. */
  readonly probe: boolean;
  /** The dependency did its work. */
  recordSuccess(): Settled;
  /**
   * The dependency failed. With an error, `isFailure` decides whether it counts.
   * @param error - what went wrong
   */
  recordFailure(error?: unknown): Settled;
  /** Neither: the call was cancelled, say. Frees the slot and counts nowhere. */
  release(): Settled;
}

/** What a circuit looks like at one moment. Reading it changes nothing. */
export interface Snapshot {
  /** As callers see it: forced open reads `open`, disabled reads `closed`. */
  state: State;
  /** Who decides. */
  mode: Mode;
  /** Failures in the window while closed (`rolling`, `rate`; else 0). */
  failuresInWindow: number;
  /** Calls in the window while closed (`rate`; else 0). */
  callsInWindow: number;
  /** Failures in a row (`consecutive`; else 0). */
  consecutiveFailures: number;
  /** Probes that succeeded in this half-open period. */
  halfOpenSuccesses: number;
  /** Probes in flight. */
  halfOpenInFlight: number;
  /** When it opened, in milliseconds on the circuit's clock; null unless tripped. Kept while half-open. */
  openedAt: number | null;
  /** Milliseconds until a probe is admitted; 0 unless open, and 0 while open when the next request is a probe. */
  remainingOpenMs: number;
  /** Openings since the last close. */
  trips: number;
  /** Names the period between two transitions; it only grows. */
  epoch: number;
}

/** Why a circuit changed its state. */
export type Reason = "threshold" | "cooldown" | "probe-failed" | "probes-succeeded" | "manual";

/** A transition, told after the fact and in order. */
export interface StateChange {
  /** The circuit's name. */
  circuit: string;
  /** The state before. */
  fromState: State;
  /** The state after. */
  toState: State;
  /** When, in milliseconds on the circuit's clock. */
  at: number;
  /** The failures counted when a threshold tripped; else 0. */
  failures: number;
  /** How long it will stay open, in milliseconds; null unless it opened, by itself or by `trip`. */
  openMs: number | null;
  /** Why. */
  reason: Reason;
  /** Whether this process made the transition. */
  source: "local" | "remote";
  /** Which instance of the fleet made it; null for a local circuit. */
  instance: string | null;
}

/** One guarded call. Each call emits exactly one of `success`, `failure`, `ignored` and `refused`. */
export interface CallEvent {
  /** The circuit's name. */
  circuit: string;
  /** When it ended, in milliseconds on the circuit's clock. */
  at: number;
  /** How long it took; null for refusals, for outcomes that were recorded by hand, and where nobody listened at its start. */
  durationMs: number | null;
  /** What it threw, or the refusal; absent where there was none. */
  error?: unknown;
}

/** The events of a breaker and of a group, with what their listeners are given. */
export interface Events {
  /** The circuit changed its state. */
  stateChange: StateChange;
  /** A call succeeded. */
  success: CallEvent;
  /** A call counted as a failure. */
  failure: CallEvent;
  /** A call ended neutrally: cancelled by its caller, or with an error that `isFailure` does not count. */
  ignored: CallEvent;
  /** A call was refused. */
  refused: CallEvent;
}

/** What code that does not care whether the circuit is shared may rely on. */
export interface Breaker {
  /** The circuit's name. */
  readonly name: string;
  /** Runs a function if the circuit lets it through. */
  execute<T, F = T>(fn: (signal?: AbortSignal) => Awaitable<T>, options: CallOptions<F>): Promise<T | F>;
  /** Runs a function if the circuit lets it through; the options may be missing. */
  execute<T, F = T>(fn: (signal?: AbortSignal) => Awaitable<T>, options?: CallOptions<F>): Promise<T | F>;
  /** Asks for one call by hand; follow an allowed one with `recordSuccess`, `recordFailure` or `release`. */
  canExecute(): Awaitable<boolean>;
  /** Reports that a call succeeded. */
  recordSuccess(): Awaitable<Settled>;
  /** Reports that a call failed; with an error, `isFailure` decides whether it counts. */
  recordFailure(error?: unknown): Awaitable<Settled>;
  /** Reports that a call ended neutrally. */
  release(): Awaitable<Settled>;
  /** The state as callers see it. */
  getState(): Awaitable<State>;
  /** Everything the circuit knows. */
  getSnapshot(): Awaitable<Snapshot>;
  /** Closes the circuit and forgets everything. */
  reset(): Awaitable<void>;
  /** Opens the circuit; it recovers as usual. */
  trip(o?: { forMs?: number }): Awaitable<void>;
  /** Refuses every call until `reset` or `trip`. */
  forceOpen(): Awaitable<void>;
  /** Admits every call, counting none, until `reset` or `trip`. */
  disable(): Awaitable<void>;
  /** Listens; the answer stops listening. */
  on<K extends keyof Events>(event: K, fn: (e: Events[K]) => void): () => void;
}
