// A copy of the package whose native file is gone, or may not be loaded: WebAssembly takes its place, and one warning says so.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

const ROOT = join(import.meta.dirname, "../../..");
/** Uses both entries, imported and required, and says which warnings came. */
const PROGRAM = `
  import { createRequire } from "node:module";
  const { CircuitBreaker } = await import("switchgear");
  const require = createRequire(import.meta.url);
  const codes = [];
  process.on("warning", ({ code }) => codes.push(code));
  const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
  breaker.recordFailure();
  new (require("switchgear").CircuitBreaker)("c");
  new (require("switchgear/redis").RedisStore)({ command: async () => [] });
  await new Promise(setImmediate);
  console.log(JSON.stringify({ state: breaker.getState(), codes }));
`;

let folder;
before(() => {
  folder = mkdtempSync(join(tmpdir(), "switchgear-fallback-"));
  for (const name of ["with", "without"]) {
    const inside = join(folder, name, "node_modules/switchgear");
    cpSync(join(ROOT, "package.json"), join(inside, "package.json"));
    cpSync(join(ROOT, "dist"), join(inside, "dist"), { recursive: true });
  }
  const dist = join(folder, "without/node_modules/switchgear/dist");
  const native = readdirSync(dist).filter((file) => file.endsWith(".node"));
  assert.equal(native.length, 1);
  rmSync(join(dist, native[0]));
});
after(() => rmSync(folder, { recursive: true, force: true }));

for (const [what, where, flags, codes] of [
  ["with its native file: no warning", "with", [], []],
  ["without it: one warning", "without", [], ["switchgear_wasm"]],
  ["where it may not be loaded: one warning", "with", ["--no-addons"], ["switchgear_wasm"]],
]) {
  test(what, () => {
    const args = [...flags, "--input-type=module", "--eval", PROGRAM];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: join(folder, where),
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), { state: "open", codes });
    assert.equal(stderr.split("switchgear_wasm").length - 1, codes.length, stderr);
  });
}

test("the warning can be silenced", () => {
  const { status, stderr } = spawnSync(
    process.execPath,
    ["--disable-warning=switchgear_wasm", "--input-type=module", "--eval", PROGRAM],
    { cwd: join(folder, "without"), encoding: "utf8" },
  );
  assert.equal(status, 0, stderr);
  assert.equal(stderr, "");
});
