import { checkedFunction, checkedName, checkedWord, optionsOf, outOfRange } from "../config";
import { ConfigError } from "../error";
import type { CircuitBreakerPolicy, Refusal } from "../types";
import { injectCircuits } from "./bind";
import type { AnyBreaker, Circuits } from "./circuits";
import { guardedStep } from "./guarded";
import { type Aspect, checkedOrder, decorate, type Method, methodsOf, type NamedClass, type Step } from "./method";

/** How the circuit of a method behaves, or the circuits. */
export interface MethodPolicy extends CircuitBreakerPolicy {
  /**
   * How many circuits there are at most where there is one per key, 1 to 1 000 000; the least recently used goes first, closed
   * ones before others.
   * @defaultValue `1024`
   */
  maxKeys?: number | undefined;
}

/** Options of {@link WithCircuitBreaker}. Each may be left out, and `undefined` means left out. */
// biome-ignore lint/suspicious/noExplicitAny: the arguments of the method, which a decorator does not see.
export interface WithCircuitBreakerOptions<A extends unknown[] = any[]> {
  /** How the circuit behaves: overrides what the module says. */
  policy?: MethodPolicy | undefined;
  /** Makes it a circuit per key, called `name:key`: the key of a call, given the array of its arguments. */
  key?: ((args: A) => string) | undefined;
  /**
   * The circuit's name: 1 to 512 bytes of UTF-8 without control characters. Methods that give one name share the circuit.
   * @defaultValue `<Class>.<method>`, after the class of the instance
   */
  name?: string | undefined;
  /**
   * Where it stands among the decorators of this package, whatever their order in the source: the lower, the further outside.
   * @defaultValue `300`, inside of a retry
   */
  order?: number | undefined;
  /**
   * Gives the result of a refused call, and with `fallbackOn: 'failure'` of a failed one. It gets the error and the arguments
   * of the call; a `function` gets the instance as `this`.
   */
  // biome-ignore lint/suspicious/noExplicitAny: the instance, whose class a decorator does not see.
  fallback?: ((this: any, error: Refusal | unknown, ...args: A) => unknown) | undefined;
  /**
   * Which calls fall back: refused ones, or also those that counted as failures.
   * @defaultValue `'refusal'`
   */
  fallbackOn?: "refusal" | "failure" | undefined;
}

/**
 * Guards a method of a provider or a controller. All instances of the class share one circuit, or one per key.
 *
 * A sync method stays sync, but where circuits are shared: then it gives a promise, for the store has to be asked. Of a method
 * that gives an Observable each subscription is a call: it is admitted, the method runs, and an error counts; to unsubscribe is
 * neutral.
 *
 * @example
 * ```ts
 * class Billing {
 *   @WithCircuitBreaker({ policy: { failureThreshold: 3 }, fallback: (refusal, order) => queued(order) })
 *   async charge(order: string): Promise<string> {
 *     return billing.charge(order);
 *   }
 * }
 * ```
 *
 * @throws {@link ConfigError} naming the option, the value and what is valid; {@link NameError}; TypeError where there is no
 * method. What is wrong with the policy is told at boot.
 */
export function WithCircuitBreaker(options?: WithCircuitBreakerOptions): MethodDecorator {
  const given = checkedOptions(options);
  return (target, key, descriptor) => {
    const { aspects } = decorate(new CircuitAspect(given), target, key, descriptor);
    if (aspects.filter((aspect) => aspect instanceof CircuitAspect && aspect.isCalled(given.name)).length > 1) {
      const why = "each is a circuit of its own";
      throw new ConfigError(`\`name\` must differ between the @WithCircuitBreaker of one method, for ${why}`, "name");
    }
    injectCircuits(target, (circuits, owner) => {
      for (const method of methodsOf(owner)) method.prepare(circuits, owner);
    });
  };
}

/** What a guarded method says, checked. */
export interface CheckedOptions {
  readonly policy: CircuitBreakerPolicy | undefined;
  readonly key: ((args: unknown[]) => string) | undefined;
  readonly name: string | undefined;
  readonly order: number;
  readonly fallback: ((this: unknown, error: unknown, ...args: unknown[]) => unknown) | undefined;
  readonly fallbackOn: "refusal" | "failure";
}

const ORDER = 300;
const OPTIONS = ["policy", "key", "name", "order", "fallback", "fallbackOn"];

class CircuitAspect implements Aspect {
  readonly needsCircuits = true;
  readonly decorator = "@WithCircuitBreaker";
  readonly order: number;

  constructor(private readonly options: CheckedOptions) {
    this.order = options.order;
  }

  /** Whether this is the name that it was given. */
  isCalled(name: string | undefined): boolean {
    return this.options.name === name;
  }

  declare(method: Method, circuits: Circuits, owner: NamedClass): void {
    const { key, name, policy } = this.options;
    const by = `@WithCircuitBreaker of ${method.nameIn(owner)}`;
    if (circuits.store !== undefined && method.gives === "generator") {
      throw new TypeError(`${by} cannot guard a sync generator with a shared circuit: use an async one`);
    }
    circuits.declare(name ?? method.nameIn(owner), {
      policy,
      keyed: key !== undefined,
      owner: name === undefined ? { of: method.classFor(owner), key: method.key } : null,
      by,
    });
  }

  around(inner: Step, method: Method, circuits: Circuits, owner: NamedClass): Step {
    this.declare(method, circuits, owner);
    const { key, name = method.nameIn(owner) } = this.options;
    const group = key === undefined ? undefined : circuits.group(name);
    const breaker = key === undefined ? circuits.get(name) : undefined;
    const breakerOf = (args: unknown[]): AnyBreaker =>
      breaker ?? (group as { for(key: string): AnyBreaker }).for((key as (args: unknown[]) => string)(args));
    return guardedStep(inner, method, breakerOf, circuits.store !== undefined, this.options);
  }
}

function checkedOptions(options: unknown): CheckedOptions {
  const { policy, key, name, order, fallback, fallbackOn } =
    options === undefined ? ({} as Record<string, unknown>) : optionsOf("options", options, OPTIONS);
  if (policy !== undefined && (typeof policy !== "object" || policy === null || Array.isArray(policy))) {
    throw outOfRange("policy", "an object", policy);
  }
  if (key === undefined && policy !== undefined && (policy as { maxKeys?: unknown }).maxKeys !== undefined) {
    throw new ConfigError("`maxKeys` must be given with `key`: without one there is one circuit", "maxKeys");
  }
  return {
    policy: policy as CircuitBreakerPolicy | undefined,
    key: key === undefined ? undefined : checkedFunction("key", key),
    name: name === undefined ? undefined : checkedName(name),
    order: checkedOrder(order, ORDER),
    fallback: fallback === undefined ? undefined : checkedFunction("fallback", fallback),
    fallbackOn: fallbackOn === undefined ? "refusal" : checkedWord("fallbackOn", fallbackOn, ["refusal", "failure"]),
  };
}
