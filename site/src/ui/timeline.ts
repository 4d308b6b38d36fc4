/** The timeline: what the circuit was, what the dependency did, what became of the calls, and who waited. */

import type { Run } from "../sim/run";
import type { Policy } from "../sim/setup";
import { binned, grantedCalls, periodsOf, underWay } from "../sim/statistics";
import { fill, s } from "./dom";
import { percent } from "./text";

/** Where a graph is: from its top down, within the width of the page. */
interface Area {
  readonly top: number;
  readonly height: number;
}

const TITLE = 22;
const GAP = 14;
const AXIS = 24;
const HEIGHTS = { circuit: 30, dependency: 18, calls: 60, window: 52, waiting: 64 };
/** For what fits where: how wide a label will be. */
const measure = document.createElement("canvas").getContext("2d");
const FONT = "600 12px Inter, system-ui, sans-serif";

export class Timeline {
  private readonly svg = s("svg", { class: "graph", role: "img" });
  private readonly veil = s("rect", { class: "veil", y: 0 });
  private readonly line = s("line", { class: "now", y1: TITLE - 6 });
  private width = 0;
  private shown: { run: Run; inForce: Policy } | undefined;
  private at = 0;

  constructor(
    private readonly host: HTMLElement,
    private readonly seek: (at: number) => void,
  ) {
    host.append(this.svg);
    new ResizeObserver(() => this.resized()).observe(host);
    // Labels were placed by the width they have in another font, if ours came later.
    void document.fonts.ready.then(() => this.draw());
    // Wherever it is pressed or drawn over, time goes there; the slider below does the same by keyboard.
    const go = (event: PointerEvent) => {
      if (this.shown === undefined || this.width === 0) return;
      const { left } = this.svg.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - left) / this.width));
      this.seek(Math.round(share * this.shown.run.setup.load.lengthMs));
    };
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.svg.setPointerCapture(event.pointerId);
      go(event);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (this.svg.hasPointerCapture(event.pointerId)) go(event);
    });
  }

  /** Shows a run. */
  show(run: Run, inForce: Policy): void {
    this.shown = { run, inForce };
    this.draw();
  }

  /** Moves the line to a moment. */
  move(at: number): void {
    this.at = at;
    if (this.shown === undefined) return;
    const x = (at / this.shown.run.setup.load.lengthMs) * this.width;
    this.line.setAttribute("x1", String(x));
    this.line.setAttribute("x2", String(x));
    this.veil.setAttribute("x", String(x));
    this.veil.setAttribute("width", String(Math.max(0, this.width - x)));
  }

  private resized(): void {
    if (Math.floor(this.host.clientWidth) !== this.width) this.draw();
  }

  private draw(): void {
    this.width = Math.floor(this.host.clientWidth);
    if (this.shown === undefined || this.width === 0) return;
    const { run, inForce } = this.shown;
    const x = (at: number) => (at / run.setup.load.lengthMs) * this.width;
    const parts: SVGElement[] = [];
    let top = 0;
    const row = (title: string, height: number, legend: Legend, paint: (area: Area) => SVGElement[]) => {
      parts.push(heading(title, top, legend, this.width));
      top += TITLE;
      parts.push(...paint({ top, height }));
      top += height + GAP;
    };
    row("Circuit", HEIGHTS.circuit, [], (area) => circuit(run, area, x));
    row("Dependency", HEIGHTS.dependency, [], (area) => dependency(run, area, x, this.width));
    const ends: Legend = [
      ["succeeded", "succeeded"],
      ["failed", "failed"],
      ["refused", "refused"],
    ];
    row("Calls", HEIGHTS.calls, ends, (area) => calls(run, area, this.width));
    const { title, ...counted } = windowOf(inForce);
    const few: Legend = counted.means === undefined ? [] : [["few", "too few calls to count"]];
    row(title, HEIGHTS.window, few, (area) => counts(run, counted, area, x, this.width));
    const waits: Legend = [
      ["waiting", "with the circuit"],
      ["without", "without"],
    ];
    row("Callers that wait", HEIGHTS.waiting, waits, (area) => waiting(run, area, this.width));
    const bottom = top - GAP + 6;
    parts.push(...axis(run, bottom, x, this.width));
    this.veil.setAttribute("height", String(bottom));
    this.line.setAttribute("y2", String(bottom));
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${bottom + AXIS}`);
    this.svg.setAttribute("height", String(bottom + AXIS));
    this.svg.setAttribute("aria-label", describe(run));
    // What is yet to come is veiled, but what says what it is stays as legible as it was, and so does what that is written on.
    const texts = parts.filter(isLabel);
    const plain = parts.filter((part) => part.classList.contains("outage") && !isLabel(part));
    const shapes = parts.filter((part) => !texts.includes(part) && !plain.includes(part));
    fill(this.svg, patterns(), ...shapes, this.veil, ...plain, this.line, ...texts);
    this.move(this.at);
  }
}

function isLabel(part: SVGElement): boolean {
  return part instanceof SVGTextElement || part instanceof SVGGElement;
}

function wide(text: string): number {
  if (measure === null) return text.length * 7;
  measure.font = FONT;
  return measure.measureText(text).width;
}

/** Classes and the words for them. */
type Legend = readonly (readonly [name: string, text: string])[];

function heading(title: string, top: number, legend: Legend, width: number): SVGElement {
  const group = s("g", {}, s("text", { class: "title", x: 0, y: top + 13 }, title));
  let right = width;
  for (const [name, text] of [...legend].reverse()) {
    const left = right - wide(text);
    group.append(s("text", { class: "label", x: left, y: top + 13 }, text));
    group.append(
      s("rect", { class: `key ${name}`, x: left - 15, y: top + 4, width: 10, height: 10, ...filling(name) }),
    );
    right = left - 30;
  }
  return group;
}

function circuit(run: Run, { top, height }: Area, x: (at: number) => number): SVGElement[] {
  return periodsOf(run).flatMap(({ from, to, state }) => {
    const [left, width] = [x(from), Math.max(2, x(to) - x(from))];
    const box = s("rect", { class: `state ${state}`, x: left, y: top, width, height, ...filling(state) });
    const fits = width > wide(state) + 14;
    return fits ? [box, s("text", { class: `on ${state}`, x: left + 8, y: top + height / 2 + 4 }, state)] : [box];
  });
}

function dependency(run: Run, { top, height }: Area, x: (at: number) => number, width: number): SVGElement[] {
  const well = s("rect", { class: "well", x: 0, y: top + height / 2 - 1, width, height: 2 });
  const outages = run.setup.outages.flatMap(({ at, forMs, kind, share }) => {
    const [left, right] = [Math.min(width, x(at)), Math.min(width, x(at + forMs))];
    const words = { hang: "hangs", error: "errors" };
    const text = share < 1 ? `${words[kind]}, ${percent(share)}` : words[kind];
    const box = s("rect", { class: "outage", x: left, y: top, width: Math.max(0, right - left), height, rx: 2 });
    const fits = right - left > wide(text) + 14;
    return fits ? [box, s("text", { class: "on outage", x: left + 8, y: top + 13 }, text)] : [box];
  });
  return [well, ...outages];
}

function calls(run: Run, { top, height }: Area, width: number): SVGElement[] {
  const bins = binned(run, Math.max(40, Math.floor(width / 6)));
  const most = Math.max(1, ...bins.map(({ succeeded, failed, refused }) => succeeded + failed + refused));
  const wide = width / bins.length;
  const bars = { succeeded: "", failed: "", refused: "" };
  for (const [place, bin] of bins.entries()) {
    let y = top + height;
    for (const end of ["succeeded", "failed", "refused"] as const) {
      const tall = (bin[end] / most) * height;
      if (tall === 0) continue;
      y -= tall;
      bars[end] +=
        `M${r(place * wide + 0.5)} ${r(y)}h${r(Math.max(1, wide - 1))}v${r(tall)}h${r(-Math.max(1, wide - 1))}z`;
    }
  }
  return [
    base(top + height, width),
    ...Object.entries(bars).map(([end, d]) => s("path", { class: `bar ${end}`, d, ...filling(end) })),
  ];
}

/** What is counted by a policy, and at which value it trips. */
interface Counted {
  readonly of: (sample: Run["samples"][number]) => number;
  readonly threshold: number;
  readonly shown: (value: number) => string;
  /** Whether enough is counted for the value to mean anything. */
  readonly means?: (sample: Run["samples"][number]) => boolean;
}

function windowOf(inForce: Policy): Counted & { readonly title: string } {
  if (inForce.tripOn === "rate") {
    return {
      title: "Failed share of the calls in the window",
      of: ({ snapshot }) => (snapshot.callsInWindow === 0 ? 0 : snapshot.failuresInWindow / snapshot.callsInWindow),
      threshold: Number(inForce.failureRate),
      shown: percent,
      means: ({ snapshot }) => snapshot.callsInWindow >= Number(inForce.minimumCalls),
    };
  }
  const threshold = Number(inForce.failureThreshold);
  return inForce.tripOn === "consecutive"
    ? { title: "Failures in a row", of: ({ snapshot }) => snapshot.consecutiveFailures, threshold, shown: String }
    : { title: "Failures in the window", of: ({ snapshot }) => snapshot.failuresInWindow, threshold, shown: String };
}

function counts(
  run: Run,
  { of, threshold, shown, means = () => true }: Counted,
  area: Area,
  x: (at: number) => number,
  width: number,
): SVGElement[] {
  const { top, height } = area;
  // Never more than shortly above the threshold, for reaching it clears what is counted.
  const y = (value: number) => top + height - Math.min(1, value / (threshold * 1.25)) * height;
  const path = (value: (sample: Run["samples"][number]) => number) => {
    const points = run.samples.map((sample) => `H${r(x(sample.at))}V${r(y(value(sample)))}`).join("");
    return `M0 ${r(y(0))}${points}H${width}V${r(y(0))}z`;
  };
  const line = r(y(threshold));
  // The sample of a trip shows what is left after it, which is nothing: the failure that reached the threshold is drawn by itself.
  const trips = run.events.filter(({ transition }) => transition?.reason === "threshold");
  const peaks = trips.map(({ at }) => `M${r(x(at))} ${r(y(0))}V${line}`).join("");
  return [
    s("path", { class: "counted few", d: path((sample) => (means(sample) ? 0 : of(sample))) }),
    s("path", { class: "counted", d: path((sample) => (means(sample) ? of(sample) : 0)) }),
    s("path", { class: "peak", d: peaks }),
    base(top + height, width),
    s("line", { class: "threshold", x1: 0, x2: width, y1: line, y2: line }),
    s("text", { class: "label", x: width, y: line + 14, "text-anchor": "end" }, `trips at ${shown(threshold)}`),
  ];
}

function waiting(run: Run, { top, height }: Area, width: number): SVGElement[] {
  const { lengthMs } = run.setup.load;
  const columns = Array.from({ length: Math.ceil(width / 1.5) + 1 }, (_, i) =>
    Math.min(lengthMs, (i * 1.5 * lengthMs) / width),
  );
  const lines = { without: underWay(run.calls, columns), waiting: underWay(grantedCalls(run), columns) };
  const most = Math.max(1, ...lines.without);
  const path = (line: readonly number[]) => {
    const points = line
      .map((n, i) => `H${r(Math.min(width, i * 1.5))}V${r(top + height - (n / most) * height)}`)
      .join("");
    return `M0 ${top + height}${points}V${top + height}z`;
  };
  return [
    s("path", { class: "without", d: path(lines.without), ...filling("without") }),
    s("path", { class: "waiting", d: path(lines.waiting) }),
    base(top + height, width),
    s("text", { class: "label", x: 2, y: top + 10 }, `${most} at once`),
  ];
}

function axis(run: Run, top: number, x: (at: number) => number, width: number): SVGElement[] {
  const { lengthMs } = run.setup.load;
  const step = STEPS.find((each) => (each / lengthMs) * width >= 64) ?? lengthMs;
  const parts: SVGElement[] = [];
  for (let at = 0; at <= lengthMs; at += step) {
    const place = x(at);
    const anchor = at === 0 ? "start" : place > width - 24 ? "end" : "middle";
    parts.push(s("line", { class: "tick", x1: r(place), x2: r(place), y1: top, y2: top + 5 }));
    parts.push(s("text", { class: "label", x: r(place), y: top + 18, "text-anchor": anchor }, `${at / 1_000} s`));
  }
  return parts;
}

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_200].map((seconds) => seconds * 1_000);

function base(y: number, width: number): SVGElement {
  return s("line", { class: "base", x1: 0, x2: width, y1: y + 0.5, y2: y + 0.5 });
}

/** Half-open, refused and without are hatched: colour alone says nothing. */
function filling(name: string): { fill?: string } {
  return ["half-open", "refused", "without"].includes(name) ? { fill: `url(#hatch-${name})` } : {};
}

function patterns(): SVGElement {
  const hatch = (name: string, size: number) =>
    s(
      "pattern",
      {
        id: `hatch-${name}`,
        width: size,
        height: size,
        patternUnits: "userSpaceOnUse",
        patternTransform: "rotate(45)",
      },
      s("rect", { class: `hatch-back ${name}`, width: size, height: size }),
      s("rect", { class: `hatch-line ${name}`, width: size / 2.5, height: size }),
    );
  return s("defs", {}, hatch("half-open", 6), hatch("refused", 4), hatch("without", 5));
}

function describe(run: Run): string {
  const states = periodsOf(run).map(({ from, to, state }) => `${state} from ${seconds(from)} to ${seconds(to)}`);
  const listed = states.slice(0, 30).join(", ");
  return `The circuit over ${seconds(run.setup.load.lengthMs)} seconds: ${listed}${states.length > 30 ? ", and so on" : ""}.`;
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1);
}

/** Short numbers make short paths. */
function r(n: number): number {
  return Math.round(n * 100) / 100;
}
