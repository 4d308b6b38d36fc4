/** Load and outages: what callers do, and when the dependency fails. */

import {
  checkLoad,
  checkOutage,
  LOAD_RANGES,
  type Load,
  MAX_OUTAGES,
  OUTAGE_KINDS,
  OUTAGE_RANGES,
  type Outage,
  type Range,
  SetupError,
} from "../sim/setup";
import { shownIn, typedIn, UNIT, type Unit } from "../sim/units";
import { byId, fill, h, iconButton } from "./dom";
import { FieldView } from "./field";

interface Shown {
  readonly label: string;
  readonly unit: Unit;
}

const LOAD_FIELDS: { readonly [name in keyof Load]: Shown } = {
  callsPerSecond: { label: "Calls", unit: UNIT.perSecond },
  latencyMs: { label: "Latency", unit: UNIT.milliseconds },
  failureShare: { label: "Fail while all is well", unit: UNIT.percent },
  timeoutMs: { label: "Callers give up after", unit: UNIT.milliseconds },
  lengthMs: { label: "Length of the run", unit: UNIT.seconds },
  seed: { label: "Seed of chance", unit: UNIT.none },
};

const OUTAGE_FIELDS: { readonly [name in keyof typeof OUTAGE_RANGES]: Shown } = {
  at: { label: "from", unit: UNIT.seconds },
  forMs: { label: "for", unit: UNIT.seconds },
  share: { label: "hits", unit: UNIT.percent },
};

const CROSS = "M4 4l8 8M12 4l-8 8";

export class LoadForm {
  private readonly views = new Map<keyof Load, FieldView>();
  private rows: OutageRow[] = [];
  private readonly list = byId("outages", HTMLElement);

  constructor(private readonly changed: () => void) {
    const host = byId("load", HTMLElement);
    for (const name of Object.keys(LOAD_FIELDS) as (keyof Load)[]) {
      const { label, unit } = LOAD_FIELDS[name];
      const view = new FieldView({ id: `load-${name}`, label, unit: unit.symbol }, changed);
      this.views.set(name, view);
      host.append(view.element);
    }
    byId("add-outage", HTMLButtonElement).addEventListener("click", () => this.add());
  }

  /** The load; undefined, and each problem at its field, if it cannot be. */
  readLoad(): Load | undefined {
    const read = {} as Record<keyof Load, unknown>;
    let whole = true;
    for (const [name, view] of this.views) {
      const { value, problem } = readNumber(LOAD_FIELDS[name], view, LOAD_RANGES[name]);
      view.wrong = problem;
      read[name] = value;
      whole &&= problem === undefined;
    }
    if (!whole) return undefined;
    try {
      return checkLoad(read);
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      const name = error.field as keyof Load;
      const view = this.views.get(name) as FieldView;
      view.wrong = error.message.replace(name, LOAD_FIELDS[name].label);
      return undefined;
    }
  }

  /** The outages; undefined, and each problem at its row, if one cannot be. */
  readOutages(): Outage[] | undefined {
    const outages = this.rows.map((row) => row.read());
    return outages.every((outage) => outage !== undefined) ? outages : undefined;
  }

  show(load: Load, outages: readonly Outage[]): void {
    for (const [name, view] of this.views) view.text = shownIn(LOAD_FIELDS[name].unit, load[name]);
    this.rows = outages.map((outage) => this.row(outage));
    this.lay();
  }

  private add(): void {
    if (this.rows.length >= MAX_OUTAGES) return;
    const row = this.row({ at: 5_000, forMs: 10_000, kind: "hang", share: 1 });
    this.rows.push(row);
    this.lay();
    row.focus();
    this.changed();
  }

  private row(outage: Outage): OutageRow {
    const row = new OutageRow(outage, this.changed, () => {
      this.rows = this.rows.filter((other) => other !== row);
      this.lay();
      byId("add-outage", HTMLButtonElement).focus();
      this.changed();
    });
    return row;
  }

  private lay(): void {
    fill(this.list, ...this.rows.map(({ element }) => element));
    for (const [place, row] of this.rows.entries()) row.name = `outage ${place + 1}`;
    byId("no-outage", HTMLElement).hidden = this.rows.length > 0;
    byId("add-outage", HTMLButtonElement).disabled = this.rows.length >= MAX_OUTAGES;
  }
}

let outagesMade = 0;

class OutageRow {
  readonly element: HTMLElement;
  private readonly numbers: { readonly [name in keyof typeof OUTAGE_FIELDS]: FieldView };
  private readonly kind: FieldView;
  private readonly remove: HTMLButtonElement;
  private field = "outage";

  constructor(outage: Outage, changed: () => void, removed: () => void) {
    const id = `outage-${++outagesMade}`;
    const number = (name: keyof typeof OUTAGE_FIELDS) => {
      const { label, unit } = OUTAGE_FIELDS[name];
      const view = new FieldView({ id: `${id}-${name}`, label, unit: unit.symbol }, changed);
      view.text = shownIn(unit, outage[name]);
      return view;
    };
    this.numbers = { at: number("at"), forMs: number("forMs"), share: number("share") };
    this.kind = new FieldView({ id: `${id}-kind`, label: "how", words: OUTAGE_KINDS }, changed);
    this.kind.text = outage.kind;
    this.remove = iconButton("Remove", CROSS, { class: "bare" }, removed);
    const { at, forMs, share } = this.numbers;
    this.element = h(
      "div",
      { class: "outage", role: "group" },
      at.element,
      forMs.element,
      this.kind.element,
      share.element,
      this.remove,
    );
  }

  set name(name: string) {
    this.field = name;
    this.element.setAttribute("aria-label", name);
    this.remove.setAttribute("aria-label", `Remove ${name}`);
  }

  focus(): void {
    this.numbers.at.input.focus();
  }

  read(): Outage | undefined {
    const read = { at: 0, forMs: 0, kind: this.kind.text, share: 0 };
    const problems: string[] = [];
    for (const name of Object.keys(this.numbers) as (keyof typeof this.numbers)[]) {
      const view = this.numbers[name];
      const { value, problem } = readNumber(OUTAGE_FIELDS[name], view, OUTAGE_RANGES[name]);
      view.wrong = problem;
      if (problem === undefined) read[name] = value;
      else problems.push(problem);
    }
    return problems.length === 0 ? checkOutage(this.field, read) : undefined;
  }
}

/** What was typed into a field, or what is wrong with it. */
function readNumber({ label, unit }: Shown, view: FieldView, range: Range): { value: number; problem?: string } {
  try {
    return { value: typedIn(unit, label, view.text, range) };
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    return { value: Number.NaN, problem: error.message };
  }
}
