import { defer, isObservable, lastValueFrom, type Observable, retry, throwError } from "rxjs";
import { checkedBoolean, checkedFunction, optionsOf, outOfRange } from "../config";
import { isThenable } from "../thenable";
import { waitBefore } from "./backoff";
import { type Aspect, checkedOrder, decorate, type Method, type Step } from "./method";
import { LONGEST, waiting } from "./waiting";

/** How often and how soon a call is tried again. `undefined` means left out. */
export interface RetryPolicy {
  /**
   * How often it is tried at most, the first time included, 1 to 1000.
   * @defaultValue `3`
   */
  maxAttempts?: number | undefined;
  /**
   * Milliseconds before the second attempt; before each later one twice as many. Of each wait up to a half is left to chance,
   * so that callers who failed together do not come back together.
   * @defaultValue `100`
   */
  baseDelayMs?: number | undefined;
  /**
   * The longest wait that this grows to, in milliseconds; at least {@link baseDelayMs}.
   * @defaultValue `10000`, or {@link baseDelayMs} where that is more
   */
  maxDelayMs?: number | undefined;
}

/** Options of {@link Retryable}. Each may be left out, and `undefined` means left out. */
export interface RetryableOptions {
  /** How often and how soon. */
  policy?: RetryPolicy | undefined;
  /**
   * Whether a call that failed is worth another attempt. One that throws, or gives a promise, says that it is not.
   * @defaultValue every error but one that says `retryable: false`, as refusals do: at an open circuit it stops at once
   */
  retryOn?: ((error: unknown) => boolean) | undefined;
  /**
   * Whether to wait where a circuit is open, for as long as it says it will be (`retryAfterMs`), and then to try again. The
   * refused attempt counts as one. A circuit that an operator holds open says nothing, and stops it at once.
   * @defaultValue `false`
   */
  waitForCircuit?: boolean | undefined;
  /**
   * Where it stands among the decorators of this package, whatever their order in the source: the lower, the further outside.
   * @defaultValue `200`, outside of the circuit: each attempt is admitted and counted on its own
   */
  order?: number | undefined;
}

/**
 * Calls a method again that failed. It then always gives a promise, for there may be a wait; where it gives an Observable, that
 * is subscribed to again. The caller gets the last attempt's own error.
 *
 * It needs no module; and what it does between attempts is done by rxjs, which Nest brings along.
 *
 * @throws {@link ConfigError} naming the option, the value and what is valid; TypeError where there is no method, or a generator
 */
export function Retryable(options?: RetryableOptions): MethodDecorator {
  const given = checkedOptions(options);
  return (target, key, descriptor) => {
    const { gives } = decorate(new RetryAspect(given), target, key, descriptor);
    if (gives === "generator" || gives === "async generator") {
      throw new TypeError(
        `@Retryable cannot stand before the generator ${String(key)}: what it has given cannot be taken back`,
      );
    }
  };
}

/** How a call is tried again, checked. */
export interface CheckedRetry {
  readonly maxAttempts: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
  readonly retryOn: (error: unknown) => boolean;
  readonly waitForCircuit: boolean;
  readonly order: number;
}

const ORDER = 200;
const OPTIONS = ["policy", "retryOn", "waitForCircuit", "order"];
const POLICY = ["maxAttempts", "baseDelayMs", "maxDelayMs"];
const MOST_ATTEMPTS = 1000;

class RetryAspect implements Aspect {
  readonly needsCircuits = false;
  readonly decorator = "@Retryable";
  readonly order: number;

  constructor(private readonly options: CheckedRetry) {
    this.order = options.order;
  }

  around(inner: Step, method: Method): Step {
    const { options } = this;
    return (self, args) => {
      const attempt = () => inner(self, args);
      if (method.gives === "observable") return retried(attempt, options);
      if (method.gives === "promise") return lastValueFrom(retried(later(attempt), options));
      // The first attempt tells what the method gives.
      const first = begun(attempt);
      if ("value" in first && isObservable(first.value)) {
        method.gives = "observable";
        return retried(attempt, options, first);
      }
      if ("value" in first && isThenable(first.value)) method.gives = "promise";
      return lastValueFrom(retried(later(attempt), options, first));
    };
  }
}

type Begun = { readonly value: unknown } | { readonly error: unknown };

function begun(attempt: () => unknown): Begun {
  try {
    return { value: attempt() };
  } catch (error) {
    return { error };
  }
}

/** What a sync method gives, or throws, is waited for all the same. */
function later(attempt: () => unknown): () => Promise<unknown> {
  return async () => attempt();
}

/** What an attempt gives, and after an error what the next one does. */
function retried(attempt: () => unknown, options: CheckedRetry, first?: Begun): Observable<unknown> {
  let pending = first;
  const { maxAttempts } = options;
  return defer(() => {
    const made = pending;
    pending = undefined;
    if (made === undefined) return attempt() as Observable<unknown>;
    if ("error" in made) throw made.error;
    return isObservable(made.value) ? made.value : Promise.resolve(made.value);
  }).pipe(
    retry({
      count: maxAttempts - 1,
      delay: (error, count) => {
        const ms = waitBefore(count, error, options);
        return ms === null ? throwError(() => error) : waiting(ms);
      },
    }),
  );
}

function checkedOptions(options: unknown): CheckedRetry {
  const given = options === undefined ? ({} as Record<string, unknown>) : optionsOf("options", options, OPTIONS);
  const policy =
    given.policy === undefined ? ({} as Record<string, unknown>) : optionsOf("policy", given.policy, POLICY);
  const { maxAttempts = 3, baseDelayMs = 100 } = policy;
  const base = checkedWhole("baseDelayMs", baseDelayMs, 0, LONGEST);
  const { maxDelayMs = Math.max(10_000, base) } = policy;
  return {
    maxAttempts: checkedWhole("maxAttempts", maxAttempts, 1, MOST_ATTEMPTS),
    baseDelayMs: base,
    maxDelayMs: checkedWhole("maxDelayMs", maxDelayMs, base, LONGEST),
    retryOn: given.retryOn === undefined ? isRetryable : checkedFunction("retryOn", given.retryOn),
    waitForCircuit: given.waitForCircuit !== undefined && checkedBoolean("waitForCircuit", given.waitForCircuit),
    order: checkedOrder(given.order, ORDER),
  };
}

function checkedWhole(field: string, value: unknown, least: number, most: number): number {
  if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
    throw outOfRange(field, `an integer, ${least} to ${most}`, value);
  }
  return value as number;
}

function isRetryable(error: unknown): boolean {
  return (error as { retryable?: unknown } | null | undefined)?.retryable !== false;
}
