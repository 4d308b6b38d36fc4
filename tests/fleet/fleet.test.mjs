// Many processes are one fleet, and faults are nobody's trouble: each scenario for Node, Python with threads and asyncio at once. What
// is injected is real, and so is what it hits.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, describe, test } from "node:test";
import { FAULTS } from "./support/faults.mjs";
import { FLEETS, playFleet } from "./support/fleet.mjs";
import { PAGE, scenariosOf } from "./support/page.mjs";
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
    assert.deepEqual(scenariosOf(readFileSync(PAGE, "utf8"), table), named, "run npm run fleet:table");
  });
}
