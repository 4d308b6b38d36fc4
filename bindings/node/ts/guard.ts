import type { CallRules, Settle } from "./call";
import type { CheckedCall } from "./call-options";
import { recover, recoverSync } from "./fallback";
import { GuardedAsyncGenerator, GuardedGenerator, iterated, type Life } from "./generator";
import { isThenable } from "./thenable";
import type { Awaitable, Refusal } from "./types";

type AnyFunction = (...args: unknown[]) => unknown;

/** The ways into a breaker that a guarded function needs. */
interface Ways {
  /** An async call. */
  enter(run: () => unknown, args: readonly unknown[]): Promise<unknown>;
  /** A call that is sync, or turns out to be async: then it gives a promise. */
  enterSync(run: () => unknown, args: readonly unknown[]): unknown;
  /** How a call that goes ahead is settled, or why it does not. Only a shared breaker has to be awaited. */
  admit(): Awaitable<Settle | Refusal>;
}

/** A function like the one given, each call of which goes through a breaker. */
export function guardWith(fn: AnyFunction, call: CheckedCall, rules: CallRules, ways: Ways): AnyFunction {
  if (isClass(fn))
    throw new TypeError(`a class (${fn.name}) cannot be guarded: guard a function that makes its objects`);
  return likeTheOriginal(fn, guardedBy(kindOf(fn), fn, call, rules, ways));
}

type Kind = "AsyncFunction" | "AsyncGeneratorFunction" | "GeneratorFunction" | "Function";

function guardedBy(kind: Kind, fn: AnyFunction, call: CheckedCall, rules: CallRules, ways: Ways): AnyFunction {
  switch (kind) {
    case "AsyncFunction":
      return function (this: unknown, ...args) {
        return ways.enter(() => fn.apply(this, args), args);
      };
    case "AsyncGeneratorFunction":
      return function (this: unknown, ...args) {
        const life: Life = { call, rules, args };
        return new GuardedAsyncGenerator(life, async () => {
          const settle = await ways.admit();
          if (typeof settle === "function") return { inner: made(() => fn.apply(this, args)), settle };
          if (call.fallback === undefined) throw settle;
          return { inner: iterated(await recover(call.fallback, settle, args), "async"), settle: undefined };
        });
      };
    case "GeneratorFunction":
      return function (this: unknown, ...args) {
        const life: Life = { call, rules, args };
        return new GuardedGenerator(life, () => {
          const settle = ways.admit() as Settle | Refusal;
          if (typeof settle === "function") return { inner: made(() => fn.apply(this, args)), settle };
          if (call.fallback === undefined) throw settle;
          return { inner: iterated(recoverSync(call.fallback, settle, args), "sync"), settle: undefined };
        });
      };
    case "Function": {
      // Sync or async? Nothing says so before its first result; a refusal before that is thrown.
      let isAsync = false;
      return function (this: unknown, ...args) {
        if (isAsync) return ways.enter(() => fn.apply(this, args), args);
        // What the function itself gives decides: its fallback may be of the other kind.
        const learn = () => {
          const result = fn.apply(this, args);
          isAsync ||= isThenable(result);
          return result;
        };
        return ways.enterSync(learn, args);
      };
    }
  }
}

/**
 * The generator that a generator function gives. Its parameters may throw before there is one (a default value, taking apart
 * what is not there): then something that throws the same at the first step, so that the permit is settled like any other.
 */
function made(make: () => unknown): AsyncGenerator & Generator {
  try {
    return make() as AsyncGenerator & Generator;
  } catch (error) {
    const next = (): never => {
      throw error;
    };
    return { next } as Partial<AsyncGenerator & Generator> as AsyncGenerator & Generator;
  }
}

function kindOf(fn: AnyFunction): Kind {
  const tag = Object.prototype.toString.call(fn).slice("[object ".length, -1);
  return tag === "AsyncFunction" || tag === "AsyncGeneratorFunction" || tag === "GeneratorFunction" ? tag : "Function";
}

/** By its source: `class Name`, `class {`, but not a method called `class`. */
function isClass(fn: AnyFunction): boolean {
  return /^class(\s+[^\s(]|\s*\{)/.test(Function.prototype.toString.call(fn));
}

/** Frameworks look at a function's name, and at how many arguments it takes. */
function likeTheOriginal(fn: AnyFunction, guarded: AnyFunction): AnyFunction {
  Object.defineProperties(guarded, {
    name: { value: fn.name, configurable: true },
    length: { value: fn.length, configurable: true },
  });
  return guarded;
}
