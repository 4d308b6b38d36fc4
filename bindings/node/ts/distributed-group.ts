import { checkedName, checkedNumber, outOfRange, type PolicyKind, readPolicy } from "./config";
import {
  checkedStore,
  DistributedCircuitBreaker,
  PreparedSharedPolicy,
  SHARED_POLICY,
  type SharedOptions,
} from "./distributed";
import { Emitter, EVENT_NAMES } from "./events";
import { type NativeRecency, native } from "./native";
import type { SharedConfig } from "./native-shared";
import type { RedisStore } from "./store";
import type { CircuitBreakerPolicy, Events } from "./types";

/** Options of a group of shared breakers. */
export type SharedGroupOptions = CircuitBreakerPolicy &
  SharedOptions & {
    /**
     * The breakers this process holds at most, 1 to 1 000 000; the least recently used goes first, closed ones before
     * others. What goes is the object alone: the circuit stays in the store, and its next breaker finds it there.
     * @defaultValue `1024`
     */
    maxKeys?: number;
  };

/**
 * Shared breakers by key, made as they are asked for: one for each host, tenant or partition. The circuit of a key is
 * called `name:key`.
 */
export class DistributedCircuitBreakerGroup {
  private readonly prepared: PreparedSharedPolicy;
  private readonly events = new Emitter<Events>(EVENT_NAMES);
  private readonly recency: NativeRecency;
  private readonly members = new Map<string, Member>();
  private readonly bySlot: Member[] = [];

  /**
   * @param name - what the names of its circuits begin with
   * @param store - where the circuits are kept
   * @param policy - how they behave, and how many breakers the group holds
   * @throws {@link NameError}; {@link ConfigError} naming the option, the value and what is valid
   */
  constructor(
    readonly name: string,
    private readonly store: RedisStore,
    policy?: SharedGroupOptions,
  ) {
    checkedName(name);
    checkedStore(store);
    const { config, host, extra } = readPolicy([policy], GROUP_POLICY);
    const { maxKeys = DEFAULT_MAX_KEYS } = extra;
    this.recency = new (native().Recency)(checkedNumber("maxKeys", maxKeys));
    this.prepared = new PreparedSharedPolicy(config, host, this.events, (breaker, closed) => {
      const member = this.members.get(breaker.name);
      // One that was given up may still be in use: its slot is another's by now.
      if (member?.breaker === breaker) this.recency.note(member.slot, closed);
    });
  }

  /** How many breakers the group holds. */
  get size(): number {
    return this.members.size;
  }

  /**
   * The breaker of a key, the same object as long as the group holds it.
   * @throws {@link NameError} if `name:key` cannot name a circuit
   */
  for(key: string): DistributedCircuitBreaker {
    if (typeof key !== "string") throw outOfRange("key", "a text", key);
    const circuit = `${this.name}:${key}`;
    const known = this.members.get(circuit);
    if (known !== undefined) {
      this.recency.touch(known.slot);
      return known.breaker;
    }
    const breaker = new DistributedCircuitBreaker(circuit, this.store, this.prepared as object);
    const member = { breaker, slot: this.recency.insert() };
    const given = this.bySlot[member.slot];
    if (given !== undefined && this.recency.evicted()) this.members.delete(given.breaker.name);
    this.bySlot[member.slot] = member;
    this.members.set(circuit, member);
    return breaker;
  }

  /** Gives up the breaker of a key; the circuit stays in the store. Whether the group held it. */
  delete(key: string): boolean {
    const circuit = `${this.name}:${key}`;
    const member = this.members.get(circuit);
    if (member === undefined) return false;
    this.recency.remove(member.slot);
    return this.members.delete(circuit);
  }

  /** The breakers that the group holds. */
  [Symbol.iterator](): Iterator<DistributedCircuitBreaker> {
    return Array.from(this.members.values(), ({ breaker }) => breaker)[Symbol.iterator]();
  }

  /**
   * Listens to an event of all its breakers.
   * @returns a function that stops listening
   * @throws TypeError for an unknown event or a listener that is no function
   */
  on<K extends keyof Events>(event: K, fn: (e: Events[K]) => void): () => void {
    return this.events.on(event, fn);
  }
}

interface Member {
  readonly breaker: DistributedCircuitBreaker;
  readonly slot: number;
}

/** As many as a busy service has hosts to talk to; a breaker takes about a kilobyte. */
const DEFAULT_MAX_KEYS = 1024;

const GROUP_POLICY: PolicyKind<SharedConfig> = { ...SHARED_POLICY, host: ["maxKeys"] };
