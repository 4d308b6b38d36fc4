// Builds bindings/wasm/dist: of each WebAssembly module its bytes, made small, and its glue. `node bindings/wasm/build.mjs
// [module...]`; by default those that the package ships. Cargo skips what has not changed.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { TARGET, toolchain } from "./toolchain.mjs";

const root = join(import.meta.dirname, "../..");
const dist = join(import.meta.dirname, "dist");
const require = createRequire(import.meta.url);
/** The modules and the features of the crate that make them. The last is of no package: the vectors run on it. */
const MODULES = { local: ["local"], shared: ["shared"], objects: ["objects"] };
const SHIPPED = ["local", "shared"];

const chosen = toolchain();
const wasmOpt = require.resolve("binaryen/bin/wasm-opt");

mkdirSync(dist, { recursive: true });
const glue = built("cargo", {}, ["build", "--release", "-p", "switchgear-wasm-glue"]).executable;
for (const name of process.argv.length > 2 ? process.argv.slice(2) : SHIPPED) make(name);

function make(name) {
  const features = MODULES[name];
  if (features === undefined)
    throw new Error(`no module is called ${name}; there are ${Object.keys(MODULES).join(", ")}`);
  // Fractions are shown by JavaScript: what writes them in Rust is a quarter of the module.
  const flags = `${process.env.RUSTFLAGS ?? ""} --cfg switchgear_small`.trim();
  const { file } = built(chosen.cargo, { ...chosen.environment, RUSTFLAGS: flags }, [
    ...["build", "-p", "switchgear-wasm", "--profile", "wasm-release", "--target", TARGET],
    ...["--no-default-features", "--features", features.join(",")],
    ...chosen.arguments,
  ]);
  execFileSync(glue, [file, dist, name], { stdio: "inherit" });
  const module = join(dist, `${name}.wasm`);
  execFileSync(process.execPath, [wasmOpt, "-Oz", join(dist, `${name}_bg.wasm`), "-o", module], { stdio: "inherit" });
  for (const rest of [`${name}_bg.wasm`, `${name}_bg.wasm.d.ts`]) rmSync(join(dist, rest));
}

/** Builds with cargo, which says itself where it put what it made: the target folder may be anywhere. */
function built(cargo, environment, args) {
  const { status, error, stdout } = spawnSync(
    cargo,
    [...args, "--locked", "--message-format", "json-render-diagnostics"],
    {
      cwd: root,
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
