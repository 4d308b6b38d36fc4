// `npm run fleet:table`: plays every scenario, and writes what was injected and what was seen into docs/failures.md.
import { FAULTS } from "./support/faults.mjs";
import { FLEETS, playFleet } from "./support/fleet.mjs";
import { FAILURES, faultRow, fleetRow, writeTables } from "./support/page.mjs";
import { dismissAll } from "./support/workers.mjs";

/** Plays all, a few at a time. */
async function all(scenarios, play) {
  const rows = [];
  let next = 0;
  const playOn = async () => {
    while (next < scenarios.length) {
      const index = next;
      next += 1;
      try {
        rows[index] = await play(scenarios[index]);
        console.log(rows[index]);
      } catch (error) {
        // What was not as it should be has no row, and a test misses it.
        console.error(`${scenarios[index].name}: ${error.stack}`);
        process.exitCode = 1;
      }
    }
  };
  await Promise.all(Array.from({ length: 4 }, playOn));
  return rows.filter(Boolean);
}

const faults = await all(FAULTS, async (fault) => faultRow(fault, await fault.play()));
const fleets = await all(FLEETS, async (fleet) => fleetRow(fleet, await playFleet(fleet)));
writeTables(FAILURES, { faults, fleets });
await dismissAll();
