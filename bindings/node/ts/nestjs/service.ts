import { Inject, Injectable } from "@nestjs/common";
import type { Breaker, CircuitBreakerPolicy } from "../types";
import { Circuits } from "./circuits";

/** The circuits of the application, by name. */
@Injectable()
export class CircuitBreakerService {
  readonly #circuits: Circuits;

  /**
   * Made by Nest.
   * @internal
   */
  constructor(@Inject(Circuits) circuits: Circuits) {
    this.#circuits = circuits;
  }

  /**
   * The breaker of a circuit, made if there is none; the same for everybody who asks for the name. A decorated method's is called
   * `<Class>.<method>` or as its `name` says, and where it has a `key`, `<name>:<key>`.
   *
   * @param name - 1 to 512 bytes of UTF-8 without control characters
   * @param policy - overrides what the module says of all circuits and of this one
   * @throws {@link ConfigError} naming the option, the value and what is valid, and where the circuit has another policy
   *   already; {@link NameError}
   */
  get(name: string, policy?: CircuitBreakerPolicy): Breaker {
    return this.#circuits.get(name, policy);
  }

  /** All breakers that were made, in the order in which they were; of those by key the ones that are held. */
  list(): Breaker[] {
    return this.#circuits.list();
  }
}
