/** The local half of the module as the facade wants it. */

import type {
  FieldValue,
  Native,
  NativeBreaker,
  NativeConfig,
  NativeHints,
  NativeRecency,
  NativeTransition,
} from "../../node/ts/native";
import type { Snapshot, State } from "../../node/ts/types";
import * as glue from "../dist/local.js";
import text from "../dist/local.wasm";
import { compiled } from "./module";
import { build, crossing, number, snapshotOf, transitionOf, units, whileDefined } from "./values";

/** What the local half of the facade asks for. */
export type LocalNative = Pick<
  Native,
  | "fieldTable"
  | "Config"
  | "checkOption"
  | "showText"
  | "withoutCredentials"
  | "statusCounts"
  | "maxKeysDefault"
  | "checkName"
  | "Breaker"
  | "Recency"
>;

/** Starts the module. */
export function loadLocal(): LocalNative {
  glue.initSync({ module: compiled(text) });
  return local;
}

class Config extends glue.Config {
  declare readonly opaque?: never;
  constructor(layers: FieldValue[][]) {
    super();
    build(this, layers);
  }
}

/** The places of `number`, see bindings/wasm/src/breaker.rs. */
const PERMIT_EPOCH = 0;
const PERMIT_ID = 1;
const REFUSAL_WAIT = 2;
const STATE = 3;
const ADMIT_EPOCH = 4;
const SUCCESS_FREE = 5;
const SUCCESS_IGNORED = 6;
const REFUSE_FROM = 7;
const REFUSE_UNTIL = 8;
const TRANSITION = 9;
const SNAPSHOT = 15;

/** Manual control. */
const RESET = 0;
const TRIP = 1;
const FORCE_OPEN = 2;
const DISABLE = 3;

class Breaker extends glue.Breaker implements NativeBreaker {
  constructor(config: NativeConfig) {
    super(config as Config);
  }
  override canRequest(now: number): number {
    return super.canRequest(number(now));
  }
  permitEpoch(): number {
    return this.number(PERMIT_EPOCH);
  }
  permitId(): number {
    return this.number(PERMIT_ID);
  }
  refusalWait(): number {
    return this.number(REFUSAL_WAIT);
  }
  override settle(now: number, kind: number, epoch: number, id: number, outcome: number): number {
    return super.settle(number(now), kind, epoch, id, outcome);
  }
  transition(): NativeTransition | null {
    return transitionOf((place) => this.number(TRANSITION + place), word);
  }
  hints(): NativeHints {
    return {
      admitEpoch: this.number(ADMIT_EPOCH),
      successFree: this.number(SUCCESS_FREE) === 1,
      successIgnored: this.number(SUCCESS_IGNORED) === 1,
      refuseFrom: this.number(REFUSE_FROM),
      refuseUntil: this.number(REFUSE_UNTIL),
    };
  }
  override retryAfter(now: number): number {
    return super.retryAfter(number(now));
  }
  state(): State {
    return word(this.number(STATE)) as State;
  }
  snapshot(now: number): Snapshot {
    this.look(number(now));
    return snapshotOf((place) => this.number(SNAPSHOT + place), word);
  }
  reset(now: number): number {
    return this.control(RESET, number(now), ...crossing(undefined));
  }
  trip(now: number, forMs: FieldValue | undefined): number {
    return this.control(TRIP, number(now), ...crossing(forMs));
  }
  forceOpen(now: number): number {
    return this.control(FORCE_OPEN, number(now), ...crossing(undefined));
  }
  disable(now: number): number {
    return this.control(DISABLE, number(now), ...crossing(undefined));
  }
}

/** What may be said of a slot. */
const NOT_CLOSED = 0;
const CLOSED = 1;
const TOUCHED = 2;
const FREE = 3;

class Recency extends glue.Recency implements NativeRecency {
  private last = 0;

  override insert(): number {
    this.last = super.insert();
    return this.last >>> 1;
  }
  evicted(): boolean {
    return (this.last & 1) === 1;
  }
  touch(slot: number): void {
    this.tell(slot, TOUCHED);
  }
  note(slot: number, closed: boolean): void {
    this.tell(slot, closed ? CLOSED : NOT_CLOSED);
  }
  remove(slot: number): void {
    this.tell(slot, FREE);
  }
}

const local: LocalNative = {
  fieldTable: () =>
    whileDefined((row) => {
      const [name, synonym, value, of] = [0, 1, 2, 3].map((column) => glue.fieldTable(row, column));
      if (name === undefined) return undefined;
      return { name, synonym: synonym ?? null, default: shownDefault(value, of) };
    }),
  Config,
  checkOption: (value) => glue.checkOption(value.name, ...crossing(value)),
  showText: glue.showText,
  withoutCredentials: glue.withoutCredentials,
  statusCounts: glue.statusCounts,
  maxKeysDefault: glue.defaultMaxKeys,
  checkName: (name) => glue.checkName(units(name)),
  Breaker,
  Recency,
};

const words: string[] = [];

function word(place: number): string {
  words[place] ??= glue.word(place);
  return words[place] as string;
}

function shownDefault(value: unknown, of: string | undefined): string {
  if (of !== undefined) return value === 1 ? of : `${value} x ${of}`;
  return typeof value === "string" ? `'${value}'` : String(value);
}
