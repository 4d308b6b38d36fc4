/// <reference lib="esnext.disposable" preserve="true" />
import { hostname } from "node:os";
import { Audience } from "./audience";
import { type RedisCommands, type Way, wayThrough } from "./clients";
import { type Clock, checkClock, clockOf, SERVER_CLOCK, SYSTEM_CLOCK } from "./clock";
import { checkedBoolean, checkedNumber, describe, optionsOf, outOfRange } from "./config";
import { CircuitControl } from "./control";
import { Deadlines } from "./deadlines";
import type { SharedOptions } from "./distributed";
import { fromNative, NameError, StoreError } from "./error";
import { Emitter } from "./events";
import { type ListedCircuit, listCircuits } from "./listing";
import { native } from "./native";
import type { Server } from "./native-shared";
import { errorText } from "./replies";
import { steeringPolicy } from "./shared-policy";
import { type Subscription, subscribeThrough } from "./subscriber";
import type { CircuitBreakerPolicy } from "./types";

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
  /**
   * Whether to hear at once what other instances bring about: `stateChange` then tells that as well, with `source: 'remote'`, and
   * what is known of a circuit is corrected. Takes one more connection, made by the client's own `duplicate()`; {@link
   * RedisStore.close} ends it. A message that is lost makes nothing wrong: it is heard of with the next answer, as without this.
   * @defaultValue `false`
   */
  events?: boolean | undefined;
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

  /**
   * The circuits that the store knows under its prefix, with their snapshots, sorted by name: open ones, and closed ones that have
   * counted something, been controlled, or been open before; all of them, or an error. Changes nothing.
   *
   * It goes through every key of the store by SCAN, on every master, and then asks for one snapshot per circuit, 64 at a time: so
   * it is for people and dashboards, not for each request. Each question waits at most the store's `timeoutMs`. The user needs the
   * right to SCAN, in a cluster also to CLUSTER NODES.
   *
   * @param policy - by what the failures of closed circuits are counted, as the store keeps no policies: `tripOn` and `windowMs`,
   * mostly. Circuits of another policy are listed too, with counts that mean little. By default as a breaker without a policy.
   * @returns what was found; an empty list where there is none. Each snapshot is of the moment it was read at.
   * @throws {@link StoreUnavailableError} if a server did not answer, or could not be reached (its `circuit` is then `*`), or if a
   * circuit cannot be read; {@link ConfigError} for the policy, or for a client that cannot name its masters: an object with
   * `command` needs `masters()` for this; {@link TimeError} if the clock fails. All as rejections.
   */
  async circuits(policy?: CircuitBreakerPolicy & SharedOptions): Promise<ListedCircuit[]> {
    return listCircuits(this.#connection, steeringPolicy(policy));
  }

  /**
   * Steers a circuit from anywhere, without a breaker: what it does holds for the whole fleet and is announced like any other
   * control. Asks nothing of the store until it is used.
   *
   * @param name - the circuit's name; one that the store does not know yet may be steered too
   * @param policy - what the store does not know: how long {@link CircuitControl.trip} opens for without `forMs` (`openDurationMs`,
   * `openBackoff`), how long the circuit is remembered (`idleTtlMs`), and how a snapshot counts. By default as a breaker without a
   * policy: 30 000 ms, and a day.
   * @throws {@link NameError}; {@link ConfigError} naming the option, the value and what is valid; {@link TimeError} if the policy's
   * clock gives no time
   */
  control(name: string, policy?: CircuitBreakerPolicy & SharedOptions): CircuitControl {
    return new CircuitControl(name, this.#connection, steeringPolicy(policy));
  }

  /** Ends what the store opened itself: the connection that `events` takes. The client stays open. */
  async close(): Promise<void> {
    await this.#connection.listening?.close();
  }

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
  /** Who is told of what other instances announce. */
  readonly audience: Audience;
  readonly listening: Subscription | undefined;
}

/** One server of the store: a standalone one, or a master of a cluster. All circuits that live there share it. */
export interface Place {
  readonly server: Server;
  /** What went wrong there last. */
  trouble: StoreError | null;
}

const STORE_OPTIONS = ["prefix", "timeoutMs", "clock", "instance", "events"];

function connect(client: unknown, options: unknown): Connection {
  const way = wayThrough(client);
  const { prefix, timeoutMs, clock, instance, events } = optionsOf("options", options, STORE_OPTIONS);
  const defaults = native().defaults();
  const ms = timeoutMs === undefined ? defaults.storeTimeoutMs : checkedNumber("timeoutMs", timeoutMs);
  const connection = {
    ...way,
    prefix: prefix === undefined ? defaults.prefix : checkedPrefix(prefix),
    timeoutMs: ms,
    clock: checkedClock(clock),
    instance: instance === undefined ? hostname() : checkedInstance(instance),
    deadlines: new Deadlines(ms),
    events: new Emitter<StoreEvents>(["degraded", "restored", "storeError", "configMismatch"]),
    placeOf: places(),
    audience: new Audience(),
  };
  const listens = events !== undefined && checkedBoolean("events", events);
  return { ...connection, listening: listens ? listen(client as object, connection) : undefined };
}

/** Hears what other instances announce, and tells the circuits that it is about. */
function listen(client: object, connection: Omit<Connection, "listening">): Subscription {
  const { audience, events, prefix } = connection;
  const subscribe = subscribeThrough(client);
  const channel = native().sharedChannel(prefix);
  return subscribe(channel, {
    heard: (message) => {
      const announcement = native().sharedAnnouncement(String(message));
      if (announcement !== null) audience.tell(announcement, String(message));
    },
    failed: (error) => events.emit("storeError", { at: Date.now(), error: new StoreError(errorText(error)) }),
  });
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
