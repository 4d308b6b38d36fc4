// What the benchmark says: tables, and what the project promises beside what was measured.
import { median, ratio } from "./measure.mjs";

/** What one part has to say: printed at once, and kept for the documents. */
export class Report {
  #lines = [];
  /** What the project promises: [what, measured, "at most" or "at least", how much]. */
  targets = [];

  get text() {
    return this.#lines.join("\n");
  }

  say(line) {
    console.log(line);
    this.#lines.push(line);
  }

  /** The median time of one call per task, and its ratio to that of `base`. */
  times(title, times, unit, base) {
    const row = (name, values) => {
      const time = median(values) / (unit === "us" ? 1000 : 1);
      return [name, time.toFixed(1), ratio(times, name, base).toFixed(2)];
    };
    this.table(
      [title, `one call, ${unit}`, `x ${base}`],
      [...times].map(([name, values]) => row(name, values)),
    );
  }

  /** Rows of texts below their heads: the first column reads from the left, the others line up on the right. */
  table([title, ...heads], rows) {
    const broken = rows.find((row) => row.some((cell) => !/\S/.test(cell) || /NaN|Infinity|undefined/.test(cell)));
    if (broken !== undefined) throw new Error(`${title}: nothing was measured of ${broken.join(", ")}`);
    const widthOf = (head, column) => Math.max(head.length, ...rows.map((row) => (row[column] ?? "").length));
    const first = Math.max(widthOf(title, 0), 34);
    const widths = heads.map((head, i) => widthOf(head, i + 1));
    const line = ([name, ...cells], margin = "  ") =>
      margin +
      [name.padEnd(first + 2 - margin.length), ...widths.map((width, i) => (cells[i] ?? "").padStart(width))].join(
        "   ",
      );
    this.say("");
    this.say(line([title, ...heads], ""));
    for (const row of rows) this.say(line(row));
  }

  atMost(what, measured, most) {
    this.targets.push([what, measured, "at most", most]);
  }

  atLeast(what, measured, least) {
    this.targets.push([what, measured, "at least", least]);
  }
}

export function isMet([, measured, bound, limit]) {
  return bound === "at most" ? measured <= limit : measured >= limit;
}

/** A line per promise: whether it was kept, and by how much. */
export function verdicts(targets) {
  const width = Math.max(...targets.map(([what]) => what.length));
  return targets.map((target) => {
    const [what, measured, bound, limit] = target;
    const verdict = isMet(target) ? "met   " : "MISSED";
    return `${verdict}  ${what.padEnd(width)} ${measured.toFixed(2).padStart(7)}   ${bound} ${limit.toFixed(2)}`;
  });
}
