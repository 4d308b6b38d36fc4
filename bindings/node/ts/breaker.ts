import { type CallRules, run, runSync, type Settle } from "./call";
import { type CheckedCall, checkedCall, checkedFn, checkedSyncCall, NO_OPTIONS } from "./call-options";
import { countsAsFailure, type Ending, type Outcome, returned, thrown } from "./classify";
import { checkClock, monotonicNow } from "./clock";
import { BREAKER_POLICY, checkedName, fieldValue, type HostPolicy, optionsOf, readPolicy } from "./config";
import { CircuitOpenError, type RefusalClass, refusal } from "./error";
import { callEvent, Emitter, EVENT_NAMES } from "./events";
import { failureText, thrownText } from "./failure-text";
import { recoverSync, refused } from "./fallback";
import { GuardedAsyncGenerator, GuardedGenerator, isAsyncGenerator } from "./generator";
import { guardWith } from "./guard";
import { type HotEnds, isPlain, isPlainHost, runHot } from "./hot";
import { type Denial, type Grant, isProbe, Machine, WITHOUT_PERMIT } from "./machine";
import { FAILURE, type NativeConfig, type NativeTransition, RELEASE, SUCCESS } from "./native";
import { SettleOnce } from "./permit";
import { read } from "./stopwatch";
import { unseen } from "./thenable";
import type {
  Awaitable,
  Breaker,
  CallOptions,
  CircuitBreakerPolicy,
  Events,
  Guarded,
  GuardOptions,
  InterruptedCall,
  Permit,
  Settled,
  Snapshot,
  State,
  SyncCallOptions,
} from "./types";
import { warn } from "./warn";

/**
 * A policy that was read already, and whom its breakers report to: how a group makes its members. Its clock is tried here,
 * so once for all of them.
 */
export class PreparedPolicy {
  constructor(
    readonly config: NativeConfig,
    readonly host: HostPolicy,
    readonly outer?: Emitter,
    readonly closedChanged?: (breaker: CircuitBreaker, closed: boolean) => void,
    readonly refusalClass: RefusalClass = CircuitOpenError,
  ) {
    checkClock(host.clock);
  }
}

/**
 * Tells a breaker that its group has given it up.
 * @internal
 */
export let leaveGroup: (breaker: CircuitBreaker) => void;

/**
 * Guards the calls to one dependency, in this process.
 *
 * @example
 * ```ts
 * const breaker = new CircuitBreaker("billing", { failureThreshold: 5, openDurationMs: 30_000 });
 * await breaker.execute(() => billing.charge(order), { fallback: (refusal) => queued(order) });
 * ```
 */
export class CircuitBreaker implements Breaker {
  static {
    leaveGroup = (breaker) => breaker.events.leave();
  }

  /** The circuit's name. */
  readonly name: string;

  private readonly host: HostPolicy;
  private readonly machine: Machine;
  private readonly rules: CallRules;
  private readonly events: Emitter;
  private readonly closedChanged: PreparedPolicy["closedChanged"];
  private readonly refusalClass: RefusalClass;
  /** No option wants to know more about a success than that it was one. */
  private readonly plain: boolean;
  private lastFailure: string | null = null;
  private clockFailed = false;

  /** While this holds, a healthy call needs no native call, no clock and no promise but one. */
  private hot = false;
  /** What a call that was let through while hot does at its end: made once per period, not per call. */
  private ends!: HotEnds;
  private preparedFor = -1;

  /**
   * @param name - the circuit's name: 1 to 512 bytes of UTF-8 without control characters
   * @param policy - how it behaves; every option has a default
   * @throws {@link NameError}; {@link ConfigError} naming the option, the value and what is valid; {@link TimeError} if
   * the policy's clock gives no time
   */
  constructor(name: string, policy?: CircuitBreakerPolicy) {
    this.name = checkedName(name);
    const given: PreparedPolicy =
      (policy as unknown) instanceof PreparedPolicy ? (policy as unknown as PreparedPolicy) : prepared(policy);
    this.host = given.host;
    this.closedChanged = given.closedChanged;
    this.refusalClass = given.refusalClass;
    this.events = new Emitter<Events>(EVENT_NAMES, given.outer);
    this.plain = isPlainHost(this.host);
    const now = this.host.clock ?? monotonicNow;
    const timed = () => this.host.slowCallMs !== undefined || this.events.loudness.calls > 0;
    this.rules = { circuit: this.name, host: this.host, now, timed };
    this.machine = new Machine(
      given.config,
      now,
      (transition) => this.changed(transition),
      () => this.refresh(),
    );
    this.refresh();
  }

  /**
   * Runs a function if the circuit lets it through, once, and settles its outcome.
   *
   * What the function gives may be a value, a promise or a lazy thenable, whose `then` is called once. A generator or
   * async generator object that it returns (not a promise of one) is guarded until it ends. The function gets a signal if
   * there is a timeout or a caller's signal.
   *
   * @returns what the function gives; what the fallback gives, where it steps in
   * @throws the function's own error; {@link CircuitOpenError} if it was refused; {@link CallTimeoutError};
   * {@link ConfigError} for the options; {@link TimeError} if the policy's clock fails. All as rejections.
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
    if (options === undefined && this.hot && this.events.loudness.calls === 0 && typeof fn === "function")
      // Now, for the function itself may end the period that the call was admitted in.
      return runHot(fn as Interruptible, this.ends);
    let call: CheckedCall;
    try {
      checkedFn(fn);
      call = checkedCall(options, this.host);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.enter(fn as Interruptible, call);
  }

  /**
   * The same for a sync function. It knows no timeout and no signal, for a sync function cannot be interrupted.
   *
   * @throws the function's own error; {@link CircuitOpenError} if it was refused; TypeError if what it gives has to be
   * awaited: use {@link execute}; {@link ConfigError}; {@link TimeError}
   */
  executeSync<T, F = T>(fn: () => T, options: SyncCallOptions<F>): T | F;
  /** Runs a sync function if the circuit lets it through, once: as above, the options may be missing. */
  executeSync<T, F = T>(fn: () => T, options?: SyncCallOptions<F>): T | F;
  executeSync(fn: () => unknown, options?: SyncCallOptions<unknown>): unknown {
    checkedFn(fn);
    if (Object.prototype.toString.call(fn) === "[object AsyncFunction]") throw awaitableGiven(this.name);
    return this.enterSync(fn, checkedSyncCall(options), NO_ARGS, (value, settle) => {
      const error = awaitableGiven(this.name);
      void settle({ outcome: "ignored", error, durationMs: null, reason: null });
      unseen(value);
      throw error;
    });
  }

  /**
   * A function like the one given, with its name and `this`, each call of which is guarded. Generator and async generator
   * functions are guarded from the first step to the end. The fallback gets the error, then the arguments.
   *
   * A refusal is thrown by a sync function and is a rejection of an async one. A plain function that returns promises is
   * known as async once one of its calls has returned one; `async` functions always are.
   *
   * @throws {@link ConfigError}; TypeError if `fn` is no function, or a class
   */
  guard<A extends unknown[], R, F = never>(
    fn: (...args: A) => R,
    options: GuardOptions<F, A>,
  ): (...args: A) => Guarded<R, F>;
  /** A function like the one given, each call of which is guarded: as above, the options may be missing. */
  guard<A extends unknown[], R, F = never>(
    fn: (...args: A) => R,
    options?: GuardOptions<F, A>,
  ): (...args: A) => Guarded<R, F>;
  guard(fn: (...args: never[]) => unknown, options?: GuardOptions<unknown, never>): (...args: never[]) => unknown {
    checkedFn(fn);
    const call = checkedCall(options, this.host);
    return guardWith(fn as (...args: unknown[]) => unknown, call, this.rules, {
      enter: (run, args) => this.enter(run, call, args),
      enterSync: (run, args) =>
        this.enterSync(run, call, args, (value, settle, begun) => this.followed(value, call, settle, args, begun)),
      admit: () => this.admitOrObserve(),
    });
  }

  /**
   * Asks for one call by hand: whether it may go ahead. In a half-open circuit it takes a slot. Follow with
   * {@link recordSuccess}, {@link recordFailure} or {@link release}; {@link acquire} is safer, for its permit knows which
   * call it belongs to.
   *
   * @throws {@link TimeError} if the policy's clock fails
   */
  canExecute(): boolean {
    const admission = this.machine.admit();
    if (admission.allowed) return true;
    this.tellRefused(admission);
    return this.host.observe;
  }

  /**
   * Reports that a call succeeded. Whether that counted.
   * @throws {@link TimeError} if the policy's clock fails
   */
  recordSuccess(): Settled {
    return this.settleByHand(WITHOUT_PERMIT, "success", undefined);
  }

  /**
   * Reports that a call failed. Whether that counted.
   * @param error - what went wrong: `isFailure` then decides whether it counts
   * @throws {@link TimeError} if the policy's clock fails
   */
  recordFailure(error?: unknown): Settled {
    return this.settleByHand(WITHOUT_PERMIT, "failure", error);
  }

  /**
   * Reports that a call ended neutrally. Whether that counted.
   * @throws {@link TimeError} if the policy's clock fails
   */
  release(): Settled {
    return this.settleByHand(WITHOUT_PERMIT, "ignored", undefined);
  }

  /**
   * Asks for one call by hand, and gives the permit to settle it with.
   * @throws {@link CircuitOpenError} if it was refused; {@link TimeError} if the policy's clock fails
   */
  acquire(): Permit {
    const admission = this.machine.admit();
    if (admission.allowed) {
      return new SettleOnce(isProbe(admission), (outcome, error) => this.settleByHand(admission, outcome, error));
    }
    const error = this.tellRefused(admission);
    if (!this.host.observe) throw error;
    return new SettleOnce(false, () => "stale");
  }

  /** The state as callers see it: forced open reads `open`, disabled reads `closed`. Changes nothing. */
  getState(): State {
    return this.machine.state();
  }

  /**
   * Everything the circuit knows. Changes nothing.
   * @throws {@link TimeError} if the policy's clock fails
   */
  getSnapshot(): Snapshot {
    return this.machine.snapshot();
  }

  /**
   * Closes the circuit and forgets everything; outcomes of calls already running no longer count.
   * @throws {@link TimeError} if the policy's clock fails
   */
  reset(): void {
    this.machine.control((core, now) => core.reset(now));
  }

  /**
   * Opens the circuit now, also when it is open already; it recovers as usual.
   * @param o - `forMs`: how long it stays open, in milliseconds; by default as long as after any other trip
   * @throws {@link ConfigError} for the option; {@link TimeError} if the policy's clock fails
   */
  trip(o?: { forMs?: number }): void {
    const forMs = o === undefined ? undefined : optionsOf("options", o, ["forMs"]).forMs;
    const field = forMs === undefined ? undefined : fieldValue("forMs", forMs);
    this.machine.control((core, now) => core.trip(now, field));
  }

  /**
   * Refuses every call until {@link reset} or {@link trip}.
   * @throws {@link TimeError} if the policy's clock fails
   */
  forceOpen(): void {
    this.machine.control((core, now) => core.forceOpen(now));
  }

  /**
   * Admits every call and counts none until {@link reset} or {@link trip}.
   * @throws {@link TimeError} if the policy's clock fails
   */
  disable(): void {
    this.machine.control((core, now) => core.disable(now));
  }

  /**
   * Listens to an event, which is told after the fact and in order. A listener may call the breaker; one that throws
   * harms nothing and is reported once, as a process warning. Of a call that had begun before, it may not hear.
   *
   * @returns a function that stops listening
   * @throws TypeError for an unknown event or a listener that is no function
   */
  on<K extends keyof Events>(event: K, fn: (e: Events[K]) => void): () => void {
    return this.events.on(event, fn);
  }

  /** A call whose options are checked. */
  private enter(
    fn: (signal?: AbortSignal) => unknown,
    call: CheckedCall,
    args: readonly unknown[] = NO_ARGS,
  ): Promise<unknown> {
    if (this.hot && this.events.loudness.calls === 0 && isPlain(call)) return runHot(fn, this.ends);
    if (call.signal?.aborted === true) return this.cancelled(call.signal);
    let settle: Settle | CircuitOpenError;
    try {
      settle = this.admitOrObserve();
    } catch (error) {
      return Promise.reject(error);
    }
    return typeof settle === "function" ? run(fn, call, this.rules, settle, args) : refused(settle, call, args);
  }

  private enterSync(
    fn: () => unknown,
    call: CheckedCall,
    args: readonly unknown[],
    awaitable: (value: PromiseLike<unknown>, settle: Settle, begun: number | null) => unknown,
  ): unknown {
    if (call.signal?.aborted === true) {
      this.tell({ outcome: "ignored", error: call.signal.reason, durationMs: null, reason: null });
      throw call.signal.reason;
    }
    const settle = this.admitOrObserve();
    if (typeof settle !== "function") {
      if (call.fallback === undefined) throw settle;
      return recoverSync(call.fallback, settle, args);
    }
    return runSync(fn, call, this.rules, settle, (value, begun) => awaitable(value, settle, begun), args);
  }

  /** A guarded plain function gave a promise: from here on it is an async call. */
  private followed(
    value: PromiseLike<unknown>,
    call: CheckedCall,
    settle: Settle,
    args: readonly unknown[],
    begun: number | null,
  ): Promise<unknown> {
    return run(() => value, call, this.rules, settle, args, begun);
  }

  /**
   * How a call that goes ahead is settled, or why it does not. Under `observe` every call goes ahead; one that would have
   * been refused has been told as refused, and that is all that is said and counted of it.
   */
  private admitOrObserve(): Settle | CircuitOpenError {
    const admission = this.machine.admit();
    if (admission.allowed) return (ending) => this.settled(admission, ending);
    const error = this.tellRefused(admission);
    return this.host.observe ? ignoreEnding : error;
  }

  /** The caller gave up before it began: the function is not run, and no slot is taken. */
  private cancelled(signal: AbortSignal): Promise<never> {
    this.tell({ outcome: "ignored", error: signal.reason, durationMs: null, reason: null });
    return Promise.reject(signal.reason);
  }

  /** Settles a guarded call. A clock that fails now must not hide the caller's result: it is reported, and nothing counts. */
  private settled(grant: Grant, ending: Ending): void {
    try {
      this.count(grant, ending);
    } catch (error) {
      if (!this.clockFailed) {
        warn(`the clock of circuit \`${this.name}\` failed (reported once): ${thrownText(error)}`, "switchgear_clock");
      }
      this.clockFailed = true;
    }
    this.tell(ending);
  }

  private settleByHand(grant: Grant, outcome: Outcome, error: unknown): Settled {
    const neutral = outcome === "failure" && error !== undefined && !countsAsFailure(error, this.rules);
    const ending: Ending = { outcome: neutral ? "ignored" : outcome, error, durationMs: null, reason: null };
    const applied = this.count(grant, ending);
    this.tell(ending);
    return applied ? "applied" : "stale";
  }

  private count(grant: Grant, ending: Ending): boolean {
    if (ending.outcome !== "failure")
      return this.machine.settle(grant, ending.outcome === "success" ? SUCCESS : RELEASE);
    // Before it trips: the listeners of the trip may be refused already, and want to know why.
    const before = this.lastFailure;
    this.lastFailure = ending.reason ?? failureText(ending.error);
    const applied = this.machine.settle(grant, FAILURE);
    if (!applied) this.lastFailure = before;
    return applied;
  }

  private tell({ outcome, error, durationMs }: Ending): void {
    if (this.events.hears(outcome)) this.events.emit(outcome, callEvent(this.name, this.now(), durationMs, error));
  }

  private tellRefused({ state, retryAfterMs }: Denial): CircuitOpenError {
    const { lastFailure } = this;
    const fields = { circuit: this.name, state, retryAfterMs, lastFailure };
    const error = refusal(fields, this.host.refusalStack, this.refusalClass);
    if (this.events.hears("refused")) this.events.emit("refused", callEvent(this.name, this.now(), null, error));
    return error;
  }

  private now(): number {
    return read(this.rules.now) ?? monotonicNow();
  }

  private changed({ from, to, at, failures, openMs, reason }: NativeTransition): void {
    if (to === "closed") this.lastFailure = null;
    this.closedChanged?.(this, to === "closed");
    if (!this.events.hears("stateChange")) return;
    const change = { circuit: this.name, fromState: from, toState: to, at, failures, openMs, reason };
    this.events.emit("stateChange", { ...change, source: "local", instance: null });
  }

  /** Prepares the healthy path for the period that has begun. */
  private refresh(): void {
    const { free, admitEpoch: epoch } = this.machine;
    this.hot = free && this.plain;
    if (!this.hot || epoch === this.preparedFor) return;
    this.preparedFor = epoch;
    const grant = this.machine.admit() as Grant;
    const settle = (ending: Ending) => this.settled(grant, ending);
    const life = { call: NO_OPTIONS, rules: this.rules, args: NO_ARGS };
    this.ends = {
      running: (inner) =>
        isAsyncGenerator(inner)
          ? new GuardedAsyncGenerator(life, { inner, settle })
          : new GuardedGenerator(life, { inner, settle }),
      onError: (error) => {
        settle(thrown(error, NO_OPTIONS, this.rules, null));
        throw error;
      },
      onValue: this.machine.successIgnored
        ? undefined
        : (value) => {
            if (!this.hot) settle(returned(value, this.rules, null));
            return value;
          },
    };
  }
}

/** A function as it is called, whatever its overload says of the signal. */
type Interruptible = (signal?: AbortSignal) => unknown;

const NO_ARGS: readonly unknown[] = [];

function prepared(policy: unknown): PreparedPolicy {
  const { config, host } = readPolicy([policy], BREAKER_POLICY);
  return new PreparedPolicy(config, host);
}

function ignoreEnding(): void {
  // Told as refused; see `observe`.
}

function awaitableGiven(circuit: string): TypeError {
  return new TypeError(
    `executeSync of circuit \`${circuit}\` was given a function whose result has to be awaited: use execute`,
  );
}
