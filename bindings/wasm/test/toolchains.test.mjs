// Both ways to build: with a standard library for WebAssembly that is installed, as rustup's is, and with a system's Rust that brings the
// sources of its own. On a machine that has one of them only, the other must say how to get it; and if that is rustup's, what Debian's
// Rust has built of its own library is installed for it, so that the module is built that way, too.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { test } from "node:test";
import { CRATE, variablesFor } from "../flags.mjs";
import { TARGET, toolchain } from "../toolchain.mjs";

const WASM = join(import.meta.dirname, "..");
const BUILD = join(WASM, "build.mjs");
const MODULE = join(WASM, "dist/local.wasm");
const HOW = /rustup target add wasm32-unknown-unknown.*apt-get install rustc-web cargo-web rust-web-src/;

for (const way of ["rustup", "debian"]) {
  test(`the way of ${way}`, () => {
    const { status, stderr } = spawnSync(process.execPath, [BUILD, "local"], {
      encoding: "utf8",
      env: { ...process.env, WASM_TOOLCHAIN: way },
    });
    if (available(way)) {
      assert.equal(status, 0, stderr);
      assert.ok(WebAssembly.validate(readFileSync(MODULE)));
    } else {
      assert.equal(status, 1);
      assert.match(stderr, HOW);
    }
  });
}

test("a standard library that is installed is taken, and nothing is built along", () => {
  const program = `
    import { builtForWasm } from ${JSON.stringify(join(WASM, "cargo.mjs"))};
    import { CRATE, variablesFor } from ${JSON.stringify(join(WASM, "flags.mjs"))};
    import { toolchain } from ${JSON.stringify(join(WASM, "toolchain.mjs"))};
    const chosen = toolchain("auto");
    const { file } = builtForWasm(chosen, [...CRATE, "--features", "local"], variablesFor(chosen));
    console.log(JSON.stringify({ name: chosen.name, file }));
  `;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], {
    encoding: "utf8",
    env: { ...process.env, ...(available("rustup") ? {} : installed()) },
  });
  assert.equal(status, 0, stderr);
  const { name, file } = JSON.parse(stdout);
  assert.equal(name, "rustup");
  assert.ok(WebAssembly.validate(readFileSync(file)));
  assert.doesNotMatch(stderr, /Compiling (?:std|core|alloc) /);
});

/**
 * Lays out a Rust that has the standard library for WebAssembly, as rustup's has once the target was added: the system's
 * compiler, and the library that it has built. What the environment must say for it to be the usual Rust; what is built for the
 * machine itself is the same either way, so it goes where it is already.
 */
function installed() {
  const { cargo, sysroot, environment, arguments: more } = toolchain("debian");
  // Always the same folder: what was compiled with it is up to date the next time.
  const folder = join(environment.CARGO_TARGET_DIR, "installed");
  rmSync(folder, { recursive: true, force: true });
  const build = ["build", ...CRATE, "--features", "local", "--target", TARGET, ...more, "--locked"];
  const { status, stdout, stderr } = spawnSync(cargo, [...build, "--message-format", "json-render-diagnostics"], {
    cwd: WASM,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, ...environment, ...variablesFor({ sysroot }) },
  });
  assert.equal(status, 0, stderr);
  const sources = realpathSync(join(sysroot, "lib/rustlib/src/rust"));
  const library = stdout
    .split("\n")
    .flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []))
    .filter(({ manifest_path: manifest }) => manifest !== undefined && realpathSync(manifest).startsWith(sources))
    .flatMap(({ filenames }) => filenames.filter((file) => file.endsWith(".rlib")));
  const host = execFileSync(environment.RUSTC, ["-vV"], { encoding: "utf8" }).match(/^host: (.*)$/m)[1];
  const libraries = join(folder, "lib/rustlib");
  mkdirSync(join(libraries, TARGET, "lib"), { recursive: true });
  for (const file of library) copyFileSync(file, join(libraries, TARGET, "lib", basename(file)));
  symlinkSync(join(sysroot, "lib/rustlib", host), join(libraries, host));
  const programs = join(folder, "bin");
  mkdirSync(programs);
  const program = (name, lines) => writeFileSync(join(programs, name), `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  program("rustc", `exec "${environment.RUSTC}" --sysroot "${folder}" "$@"`);
  program("cargo", `RUSTC="${join(programs, "rustc")}" exec "${cargo}" "$@"`);
  const { CARGO_TARGET_DIR, CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER } = environment;
  const path = `${programs}${delimiter}${process.env.PATH}`;
  // rustup's compiler brings its linker along; this one does not.
  return { PATH: path, CARGO_TARGET_DIR, CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER };
}

test("there is one of them, and it is taken when none is asked for", () => {
  assert.ok(available("rustup") || available("debian"));
  assert.equal(toolchain("auto").name, available("rustup") ? "rustup" : "debian");
});

test("a way that there is not", () => {
  assert.throws(() => toolchain("guess"), /WASM_TOOLCHAIN must be auto, rustup or debian, got guess/);
});

function available(way) {
  try {
    return toolchain(way).name === way;
  } catch {
    return false;
  }
}
