// docs/failures.md and docs/staleness.md: their tables, a row for each scenario.
import { readFileSync, writeFileSync } from "node:fs";

export const FAILURES = new URL("../../../docs/failures.md", import.meta.url);
export const STALENESS = new URL("../../../docs/staleness.md", import.meta.url);

/** A row of the first table: three numbers are those of Node, Python with threads, and asyncio. */
export function faultRow({ name, injected }, { waits, got, reached, health }) {
  const spans = health.map(([degraded, restored]) => `${degraded} / ${restored}`);
  return row(name, injected, waits === undefined ? "no deadline" : byKind(waits), got, byKind(reached), byKind(spans));
}

/** A row of the second. */
export function fleetRow({ name, injected }, { trips, most, closes, killed }) {
  return row(name, injected, trips, most, closes, killed);
}

/** A row of the table of staleness. */
export function stalenessRow({ name, most, seen }) {
  const largest = (taken) =>
    seen.length === 1 ? `${seen[0][taken]} (${seen[0].kind})` : byKind(seen.map((kind) => kind[taken]));
  return row(name, most.open, largest("open"), most.closed, largest("closed"));
}

/** Puts these rows on a page, in place of those it has. */
export function writeTables(page, rows) {
  const written = Object.entries(rows).reduce(
    (text, [table, lines]) =>
      text.replace(
        marked(table),
        (_, begin, _old, end) => `${begin}${lines.map((line) => `${line}\n`).join("")}${end}`,
      ),
    readFileSync(page, "utf8"),
  );
  writeFileSync(page, written);
}

/** What the rows of a table on a page are about: what was injected, by name. */
export function scenariosOf(page, table) {
  const [, , rows] = marked(table).exec(readFileSync(page, "utf8"));
  return rows
    .trim()
    .split("\n")
    .map((line) => line.split(" | ").slice(0, 2))
    .map(([name, injected]) => ({ name: name.replace("| ", ""), injected }));
}

const row = (...cells) => `| ${cells.join(" | ")} |`;

/** One where they are alike. */
const byKind = (values) => (new Set(values).size === 1 ? values[0] : values.join(", "));

/** A table: its head, its rows, and what ends it. */
const marked = (table) => new RegExp(`(<!-- ${table} -->\\n\\|.*\\n\\|.*\\n)((?:\\|.*\\n)*)(<!-- end -->)`);
