import { ConfigError, fromNative, NameError } from "./error";
import { type FieldValue, type NativeConfig, native } from "./native";

/** The options of a policy that are the host's: everything else is the core's, which checks it. */
export interface HostPolicy {
  readonly isFailure: ((error: unknown) => boolean) | undefined;
  readonly isFailureResult: ((value: unknown) => boolean) | undefined;
  readonly slowCallMs: number | undefined;
  readonly timeoutMs: number | undefined;
  readonly observe: boolean;
  readonly refusalStack: boolean;
  readonly clock: (() => number) | undefined;
}

/** A policy that was read: the core's part as one checked value, the host's part checked here. */
interface ReadPolicy<C> {
  readonly config: C;
  readonly host: HostPolicy;
  /** The further host options that were given, unchecked. */
  readonly extra: Readonly<Record<string, unknown>>;
}

/** What a constructor takes beside a breaker's policy. */
export interface PolicyKind<C> {
  /** Options of the host. */
  readonly host: readonly string[];
  /** Those of every breaker's that say something of a function's call or result: none where there is no function. */
  readonly call: readonly string[];
  /** Options that the core checks together with the policy. */
  readonly core: readonly string[];
  /** Hands the core its part. What the core throws is turned into its class here. */
  readonly build: (layers: FieldValue[][]) => C;
}

/** Options of a breaker that say something of a function's call or result. */
export const CALL_OPTIONS = ["isFailure", "isFailureResult", "slowCallMs", "timeoutMs"];

/** A breaker's policy and nothing else. */
export const BREAKER_POLICY: PolicyKind<NativeConfig> = {
  host: [],
  call: CALL_OPTIONS,
  core: [],
  build: (layers) => new (native().Config)(layers),
};

/**
 * Reads a policy given in layers, the outermost (module, group) first: each overrides those before it. The core checks
 * its own fields; nothing else knows their names, ranges or defaults.
 *
 * @param layers - the objects as the user gave them; `undefined` stands for none
 * @param kind - what else the constructor at hand takes
 * @throws {@link ConfigError} naming the field, the value and what is valid
 */
export function readPolicy<C>(layers: readonly unknown[], kind: PolicyKind<C>): ReadPolicy<C> {
  const hostOptions = [...kind.call, "observe", "refusalStack", "clock", ...kind.host];
  const given: Record<string, unknown> = {};
  const fields: FieldValue[][] = [];
  for (const layer of layers) {
    if (layer === undefined) continue;
    const core: FieldValue[] = [];
    for (const [name, value] of entriesOf("policy", layer)) {
      if (value === undefined) continue;
      if (hostOptions.includes(name)) given[name] = value;
      else if (coreNames().has(name) || kind.core.includes(name)) core.push(fieldValue(name, value));
      else throw unknownOption(name, [...coreFields(), ...kind.core, ...hostOptions]);
    }
    fields.push(core);
  }
  const host = readHost(given);
  const extra: Record<string, unknown> = {};
  for (const name of kind.host) if (name in given) extra[name] = given[name];
  try {
    return { config: kind.build(fields), host, extra };
  } catch (error) {
    throw fromNative(error);
  }
}

/**
 * The options that an argument gives, each read once.
 *
 * @param what - the name of the argument
 * @param valid - the options that the place takes
 * @throws {@link ConfigError}
 */
export function optionsOf(what: string, options: unknown, valid: readonly string[]): Record<string, unknown> {
  const given: Record<string, unknown> = Object.create(null);
  for (const [name, value] of entriesOf(what, options)) {
    if (!valid.includes(name)) throw unknownOption(name, valid);
    given[name] = value;
  }
  return given;
}

/**
 * One of the core's host options (`timeoutMs`, `slowCallMs`, `maxKeys`, `forMs`, `idleTtlMs`), checked by the core.
 * @throws {@link ConfigError}
 */
export function checkedNumber(name: string, value: unknown): number {
  try {
    return native().checkOption(fieldValue(name, value));
  } catch (error) {
    throw fromNative(error);
  }
}

/**
 * A callback.
 * @throws {@link ConfigError}
 */
export function checkedFunction<F>(name: string, value: unknown): F {
  if (typeof value !== "function") throw outOfRange(name, "a function", value);
  return value as F;
}

/**
 * One of a few words.
 * @throws {@link ConfigError}
 */
export function checkedWord<W extends string>(name: string, value: unknown, words: readonly W[]): W {
  if (!words.includes(value as W)) throw outOfRange(name, words.map((word) => `'${word}'`).join(" or "), value);
  return value as W;
}

/**
 * A circuit's name, checked by the core: 1 to 512 bytes of UTF-8 without control characters.
 * @throws {@link NameError}
 */
export function checkedName(name: unknown): string {
  if (typeof name !== "string") throw new NameError(`\`name\` must be a string, got \`${describe(name)}\``);
  try {
    native().checkName(name);
  } catch (error) {
    throw fromNative(error);
  }
  return name;
}

/** The error of a value that an option cannot have, in the core's words. */
export function outOfRange(field: string, valid: string, value: unknown): ConfigError {
  const shown = describe(value);
  return new ConfigError(`\`${field}\` must be ${valid}, got \`${shown}\``, field, shown);
}

/** A value as an error shows it: nothing of what is inside an object, for that may be secret. */
export function describe(value: unknown): string {
  switch (typeof value) {
    case "string":
      return native().showText(value);
    case "function":
      return "a function";
    case "object":
      return value === null ? "null" : Array.isArray(value) ? "an array" : "an object";
    case "bigint":
      return `${value}n`;
    case "symbol":
      return "a symbol";
    default:
      return String(value);
  }
}

/** The own properties of an options argument, which must be plain: what it inherits would go unread, and unnoticed. */
function entriesOf(what: string, options: unknown): [name: string, value: unknown][] {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw outOfRange(what, "an object", options);
  }
  if (!isPlain(options)) {
    const shown = "an object that inherits from another";
    const valid = "a plain object, `{ ... }` with each option written out";
    throw new ConfigError(`\`${what}\` must be ${valid}, got \`${shown}\``, what, shown);
  }
  return Object.entries(options);
}

/** Whether an object inherits nothing, or only what every object of some realm does. */
function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  return (
    prototype === null ||
    (Object.hasOwn(prototype as object, "isPrototypeOf") && Object.getPrototypeOf(prototype) === null)
  );
}

/**
 * A yes or no.
 * @throws {@link ConfigError}
 */
export function checkedBoolean(name: string, value: unknown): boolean {
  if (typeof value !== "boolean") throw outOfRange(name, "true or false", value);
  return value;
}

function readHost(given: Record<string, unknown>): HostPolicy {
  const read = <T>(name: string, check: (name: string, value: unknown) => T): T | undefined =>
    name in given ? check(name, given[name]) : undefined;
  return {
    isFailure: read("isFailure", checkedFunction<(error: unknown) => boolean>),
    isFailureResult: read("isFailureResult", checkedFunction<(value: unknown) => boolean>),
    slowCallMs: read("slowCallMs", checkedNumber),
    timeoutMs: read("timeoutMs", checkedNumber),
    observe: read("observe", checkedBoolean) ?? false,
    refusalStack: read("refusalStack", checkedBoolean) ?? false,
    clock: read("clock", checkedFunction<() => number>),
  };
}

/** A value as it crosses to the core: numbers and texts as they are, anything else only as it may be shown. */
export function fieldValue(name: string, value: unknown): FieldValue {
  if (typeof value === "number") return { name, number: value };
  if (typeof value === "string") return { name, text: value };
  return { name, other: describe(value) };
}

function unknownOption(name: string, valid: readonly string[]): ConfigError {
  const shown = name.length > 64 ? `${name.slice(0, 64)}...` : name;
  return new ConfigError(`\`${shown}\` is not an option; valid are ${valid.join(", ")}`, shown);
}

let names: { fields: string[]; all: Set<string> } | undefined;

function coreTable(): { fields: string[]; all: Set<string> } {
  if (names === undefined) {
    const table = native().fieldTable();
    const synonyms = table.flatMap(({ synonym }) => (synonym === null ? [] : [synonym]));
    const fields = table.map(({ name }) => name);
    names = { fields, all: new Set([...fields, ...synonyms]) };
  }
  return names;
}

function coreFields(): string[] {
  return coreTable().fields;
}

function coreNames(): Set<string> {
  return coreTable().all;
}
