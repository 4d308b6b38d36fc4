/**
 * Generators are guarded over their whole life: exhausted is a success, a throw is what it would be elsewhere, closing one
 * early is neutral. What is timed is the time spent waiting for the generator, not the time its consumer takes.
 */

import { attempt } from "./attempt";
import type { CallRules, Settle } from "./call";
import type { CheckedCall } from "./call-options";
import { type Ending, returned, thrown } from "./classify";
import { describe } from "./config";
import { recover, recoverSync } from "./fallback";
import { beginning, since } from "./stopwatch";
import { tagOf } from "./thenable";

/** A generator that runs, and how its end is settled; one that a fallback gave is not. */
interface Running<I> {
  readonly inner: I;
  readonly settle: Settle | undefined;
}

/** What all guarded generators need. */
export interface Life {
  readonly call: CheckedCall;
  readonly rules: CallRules;
  readonly args: readonly unknown[];
}

type AnyAsync = AsyncIterator<unknown, unknown, unknown>;
type AnySync = Iterator<unknown, unknown, unknown>;

/** Whether a value is an async generator object, of any realm. */
export function isAsyncGenerator(value: unknown): value is AsyncGenerator {
  return tagOf(value) === "AsyncGenerator" && hasNext(value);
}

/** Whether a value is a generator object, of any realm. */
export function isGenerator(value: unknown): value is Generator {
  return tagOf(value) === "Generator" && hasNext(value);
}

/**
 * What a fallback gave instead of a generator: anything that can be iterated.
 * @throws TypeError
 */
export function iterated(value: unknown, kind: "async" | "sync"): AnyAsync & AnySync {
  const iterable = value as { [Symbol.asyncIterator]?: () => AnyAsync; [Symbol.iterator]?: () => AnySync } | null;
  const iterator =
    (kind === "async" ? iterable?.[Symbol.asyncIterator]?.() : undefined) ?? iterable?.[Symbol.iterator]?.();
  if (iterator === undefined) {
    throw new TypeError(`the fallback of a guarded generator must give something iterable, got ${describe(value)}`);
  }
  return iterator as AnyAsync & AnySync;
}

/** An async generator under a permit. `start` is called at the first step, for one that asks for its permit then. */
export class GuardedAsyncGenerator implements AsyncGenerator<unknown, unknown, unknown> {
  private running: Running<AnyAsync> | undefined;
  private starting: Promise<Running<AnyAsync>> | undefined;
  /** Settled once the fallback has given something to go on with, or thrown. */
  private recovery: Promise<void> | undefined;
  private stepped = false;
  private over = false;
  private tookMs: number | null = 0;

  constructor(
    private readonly life: Life,
    private readonly start: Running<AnyAsync> | (() => Promise<Running<AnyAsync>>),
  ) {
    if (typeof start !== "function") this.running = start;
  }

  next(...value: [] | [unknown]): Promise<IteratorResult<unknown, unknown>> {
    return this.step((inner) => inner.next(...value));
  }

  throw(error: unknown): Promise<IteratorResult<unknown, unknown>> {
    const isFirst = !this.stepped;
    if (isFirst && this.running === undefined) {
      // It never asked for its permit, and now never will.
      this.over = true;
      return Promise.reject(error);
    }
    return this.step(
      (inner) => (inner.throw === undefined ? Promise.reject(error) : inner.throw(error)),
      isFirst ? { error } : undefined,
    );
  }

  async return(value?: unknown): Promise<IteratorResult<unknown, unknown>> {
    const running = this.running ?? (await this.starting?.catch(() => undefined));
    if (running === undefined || this.over) {
      this.over = true;
      return { done: true, value: await value };
    }
    try {
      const result = await (running.inner.return?.(value) ?? { done: true, value: await value });
      if (result.done === true) await this.end(running, NEUTRAL);
      return result;
    } catch (error) {
      // Its own clean-up failed: that is a throw like any other.
      await this.end(running, thrown(error, this.life.call, this.life.rules, this.tookMs));
      throw error;
    }
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  get [Symbol.toStringTag](): string {
    return "AsyncGenerator";
  }

  /** @param own - what its consumer throws into a generator that has not begun: coming back, it says nothing of that */
  private async step(
    advance: (inner: AnyAsync) => Promise<IteratorResult<unknown, unknown>>,
    own?: { readonly error: unknown },
  ): Promise<IteratorResult<unknown, unknown>> {
    this.stepped = true;
    if (this.over && (await this.isOver())) return { done: true, value: undefined };
    await this.begun();
    // An earlier step may have ended it while this one waited for its turn.
    if (this.over && (await this.isOver())) return { done: true, value: undefined };
    const running = this.running as Running<AnyAsync>;
    const { call, rules } = this.life;
    const begun = beginning(rules);
    let result: IteratorResult<unknown, unknown>;
    let last: { readonly value: unknown } | undefined;
    try {
      result = (await attempt(() => advance(running.inner), call, rules.circuit)) as IteratorResult<unknown, unknown>;
      // Here, for what it gives may throw when it is looked at.
      last = result.done === true ? { value: result.value } : undefined;
    } catch (error) {
      this.tookMs = total(this.tookMs, since(begun, rules.now));
      const ending = own !== undefined && own.error === error ? NEUTRAL : thrown(error, call, rules, this.tookMs);
      if (running.settle === undefined || this.recovery !== undefined || !this.recovers(ending)) {
        await this.abandon(running, ending);
        throw error;
      }
      this.recovery = this.recover(running, ending, error);
      await this.recovery;
      return this.next();
    }
    this.tookMs = total(this.tookMs, since(begun, rules.now));
    // It ended because an earlier step failed while this one waited: then this one is the fallback's to answer.
    if (last !== undefined && running.settle !== undefined && this.recovery !== undefined) {
      return (await this.isOver()) ? result : this.step(advance);
    }
    if (last !== undefined) await this.end(running, returned(last.value, rules, this.tookMs));
    return result;
  }

  /** Whether nothing more is to come, once a fallback that is on its way has had its say. */
  private async isOver(): Promise<boolean> {
    await this.recovery?.catch(() => undefined);
    return this.over;
  }

  private async begun(): Promise<void> {
    if (this.running !== undefined) return;
    this.starting ??= (this.start as () => Promise<Running<AnyAsync>>)();
    try {
      this.running = await this.starting;
    } catch (error) {
      this.over = true;
      throw error;
    }
  }

  private async end(running: Running<AnyAsync>, ending: Ending): Promise<void> {
    if (this.over) return;
    this.over = true;
    await running.settle?.(ending);
  }

  private async abandon(running: Running<AnyAsync>, ending: Ending): Promise<void> {
    await this.end(running, ending);
    // It may still run, past its deadline or cancelled; nobody will ask it for more, and how it closes is nobody's.
    void new Promise((closed) => closed(running.inner.return?.(undefined))).catch(() => undefined);
  }

  private recovers(ending: Ending): boolean {
    const { fallback, fallbackOn } = this.life.call;
    return ending.outcome === "failure" && fallbackOn === "failure" && fallback !== undefined;
  }

  /** The stream goes on with what the fallback gives. */
  private async recover(running: Running<AnyAsync>, ending: Ending, error: unknown): Promise<void> {
    await this.abandon(running, ending);
    const { call, args } = this.life;
    const instead = await recover(call.fallback as NonNullable<CheckedCall["fallback"]>, error, args);
    this.running = { inner: iterated(instead, "async"), settle: undefined };
    this.over = false;
  }
}

/** A generator under a permit. */
export class GuardedGenerator implements Generator<unknown, unknown, unknown> {
  private running: Running<AnySync> | undefined;
  private stepped = false;
  private over = false;
  private tookMs: number | null = 0;

  constructor(
    private readonly life: Life,
    private readonly start: Running<AnySync> | (() => Running<AnySync>),
  ) {
    if (typeof start !== "function") this.running = start;
  }

  next(...value: [] | [unknown]): IteratorResult<unknown, unknown> {
    return this.step((inner) => inner.next(...value));
  }

  throw(error: unknown): IteratorResult<unknown, unknown> {
    const isFirst = !this.stepped;
    if (isFirst && this.running === undefined) {
      this.over = true;
      throw error;
    }
    const advance = (inner: AnySync) => {
      if (inner.throw === undefined) throw error;
      return inner.throw(error);
    };
    return this.step(advance, isFirst ? { error } : undefined);
  }

  return(value?: unknown): IteratorResult<unknown, unknown> {
    const { running } = this;
    if (running === undefined || this.over) {
      this.over = true;
      return { done: true, value };
    }
    try {
      const result = running.inner.return?.(value) ?? { done: true, value };
      if (result.done === true) this.end(running, NEUTRAL);
      return result;
    } catch (error) {
      this.end(running, thrown(error, this.life.call, this.life.rules, this.tookMs));
      throw error;
    }
  }

  [Symbol.iterator](): this {
    return this;
  }

  [Symbol.dispose](): void {
    this.return();
  }

  get [Symbol.toStringTag](): string {
    return "Generator";
  }

  private step(
    advance: (inner: AnySync) => IteratorResult<unknown, unknown>,
    own?: { readonly error: unknown },
  ): IteratorResult<unknown, unknown> {
    this.stepped = true;
    if (this.over) return { done: true, value: undefined };
    const running = this.begun();
    const { call, rules } = this.life;
    const begun = beginning(rules);
    let result: IteratorResult<unknown, unknown>;
    let last: { readonly value: unknown } | undefined;
    try {
      result = advance(running.inner);
      // Here, for what it gives may throw when it is looked at.
      last = result.done === true ? { value: result.value } : undefined;
    } catch (error) {
      this.tookMs = total(this.tookMs, since(begun, rules.now));
      const ending = own !== undefined && own.error === error ? NEUTRAL : thrown(error, call, rules, this.tookMs);
      this.end(running, ending);
      if (running.settle === undefined || !this.recovers(ending)) throw error;
      return this.recovered(error);
    }
    this.tookMs = total(this.tookMs, since(begun, rules.now));
    if (last !== undefined) this.end(running, returned(last.value, rules, this.tookMs));
    return result;
  }

  private begun(): Running<AnySync> {
    if (this.running !== undefined) return this.running;
    try {
      this.running = (this.start as () => Running<AnySync>)();
      return this.running;
    } catch (error) {
      this.over = true;
      throw error;
    }
  }

  private end(running: Running<AnySync>, ending: Ending): void {
    if (this.over) return;
    this.over = true;
    void running.settle?.(ending);
  }

  private recovers(ending: Ending): boolean {
    const { fallback, fallbackOn } = this.life.call;
    return ending.outcome === "failure" && fallbackOn === "failure" && fallback !== undefined;
  }

  private recovered(error: unknown): IteratorResult<unknown, unknown> {
    const { call, args } = this.life;
    const instead = recoverSync(call.fallback as NonNullable<CheckedCall["fallback"]>, error, args);
    this.running = { inner: iterated(instead, "sync"), settle: undefined };
    this.over = false;
    return this.next();
  }
}

const NEUTRAL: Ending = { outcome: "ignored", error: undefined, durationMs: null, reason: null };

/** Null once a step was not timed: then nobody knows. */
function total(before: number | null, step: number | null): number | null {
  return before === null || step === null ? null : before + step;
}

function hasNext(value: unknown): boolean {
  try {
    return typeof (value as Generator).next === "function";
  } catch {
    return false;
  }
}
