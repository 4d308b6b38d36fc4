import { checkedName, fieldValue, optionsOf } from "./config";
import { StoreError, StoreUnavailableError } from "./error";
import type { FieldValue } from "./native";
import { type ControlOperation, SharedCircuit } from "./shared";
import type { SteeringPolicy } from "./shared-policy";
import type { Connection } from "./store";
import type { Snapshot, State } from "./types";

/**
 * Steers one circuit for the whole fleet, from anywhere: what `RedisStore.control` gives. Every operation asks the store,
 * and waits at most its `timeoutMs`. Breakers of this process hear of it as those of others do: with `events` at once, else with
 * their next answer.
 */
export class CircuitControl {
  /** The circuit's name. */
  readonly name: string;
  readonly #circuit: SharedCircuit;

  /** @internal */
  constructor(name: string, connection: Connection, { config, clock }: SteeringPolicy) {
    this.name = checkedName(name);
    this.#circuit = new SharedCircuit({ name, connection, config, clock, onTransition: ignore });
  }

  /**
   * The state as callers see it: forced open reads `open`, disabled reads `closed`. Changes nothing.
   * @throws {@link StoreUnavailableError}; {@link TimeError} if the clock fails
   */
  async getState(): Promise<State> {
    return (await this.getSnapshot()).state;
  }

  /**
   * Everything the store knows of the circuit, counted by the policy that was given. Changes nothing.
   * @throws {@link StoreUnavailableError}; {@link TimeError} if the clock fails
   */
  async getSnapshot(): Promise<Snapshot> {
    return readSnapshot(this.#circuit);
  }

  /**
   * Closes the circuit for the whole fleet and forgets everything; outcomes of calls already running no longer count.
   * Rejected with {@link StoreUnavailableError} it may still take effect: the answer was lost or late, not the command.
   * @throws {@link StoreUnavailableError}; {@link TimeError} if the clock fails
   */
  async reset(): Promise<void> {
    await this.#control("reset");
  }

  /**
   * Opens the circuit for the whole fleet now, also when it is open already; it recovers as usual.
   * Rejected with {@link StoreUnavailableError} it may still take effect: the answer was lost or late, not the command.
   * @param o - `forMs`: how long it stays open, in milliseconds; by default `openDurationMs` of the policy that was given, 30 000
   * without one, and with its `openBackoff`
   * @throws {@link ConfigError} for the option; {@link StoreUnavailableError}; {@link TimeError} if the clock fails
   */
  async trip(o?: { forMs?: number }): Promise<void> {
    const forMs = o === undefined ? undefined : optionsOf("options", o, ["forMs"]).forMs;
    await this.#control("trip", forMs === undefined ? undefined : fieldValue("forMs", forMs));
  }

  /**
   * Refuses every call of the whole fleet until {@link reset} or {@link trip}.
   * Rejected with {@link StoreUnavailableError} it may still take effect: the answer was lost or late, not the command.
   * @throws {@link StoreUnavailableError}; {@link TimeError} if the clock fails
   */
  async forceOpen(): Promise<void> {
    await this.#control("forceOpen");
  }

  /**
   * Admits every call of the whole fleet and counts none until {@link reset} or {@link trip}.
   * Rejected with {@link StoreUnavailableError} it may still take effect: the answer was lost or late, not the command.
   * @throws {@link StoreUnavailableError}; {@link TimeError} if the clock fails
   */
  async disable(): Promise<void> {
    await this.#control("disable");
  }

  async #control(operation: ControlOperation, forMs?: FieldValue): Promise<void> {
    const error = await this.#circuit.control(operation, forMs);
    if (error !== null) throw new StoreUnavailableError(this.name, error);
  }
}

/**
 * What the store knows of a circuit.
 * @throws {@link StoreUnavailableError}; {@link TimeError} if the clock fails
 */
export async function readSnapshot(circuit: SharedCircuit): Promise<Snapshot> {
  const snapshot = await circuit.snapshot();
  if (snapshot instanceof StoreError) throw new StoreUnavailableError(circuit.name, snapshot);
  return snapshot;
}

function ignore(): void {
  // Whoever steers knows what he has brought about.
}
