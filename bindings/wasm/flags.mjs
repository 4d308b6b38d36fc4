// How cargo is told to build a WebAssembly module: the crate and its profile, and what the compiler is told.
import { homedir } from "node:os";
import { join } from "node:path";

/** What separates flags in which there may be spaces. */
const SEPARATOR = "\x1f";

/** What is built, before its features. */
export const CRATE = ["-p", "switchgear-wasm", "--profile", "wasm-release", "--no-default-features"];

/** What the environment must say besides, for a toolchain. */
export function variablesFor(toolchain) {
  // Fractions are shown by JavaScript: what writes them in Rust is a quarter of the module.
  const flags = [...givenFlags(), "--cfg", "switchgear_small", ...withoutPaths(toolchain)];
  return { CARGO_ENCODED_RUSTFLAGS: flags.join(SEPARATOR) };
}

/** The flags of whoever builds: ours would else take their place. */
function givenFlags() {
  const { CARGO_ENCODED_RUSTFLAGS: encoded, RUSTFLAGS: plain = "" } = process.env;
  return (encoded?.split(SEPARATOR) ?? plain.split(/\s+/)).filter(Boolean);
}

/** A module tells nobody where it was built: panics name their file by what the folder is here. Of two that match the last one holds. */
function withoutPaths({ sysroot }) {
  const cargo = process.env.CARGO_HOME ?? join(homedir(), ".cargo");
  const names = {
    [homedir()]: "home",
    [cargo]: "cargo",
    [sysroot]: "rust",
    [join(import.meta.dirname, "../..")]: "switchgear",
  };
  return Object.entries(names).map(([folder, name]) => `--remap-path-prefix=${folder}=${name}`);
}
