// Which Rust builds for wasm32-unknown-unknown on this machine. rustup's, where its target is installed; else a Rust of the
// system that comes with the sources of its standard library, which is then built along: Debian's rustc-web, cargo-web and
// rust-web-src are one. WASM_TOOLCHAIN=rustup or =debian says which.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

export const TARGET = "wasm32-unknown-unknown";

const RUSTC = "/usr/bin/rustc";
const CARGO = "/usr/bin/cargo";
const HOW = `run \`rustup target add ${TARGET}\`, or on Debian: apt-get install rustc-web cargo-web rust-web-src`;

/**
 * What to call in place of `cargo build`: the program, its first arguments, what the environment must say, and where the compiler
 * has its libraries.
 */
export function toolchain(wanted = process.env.WASM_TOOLCHAIN ?? "auto") {
  if (!["auto", "rustup", "debian"].includes(wanted)) {
    throw new Error(`WASM_TOOLCHAIN must be auto, rustup or debian, got ${wanted}`);
  }
  if (wanted !== "debian" && hasTarget()) {
    return { name: "rustup", cargo: "cargo", sysroot: sysroot("rustc"), arguments: [], environment: {} };
  }
  if (wanted === "rustup") throw new Error(`rustup has no standard library for ${TARGET}: ${HOW}`);
  if (!hasSources()) throw new Error(`no Rust of this machine builds for ${TARGET}: ${HOW}`);
  return {
    name: "debian",
    cargo: CARGO,
    sysroot: sysroot(RUSTC),
    arguments: ["-Zbuild-std=std,panic_abort"],
    environment: {
      // Another compiler, another folder: in one the two would throw away each other's work.
      CARGO_TARGET_DIR: join(targetFolder(), "wasm-system"),
      // Building the standard library is not stable, but this compiler and its library are of one version.
      RUSTC_BOOTSTRAP: "1",
      RUSTC,
      RUSTDOC: "/usr/bin/rustdoc",
      CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER: linker(),
    },
  };
}

/** Whether the usual compiler has the standard library of the target. */
function hasTarget() {
  try {
    const folder = said("rustc", "--print", "target-libdir", "--target", TARGET);
    return readdirSync(folder).some((file) => file.startsWith("libcore-"));
  } catch {
    return false;
  }
}

function hasSources() {
  if (!existsSync(RUSTC) || !existsSync(CARGO)) return false;
  return existsSync(join(sysroot(RUSTC), "lib/rustlib/src/rust/library/Cargo.lock"));
}

/** Where a compiler has its libraries. */
function sysroot(rustc) {
  return said(rustc, "--print", "sysroot");
}

/** LLVM's linker: the one that rustup brings, or one of the system. */
function linker() {
  const set = process.env.CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER;
  if (set !== undefined) return set;
  const found = [ofRustup(), ...onPath(/^(?:rust-lld|wasm-ld(?:-\d+)?)$/)].find((file) => file && existsSync(file));
  if (found === undefined) throw new Error("no linker for WebAssembly: install rustup, or Debian's lld");
  return found;
}

function ofRustup() {
  try {
    const host = said("rustc", "-vV").match(/^host: (.*)$/m)[1];
    return join(sysroot("rustc"), "lib/rustlib", host, "bin/rust-lld");
  } catch {
    return undefined;
  }
}

function targetFolder() {
  const cargo = ["cargo", "metadata", "--no-deps", "--format-version", "1"];
  return JSON.parse(said(...cargo)).target_directory;
}

function onPath(name) {
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => existsSync(folder));
  return folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((file) => name.test(file))
      .map((file) => join(folder, file)),
  );
}

function said(program, ...args) {
  return execFileSync(program, args, {
    cwd: import.meta.dirname,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "ignore"],
  }).trim();
}

// Run by itself it says which one there is.
if (process.argv[1] === import.meta.filename) {
  try {
    console.log(toolchain().name);
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
