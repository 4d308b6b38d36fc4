/** The vectors' view: a file of timelines, each played on the core step by step, with what is expected beside what it answers. */

import { Circuit, type Snapshot } from "../core";
import { MAX_FILE_BYTES, type Played, type PlayedVector, play, readVectors, type Step } from "../sim/vectors";
import { byId, fill, h, iconButton, s } from "./dom";
import { counted } from "./text";

const ICONS = {
  first: "M3 3v10M13 3.5v9L5.5 8z",
  back: "M11 3v10L4 8z",
  on: "M5 3v10l7-5z",
  last: "M13 3v10M3 3.5v9L10.5 8z",
};

/** Steps that are drawn at once. A page that draws tens of thousands takes seconds for each of them. */
const DRAWN = 1_000;
/** The part of what is wrong with a file that is shown: what is wrong may be a value of any length. */
const SHOWN = 400;

const make = (config: Readonly<Record<string, unknown>>) => new Circuit(config);

export class VectorView {
  private played: PlayedVector[] = [];
  private chosen = 0;
  private step = 0;
  /** The first step whose row is drawn. */
  private first = 0;
  /** Counts what was asked for: of files that come in another order than they were asked for, the last one asked for is shown. */
  private asked = 0;
  private readonly files = byId("vector-own", HTMLSelectElement);
  private readonly list = byId("vector", HTMLSelectElement);
  private begun = false;

  constructor() {
    const file = byId("vector-file", HTMLInputElement);
    file.addEventListener("change", () => {
      const [chosen] = file.files ?? [];
      // The same file may be chosen again after it was changed.
      if (chosen !== undefined) void this.load(chosen.name, chosen).finally(() => (file.value = ""));
    });
    const panel = byId("vectors", HTMLElement);
    panel.addEventListener("dragover", (event) => event.preventDefault());
    panel.addEventListener("drop", (event) => {
      event.preventDefault();
      const dropped = event.dataTransfer?.files[0];
      if (dropped !== undefined) void this.load(dropped.name, dropped);
    });
    this.files.addEventListener("change", () => void this.loadOwn(this.files.value));
    this.list.addEventListener("change", () => this.choose(Number(this.list.value)));
    fill(
      byId("vector-transport", HTMLElement),
      iconButton("First step", ICONS.first, { id: "vector-first" }, () => this.go(0)),
      iconButton("One step back", ICONS.back, { id: "vector-back" }, () => this.go(this.step - 1)),
      iconButton("One step on", ICONS.on, { id: "vector-on" }, () => this.go(this.step + 1)),
      iconButton("Last step", ICONS.last, { id: "vector-last" }, () => this.go(Infinity)),
    );
  }

  /** Called when the view is looked at: the project's own vectors are fetched only then. */
  async begin(): Promise<void> {
    if (this.begun) return;
    this.begun = true;
    try {
      const names = (await (await fetched("vectors/index.json")).json()) as string[];
      fill(this.files, ...names.map((name) => h("option", { value: name }, name)));
      this.files.value = "";
      // Somebody may have brought a file of theirs meanwhile.
      if (this.asked === 0)
        await this.loadOwn(names.includes("scenarios.json") ? "scenarios.json" : (names[0] as string));
    } catch (error) {
      // Whoever comes back to the view tries again.
      this.begun = false;
      if (this.asked === 0) this.fail("the project's own vectors", error);
    }
  }

  private async loadOwn(name: string): Promise<void> {
    this.files.value = name;
    await this.ask(name, async () => (await fetched(`vectors/${name}`)).text());
  }

  private async load(name: string, file: Blob): Promise<void> {
    this.files.value = "";
    await this.ask(name, async () => {
      if (file.size > MAX_FILE_BYTES)
        throw new Error(`it is ${file.size} bytes long; at most ${MAX_FILE_BYTES} are taken`);
      return file.text();
    });
  }

  private async ask(name: string, read: () => Promise<string>): Promise<void> {
    const asked = ++this.asked;
    try {
      const text = await read();
      if (asked === this.asked) this.take(name, text);
    } catch (error) {
      if (asked === this.asked) this.fail(name, error);
    }
  }

  private take(name: string, text: string): void {
    const vectors = readVectors(text, (config) => make(config).free());
    this.played = vectors.map((vector) => play(vector, make));
    byId("vector-problem", HTMLElement).hidden = true;
    byId("vector-body", HTMLElement).hidden = false;
    this.sum(name);
    fill(
      this.list,
      ...this.played.map(({ vector, holds }, place) =>
        h("option", { value: place }, `${holds ? "✓" : "✗"} ${vector.name}`),
      ),
    );
    this.choose(
      Math.max(
        0,
        this.played.findIndex(({ holds }) => !holds),
      ),
    );
  }

  /** What was shown before stays away: it is not what was asked for. */
  private fail(name: string, error: unknown): void {
    this.played = [];
    const problem = byId("vector-problem", HTMLElement);
    const text = `${name}: ${error instanceof Error ? error.message : String(error)}`;
    problem.textContent = text.length > SHOWN ? `${text.slice(0, SHOWN)}...` : text;
    problem.hidden = false;
    byId("vector-body", HTMLElement).hidden = true;
    byId("vector-sum", HTMLElement).textContent = "";
  }

  private sum(name: string): void {
    const steps = this.played.reduce((sum, { vector }) => sum + vector.steps.length, 0);
    const wrong = this.played.filter(({ holds }) => !holds).length;
    const expected = this.played
      .flatMap((each) => each.steps)
      .reduce((sum, { step }) => sum + Object.keys(step.expect ?? {}).length, 0);
    const verdict =
      wrong === 0
        ? `all ${counted(expected, "expectation")} hold`
        : `${counted(wrong, "vector differs", "vectors differ")}`;
    const sum = byId("vector-sum", HTMLElement);
    sum.textContent = `${name}: ${counted(this.played.length, "vector")}, ${counted(steps, "step")}; ${verdict}.`;
    sum.className = wrong === 0 ? "sum right" : "sum wrong";
  }

  private choose(place: number): void {
    this.chosen = place;
    this.list.value = String(place);
    const { vector, steps } = this.played[place] as PlayedVector;
    byId("vector-about", HTMLElement).textContent = vector.about ?? "";
    const config = Object.entries(vector.config ?? {}).map(([name, value]) => `${name}: ${value}`);
    byId("vector-config", HTMLElement).textContent =
      config.length === 0 ? "every option at its default" : config.join(", ");
    this.draw(0);
    const wrong = steps.findIndex(({ differences }) => differences.length > 0);
    this.go(Math.max(0, wrong));
  }

  /** Draws the rows around a step. */
  private draw(step: number): void {
    const { steps } = this.played[this.chosen] as PlayedVector;
    this.first = Math.max(0, Math.min(step - DRAWN / 2, steps.length - DRAWN));
    const drawn = steps.slice(this.first, this.first + DRAWN);
    fill(byId("vector-steps", HTMLElement), ...drawn.map((each, index) => this.row(each, this.first + index)));
    const part = byId("vector-part", HTMLElement);
    part.hidden = drawn.length === steps.length;
    part.textContent = `Steps ${this.first + 1} to ${this.first + drawn.length} of ${steps.length}.`;
  }

  private row(played: Played, index: number): HTMLElement {
    const { step, differences } = played;
    const press = h("button", { type: "button", class: "step" }, String(index + 1));
    press.setAttribute("aria-label", `Step ${index + 1}`);
    press.addEventListener("click", () => this.go(index));
    const held = differences.length === 0;
    const verdict =
      step.expect === undefined && held
        ? undefined
        : held
          ? ["✓", " as expected"]
          : ["✗", ` ${differences.join("; ")}`];
    return h(
      "tr",
      { class: held ? "" : "differs" },
      h("td", {}, press),
      h("td", { class: "time" }, String(step.at)),
      h("td", { class: "code" }, operation(step)),
      h("td", { class: `to ${played.snapshot.state}` }, played.snapshot.state),
      h(
        "td",
        { class: held ? "verdict" : "verdict bad" },
        verdict?.[0],
        verdict && h("span", { class: "more" }, verdict[1]),
      ),
    );
  }

  private go(step: number): void {
    const vector = this.played[this.chosen];
    if (vector === undefined) return;
    this.step = Math.min(vector.steps.length - 1, Math.max(0, step));
    if (this.step < this.first || this.step >= this.first + DRAWN) this.draw(this.step);
    const rows = [...byId("vector-steps", HTMLElement).children];
    for (const [index, row] of rows.entries()) {
      const place = this.first + index;
      if (place === this.step) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
      row.classList.toggle("later", place > this.step);
    }
    scrollTo(rows[this.step - this.first] as HTMLElement);
    const played = vector.steps[this.step] as Played;
    byId("vector-where", HTMLElement).textContent =
      `step ${this.step + 1} of ${vector.steps.length}, at ${played.step.at} ms`;
    showStrip(vector, this.step, (to) => this.go(to));
    showAnswer(played);
  }
}

/** The states step by step, for a vector's times may leap or run backwards. Of very many, some share a column. */
function showStrip({ steps }: PlayedVector, now: number, go: (step: number) => void): void {
  const host = byId("vector-strip", HTMLElement);
  const columns = Math.min(steps.length, DRAWN);
  const wide = 1000 / columns;
  const begin = (column: number) => Math.floor((column * steps.length) / columns);
  const parts = Array.from({ length: columns }, (_, column) => {
    const shared = steps.slice(begin(column), begin(column + 1));
    const mark = { x: column * wide, y: 24, height: 4 };
    return [
      s("rect", {
        class: `state ${shared[0]?.snapshot.state}${begin(column) > now ? " later" : ""}`,
        x: column * wide,
        y: 0,
        width: Math.max(1, wide - 1),
        height: 22,
      }),
      shared.some(({ differences }) => differences.length > 0) &&
        s("rect", { ...mark, class: "bad", width: Math.max(1, wide - 1) }),
      begin(column) <= now &&
        now < begin(column + 1) &&
        s("rect", { ...mark, class: "here", width: Math.max(2, wide - 1) }),
    ];
  }).flat();
  const svg = s("svg", { viewBox: "0 0 1000 28", preserveAspectRatio: "none", "aria-hidden": "true" }, ...parts);
  svg.addEventListener("pointerdown", (event) => {
    const { left, width } = svg.getBoundingClientRect();
    go(Math.floor(((event.clientX - left) / width) * steps.length));
  });
  fill(host, svg);
}

/** All that the core said to a step, and what was expected of it. */
function showAnswer({ step, got, differences, snapshot }: Played): void {
  const expect = step.expect ?? {};
  const answers: Record<string, unknown> = { ...(got ?? (snapshot as Snapshot)) };
  // What an operation does not answer is null, as `status` of an admission: unless it is expected, it says nothing.
  const shown = Object.entries(answers).filter(
    ([name, value]) => value !== null || name in expect || name === "openedAt",
  );
  fill(
    byId("vector-answer", HTMLElement),
    ...shown.map(([name, value]) => {
      const asked = Object.hasOwn(expect, name);
      const right = asked && expect[name] === value;
      return h(
        "tr",
        { class: asked && !right ? "differs" : "" },
        h("th", { scope: "row", class: "code" }, name),
        h("td", { class: "code" }, asked ? String(expect[name]) : ""),
        h("td", { class: "code" }, String(value)),
        h("td", { class: right ? "good" : "bad" }, asked ? (right ? "✓" : "✗") : ""),
      );
    }),
  );
  const note = byId("vector-note", HTMLElement);
  note.hidden = got !== null;
  note.textContent = differences.join("; ");
}

function operation({ do: what, as, permit, forMs }: Step): string {
  const more = [as && `as ${as}`, permit && `with ${permit}`, forMs !== undefined && `for ${forMs} ms`].filter(Boolean);
  return more.length === 0 ? what : `${what} (${more.join(", ")})`;
}

/** Brings a row into what its table shows, without moving the page. */
function scrollTo(row: HTMLElement): void {
  const box = row.closest<HTMLElement>(".scroll");
  if (box === null) return;
  const [above, below] = [row.offsetTop - 40, row.offsetTop + row.offsetHeight + 8];
  if (above < box.scrollTop) box.scrollTop = Math.max(0, above);
  else if (below > box.scrollTop + box.clientHeight) box.scrollTop = below - box.clientHeight;
}

async function fetched(path: string): Promise<Response> {
  const response = await fetch(new URL(path, document.baseURI));
  if (!response.ok) throw new Error(`it could not be fetched: HTTP ${response.status}`);
  return response;
}
