/** The shared half of the module as the facade wants it. */

import type { FieldValue, Native } from "../../node/ts/native";
import type { Engine, SharedConfig } from "../../node/ts/native-shared";
import * as glue from "../dist/shared.js";
import text from "../dist/shared.wasm";
import type { LocalNative } from "./local";
import { compiled } from "./module";
import { build, crossing, number, snapshotOf, transitionOf, units, whileDefined } from "./values";

/** What the shared half of the facade asks for. */
export type SharedNative = Omit<Native, keyof LocalNative>;

/** Starts the module. */
export function loadShared(): SharedNative {
  glue.initSync({ module: compiled(text) });
  return shared;
}

class Config extends glue.SharedConfig {
  declare readonly __brand: "SharedConfig";
  constructor(layers: FieldValue[][]) {
    super();
    build(this, layers);
  }
}

/** The places of `number`, see bindings/wasm/src/shared.rs. */
const PERMIT_EPOCH = 0;
const PERMIT_COUNTER = 1;
const REFUSAL_WAIT = 2;
const ASK_TICKET = 3;
const ASK_DELAY = 4;
const ASK_READS = 5;
const TRANSITION = 6;
const SNAPSHOT = 12;

/** Manual control. */
const RESET = 0;
const TRIP = 1;
const FORCE_OPEN = 2;
const DISABLE = 3;

const shared: SharedNative = {
  version: glue.version,
  errorCodes: () => whileDefined((place) => glue.errorCode(place) as string | undefined),
  isMoment: (now) => typeof now === "number" && glue.isMoment(now),
  defaults: () => ({ prefix: glue.defaultPrefix(), storeTimeoutMs: glue.defaultStoreTimeoutMs() }),
  checkPrefix: (prefix) => glue.checkPrefix(units(prefix)),
  SharedConfig: Config,
  sharedCircuit: (name, prefix, [high, low], readsPrimary, config) =>
    engineOf(new glue.Circuit(units(name), units(prefix), high, low, readsPrimary, config as SharedConfig & Config)),
  sharedRoutingKey: (engine) => circuitOf(engine).routingKey(),
  sharedAdmitCommand: (engine) => circuitOf(engine).admitCommand(),
  sharedSuccessIsFree: (engine) => circuitOf(engine).successIsFree(),
  sharedAdmit: (engine, now) => circuitOf(engine).admit(number(now)),
  sharedSettle: (engine, now, kind, epoch, counter, outcome) =>
    circuitOf(engine).settle(number(now), kind, epoch, counter, outcome),
  sharedGetState: (engine, now) => circuitOf(engine).getState(number(now)),
  sharedReset: (engine, now) => control(engine, RESET, now),
  sharedTrip: (engine, now, forMs) => control(engine, TRIP, now, forMs),
  sharedForceOpen: (engine, now) => control(engine, FORCE_OPEN, now),
  sharedDisable: (engine, now) => control(engine, DISABLE, now),
  sharedAdmitted: (engine, now, state, mode, epoch, openedAt, openMs) =>
    circuitOf(engine).admitted(number(now), state, mode, epoch, openedAt, openMs),
  sharedOnReading: (engine, now, ticket, fields) => circuitOf(engine).onReading(number(now), ticket, ...fields),
  sharedOnReply: (engine, now, ticket, reply) =>
    circuitOf(engine).onReply(number(now), ticket, Float64Array.from(reply)),
  sharedOnError: (engine, now, ticket, error) => circuitOf(engine).onError(number(now), ticket, error),
  sharedOnDeadline: (engine, ticket) => circuitOf(engine).onDeadline(ticket),
  sharedPermitEpoch: (engine) => circuitOf(engine).number(PERMIT_EPOCH),
  sharedPermitCounter: (engine) => circuitOf(engine).number(PERMIT_COUNTER),
  sharedRefusalWait: (engine) => circuitOf(engine).number(REFUSAL_WAIT),
  sharedAsk: (engine) => {
    const circuit = circuitOf(engine);
    const ticket = circuit.number(ASK_TICKET);
    if (ticket < 0) return null;
    const reads = circuit.number(ASK_READS) === 1;
    return { ticket, delayMs: circuit.number(ASK_DELAY), reads, command: circuit.askCommand() };
  },
  sharedTransition: (engine) => transitionOf((place) => circuitOf(engine).number(TRANSITION + place), word),
  sharedSnapshot: (engine) =>
    circuitOf(engine).number(SNAPSHOT) < 0
      ? null
      : snapshotOf((place) => circuitOf(engine).number(SNAPSHOT + place), word),
};

function control(engine: Engine, operation: number, now: number, forMs?: FieldValue): number {
  return circuitOf(engine).control(operation, number(now), ...crossing(forMs));
}

/** The facade holds an engine and hands it back; what it is, is the business of this file. */
function engineOf(circuit: glue.Circuit): Engine {
  return circuit as unknown as Engine;
}

function circuitOf(engine: Engine): glue.Circuit {
  return engine as unknown as glue.Circuit;
}

function word(place: number): string {
  return glue.word(place);
}
