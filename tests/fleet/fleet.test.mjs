// The Fleet test: one trip, never more probes than slots, one close.
import { describe, test } from "node:test";
import { FLEETS, playFleet } from "./support/fleet.mjs";

describe("fleet", { concurrency: 2 }, () => {
  for (const fleet of FLEETS) test(fleet.name, () => playFleet(fleet));
});
