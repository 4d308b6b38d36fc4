import { defineConfig } from "vitest/config";

// The tests import `switchgear` as a user does: what is tested is what was built.
export default defineConfig({
  test: {
    include: ["bindings/node/test/**/*.test.ts"],
    server: { deps: { external: [/[\\/]dist[\\/]/] } },
    pool: "forks",
    maxWorkers: 2,
    // The heap tests run millions of calls, and machines are slow: the limit is only there to end what hangs.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    teardownTimeout: 600_000,
  },
});
