// What was measured goes into the documents, between marks: a part into docs/benchmarks.md, the promises into README.md.
import { readFileSync, writeFileSync } from "node:fs";
import { verdicts } from "./report.mjs";

const PAGE = new URL("../docs/benchmarks.md", import.meta.url);
const README = new URL("../README.md", import.meta.url);

/** Writes the text of each part that was measured, with what it was measured on; and what that page promises, into README.md. */
export function writeParts(header, reports) {
  let page = readFileSync(PAGE, "utf8");
  for (const [part, report] of reports) {
    const promises = report.targets.length === 0 ? "" : `\n\n${verdicts(report.targets).join("\n")}`;
    page = withBlock(page, part, `${header}\n${report.text}${promises}`);
  }
  writeFileSync(PAGE, page);
  writeFileSync(README, withBlock(readFileSync(README, "utf8"), "promises", promisesOn(page).join("\n")));
}

/** What is said of the promises there, of all parts, lined up. */
function promisesOn(page) {
  const lines = [...page.matchAll(/^(met|MISSED) +(.+?) +([\d.]+ +at (?:most|least) [\d.]+)$/gm)];
  const width = Math.max(...lines.map(([, , what]) => what.length));
  return lines.map(
    ([, verdict, what, measured]) => `${verdict.padEnd(6)}  ${what.padEnd(width)}  ${measured.padStart(23)}`,
  );
}

/** Throws where a document has no place for what a run of these parts writes. */
export function checkPlaces(parts) {
  const page = readFileSync(PAGE, "utf8");
  for (const part of parts) withBlock(page, part, "");
  withBlock(readFileSync(README, "utf8"), "promises", "");
}

/** The text with another block between the marks of this name. */
function withBlock(page, name, text) {
  const [begin, end] = [`<!-- bench: ${name} -->\n`, "\n<!-- end -->"];
  const from = page.indexOf(begin) + begin.length;
  const to = page.indexOf(end, from);
  if (from < begin.length || to < 0) throw new Error(`there is no place for "${name}": ${begin}...${end}`);
  return `${page.slice(0, from)}\`\`\`text\n${text}\n\`\`\`${page.slice(to)}`;
}
