import { type CallRules, run, type Settle } from "./call";
import { type CheckedCall, checkedCall, checkedFn, NO_OPTIONS } from "./call-options";
import { countsAsFailure, type Ending, type Outcome, returned, thrown } from "./classify";
import { checkClock } from "./clock";
import { checkedName, describe, fieldValue, type HostPolicy, optionsOf, type PolicyKind, readPolicy } from "./config";
import { CircuitOpenError, ConfigError, type RefusalClass, refusal, StoreError, StoreUnavailableError } from "./error";
import { callEvent, Emitter, EVENT_NAMES } from "./events";
import { failureText } from "./failure-text";
import { refused } from "./fallback";
import { GuardedAsyncGenerator, GuardedGenerator, isAsyncGenerator } from "./generator";
import { guardWith } from "./guard";
import { type HotEnds, isPlain, isPlainHost, runHot } from "./hot";
import { FAILURE, type FieldValue, type NativeTransition, native, RELEASE, SUCCESS } from "./native";
import { GRANTED_CLOSED, type SharedConfig } from "./native-shared";
import { type ControlOperation, SharedCircuit, type SharedSettlement } from "./shared";
import { type Admission, Grant, NO_GRANT, type SharedPermit, SharedSettleOnce } from "./shared-permit";
import { type Connection, connectionOf, isForeignStore, type RedisStore } from "./store";
import type {
  Awaitable,
  Breaker,
  CallOptions,
  CircuitBreakerPolicy,
  Events,
  GuardOptions,
  InterruptedCall,
  Refusal,
  Settled,
  SharedGuarded,
  Snapshot,
  State,
} from "./types";

/** What a shared breaker adds to the policy. */
export interface SharedOptions {
  /**
   * What decides on a call while the store does not answer. `local`: a breaker of the same policy in this process, which is
   * told of every outcome and so is warm when it takes over; it remembers that the circuit was open. `fail-open`: the call goes
   * ahead unguarded, and its outcome counts nowhere. `fail-closed`: it is refused with {@link StoreUnavailableError}.
   * @defaultValue `'local'`
   */
  onStoreFailure?: "local" | "fail-open" | "fail-closed" | undefined;
  /**
   * How long a circuit that is known to be open refuses without asking the store, in milliseconds from the question on, and
   * never past its reopening: so much later a process may hear that an operator has closed it. 0: every call asks.
   * @defaultValue `1000`
   */
  openCacheMs?: number | undefined;
  /**
   * How long a circuit that is known to be closed admits without asking the store, in milliseconds from the question on: so
   * much later a process may hear that the fleet has tripped. 0: every call asks.
   * @defaultValue `0`
   */
  closedCacheMs?: number | undefined;
  /**
   * How many instances (see the store's `instance`) must have seen failures before the fleet trips; at most
   * `failureThreshold`, under `rate` at most `minimumCalls`. An instance whose own failures reach the threshold alone opens for
   * itself alone.
   * @defaultValue `1`
   */
  quorum?: number | undefined;
  /**
   * How long an idle circuit is remembered, in milliseconds; at least twice the longest duration of the policy plus
   * 60 000, so that an idle open circuit comes back through a probe. A circuit that an operator holds open or has
   * switched off is remembered until he changes his mind.
   * @defaultValue 86 400 000 (24 hours), or the least that is valid where that is more
   */
  idleTtlMs?: number | undefined;
}

/**
 * A policy that was read already, and whom its breakers report to: how a group makes its members. Its clock is tried here,
 * so once for all of them.
 * @internal
 */
export class PreparedSharedPolicy {
  constructor(
    readonly config: SharedConfig,
    readonly host: HostPolicy,
    readonly outer?: Emitter,
    readonly closedChanged?: (breaker: DistributedCircuitBreaker, closed: boolean) => void,
    readonly refusalClass: RefusalClass = CircuitOpenError,
  ) {
    checkClock(host.clock);
  }
}

/**
 * The options of a shared breaker: its policy and {@link SharedOptions}.
 * @internal
 */
export const SHARED_POLICY: PolicyKind<SharedConfig> = {
  host: [],
  core: ["onStoreFailure", "openCacheMs", "closedCacheMs", "quorum", "idleTtlMs"],
  build: (layers) => new (native().SharedConfig)(layers),
};

/**
 * Tells a breaker that its group has given it up.
 * @internal
 */
export let leaveGroup: (breaker: DistributedCircuitBreaker) => void;

/**
 * Guards the calls to one dependency, together with every process that has a breaker of this name on the same store: they
 * trip together, and in a half-open circuit no more than `halfOpenMaxCalls` probes run in the whole fleet.
 *
 * An admission takes one round trip (two around a half-open period), which the calls of one process that come meanwhile share;
 * none while the circuit is known to be open, and none for `closedCacheMs` while it is known to be closed. A success under
 * `rolling` takes none and under the others none that is waited for; a failure and the outcome of a probe take one. Each
 * waits at most the store's `timeoutMs`. While the store does not answer, this process decides alone: `onStoreFailure`.
 *
 * @example
 * ```ts
 * const store = new RedisStore(redis);
 * const breaker = new DistributedCircuitBreaker("billing", store, { failureThreshold: 5 });
 * await breaker.execute(() => billing.charge(order), { fallback: (refusal) => queued(order) });
 * ```
 */
export class DistributedCircuitBreaker implements Breaker {
  static {
    leaveGroup = (breaker) => breaker.events.leave();
  }

  /** The circuit's name. */
  readonly name: string;

  private readonly host: HostPolicy;
  private readonly circuit: SharedCircuit;
  private readonly connection: Connection;
  private readonly rules: CallRules;
  private readonly events: Emitter;
  private readonly closedChanged: PreparedSharedPolicy["closedChanged"];
  private readonly refusalClass: RefusalClass;
  /** No option wants to know more about a success than that it was one. */
  private readonly plain: boolean;
  private lastFailure: string | null = null;

  /** How calls with this permit end on the healthy path. */
  private endsFor: Grant = NO_GRANT;
  private ends!: HotEnds;

  /** What follows an admission, made once: each call then needs no function of its own. */
  private readonly allowed = (admission: Admission): boolean => {
    if (admission instanceof Grant) return true;
    this.tellRefused(admission);
    return this.host.observe;
  };

  private readonly settleByHand = async (grant: Grant | null, outcome: Outcome, error: unknown): Promise<Settled> => {
    const neutral = outcome === "failure" && error !== undefined && !countsAsFailure(error, this.rules);
    return this.count(grant, { outcome: neutral ? "ignored" : outcome, error, durationMs: null, reason: null });
  };

  private readonly acquired = (admission: Admission): SharedPermit => {
    if (admission instanceof Grant) return new SharedSettleOnce(admission, this.settleByHand);
    const error = this.tellRefused(admission);
    if (!this.host.observe) throw error;
    return new SharedSettleOnce(NO_GRANT, staleByHand);
  };

  /**
   * Asks nothing of the store and changes nothing there.
   *
   * @param name - the circuit's name, the same in the whole fleet: 1 to 512 bytes of UTF-8 without control characters
   * @param store - where the circuit is kept
   * @param policy - how it behaves; every option has a default. `clock` replaces the store's clock for this circuit.
   * @throws {@link NameError}; {@link ConfigError} naming the option, the value and what is valid; {@link TimeError} if
   * the policy's clock gives no time
   */
  constructor(name: string, store: RedisStore, policy?: CircuitBreakerPolicy & SharedOptions) {
    this.name = checkedName(name);
    this.connection = checkedStore(store);
    const given: PreparedSharedPolicy =
      (policy as unknown) instanceof PreparedSharedPolicy
        ? (policy as unknown as PreparedSharedPolicy)
        : preparedShared(policy);
    this.host = given.host;
    this.plain = isPlainHost(this.host);
    this.closedChanged = given.closedChanged;
    this.refusalClass = given.refusalClass;
    this.events = new Emitter<Events>(EVENT_NAMES, given.outer);
    this.rules = {
      circuit: this.name,
      host: this.host,
      now: () => this.circuit.stopwatch(),
      timed: () => this.host.slowCallMs !== undefined || this.events.loudness.calls > 0,
    };
    this.circuit = new SharedCircuit({
      name: this.name,
      connection: this.connection,
      config: given.config,
      clock: this.host.clock,
      onTransition: (transition, instance) => this.changed(transition, instance),
    });
  }

  /**
   * Runs a function if the circuit lets it through, once, and settles its outcome.
   *
   * What the function gives may be a value, a promise or a lazy thenable, whose `then` is called once. A generator or
   * async generator object is guarded until it ends. The function gets a signal if there is a timeout or a caller's signal.
   *
   * @returns what the function gives; what the fallback gives, where it steps in
   * @throws the function's own error; {@link CircuitOpenError} if it was refused; {@link StoreUnavailableError} if the
   * store did not answer under `fail-closed`; {@link CallTimeoutError}; {@link ConfigError} for the options;
   * {@link TimeError} if the clock fails. All as rejections. A store that does not take the outcome hides nothing of it.
   */
  execute<T, F = T>(
    fn: (signal: AbortSignal) => Awaitable<T>,
    options: CallOptions<F> & InterruptedCall,
  ): Promise<T | F>;
  /**
   * Runs a function if the circuit lets it through, once, and settles its outcome: as above, but nothing in the options is
   * sure to give a signal, so the function's may be missing.
   */
  execute<T, F = T>(fn: (signal?: AbortSignal) => Awaitable<T>, options: CallOptions<F>): Promise<T | F>;
  // Again, for in a union with `undefined` the compiler does not see which of the two kinds of fallback a literal has.
  /** Runs a function if the circuit lets it through, once, and settles its outcome: as above, the options may be missing. */
  execute<T, F = T>(fn: (signal?: AbortSignal) => Awaitable<T>, options?: CallOptions<F>): Promise<T | F>;
  execute(fn: (signal: never) => unknown, options?: CallOptions<unknown>): Promise<unknown> {
    if (options === undefined && this.plain && this.events.loudness.calls === 0 && typeof fn === "function") {
      const grant = this.circuit.known();
      if (grant !== null) return runHot(fn as Interruptible, this.endsOf(grant));
    }
    let call: CheckedCall;
    try {
      checkedFn(fn);
      call = checkedCall(options, this.host);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.enter(fn as Interruptible, call, NO_ARGS);
  }

  /**
   * An async function like the one given, with its name and `this`, each call of which is guarded. Async generator
   * functions are guarded from the first step to the end. The fallback gets the error, then the arguments.
   *
   * @throws {@link ConfigError}; TypeError if `fn` is no function, a class, or a generator function: each step of it would
   * have to wait for the store
   */
  guard<A extends unknown[], R, F = never>(
    fn: (...args: A) => R,
    options: GuardOptions<F, A>,
  ): (...args: A) => SharedGuarded<R, F>;
  /** A function like the one given, each call of which is guarded: as above, the options may be missing. */
  guard<A extends unknown[], R, F = never>(
    fn: (...args: A) => R,
    options?: GuardOptions<F, A>,
  ): (...args: A) => SharedGuarded<R, F>;
  guard(fn: (...args: never[]) => unknown, options?: GuardOptions<unknown, never>): (...args: never[]) => unknown {
    checkedFn(fn);
    if (Object.prototype.toString.call(fn) === "[object GeneratorFunction]") {
      throw new TypeError(`a shared circuit (\`${this.name}\`) cannot guard a sync generator: use an async one`);
    }
    const call = checkedCall(options, this.host);
    const enter = (body: () => unknown, args: readonly unknown[]) => this.enter(body, call, args);
    return guardWith(fn as (...args: unknown[]) => unknown, call, this.rules, {
      enter,
      enterSync: enter,
      admit: async () => this.settling(await this.circuit.admit()),
    });
  }

  /**
   * Asks for one call by hand: whether it may go ahead. In a half-open circuit it takes a slot. Follow with
   * {@link recordSuccess}, {@link recordFailure} or {@link release}; {@link acquire} is safer, for its permit knows which
   * call it belongs to. While the store does not answer: what this process decides under `local`, `false` under
   * `fail-closed`, `true` under `fail-open`.
   *
   * @throws {@link TimeError} if the clock fails
   */
  async canExecute(): Promise<boolean> {
    return this.allowed(await this.circuit.admit());
  }

  /** Reports that a call succeeded. Whether that counted: at the store, or while it does not answer in this process, if that decides then. */
  async recordSuccess(): Promise<Settled> {
    return this.settleByHand(null, "success", undefined);
  }

  /**
   * Reports that a call failed. Whether that counted: at the store, or while it does not answer in this process, if
   * that decides then.
   * @param error - what went wrong: `isFailure` then decides whether it counts
   */
  async recordFailure(error?: unknown): Promise<Settled> {
    return this.settleByHand(null, "failure", error);
  }

  /** Reports that a call ended neutrally. Whether that counted: at the store, or while it does not answer in this process, if that decides then. */
  async release(): Promise<Settled> {
    return this.settleByHand(null, "ignored", undefined);
  }

  /**
   * Asks for one call by hand, and gives the permit to settle it with.
   * @throws {@link CircuitOpenError} if it was refused; {@link StoreUnavailableError} if the store did not answer under
   * `fail-closed`; {@link TimeError} if the clock fails
   */
  async acquire(): Promise<SharedPermit> {
    return this.acquired(await this.circuit.admit());
  }

  /**
   * The state as callers see it: forced open reads `open`, disabled reads `closed`. Changes nothing. While the store does not
   * answer it is that of this process's own breaker, under `local`.
   * @throws {@link StoreUnavailableError} under the others; {@link TimeError} if the clock fails
   */
  async getState(): Promise<State> {
    return (await this.getSnapshot()).state;
  }

  /**
   * Everything the store knows of the circuit. Changes nothing. While the store does not answer it is what this process's own
   * breaker knows, under `local`.
   * @throws {@link StoreUnavailableError} under the others; {@link TimeError} if the clock fails
   */
  async getSnapshot(): Promise<Snapshot> {
    const snapshot = await this.circuit.snapshot();
    if (snapshot instanceof StoreError) throw new StoreUnavailableError(this.name, snapshot);
    return snapshot;
  }

  /**
   * Closes the circuit for the whole fleet and forgets everything; outcomes of calls already running no longer count.
   * Rejected with {@link StoreUnavailableError} it may still take effect: the answer was lost or late, not the command.
   * @throws {@link StoreUnavailableError}; {@link TimeError} if the clock fails
   */
  async reset(): Promise<void> {
    await this.control("reset");
  }

  /**
   * Opens the circuit for the whole fleet now, also when it is open already; it recovers as usual.
   * Rejected with {@link StoreUnavailableError} it may still take effect: the answer was lost or late, not the command.
   * @param o - `forMs`: how long it stays open, in milliseconds; by default as long as after any other trip
   * @throws {@link ConfigError} for the option; {@link StoreUnavailableError}; {@link TimeError} if the clock fails
   */
  async trip(o?: { forMs?: number }): Promise<void> {
    const forMs = o === undefined ? undefined : optionsOf("options", o, ["forMs"]).forMs;
    await this.control("trip", forMs === undefined ? undefined : fieldValue("forMs", forMs));
  }

  /**
   * Refuses every call of the whole fleet until {@link reset} or {@link trip}.
   * Rejected with {@link StoreUnavailableError} it may still take effect: the answer was lost or late, not the command.
   * @throws {@link StoreUnavailableError}; {@link TimeError} if the clock fails
   */
  async forceOpen(): Promise<void> {
    await this.control("forceOpen");
  }

  /**
   * Admits every call of the whole fleet and counts none until {@link reset} or {@link trip}.
   * Rejected with {@link StoreUnavailableError} it may still take effect: the answer was lost or late, not the command.
   * @throws {@link StoreUnavailableError}; {@link TimeError} if the clock fails
   */
  async disable(): Promise<void> {
    await this.control("disable");
  }

  /**
   * Listens to an event of this process, which is told after the fact and in order. A listener may call the breaker; one
   * that throws harms nothing and is reported once, as a process warning.
   *
   * @returns a function that stops listening
   * @throws TypeError for an unknown event or a listener that is no function
   */
  on<K extends keyof Events>(event: K, fn: (e: Events[K]) => void): () => void {
    return this.events.on(event, fn);
  }

  private enter(fn: (signal?: AbortSignal) => unknown, call: CheckedCall, args: readonly unknown[]): Promise<unknown> {
    // The caller gave up before it began: the function is not run, and no slot is taken.
    if (isCancelled(call)) {
      this.tell(cancelled(call));
      return Promise.reject(call.signal?.reason);
    }
    let admission: Admission | Promise<Admission>;
    try {
      admission = this.circuit.admit();
    } catch (error) {
      return Promise.reject(error);
    }
    return admission instanceof Promise
      ? admission.then((given) => this.entered(given, fn, call, args))
      : this.entered(admission, fn, call, args);
  }

  private entered(
    admission: Admission,
    fn: (signal?: AbortSignal) => unknown,
    call: CheckedCall,
    args: readonly unknown[],
  ): Promise<unknown> {
    if (admission instanceof Grant && admission.kind === GRANTED_CLOSED && this.isHot(call))
      return runHot(fn, this.endsOf(admission));
    const settle = this.settling(admission);
    if (typeof settle !== "function") return refused(settle, call, args);
    return isCancelled(call) ? giveUp(call, settle) : run(fn, call, this.rules, settle, args);
  }

  /** Whether nothing is asked of a call but its end. */
  private isHot(call: CheckedCall): boolean {
    return this.plain && this.events.loudness.calls === 0 && isPlain(call);
  }

  /** How calls with this permit end: the same for all calls of a closed period. */
  private endsOf(grant: Grant): HotEnds {
    if (this.endsFor === grant) return this.ends;
    const settle = (ending: Ending) => this.settled(grant, ending);
    const life = { call: NO_OPTIONS, rules: this.rules, args: NO_ARGS };
    this.endsFor = grant;
    this.ends = {
      running: (inner) =>
        isAsyncGenerator(inner)
          ? new GuardedAsyncGenerator(life, { inner, settle })
          : new GuardedGenerator(life, { inner, settle }),
      onError: (error) => {
        const settling = settle(thrown(error, NO_OPTIONS, this.rules, null));
        if (settling === undefined) throw error;
        return settling.then(() => {
          throw error;
        });
      },
      onValue: this.circuit.successIsFree
        ? undefined
        : (value) => {
            void settle(returned(value, this.rules, null));
            return value;
          },
    };
    return this.ends;
  }

  /**
   * How a call that goes ahead is settled, or why it does not. Under `observe` every call goes ahead; one that would have
   * been refused has been told as refused, and that is all that is said and counted of it.
   */
  private settling(admission: Admission): Settle | Refusal {
    if (admission instanceof Grant) return (ending) => this.settled(admission, ending);
    const error = this.tellRefused(admission);
    return this.host.observe ? ignoreEnding : error;
  }

  private settled(grant: Grant, ending: Ending): void | Promise<void> {
    const settling = this.count(grant, ending);
    return typeof settling === "string" ? undefined : settling.then(ignoreEnding);
  }

  /** Counts an ending, at once where the store need not hear of it, and tells the listeners. */
  private count(grant: Grant | null, ending: Ending): SharedSettlement | Promise<SharedSettlement> {
    const told = (settlement: SharedSettlement) => {
      this.tell(ending);
      return settlement;
    };
    const settling = this.circuit.settle(grant, CODES[ending.outcome], this.counting(ending));
    return typeof settling === "string" ? told(settling) : settling.then(told);
  }

  /** What is remembered of a failure once it has counted: before its trip is told, for who hears of that wants to know why. */
  private counting({ outcome, error, reason }: Ending): (() => void) | undefined {
    if (outcome !== "failure") return undefined;
    const text = reason ?? failureText(error);
    return () => {
      this.lastFailure = text;
    };
  }

  private tell({ outcome, error, durationMs }: Ending): void {
    if (this.events.hears(outcome)) this.events.emit(outcome, callEvent(this.name, this.now(), durationMs, error));
  }

  private tellRefused(admission: Exclude<Admission, Grant>): Refusal {
    const error = this.refusal(admission);
    if (this.events.hears("refused")) this.events.emit("refused", callEvent(this.name, this.now(), null, error));
    return error;
  }

  private refusal(admission: Exclude<Admission, Grant>): Refusal {
    if (admission instanceof StoreError) return new StoreUnavailableError(this.name, admission);
    const { state, retryAfterMs } = admission;
    const { lastFailure } = this;
    const fields = { circuit: this.name, state, retryAfterMs, lastFailure };
    return refusal(fields, this.host.refusalStack, this.refusalClass);
  }

  private async control(operation: ControlOperation, forMs?: FieldValue): Promise<void> {
    const error = await this.circuit.control(operation, forMs);
    if (error !== null) throw new StoreUnavailableError(this.name, error);
  }

  private now(): number {
    return this.circuit.now() ?? Date.now();
  }

  private changed({ from, to, at, failures, openMs, reason }: NativeTransition, instance: string | null): void {
    if (to === "closed") this.lastFailure = null;
    this.closedChanged?.(this, to === "closed");
    if (!this.events.hears("stateChange")) return;
    const change = { circuit: this.name, fromState: from, toState: to, at, failures, openMs, reason };
    const whose =
      instance === null
        ? { source: "local" as const, instance: this.connection.instance }
        : { source: "remote" as const, instance };
    this.events.emit("stateChange", { ...change, ...whose });
  }
}

/**
 * The inside of what was given as a store.
 * @throws {@link ConfigError}
 * @internal
 */
export function checkedStore(store: unknown): Connection {
  const connection = connectionOf(store);
  if (connection !== undefined) return connection;
  const shown = isForeignStore(store) ? FOREIGN : describe(store);
  throw new ConfigError(`\`store\` must be a RedisStore (new RedisStore(client)), got \`${shown}\``, "store", shown);
}

/** Nothing looks more like a RedisStore: the reader has to know why it is none. */
const FOREIGN = "a RedisStore of another copy of switchgear: two are loaded, and both classes must come from one";

function preparedShared(policy: unknown): PreparedSharedPolicy {
  const { config, host } = readPolicy([policy], SHARED_POLICY);
  return new PreparedSharedPolicy(config, host);
}

/** A function as it is called, whatever its overload says of the signal. */
type Interruptible = (signal?: AbortSignal) => unknown;

const NO_ARGS: readonly unknown[] = [];

const CODES: Readonly<Record<Outcome, number>> = { success: SUCCESS, failure: FAILURE, ignored: RELEASE };

function isCancelled(call: CheckedCall): boolean {
  return call.signal?.aborted === true;
}

function cancelled(call: CheckedCall): Ending {
  return { outcome: "ignored", error: call.signal?.reason, durationMs: null, reason: null };
}

/** The caller gave up while the store was asked: a slot that was taken is given back. */
async function giveUp(call: CheckedCall, settle: Settle): Promise<never> {
  await settle(cancelled(call));
  throw call.signal?.reason;
}

async function staleByHand(): Promise<Settled> {
  return "stale";
}

function ignoreEnding(): void {
  // Told as refused, see `observe`; or nobody wants to know whether it counted.
}
