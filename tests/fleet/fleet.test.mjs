// The Fleet test: one trip, never more probes than slots, one close.
import { test } from "node:test";
import { FLEETS, playFleet } from "./support/fleet.mjs";

for (const fleet of FLEETS) test(fleet.name, () => playFleet(fleet));
