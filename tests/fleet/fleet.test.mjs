// Many processes are one fleet, and faults are nobody's trouble: each scenario for Node, Python with threads and asyncio at once. What
// is injected is real, and so is what it hits.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { FAULTS } from "./support/faults.mjs";
import { FLEETS, playFleet } from "./support/fleet.mjs";
import { FAILURES, STALENESS, scenariosOf, stalenessRow } from "./support/page.mjs";
import { MODE_NAMES, playStaleness } from "./support/staleness.mjs";
import { dismissAll } from "./support/workers.mjs";

after(dismissAll);

describe("fleet", { concurrency: 2 }, () => {
  for (const fleet of FLEETS) test(fleet.name, () => playFleet(fleet));
});

describe("faults", { concurrency: 4 }, () => {
  for (const { name, play } of FAULTS) test(name, play);
});

for (const [table, scenarios] of Object.entries({ faults: FAULTS, fleets: FLEETS })) {
  test(`docs/failures.md has a row for each scenario: ${table}`, () => {
    const named = scenarios.map(({ name, injected }) => ({ name, injected }));
    assert.deepEqual(scenariosOf(FAILURES, table), named, "run npm run fleet:table");
  });
}

test("no answer is staler than is said, in any mode", async (t) => {
  for (const mode of await playStaleness({ seed: 1, steps: 3_000 })) {
    t.diagnostic(stalenessRow(mode));
    for (const { kind, asked } of mode.seen) assert.ok(asked > 100, `${mode.name}, ${kind}: asked ${asked} times`);
    // Where a message comes at once, none need be late. Elsewhere an answer that is held makes somebody late.
    const latest = Math.max(...mode.seen.flatMap(({ open, closed }) => [open, closed]));
    assert.ok(mode.isHeard || latest > 0, `${mode.name}: nobody was late, so nothing was seen`);
  }
});

test("docs/staleness.md has a row for each mode", () => {
  const named = scenariosOf(STALENESS, "staleness").map(({ name }) => name);
  assert.deepEqual(named, MODE_NAMES, "run npm run staleness:table");
});
