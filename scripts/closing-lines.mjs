// Prints the closing lines of the test runners found in the given logs, and their sum: "N passed, N failed".
// A log that holds no such line (a formatter's, a compiler's) adds nothing.
import { readFileSync } from "node:fs";
import { basename } from "node:path";

/** Per runner: the lines that close its run, and the numbers in them. */
const RUNNERS = [
  // cargo nextest
  {
    line: /^\s*Summary \[.*\] +\d+(?:\/\d+)? tests? run: .*$/,
    passed: /(\d+) passed/,
    failed: /(\d+) (?:failed|timed out)/,
  },
  // cargo test, one line a crate
  { line: /^test result: .*$/, passed: /(\d+) passed/, failed: /(\d+) failed/ },
  // node --test
  { line: /^\S+ (?:pass|fail) \d+$/, passed: /pass (\d+)/, failed: /fail (\d+)/ },
  // pytest
  { line: /^=* ?\d+ (?:passed|failed|errors?)\b.* in [\d.]+s/, passed: /(\d+) passed/, failed: /(\d+) failed/ },
  // vitest
  { line: /^\s*Tests +.*\(\d+\)$/, passed: /(\d+) passed/, failed: /(\d+) failed/ },
];

let passed = 0;
let failed = 0;
for (const log of process.argv.slice(2)) {
  for (const line of readFileSync(log, "utf8").split("\n")) {
    const runner = RUNNERS.find((runner) => runner.line.test(line));
    if (!runner) continue;
    console.log(`${basename(log, ".log")}: ${line.trim()}`);
    passed += Number(runner.passed.exec(line)?.[1] ?? 0);
    failed += Number(runner.failed.exec(line)?.[1] ?? 0);
  }
}
console.log(`${passed} passed, ${failed} failed`);
