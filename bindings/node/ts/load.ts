import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { getEnvironmentData, setEnvironmentData } from "node:worker_threads";
import { type Native, provideNative, setNative } from "./native";
import { warn } from "./warn";

/**
 * Loads the native module of this platform, the only file that knows it is a file; where none fits, WebAssembly does the same
 * work, more slowly.
 */
function load(): void {
  const file = `switchgear.${process.platform}-${process.arch}.node`;
  let loaded: Native;
  try {
    // Not plain `require`, in which a bundler would look for a file that it cannot take along.
    loaded = createRequire(__filename)(`./${file}`);
  } catch (error) {
    const { loadLocal, loadShared } = require("./wasm/native.js") as Record<string, () => Partial<Native>>;
    if (loadLocal === undefined || loadShared === undefined)
      throw new Error("switchgear: an incomplete package", { cause: error });
    provideNative(loadLocal);
    provideNative(loadShared);
    warnOnce(`${complaint(file, error)}. It runs on WebAssembly instead.`);
    return;
  }
  setNative(loaded);
}

/** Once per process: the threads that this one starts know that it was said. */
function warnOnce(text: string): void {
  if (getEnvironmentData(WARNED) === true) return;
  setEnvironmentData(WARNED, true);
  warn(text, "switchgear_wasm");
}

const WARNED = "switchgear: runs on WebAssembly";

/** Says which platform this is, which ones the package was built for, and why a module that is there does not load. */
function complaint(file: string, error: unknown): string {
  const platform = `${process.platform}-${process.arch}`;
  const held = readdirSync(__dirname).filter((name) => name.endsWith(".node"));
  const holds = `this package holds ${held.length === 0 ? "none" : held.join(", ")}`;
  if (!held.includes(file)) return `no native module for ${platform}; ${holds}`;
  const reason = error instanceof Error ? error.message.split("\n", 1)[0] : String(error);
  return `Node ${process.version} on ${platform} (${libc()}) cannot load ${file}: ${reason}; ${holds}`;
}

/** The C library decides on Linux: a module built for glibc neither loads on musl nor on a much older glibc. */
function libc(): string {
  const { header } = (process.report?.getReport() ?? {}) as { header?: { glibcVersionRuntime?: string } };
  const version = header?.glibcVersionRuntime;
  return version === undefined ? "no glibc" : `glibc ${version}`;
}

load();
