// The suite of switchgear/nestjs on NestJS 10: the same tests, where `@nestjs/*` is found in that version. What is tested is what
// was built; only what lies around it is another folder.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const HERE = join(ROOT, "tests/nestjs10/node_modules");
/** Copied, for whoever is loaded looks for other packages from where it really is. */
const COPIED = ["package.json", "dist", "bindings/node/test", "tests/support", "vitest.config.mts"];
const LINKED = ["tsconfig.json", "tsconfig.base.json"];

if (!existsSync(HERE)) throw new Error("NestJS 10 is not there: run `npm ci` first");
const folder = mkdtempSync(join(tmpdir(), "switchgear-nestjs10-"));
try {
  for (const path of COPIED) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  for (const path of LINKED) symlinkSync(join(ROOT, path), join(folder, path));
  for (const name of readdirSync(join(ROOT, "node_modules"))) {
    link(join(name === "@nestjs" ? HERE : join(ROOT, "node_modules"), name), join(folder, "node_modules", name));
  }
  const { version } = createRequire(join(folder, "package.json"))("@nestjs/core/package.json");
  if (!version.startsWith("10.")) throw new Error(`this is to run on NestJS 10, and found ${version}`);
  console.log(`NestJS ${version}`);
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  // In two processes for all files: what takes longest is to load NestJS.
  const args = [vitest, "run", "--no-isolate", "bindings/node/test/nestjs", ...process.argv.slice(2)];
  const { status } = spawnSync(process.execPath, args, { cwd: folder, stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function link(target, path) {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}
