// docs/failures.md: its tables, a row for each scenario.

export const PAGE = new URL("../../../docs/failures.md", import.meta.url);

/** A row of the first table: three numbers are those of Node, Python with threads, and asyncio. */
export function faultRow({ name, injected }, { waits, got, reached, health }) {
  const spans = health.map(([degraded, restored]) => `${degraded} / ${restored}`);
  return row(name, injected, waits === undefined ? "no deadline" : byKind(waits), got, byKind(reached), byKind(spans));
}

/** A row of the second. */
export function fleetRow({ name, injected }, { trips, most, closes, killed }) {
  return row(name, injected, trips, most, closes, killed);
}

/** The page with these rows in place of those it has. */
export function withTables(page, rows) {
  return Object.entries(rows).reduce(
    (text, [table, lines]) =>
      text.replace(
        marked(table),
        (_, begin, _old, end) => `${begin}${lines.map((line) => `${line}\n`).join("")}${end}`,
      ),
    page,
  );
}

/** What the rows of a table on the page are about: what was injected, by name. */
export function scenariosOf(page, table) {
  const [, , rows] = marked(table).exec(page);
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
