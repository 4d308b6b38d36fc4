import { CircuitBreaker, PreparedPolicy } from "./breaker";
import { BREAKER_POLICY, checkedName, checkedNumber, readPolicy } from "./config";
import { Emitter, EVENT_NAMES } from "./events";
import { type NativeConfig, type NativeRecency, native } from "./native";
import type { CircuitBreakerPolicy, Events } from "./types";

/** What a group takes beside the policy of its breakers. */
export interface GroupOptions {
  /** Comes before each key in the name of its circuit: `name:key`. By default the key alone is the name. */
  name?: string;
  /**
   * How many breakers the group holds at most, 1 to 1 000 000.
   * @defaultValue `1024`
   */
  maxKeys?: number;
}

/** More dependencies than most services have, in a few hundred kilobytes. */
const DEFAULT_MAX_KEYS = 1024;

/**
 * One breaker per key (host, tenant, route), of one policy.
 *
 * It holds at most `maxKeys` of them: a new key takes the place of the least recently used closed breaker, whose state is
 * the least to lose, and only if none is closed that of the least recently used one.
 *
 * @example
 * ```ts
 * const perHost = new CircuitBreakerGroup({ failureThreshold: 3, maxKeys: 1024 });
 * await perHost.for(new URL(endpoint).host).execute(() => deliver(endpoint));
 * ```
 */
export class CircuitBreakerGroup {
  private readonly prefix: string;
  private readonly policy: PreparedPolicy;
  private readonly events = new Emitter<Events>(EVENT_NAMES);
  private readonly recency: NativeRecency;
  private readonly members = new Map<string, Member>();
  /** By slot: whose it is, to know whom a new key takes it from. */
  private readonly keys: string[] = [];
  private readonly slots = new Map<CircuitBreaker, number>();
  /** The slot used last: a key asked for over and over need not be moved to the front each time. */
  private newest = NO_SLOT;

  /**
   * @param policy - how each breaker behaves, and `name` and `maxKeys` of the group
   * @throws {@link ConfigError} naming the option, the value and what is valid; {@link NameError} for the name
   */
  constructor(policy?: CircuitBreakerPolicy & GroupOptions) {
    const { config, host, extra } = readPolicy<NativeConfig>([policy], {
      ...BREAKER_POLICY,
      host: ["name", "maxKeys"],
    });
    this.prefix = extra.name === undefined ? "" : `${checkedName(extra.name)}:`;
    const maxKeys = extra.maxKeys === undefined ? DEFAULT_MAX_KEYS : checkedNumber("maxKeys", extra.maxKeys);
    this.recency = new (native().Recency)(maxKeys);
    this.policy = new PreparedPolicy(config, host, this.events, (breaker, closed) => this.note(breaker, closed));
  }

  /**
   * The breaker of a key, made if there is none, and now the most recently used.
   * @param key - together with the group's name a circuit's name: 1 to 512 bytes of UTF-8 without control characters
   * @throws {@link NameError}
   */
  for(key: string): CircuitBreaker {
    const member = this.members.get(key);
    if (member === undefined) return this.add(key);
    if (member.slot !== this.newest) {
      this.recency.touch(member.slot);
      this.newest = member.slot;
    }
    return member.breaker;
  }

  /** How many breakers there are. */
  get size(): number {
    return this.members.size;
  }

  /** Forgets a key. Whether there was one. A breaker that somebody still holds goes on, on its own. */
  delete(key: string): boolean {
    const member = this.members.get(key);
    if (member === undefined) return false;
    this.members.delete(key);
    this.slots.delete(member.breaker);
    this.recency.remove(member.slot);
    return true;
  }

  /** The breakers, the oldest first. */
  *[Symbol.iterator](): Generator<CircuitBreaker, void, undefined> {
    for (const { breaker } of this.members.values()) yield breaker;
  }

  /**
   * Listens to an event of all breakers, present and future: see `CircuitBreaker.on`.
   * @returns a function that stops listening
   * @throws TypeError for an unknown event or a listener that is no function
   */
  on<K extends keyof Events>(event: K, fn: (e: Events[K]) => void): () => void {
    return this.events.on(event, fn);
  }

  private add(key: string): CircuitBreaker {
    // First what can fail: a key that cannot name a circuit takes nobody's place.
    const name = typeof key === "string" ? this.prefix + key : (checkedName(key) as never);
    const breaker = new CircuitBreaker(name, this.policy as CircuitBreakerPolicy);
    const slot = this.recency.insert();
    if (this.recency.evicted()) this.evict(slot);
    this.keys[slot] = key;
    this.newest = slot;
    this.slots.set(breaker, slot);
    this.members.set(key, { breaker, slot });
    return breaker;
  }

  private evict(slot: number): void {
    const key = this.keys[slot] as string;
    const evicted = this.members.get(key);
    this.members.delete(key);
    // It no longer has a say in who goes next.
    if (evicted !== undefined) this.slots.delete(evicted.breaker);
  }

  private note(breaker: CircuitBreaker, closed: boolean): void {
    const slot = this.slots.get(breaker);
    if (slot === undefined) return;
    this.recency.note(slot, closed);
    // A change is a use, too: whoever was used last before it no longer is.
    this.newest = slot;
  }
}

interface Member {
  readonly breaker: CircuitBreaker;
  readonly slot: number;
}

const NO_SLOT = -1;
