// Builds with cargo, for this machine and for WebAssembly: what the builds of bindings/wasm and bindings/component share.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { TARGET } from "./toolchain.mjs";

/**
 * Runs `cargo build` with these arguments. Cargo says itself where it put what it made, for the target folder may be anywhere: the
 * `executable`, or the `file` of a module. What does not build ends the process.
 */
export function built(args, { cargo = "cargo", environment = {} } = {}) {
  const { status, error, stdout } = spawnSync(
    cargo,
    ["build", ...args, "--locked", "--message-format", "json-render-diagnostics"],
    {
      cwd: join(import.meta.dirname, "../.."),
      encoding: "utf8",
      env: { ...process.env, ...environment },
      maxBuffer: 1 << 28,
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  if (error !== undefined) throw error;
  // Cargo has said why.
  if (status !== 0) process.exit(1);
  const messages = stdout.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []));
  const made = messages.filter(
    ({ reason, target }) => reason === "compiler-artifact" && ["cdylib", "bin"].includes(target.kind[0]),
  );
  const last = made.at(-1);
  return { executable: last?.executable, file: last?.filenames.find((file) => file.endsWith(".wasm")) };
}

/** The same for WebAssembly, with the toolchain that was chosen. */
export function builtForWasm({ cargo, environment, arguments: more }, args, variables = {}) {
  return built([...args, "--target", TARGET, ...more], { cargo, environment: { ...environment, ...variables } });
}
