// The fault tests, each for Node, Python with threads and asyncio at once: what is injected is real, and so is what it hits.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { FAULTS } from "./support/faults.mjs";
import { FLEETS } from "./support/fleet.mjs";
import { PAGE, scenariosOf } from "./support/page.mjs";

describe("faults", { concurrency: 4 }, () => {
  for (const { name, play } of FAULTS) test(name, play);
});

for (const [table, scenarios] of Object.entries({ faults: FAULTS, fleets: FLEETS })) {
  test(`docs/failures.md has a row for each scenario: ${table}`, () => {
    const named = scenarios.map(({ name, injected }) => ({ name, injected }));
    assert.deepEqual(scenariosOf(readFileSync(PAGE, "utf8"), table), named, "run npm run fleet:table");
  });
}
