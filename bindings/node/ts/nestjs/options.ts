import type { FactoryProvider, InjectionToken, ModuleMetadata, Type } from "@nestjs/common";
import { checkedBoolean, checkedFunction, optionsOf, outOfRange } from "../config";
import type { SharedOptions } from "../distributed";
import { ConfigError } from "../error";
import { EVENT_NAMES } from "../events";
import type { RedisStoreOptions, StoreEvents } from "../store";
import type { CircuitBreakerPolicy, Events } from "../types";

/** Options of `CircuitBreakerModule.forRoot`. Each may be left out, and `undefined` means left out. */
export interface CircuitBreakerModuleOptions {
  /** The policy that every circuit begins with. */
  defaults?: CircuitBreakerPolicy | undefined;
  /**
   * The policies of circuits by their names, `'Billing.charge'` or what a `name` says: they override {@link defaults}, and the
   * `policy` beside a method overrides them.
   */
  circuits?: Record<string, CircuitBreakerPolicy> | undefined;
  /**
   * Makes every circuit one that the fleet shares: a client of Redis or Valkey, or the injection token of one. It stays yours,
   * and is never closed. Needs a {@link prefix}.
   * @defaultValue none: each circuit lives in this process
   */
  redis?: object | InjectionToken | undefined;
  /**
   * What the keys of this service begin with, `'billing:'`. There is no default, for the circuits are called by classes and
   * methods, and two services may well have a class of one name. Only with {@link redis}.
   */
  prefix?: string | undefined;
  /** How circuits are shared, and options of the store. Only with {@link redis}. */
  shared?: SharedModuleOptions | undefined;
  /**
   * Whether the whole application may use the module, which then is imported once, by the root module.
   * @defaultValue `true`
   */
  isGlobal?: boolean | undefined;
  /** Listeners to the events of all circuits, and with {@link redis} to those of the store. */
  on?: CircuitBreakerListeners | undefined;
}

/** How circuits are shared: what each of them takes, and what their store does. */
export type SharedModuleOptions = SharedOptions & Omit<RedisStoreOptions, "prefix">;

/** A listener for each event: see `CircuitBreaker.on` and `RedisStore.on`. */
export type CircuitBreakerListeners = {
  [K in keyof (Events & StoreEvents)]?: ((event: (Events & StoreEvents)[K]) => void) | undefined;
};

/** A class that gives the options of the module: for `useClass` and `useExisting`. */
export interface CircuitBreakerOptionsFactory {
  /** The options, now or later. */
  createCircuitBreakerOptions(): Promise<ModuleOptionsGiven> | ModuleOptionsGiven;
}

/** Options of `CircuitBreakerModule.forRootAsync`: one of `useFactory`, `useClass` and `useExisting`. */
export interface CircuitBreakerModuleAsyncOptions extends Pick<ModuleMetadata, "imports"> {
  /** A function that gives the options, now or later. */
  // biome-ignore lint/suspicious/noExplicitAny: what is injected is told by `inject`, not by a type.
  useFactory?: ((...args: any[]) => Promise<ModuleOptionsGiven> | ModuleOptionsGiven) | undefined;
  /** What the function gets. */
  inject?: FactoryProvider["inject"] | undefined;
  /** A class that gives the options, made by the module. */
  useClass?: Type<CircuitBreakerOptionsFactory> | undefined;
  /** The token of a provider that gives the options: one of `imports`, or a global one. */
  useExisting?: InjectionToken<CircuitBreakerOptionsFactory> | undefined;
  /**
   * Whether the whole application may use the module, which then is imported once, by the root module.
   * @defaultValue `true`
   */
  isGlobal?: boolean | undefined;
}

/** What a factory gives: `isGlobal` is decided before there is one. */
export type ModuleOptionsGiven = Omit<CircuitBreakerModuleOptions, "isGlobal">;

/** The options of the module, their shape checked; of policies, the core checks the rest. */
export interface CheckedModuleOptions {
  readonly defaults: object | undefined;
  readonly circuits: ReadonlyMap<string, object>;
  readonly redis: object | InjectionToken | undefined;
  readonly prefix: string | undefined;
  /** What each shared circuit takes. */
  readonly shared: object;
  /** What their store takes. */
  readonly store: object;
  readonly on: ReadonlyMap<string, (event: unknown) => void>;
}

/**
 * Checks the options of the module.
 *
 * @param made - whether a factory gave them, which is too late for `isGlobal`
 * @throws {@link ConfigError} naming the option, the value and what is valid
 */
export function checkedModuleOptions(given: unknown, made: boolean): CheckedModuleOptions {
  const { defaults, circuits, redis, prefix, shared, on, isGlobal } = optionsOf("options", given, MODULE_OPTIONS);
  if (isGlobal !== undefined) checkedBoolean("isGlobal", isGlobal);
  if (isGlobal !== undefined && made) {
    const where = "beside `useFactory`, `useClass` or `useExisting`, for what those give comes too late";
    throw new ConfigError(`\`isGlobal\` must be given ${where}`, "isGlobal");
  }
  if (defaults !== undefined) plain("defaults", defaults);
  if (redis !== undefined && !isClient(redis) && !isToken(redis)) {
    throw outOfRange("redis", "a client of Redis or its injection token", redis);
  }
  if (redis !== undefined && prefix === undefined) {
    const why = "for another service may have circuits of the same names";
    throw new ConfigError(
      `\`prefix\` must be given with \`redis\`, as \`'billing:'\`, ${why}; got \`undefined\``,
      "prefix",
      "undefined",
    );
  }
  if (prefix !== undefined && typeof prefix !== "string") throw outOfRange("prefix", "a text", prefix);
  const { store, rest } = split(shared === undefined ? {} : plain("shared", shared));
  return {
    defaults: defaults as object | undefined,
    circuits: new Map(
      Object.entries(circuits === undefined ? {} : plain("circuits", circuits))
        .filter(([, policy]) => policy !== undefined)
        .map(([name, policy]) => [name, plain(`circuits.${name}`, policy)]),
    ),
    redis,
    prefix,
    shared: rest,
    store,
    on: listeners(on),
  };
}

/**
 * What of an option that should be a policy went wrong, with where it stands.
 * @param where - `defaults`, say
 */
export function located(error: unknown, where: string): unknown {
  if (!(error instanceof ConfigError)) return error;
  return new ConfigError(`${error.message} (in ${where})`, error.field, error.value);
}

/**
 * Checks the options of `forRootAsync`.
 * @throws {@link ConfigError} unless there is one way in which the options are given
 */
export function checkedAsyncOptions(given: unknown): CircuitBreakerModuleAsyncOptions {
  const options = optionsOf("options", given, ASYNC_OPTIONS);
  const { useFactory, isGlobal } = options;
  const ways = WAYS.filter((way) => options[way] !== undefined);
  if (ways.length !== 1) {
    const shown = ways.length === 0 ? "none of them" : ways.join(" and ");
    throw new ConfigError(`\`options\` must have one of ${WAYS.join(", ")}, got ${shown}`, "options", shown);
  }
  if (useFactory !== undefined) checkedFunction("useFactory", useFactory);
  if (isGlobal !== undefined) checkedBoolean("isGlobal", isGlobal);
  return options;
}

/** Whether something may be an injection token; anything else that is an object is a client. */
export function isToken(redis: unknown): redis is InjectionToken {
  return typeof redis === "string" || typeof redis === "symbol" || typeof redis === "function";
}

const WAYS = ["useFactory", "useClass", "useExisting"] as const;
const ASYNC_OPTIONS = [...WAYS, "inject", "imports", "isGlobal"];
const MODULE_OPTIONS = ["defaults", "circuits", "redis", "prefix", "shared", "isGlobal", "on"];
const STORE_EVENTS = ["degraded", "restored", "storeError", "configMismatch"] as const satisfies (keyof StoreEvents)[];
const STORE_OPTIONS = ["timeoutMs", "clock", "instance", "events"] as const satisfies (keyof SharedModuleOptions)[];

/** The names of the events that a store tells. */
export function isStoreEvent(event: string): event is keyof StoreEvents {
  return (STORE_EVENTS as readonly string[]).includes(event);
}

function isClient(redis: unknown): redis is object {
  return typeof redis === "object" && redis !== null;
}

function plain(field: string, value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw outOfRange(field, "an object", value);
  return value as Record<string, unknown>;
}

/** What is for the store, and what is for each circuit. */
function split(shared: Record<string, unknown>): { store: object; rest: object } {
  const store: Record<string, unknown> = {};
  const rest: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(shared)) {
    ((STORE_OPTIONS as readonly string[]).includes(name) ? store : rest)[name] = value;
  }
  return { store, rest };
}

function listeners(on: unknown): CheckedModuleOptions["on"] {
  const heard = new Map<string, (event: unknown) => void>();
  const known: readonly string[] = [...EVENT_NAMES, ...STORE_EVENTS];
  for (const [event, listener] of Object.entries(on === undefined ? {} : plain("on", on))) {
    if (!known.includes(event)) {
      throw outOfRange("on", `an object of ${known.join(", ")}`, event);
    }
    if (listener !== undefined) heard.set(event, checkedFunction(`on.${event}`, listener));
  }
  return heard;
}
