import { join } from "node:path";
import { defineConfig } from "vitest/config";

// The simulation, on the real core: site/build.mjs has made the module. What is seen of it is tested in test/page/.
export default defineConfig({
  test: {
    include: ["site/test/*.test.ts"],
    root: join(import.meta.dirname, ".."),
    server: { deps: { external: [/[\\/]dist[\\/]/] } },
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 600_000,
  },
});
