import { checkedName, type PolicyKind, readPolicy } from "./config";
import {
  checkedStore,
  DistributedCircuitBreaker,
  leaveGroup,
  PreparedSharedPolicy,
  type SharedOptions,
} from "./distributed";
import { Emitter, EVENT_NAMES } from "./events";
import { Members } from "./members";
import type { SharedConfig } from "./native-shared";
import { SHARED_POLICY } from "./shared-policy";
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
    maxKeys?: number | undefined;
  };

/**
 * Shared breakers by key, made as they are asked for: one for each host, tenant or partition. The circuit of a key is
 * called `name:key`.
 */
export class DistributedCircuitBreakerGroup {
  private readonly events = new Emitter<Events>(EVENT_NAMES);
  private readonly members: Members<DistributedCircuitBreaker>;

  /**
   * @param name - what the names of its circuits begin with
   * @param store - where the circuits are kept
   * @param policy - how they behave, and how many breakers the group holds
   * @throws {@link NameError}; {@link ConfigError} naming the option, the value and what is valid
   */
  constructor(
    readonly name: string,
    store: RedisStore,
    policy?: SharedGroupOptions,
  ) {
    checkedName(name);
    checkedStore(store);
    const { config, host, extra } = readPolicy([policy], GROUP_POLICY);
    const prepared = new PreparedSharedPolicy(config, host, this.events, (breaker, closed) =>
      this.members.note(breaker, closed),
    );
    this.members = new Members(
      extra.maxKeys,
      (key) => new DistributedCircuitBreaker(`${name}:${key}`, store, prepared as object),
      leaveGroup,
    );
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
    return this.members.for(key);
  }

  /**
   * Gives up the breaker of a key; the circuit stays in the store. Whether the group held it.
   * @throws {@link NameError} if the key is no text
   */
  delete(key: string): boolean {
    return this.members.delete(key);
  }

  /** The breakers that the group holds, the oldest first. */
  [Symbol.iterator](): Generator<DistributedCircuitBreaker, void, undefined> {
    return this.members[Symbol.iterator]();
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

const GROUP_POLICY: PolicyKind<SharedConfig> = { ...SHARED_POLICY, host: ["maxKeys"] };
