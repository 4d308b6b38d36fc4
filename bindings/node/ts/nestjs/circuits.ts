/** The circuits of one application, by name. */

import { CircuitBreaker, leaveGroup, PreparedPolicy } from "../breaker";
import { checkClock } from "../clock";
import { BREAKER_POLICY, checkedName, readPolicy } from "../config";
import { DistributedCircuitBreaker, leaveGroup as leaveSharedGroup, PreparedSharedPolicy } from "../distributed";
import { ConfigError, type RefusalClass } from "../error";
import { Emitter, EVENT_NAMES } from "../events";
import { Members } from "../members";
import { SHARED_POLICY } from "../shared-policy";
import { RedisStore, type StoreEvents } from "../store";
import type { CircuitBreakerPolicy, Events } from "../types";
import { Assembled } from "./assembled";
import { CircuitOpenException } from "./exception";
import type { Home } from "./home";
import { type CheckedModuleOptions, isStoreEvent, located } from "./options";

/** A breaker of an application; which kind, its module has decided. */
export type AnyBreaker = CircuitBreaker | DistributedCircuitBreaker;

/** What the module knows of a circuit before anybody calls it. */
export interface Declaration {
  /** The policy beside the method, or given to the service; it overrides what the module says. */
  readonly policy: CircuitBreakerPolicy | undefined;
  /** Whether it is a circuit per key. */
  readonly keyed: boolean;
  /** The class and the method whose names it has by default; null where somebody has named it. */
  readonly owner: { readonly of: object; readonly key: string | symbol } | null;
  /** Who says so, for an error. */
  readonly by: string;
}

/**
 * All circuits of one application, or of one import of the module. A name is one circuit: whoever asks for it by that name gets
 * the same breaker.
 */
export class Circuits {
  /** Where they are kept; undefined where they live in this process. */
  readonly store: RedisStore | undefined;
  /** The application they are of. */
  home: Home | undefined;

  private readonly events = new Emitter<Events>(EVENT_NAMES);
  private readonly declared = new Map<string, Declaration>();
  private readonly breakers = new Map<string, AnyBreaker>();
  private readonly groups = new Map<string, Members<AnyBreaker>>();

  /**
   * @param options - of the module
   * @param client - the client that `redis` names
   * @throws {@link ConfigError}; {@link NameError}; {@link TimeError}
   */
  constructor(
    private readonly options: CheckedModuleOptions,
    client: object | undefined,
  ) {
    this.store = client === undefined ? undefined : storeOn(client, options);
    for (const [event, listener] of options.on) {
      if (!isStoreEvent(event)) this.events.on(event as keyof Events, listener);
      else this.store?.on(event as keyof StoreEvents, listener);
    }
    if (this.store !== undefined) this.read([options.shared], false, "shared");
    this.read([options.defaults], false, "defaults");
    for (const name of options.circuits.keys()) {
      checkedCircuit(name);
      // A circuit per key has an option more; whether this is one is known once its method is declared.
      this.prepared(name, undefined, true, `circuits.${name}`);
    }
  }

  /**
   * Notes what a circuit is to be, before it is made.
   * @throws {@link ConfigError} where it is noted already, and as something else; {@link NameError}
   */
  declare(name: string, declaration: Declaration): void {
    checkedName(name);
    const known = this.declared.get(name);
    if (known === undefined) {
      this.checkKeys(name, declaration);
      this.prepared(name, declaration.policy, declaration.keyed, declaration.by);
      this.declared.set(name, declaration);
      return;
    }
    const { by, keyed, owner, policy } = declaration;
    if (known.owner !== null && owner !== null && (known.owner.of !== owner.of || known.owner.key !== owner.key)) {
      const two = known.owner.of === owner.of ? "methods of one class" : "classes";
      const why = `two ${two} have a circuit called \`${name}\``;
      throw new ConfigError(`\`name\` must be given to @WithCircuitBreaker of one of them, for ${why}`, "name", name);
    }
    if (known.keyed !== keyed) {
      throw new ConfigError(
        `\`key\` must be given by all or by none who name circuit \`${name}\`: ${known.by}, ${by}`,
        "key",
      );
    }
    const differing = differingOptions(known.policy, policy);
    if (policy === undefined || differing.length === 0) return;
    if (known.policy !== undefined || this.isMade(name)) {
      const who = known.by === by ? `one ${by} and another` : `${known.by} and ${by}`;
      const what = differing.map((option) => `\`${option}\``).join(", ");
      const how = known.policy === undefined ? `${known.by} has made it without one` : `${who} differ in ${what}`;
      throw new ConfigError(
        `\`policy\` of circuit \`${name}\` must be one and the same wherever it is given; ${how}`,
        "policy",
      );
    }
    this.prepared(name, policy, keyed, by);
    this.declared.set(name, declaration);
  }

  /**
   * The breaker of a name, made if there is none.
   * @param by - who asks, for an error
   * @throws {@link ConfigError}; {@link NameError}
   */
  get(name: string, policy?: CircuitBreakerPolicy, by = "CircuitBreakerService.get"): AnyBreaker {
    const known = this.breakers.get(name);
    if (known !== undefined && policy === undefined) return known;
    checkedName(name);
    const declared = this.declared.get(name);
    if (declared?.keyed === true) {
      throw new ConfigError(
        `\`name\` must have a key, \`${name}:key\`, for ${declared.by} has a circuit per key`,
        "name",
        name,
      );
    }
    const keyed = declared === undefined ? this.keyedBy(name) : undefined;
    if (keyed !== undefined) {
      if (policy === undefined) return this.group(keyed.of).for(keyed.key);
      throw new ConfigError(
        `\`policy\` of circuit \`${name}\` is that of its method, and cannot be given here`,
        "policy",
      );
    }
    if (declared === undefined || policy !== undefined) {
      this.declare(name, { policy, keyed: false, owner: null, by });
    }
    return this.breakers.get(name) ?? this.make(name);
  }

  /** The breakers by key of a name that was declared to have them. */
  group(name: string): Members<AnyBreaker> {
    return this.groups.get(name) ?? this.makeGroup(name);
  }

  /** Whether there is such a circuit, or will be: one by key is made when it is asked for, one of the options by who names it. */
  knows(name: string): boolean {
    const declared = this.declared.get(name);
    if (declared !== undefined) return !declared.keyed;
    return this.options.circuits.has(name) || this.keyedBy(name) !== undefined;
  }

  /** What the circuits are called that {@link knows} knows, with `:key` where there is one per key. */
  names(): string[] {
    const declared = [...this.declared].map(([name, { keyed }]) => (keyed ? `${name}:key` : name));
    return [...declared, ...[...this.options.circuits.keys()].filter((name) => !this.declared.has(name))];
  }

  /** Called by Nest: closes the connection that the store has opened itself. */
  async onApplicationShutdown(): Promise<void> {
    this.home?.leave();
    await this.store?.close();
  }

  /** All breakers there are, in the order in which they were made; of those by key the ones that are held. */
  list(): AnyBreaker[] {
    return [...this.breakers.values(), ...[...this.groups.values()].flatMap((group) => [...group])];
  }

  private isMade(name: string): boolean {
    return this.breakers.has(name) || this.groups.has(name);
  }

  private make(name: string): AnyBreaker {
    const prepared = this.prepared(name, this.declared.get(name)?.policy, false, "").of();
    const breaker = this.breaker(name, prepared);
    this.breakers.set(name, breaker);
    return breaker;
  }

  private makeGroup(name: string): Members<AnyBreaker> {
    const { of, maxKeys } = this.prepared(name, this.declared.get(name)?.policy, true, "");
    const prepared = of((breaker, closed) => group.note(breaker, closed));
    const group: Members<AnyBreaker> = new Members<AnyBreaker>(
      maxKeys,
      (key) => this.breaker(`${name}:${key}`, prepared),
      (breaker) => (breaker instanceof CircuitBreaker ? leaveGroup(breaker) : leaveSharedGroup(breaker)),
    );
    this.groups.set(name, group);
    return group;
  }

  private breaker(name: string, prepared: object): AnyBreaker {
    return this.store === undefined
      ? new CircuitBreaker(name, prepared)
      : new DistributedCircuitBreaker(name, this.store, prepared);
  }

  /** What a name with a key is made of: the name of the circuits that there are per key, and the key. */
  private keyedBy(name: string): { of: string; key: string } | undefined {
    for (let end = name.lastIndexOf(":"); end > 0; end = name.lastIndexOf(":", end - 1)) {
      const of = name.slice(0, end);
      if (this.declared.get(of)?.keyed === true) return { of, key: name.slice(end + 1) };
    }
    return undefined;
  }

  /** Finds out who would have a breaker of their own under a name that a key of others makes. */
  private checkKeys(name: string, { keyed, by }: Declaration): void {
    const outer = this.keyedBy(name);
    if (outer !== undefined) throw nameOfKey(name, by, outer.of, this.declared.get(outer.of)?.by);
    if (!keyed) return;
    const isInner = (other: string) => other.startsWith(`${name}:`);
    for (const [other, declared] of this.declared) if (isInner(other)) throw nameOfKey(other, declared.by, name, by);
    const option = [...this.options.circuits.keys()].find(isInner);
    if (option !== undefined) throw nameOfKey(option, "`circuits` of CircuitBreakerModule", name, by);
  }

  /**
   * The policy of a circuit, read by the core and ready to make breakers of.
   * @throws {@link ConfigError}; {@link TimeError}
   */
  private prepared(name: string, policy: object | undefined, keyed: boolean, by: string): Prepared {
    const { defaults, circuits, shared } = this.options;
    return this.read([this.store && shared, defaults, circuits.get(name), policy], keyed, by);
  }

  private read(layers: readonly (object | undefined)[], keyed: boolean, by: string): Prepared {
    const host = keyed ? ["maxKeys"] : [];
    const { events } = this;
    try {
      if (this.store === undefined) {
        const { config, host: rules, extra } = readPolicy(layers, { ...BREAKER_POLICY, host });
        checkClock(rules.clock);
        const of: Prepared["of"] = (note) => new PreparedPolicy(config, lenient(rules), events, note, REFUSAL);
        return { of, maxKeys: extra.maxKeys };
      }
      const { config, host: rules, extra } = readPolicy(layers, { ...SHARED_POLICY, host });
      checkClock(rules.clock);
      const of: Prepared["of"] = (note) => new PreparedSharedPolicy(config, lenient(rules), events, note, REFUSAL);
      return { of, maxKeys: extra.maxKeys };
    } catch (error) {
      throw located(error, by);
    }
  }
}

/** A policy that was read. */
interface Prepared {
  /** How a breaker is told of it. */
  of(note?: (breaker: AnyBreaker, closed: boolean) => void): object;
  readonly maxKeys: unknown;
}

const REFUSAL = CircuitOpenException as unknown as RefusalClass;

function storeOn(client: object, { store, prefix }: CheckedModuleOptions): RedisStore {
  try {
    return new RedisStore(client, { ...store, prefix });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // There it is called so.
    if (error.field === "client")
      throw new ConfigError(error.message.replace("`client`", "`redis`"), "redis", error.value);
    throw located(error, "shared");
  }
}

function checkedCircuit(name: string): void {
  try {
    checkedName(name);
  } catch (error) {
    throw Object.assign(error as Error, { message: `${(error as Error).message} (in circuits)` });
  }
}

/** Takes what only says that a method gives an Observable for what it is: neither a failure nor anything else. */
function lenient<H extends { readonly isFailure: ((error: unknown) => boolean) | undefined }>(host: H): H {
  const { isFailure } = host;
  return { ...host, isFailure: (error: unknown) => !(error instanceof Assembled) && (isFailure?.(error) ?? true) };
}

/** The options in which two policies differ. */
function differingOptions(one: object = {}, other: object = {}): string[] {
  const [a, b] = [new Map<string, unknown>(Object.entries(one)), new Map<string, unknown>(Object.entries(other))];
  return [...new Set([...a.keys(), ...b.keys()])].filter((name) => !Object.is(a.get(name), b.get(name)));
}

function nameOfKey(name: string, by: string, of: string, byKey: string | undefined): ConfigError {
  const why = `${byKey} has a circuit per key, and so is that of key \`${name.slice(of.length + 1)}\` called`;
  const instead = `to share it, give \`name: '${of}'\` and a \`key\``;
  return new ConfigError(`\`name\` must not be \`${name}\` for ${by}: ${why}; ${instead}`, "name", name);
}
