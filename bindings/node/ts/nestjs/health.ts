import { Inject, Injectable } from "@nestjs/common";
import { ModuleRef } from "@nestjs/core";
import { checkedName, optionsOf, outOfRange } from "../config";
import { ConfigError } from "../error";
import type { Breaker, Mode, State } from "../types";
import { Circuits } from "./circuits";

/** Options of a check. `undefined` means left out. */
export interface CircuitHealthOptions {
  /**
   * The circuits without which the service is not ready: while one of them is open, the check is `down`. Else an open circuit
   * is told and no more, for a service that answers without one dependency is ready, and taking it away helps nobody.
   *
   * Each has to be a circuit that there is: of a decorated method, of `circuits` in the options of the module, or one that
   * somebody has asked for by now.
   * @defaultValue none
   */
  critical?: readonly string[] | undefined;
}

/** What a check says, as Terminus takes it: by its key. */
export type CircuitHealthResult = Record<
  string,
  {
    /** `down` while a critical circuit is open. */
    status: "up" | "down";
    /** How many circuits there are. */
    circuits: number;
    /** Those that are not closed. */
    open: OpenCircuit[];
  }
>;

/** A circuit that is not closed. */
export interface OpenCircuit {
  /** Its name. */
  readonly circuit: string;
  /** `unknown` where its store does not answer. */
  readonly state: State | "unknown";
  /** Who decides. */
  readonly mode?: Mode;
  /** Milliseconds until a probe is admitted. */
  readonly remainingOpenMs?: number;
}

/**
 * Tells a readiness check of `@nestjs/terminus` which circuits are open. Of shared circuits each is asked of its store.
 *
 * @example
 * ```ts
 * const check = () => health.check([() => circuits.check("circuits", { critical: ["Billing.charge"] })]);
 * ```
 */
@Injectable()
export class CircuitBreakerHealthIndicator {
  /**
   * Made by Nest.
   * @internal
   */
  constructor(
    @Inject(Circuits) private readonly circuits: Circuits,
    @Inject(ModuleRef) private readonly module: ModuleRef,
  ) {}

  /**
   * How the circuits are.
   *
   * @param key - what the answer is found under
   * @throws {@link ConfigError} for the options, and for a critical circuit that there is not; Error where `@nestjs/terminus` is
   *   missing, or its module is not imported
   */
  async check(key = "circuits", options?: CircuitHealthOptions): Promise<CircuitHealthResult> {
    const critical = checkedCritical(options, this.circuits);
    const indicator = this.service().check(key);
    const breakers = this.circuits.list();
    const seen = await Promise.all(breakers.map(look));
    const open = seen.filter(({ state }) => state !== "closed");
    const down = open.some(({ circuit, state }) => state === "open" && critical.includes(circuit));
    const details = { circuits: breakers.length, open };
    return (down ? indicator.down(details) : indicator.up(details)) as unknown as CircuitHealthResult;
  }

  private service(): HealthIndicatorService {
    const { HealthIndicatorService } = terminus();
    try {
      return this.module.get(HealthIndicatorService, { strict: false });
    } catch (error) {
      throw new Error("CircuitBreakerHealthIndicator needs TerminusModule of @nestjs/terminus 11 to be imported", {
        cause: error,
      });
    }
  }
}

/** As much of `@nestjs/terminus` as is used here: it need not be installed, not even for the types. */
interface HealthIndicatorService {
  check(key: string): { up(details: object): object; down(details: object): object };
}

function terminus(): { HealthIndicatorService: new () => HealthIndicatorService } {
  try {
    return require("@nestjs/terminus");
  } catch (error) {
    throw new Error("CircuitBreakerHealthIndicator needs @nestjs/terminus 11: npm install @nestjs/terminus", {
      cause: error,
    });
  }
}

async function look(breaker: Breaker): Promise<OpenCircuit> {
  const circuit = breaker.name;
  try {
    const { state, mode, remainingOpenMs } = await breaker.getSnapshot();
    return { circuit, state, mode, remainingOpenMs };
  } catch {
    // Its store does not answer; that is no circuit that is open.
    return { circuit, state: "unknown" };
  }
}

function checkedCritical(options: unknown, circuits: Circuits): readonly string[] {
  if (options === undefined) return [];
  const { critical = [] } = optionsOf("options", options, ["critical"]);
  if (!Array.isArray(critical)) throw outOfRange("critical", "an array of circuits' names", critical);
  for (const name of critical.map(checkedName)) if (!circuits.knows(name)) throw noSuchCircuit(name, circuits.names());
  return critical;
}

/** Never passed over: nobody would notice that what was meant is not looked at. */
function noSuchCircuit(name: string, names: readonly string[]): ConfigError {
  const shown = names.slice(0, MOST_SHOWN).map((known) => `\`${known}\``);
  const there = [...shown, ...(names.length > MOST_SHOWN ? ["..."] : [])].join(", ") || "none";
  const later = "one that is made later has to be in `circuits` of CircuitBreakerModule";
  const { message, value } = outOfRange("critical", "circuits that there are", name);
  return new ConfigError(`${message}; there are ${there}; ${later}`, "critical", value);
}

/** How many names an error lists. */
const MOST_SHOWN = 20;
