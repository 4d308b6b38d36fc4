// The Node package where the native file is missing: removes it from a copy of the package, and runs there the whole suite of
// the Node package, and the vectors. Nothing is set and nothing replaced: what runs is what a user gets. Only what stands on the
// facade, and so knows no difference, is not run again: NestJS.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
/** What the tests import or read, beside the package. */
const COPIED = ["bindings/node/test", "tests/support", "tests/vectors", "vitest.config.mts"];
const LINKED = [
  "node_modules",
  "bindings/node/ts",
  "lua/README.md",
  "Cargo.toml",
  "package-lock.json",
  "tsconfig.json",
  "tsconfig.base.json",
];

const folder = mkdtempSync(join(tmpdir(), "switchgear-without-native-"));
try {
  for (const path of ["package.json", "dist", ...COPIED])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  for (const path of LINKED) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    symlinkSync(join(ROOT, path), join(folder, path));
  }
  const native = readdirSync(join(folder, "dist")).filter((file) => file.endsWith(".node"));
  if (native.length === 0) throw new Error("there is no native file to remove: build the package first");
  for (const file of native) rmSync(join(folder, "dist", file));
  // The one warning is expected, and a test of its own (fallback.test.mjs); here it would only be in the way of what is compared.
  const environment = { ...process.env, NODE_OPTIONS: "--disable-warning=switchgear_wasm" };
  const run = (...args) =>
    spawnSync(process.execPath, args, { cwd: folder, env: environment, stdio: "inherit" }).status === 0;
  const held = [
    run(vitest(), "run", "--exclude", "**/nestjs*", ...process.argv.slice(2)),
    run("bindings/node/test/vectors.mjs"),
  ];
  process.exitCode = held.every(Boolean) ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function vitest() {
  const path = join(ROOT, "node_modules/vitest/vitest.mjs");
  if (!existsSync(path)) throw new Error("run `npm ci` first");
  return path;
}
