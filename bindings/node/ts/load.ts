import { readdirSync } from "node:fs";
import { type Native, setNative } from "./native";

/** Loads the native module of this platform; the only file that knows it is a file. */
function load(): Native {
  const file = `switchgear.${process.platform}-${process.arch}.node`;
  try {
    return require(`./${file}`);
  } catch (error) {
    throw new Error(complaint(file, error), { cause: error });
  }
}

/** Says which platform this is, which ones the package was built for, and why a module that is there does not load. */
function complaint(file: string, error: unknown): string {
  const platform = `${process.platform}-${process.arch}`;
  const held = readdirSync(__dirname).filter((name) => name.endsWith(".node"));
  const holds = `this package holds ${held.length === 0 ? "none" : held.join(", ")}`;
  if (!held.includes(file)) return `switchgear: no native module for ${platform}; ${holds}`;
  const reason = error instanceof Error ? error.message.split("\n", 1)[0] : String(error);
  return `switchgear: Node ${process.version} on ${platform} (${libc()}) cannot load ${file}: ${reason}; ${holds}`;
}

/** The C library decides on Linux: a module built for glibc neither loads on musl nor on a much older glibc. */
function libc(): string {
  const { header } = (process.report?.getReport() ?? {}) as { header?: { glibcVersionRuntime?: string } };
  const version = header?.glibcVersionRuntime;
  return version === undefined ? "no glibc" : `glibc ${version}`;
}

setNative(load());
