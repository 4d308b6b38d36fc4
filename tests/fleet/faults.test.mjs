// The fault tests, each for Node, Python with threads and asyncio at once: what is injected is real, and so is what it hits.
import { describe, test } from "node:test";
import { FAULTS } from "./support/faults.mjs";

describe("faults", { concurrency: 4 }, () => {
  for (const { name, play } of FAULTS) test(name, play);
});
