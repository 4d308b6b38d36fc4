import { CircuitBreaker, leaveGroup, PreparedPolicy } from "./breaker";
import { BREAKER_POLICY, checkedName, readPolicy } from "./config";
import { Emitter, EVENT_NAMES } from "./events";
import { Members } from "./members";
import type { NativeConfig } from "./native";
import type { CircuitBreakerPolicy, Events } from "./types";

/** What a group takes beside the policy of its breakers. */
export interface GroupOptions {
  /** Comes before each key in the name of its circuit: `name:key`. By default the key alone is the name. */
  name?: string | undefined;
  /**
   * How many breakers the group holds at most, 1 to 1 000 000.
   * @defaultValue `1024`
   */
  maxKeys?: number | undefined;
}

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
  private readonly events = new Emitter<Events>(EVENT_NAMES);
  private readonly members: Members<CircuitBreaker>;

  /**
   * @param policy - how each breaker behaves, and `name` and `maxKeys` of the group
   * @throws {@link ConfigError} naming the option, the value and what is valid; {@link NameError} for the name
   */
  constructor(policy?: CircuitBreakerPolicy & GroupOptions) {
    const { config, host, extra } = readPolicy<NativeConfig>([policy], {
      ...BREAKER_POLICY,
      host: ["name", "maxKeys"],
    });
    const prefix = extra.name === undefined ? "" : `${checkedName(extra.name)}:`;
    const prepared = new PreparedPolicy(config, host, this.events, (breaker, closed) =>
      this.members.note(breaker, closed),
    );
    this.members = new Members(
      extra.maxKeys,
      (key) => new CircuitBreaker(prefix + key, prepared as CircuitBreakerPolicy),
      leaveGroup,
    );
  }

  /**
   * The breaker of a key, made if there is none, and now the most recently used.
   * @param key - together with the group's name a circuit's name: 1 to 512 bytes of UTF-8 without control characters
   * @throws {@link NameError}
   */
  for(key: string): CircuitBreaker {
    return this.members.for(key);
  }

  /** How many breakers there are. */
  get size(): number {
    return this.members.size;
  }

  /**
   * Forgets a key. Whether there was one. A breaker that somebody still holds goes on, on its own.
   * @throws {@link NameError} if the key is no text
   */
  delete(key: string): boolean {
    return this.members.delete(key);
  }

  /** The breakers, the oldest first. */
  [Symbol.iterator](): Generator<CircuitBreaker, void, undefined> {
    return this.members[Symbol.iterator]();
  }

  /**
   * Listens to an event of all breakers, present and future: see `CircuitBreaker.on`.
   * @returns a function that stops listening
   * @throws TypeError for an unknown event or a listener that is no function
   */
  on<K extends keyof Events>(event: K, fn: (e: Events[K]) => void): () => void {
    return this.events.on(event, fn);
  }
}
