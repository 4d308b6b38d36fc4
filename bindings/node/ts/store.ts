/// <reference lib="esnext.disposable" preserve="true" />
import { hostname } from "node:os";
import { type RedisCommands, type Way, wayThrough } from "./clients";
import { type Clock, checkClock, clockOf, SERVER_CLOCK, SYSTEM_CLOCK } from "./clock";
import { checkedNumber, describe, optionsOf, outOfRange } from "./config";
import { Deadlines } from "./deadlines";
import { fromNative, NameError, type StoreError } from "./error";
import { Emitter } from "./events";
import { native } from "./native";
import type { Server } from "./native-shared";
import { warn } from "./warn";

/** Options of a {@link RedisStore}. `undefined` means left out. */
export interface RedisStoreOptions {
  /**
   * What the keys begin with, inside the braces that keep a circuit in one cluster slot: `{cb:billing}`. The same in every
   * process of the fleet. A key prefix of the client itself (`keyPrefix` of ioredis and iovalkey) comes before it, as
   * before every key that is sent through that client, and then belongs in every process too.
   * @defaultValue `'cb:'`
   */
  prefix?: string | undefined;
  /**
   * Milliseconds that one admission, outcome or question may wait for the store, all retries included. It says nothing
   * about how long the guarded function may take: that is the `timeoutMs` of the breaker.
   * @defaultValue `100`
   */
  timeoutMs?: number | undefined;
  /**
   * What time it is to the circuits, in whole milliseconds since 1970. `server`: what the store itself says, which is asked
   * ahead of the first call and again every half minute, by a call that comes along; so hosts whose clocks differ trip and
   * probe together. `system`: the wall clock of this host. A function is read once by the constructor, so that one which
   * never works is found out at once; it is also what calls and caches are measured by.
   * @defaultValue `'server'`
   */
  clock?: "server" | "system" | (() => number) | undefined;
  /**
   * Who we are: in the state changes we make, and where a `quorum` of instances has to agree. Instances of one name count as
   * one, so pods should give their names.
   * @defaultValue the name of the host
   */
  instance?: string | undefined;
}

/** What a store says about itself. */
export interface StoreEvents {
  /**
   * The store is not asked any more, for three commands in a row were not answered, or failed; `onStoreFailure` says what its
   * circuits do meanwhile. Said once, of the server, or where `circuit` is given of that circuit alone: its keys hold
   * something else, say, or its user lacks a right. If nobody listens it is a process warning.
   */
  degraded: StoreEvent;
  /** The store, or that circuit, is asked again. If nobody listens it is a process warning. */
  restored: StoreEvent;
  /** The store did not answer a command, not in time, or with an error. */
  storeError: StoreEvent;
  /**
   * A half-open period of the circuit runs by another `probeTimeoutMs`, `halfOpenMaxCalls` or `successThreshold` than ours;
   * said once per circuit object. Other differences are not noticed.
   */
  configMismatch: StoreEvent;
}

/** One thing that happened at the store. */
export interface StoreEvent {
  /** When, in milliseconds on the store's clock. */
  at: number;
  /** The name of the circuit it happened to. */
  circuit?: string;
  /** What the store said. */
  error?: unknown;
}

/**
 * The inside of a store; undefined for anything else.
 * @internal
 */
export let connectionOf: (store: unknown) => Connection | undefined;

/**
 * Whether something is the store of another copy of this package, which ours cannot use.
 * @internal
 */
export function isForeignStore(store: unknown): boolean {
  try {
    return typeof store === "object" && store !== null && BRAND in store && connectionOf(store) === undefined;
  } catch {
    return false;
  }
}

/** The same in every copy of the package. */
const BRAND = Symbol.for("switchgear.RedisStore");

/**
 * Keeps circuits in Redis or Valkey, through a client that stays yours: it is never closed, and nothing is sent through it
 * before a circuit is asked something.
 */
export class RedisStore {
  static {
    connectionOf = (store) =>
      typeof store === "object" && store !== null && #connection in store ? store.#connection : undefined;
    Object.defineProperty(RedisStore.prototype, BRAND, { value: true });
  }

  readonly #connection: Connection;

  /**
   * @param client - a client of ioredis, iovalkey or node-redis (standalone, sentinel or cluster), or anything with
   *   `command(args, key)`
   * @param options - see {@link RedisStoreOptions}
   * @throws {@link ConfigError} when the client is of no known kind or an option is not valid; {@link NameError} for the
   *   prefix; {@link TimeError} if the clock gives no time
   */
  constructor(client: object | RedisCommands, options: RedisStoreOptions = {}) {
    this.#connection = connect(client, options);
  }

  /**
   * Listens to what the store says about itself. A listener that throws harms nothing and is reported once, as a process
   * warning.
   *
   * @returns a function that stops listening
   * @throws TypeError for an unknown event or a listener that is no function
   */
  on<K extends keyof StoreEvents>(event: K, fn: (e: StoreEvents[K]) => void): () => void {
    return this.#connection.events.on(event, fn);
  }

  /** Ends what the store opened itself, which is nothing yet. The client stays open. */
  async close(): Promise<void> {}

  /** The same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** What the circuits of one store share. */
export interface Connection extends Way {
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly instance: string;
  readonly deadlines: Deadlines;
  readonly events: Emitter<StoreEvents>;
  /** What is known of a server, by its name. */
  readonly placeOf: (server: string | undefined) => Place;
}

/** One server of the store: a standalone one, or a master of a cluster. All circuits that live there share it. */
export interface Place {
  readonly server: Server;
  /** What went wrong there last. */
  trouble: StoreError | null;
}

/** Says once that the store, or a circuit, is or is not asked any more. */
export function tellHealth(events: Connection["events"], what: "degraded" | "restored", event: StoreEvent): void {
  if (events.hears(what)) {
    events.emit(what, event);
    return;
  }
  const whose = event.circuit === undefined ? "the store" : `the store of circuit \`${event.circuit}\``;
  if (what === "restored") warn(`${whose} is asked again`, "switchgear_restored");
  else
    warn(`${whose} does not answer and is not asked for now: ${(event.error as Error).message}`, "switchgear_degraded");
}

const STORE_OPTIONS = ["prefix", "timeoutMs", "clock", "instance"];

function connect(client: unknown, options: unknown): Connection {
  const way = wayThrough(client);
  const { prefix, timeoutMs, clock, instance } = optionsOf("options", options, STORE_OPTIONS);
  const defaults = native().defaults();
  const ms = timeoutMs === undefined ? defaults.storeTimeoutMs : checkedNumber("timeoutMs", timeoutMs);
  return {
    ...way,
    prefix: prefix === undefined ? defaults.prefix : checkedPrefix(prefix),
    timeoutMs: ms,
    clock: checkedClock(clock),
    instance: instance === undefined ? hostname() : checkedInstance(instance),
    deadlines: new Deadlines(ms),
    events: new Emitter<StoreEvents>(["degraded", "restored", "storeError", "configMismatch"]),
    placeOf: places(),
  };
}

/** The servers of a store by their names, each made when it is heard of. Until then, and where there is one only, it has none. */
function places(): Connection["placeOf"] {
  const newPlace = (): Place => ({ server: native().sharedNode(), trouble: null });
  const unnamed = newPlace();
  const byName = new Map<string, Place>();
  return (name) => {
    if (name === undefined) return unnamed;
    let place = byName.get(name);
    if (place === undefined) {
      place = newPlace();
      byName.set(name, place);
    }
    return place;
  };
}

function checkedPrefix(prefix: unknown): string {
  if (typeof prefix !== "string") throw new NameError(`\`prefix\` must be a string, got \`${describe(prefix)}\``);
  try {
    native().checkPrefix(prefix);
  } catch (error) {
    throw fromNative(error);
  }
  return prefix;
}

function checkedClock(clock: unknown): Clock {
  if (clock === undefined || clock === "server") return SERVER_CLOCK;
  if (clock === "system") return SYSTEM_CLOCK;
  if (typeof clock !== "function") throw outOfRange("clock", "'server', 'system' or a function", clock);
  checkClock(clock as () => number);
  return clockOf(clock as () => number);
}

function checkedInstance(instance: unknown): string {
  if (typeof instance !== "string" || instance === "")
    throw outOfRange("instance", "a text that is not empty", instance);
  return instance;
}
