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

/** Lets go what the module holds for an object of this file when nobody has that any more. */
const held =
  typeof FinalizationRegistry === "undefined"
    ? undefined
    : new FinalizationRegistry<[free: (pointer: number) => void, pointer: number]>(([free, pointer]) => free(pointer));

/** Something that the module holds. */
class Held {
  constructor(
    readonly pointer: number,
    free: (pointer: number) => void,
  ) {
    held?.register(this, [free, pointer]);
  }
}

class Config extends Held {
  declare readonly opaque?: never;
  constructor(layers: FieldValue[][]) {
    super(glue.newConfig(), glue.freeConfig);
    build(
      {
        layer: () => glue.layer(this.pointer),
        add: (...field) => glue.add(this.pointer, ...field),
        build: () => glue.build(this.pointer),
      },
      layers,
    );
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

class Breaker extends Held implements NativeBreaker {
  constructor(config: NativeConfig) {
    super(glue.newBreaker((config as Config).pointer), glue.freeBreaker);
  }
  canRequest(now: number): number {
    return glue.canRequest(this.pointer, number(now));
  }
  permitEpoch(): number {
    return this.at(PERMIT_EPOCH);
  }
  permitId(): number {
    return this.at(PERMIT_ID);
  }
  refusalWait(): number {
    return this.at(REFUSAL_WAIT);
  }
  settle(now: number, kind: number, epoch: number, id: number, outcome: number): number {
    return glue.settle(this.pointer, number(now), kind, epoch, id, outcome);
  }
  transition(): NativeTransition | null {
    return transitionOf((place) => this.at(TRANSITION + place), word);
  }
  hints(): NativeHints {
    return {
      admitEpoch: this.at(ADMIT_EPOCH),
      successFree: this.at(SUCCESS_FREE) === 1,
      successIgnored: this.at(SUCCESS_IGNORED) === 1,
      refuseFrom: this.at(REFUSE_FROM),
      refuseUntil: this.at(REFUSE_UNTIL),
    };
  }
  retryAfter(now: number): number {
    return glue.retryAfter(this.pointer, number(now));
  }
  state(): State {
    return word(this.at(STATE)) as State;
  }
  snapshot(now: number): Snapshot {
    glue.look(this.pointer, number(now));
    return snapshotOf((place) => this.at(SNAPSHOT + place), word);
  }
  reset(now: number): number {
    return glue.control(this.pointer, RESET, number(now), ...crossing(undefined));
  }
  trip(now: number, forMs: FieldValue | undefined): number {
    return glue.control(this.pointer, TRIP, number(now), ...crossing(forMs));
  }
  forceOpen(now: number): number {
    return glue.control(this.pointer, FORCE_OPEN, number(now), ...crossing(undefined));
  }
  disable(now: number): number {
    return glue.control(this.pointer, DISABLE, number(now), ...crossing(undefined));
  }
  private at(place: number): number {
    return glue.number(this.pointer, place);
  }
}

/** What may be said of a slot. */
const NOT_CLOSED = 0;
const CLOSED = 1;
const TOUCHED = 2;
const FREE = 3;

class Recency extends Held implements NativeRecency {
  private last = 0;

  constructor(capacity: number) {
    super(glue.newRecency(capacity), glue.freeRecency);
  }
  insert(): number {
    this.last = glue.insert(this.pointer);
    return this.last >>> 1;
  }
  evicted(): boolean {
    return (this.last & 1) === 1;
  }
  touch(slot: number): void {
    glue.tell(this.pointer, slot, TOUCHED);
  }
  note(slot: number, closed: boolean): void {
    glue.tell(this.pointer, slot, closed ? CLOSED : NOT_CLOSED);
  }
  remove(slot: number): void {
    glue.tell(this.pointer, slot, FREE);
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
