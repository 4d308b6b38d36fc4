/** The shared half of the module as the facade wants it. */

import type { FieldValue, Native } from "../../node/ts/native";
import type { Engine, Listing, Server, SharedConfig, Survey } from "../../node/ts/native-shared";
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
const ASK_ASKS_TIME = 6;
const FREE_FROM = 7;
const FREE_UNTIL = 8;
const FREE_EPOCH = 9;
const FREE_COUNTER = 10;
const TRANSITION = 11;
const SNAPSHOT = 17;

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
  sharedCircuit: ({ name, prefix, nonce, instance, readsPrimary }, config) =>
    engineOf(
      new glue.Circuit(units(name), units(prefix), ...nonce, instance, readsPrimary, config as SharedConfig & Config),
    ),
  sharedNode: () => new glue.Server() as unknown as Server,
  sharedNodeNow: (server, host) => serverOf(server).now(host),
  sharedNodeReplaced: (server) => serverOf(server).replaced(),
  sharedRoutingKey: (engine) => circuitOf(engine).routingKey(),
  sharedAdmitCommand: (engine) => circuitOf(engine).admitCommand(),
  sharedSuccessIsFree: (engine) => circuitOf(engine).successIsFree(),
  sharedMayBeFree: (engine) => circuitOf(engine).mayBeFree(),
  sharedFree: (engine) => {
    const circuit = circuitOf(engine);
    if (!circuit.isFreeNews()) return null;
    if (circuit.number(FREE_FROM) < 0) return [];
    return [
      circuit.number(FREE_FROM),
      circuit.number(FREE_UNTIL),
      circuit.number(FREE_EPOCH),
      circuit.number(FREE_COUNTER),
    ];
  },
  sharedAdmit: (engine, server, host, store) => circuitOf(engine).admit(serverOf(server), number(host), number(store)),
  sharedAdmitUnasked: (engine, host, store) => circuitOf(engine).admitUnasked(number(host), number(store)),
  sharedSettle: (engine, server, host, store, kind, epoch, counter, outcome) =>
    circuitOf(engine).settle(serverOf(server), number(host), number(store), kind, epoch, counter, outcome),
  sharedGetState: (engine, server, host, store) =>
    circuitOf(engine).getState(serverOf(server), number(host), number(store)),
  sharedReset: (...at) => control(RESET, at),
  sharedTrip: (engine, server, host, store, forMs) => control(TRIP, [engine, server, host, store], forMs),
  sharedForceOpen: (...at) => control(FORCE_OPEN, at),
  sharedDisable: (...at) => control(DISABLE, at),
  sharedOnReading: (engine, server, host, store, ticket, ...fields) =>
    circuitOf(engine).onReading(serverOf(server), number(host), number(store), ticket, ...fields),
  sharedOnReply: (engine, server, host, store, ticket, reply) =>
    circuitOf(engine).onReply(serverOf(server), number(host), number(store), ticket, Float64Array.from(reply)),
  sharedOnError: (engine, server, host, store, ticket, error) =>
    circuitOf(engine).onError(serverOf(server), number(host), number(store), ticket, error),
  sharedOnDeadline: (engine, server, host, store, ticket) =>
    circuitOf(engine).onDeadline(serverOf(server), number(host), number(store), ticket),
  sharedChannel: (prefix) => glue.channel(units(prefix)),
  sharedAnnouncement: (message) => {
    const heard = glue.Heard.parse(message);
    if (heard === undefined) return null;
    const transition = transitionOf((place) => heard.transition(place), word);
    const [circuit, instance] = [heard.circuit(), heard.instance()];
    heard.free();
    return transition === null ? null : { circuit, instance, transition };
  },
  sharedOnEvent: (engine, server, host, store, message) =>
    circuitOf(engine).onEvent(serverOf(server), number(host), number(store), message),
  sharedListing: (prefix, keyPrefix) => new glue.Listing(units(prefix), keyPrefix) as unknown as Listing,
  sharedListingPattern: (listing) => listingOf(listing).pattern(),
  sharedListingName: (listing, key) => listingOf(listing).nameOf(key) ?? null,
  sharedSurvey: (replies) => (glue.Survey.read(replies) as unknown as Survey | undefined) ?? null,
  sharedSurveyMissing: (survey) => {
    const address = surveyOf(survey).missingAddress();
    return address === undefined ? null : { address, slot: surveyOf(survey).missingSlot() };
  },
  sharedSurveyStoodStill: (survey, before) => surveyOf(survey).stoodStill(surveyOf(before)),
  sharedPermitEpoch: (engine) => circuitOf(engine).number(PERMIT_EPOCH),
  sharedPermitCounter: (engine) => circuitOf(engine).number(PERMIT_COUNTER),
  sharedRefusalWait: (engine) => circuitOf(engine).number(REFUSAL_WAIT),
  sharedAsk: (engine) => {
    const circuit = circuitOf(engine);
    if (!circuit.nextAsk()) return null;
    return {
      ticket: circuit.number(ASK_TICKET),
      delayMs: circuit.number(ASK_DELAY),
      reads: circuit.number(ASK_READS) === 1,
      asksTime: circuit.number(ASK_ASKS_TIME) === 1,
      command: circuit.askCommand(),
    };
  },
  sharedTransition: (engine) => transitionOf((place) => circuitOf(engine).number(TRANSITION + place), word),
  sharedSnapshot: (engine) =>
    circuitOf(engine).number(SNAPSHOT) < 0
      ? null
      : snapshotOf((place) => circuitOf(engine).number(SNAPSHOT + place), word),
};

/** Where and when something is asked of an engine. */
type At = [engine: Engine, server: Server, host: number, store: number];

function control(operation: number, [engine, server, host, store]: At, forMs?: FieldValue): number {
  return circuitOf(engine).control(operation, serverOf(server), number(host), number(store), ...crossing(forMs));
}

/** The facade holds an engine and hands it back; what it is, is the business of this file. */
function engineOf(circuit: glue.Circuit): Engine {
  return circuit as unknown as Engine;
}

function circuitOf(engine: Engine): glue.Circuit {
  return engine as unknown as glue.Circuit;
}

function serverOf(server: Server): glue.Server {
  return server as unknown as glue.Server;
}

function listingOf(listing: Listing): glue.Listing {
  return listing as unknown as glue.Listing;
}

function surveyOf(survey: Survey): glue.Survey {
  return survey as unknown as glue.Survey;
}

function word(place: number): string {
  return glue.word(place);
}
