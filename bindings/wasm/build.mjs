// Builds bindings/wasm/dist: of each WebAssembly module its bytes, made small, and its glue. `node bindings/wasm/build.mjs
// [module...]`; by default those that the package ships. Cargo skips what has not changed.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { built, builtForWasm } from "./cargo.mjs";
import { toolchain } from "./toolchain.mjs";

const dist = join(import.meta.dirname, "dist");
const require = createRequire(import.meta.url);
/** The modules and the features of the crate that make them. The package ships the first two. */
const MODULES = { local: ["local"], shared: ["shared"], objects: ["local", "objects"] };
const SHIPPED = ["local", "shared"];
/** What separates flags in which there may be spaces. */
const SEPARATOR = "\x1f";

const chosen = toolchain();
const wasmOpt = require.resolve("binaryen/bin/wasm-opt");

mkdirSync(dist, { recursive: true });
// The glue is in modules, whatever the package around it says.
writeFileSync(join(dist, "package.json"), '{ "type": "module" }\n');
const glue = built(["-p", "switchgear-wasm-glue", "--release"]).executable;
for (const name of process.argv.length > 2 ? process.argv.slice(2) : SHIPPED) make(name);

function make(name) {
  const features = MODULES[name];
  if (features === undefined)
    throw new Error(`no module is called ${name}; there are ${Object.keys(MODULES).join(", ")}`);
  const crate = ["-p", "switchgear-wasm", "--profile", "wasm-release", "--no-default-features"];
  // Fractions are shown by JavaScript: what writes them in Rust is a quarter of the module.
  const flags = [...givenFlags(), "--cfg", "switchgear_small", ...withoutPaths()];
  const variables = { CARGO_ENCODED_RUSTFLAGS: flags.join(SEPARATOR) };
  const { file } = builtForWasm(chosen, [...crate, "--features", features.join(",")], variables);
  execFileSync(glue, [file, dist, name], { stdio: "inherit" });
  const module = join(dist, `${name}.wasm`);
  const small = [
    "-Oz",
    "--low-memory-unused",
    "--strip-producers",
    "--strip-target-features",
    "--minify-imports-and-exports-and-modules",
  ];
  const options = { encoding: "utf8", maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "inherit"] };
  const said = execFileSync(
    process.execPath,
    [wasmOpt, ...small, join(dist, `${name}_bg.wasm`), "-o", module],
    options,
  );
  rename(join(dist, `${name}.js`), said);
  for (const rest of [`${name}_bg.wasm`, `${name}_bg.wasm.d.ts`]) rmSync(join(dist, rest));
}

/** The flags of whoever builds: ours would else take their place. */
function givenFlags() {
  const { CARGO_ENCODED_RUSTFLAGS: encoded, RUSTFLAGS: plain = "" } = process.env;
  return (encoded?.split(SEPARATOR) ?? plain.split(/\s+/)).filter(Boolean);
}

/** A module tells nobody where it was built: panics name their file by what the folder is here. Of two that match the last one holds. */
function withoutPaths() {
  const cargo = process.env.CARGO_HOME ?? join(homedir(), ".cargo");
  const names = {
    [homedir()]: "home",
    [cargo]: "cargo",
    [chosen.sysroot]: "rust",
    [join(import.meta.dirname, "../..")]: "switchgear",
  };
  return Object.entries(names).map(([folder, name]) => `--remap-path-prefix=${folder}=${name}`);
}

/** Tells the glue what its imports and exports are called now. */
function rename(file, said) {
  const { imports, exports } = JSON.parse(said);
  const exported = new Map(exports);
  const imported = new Map(imports.map(([, before, after]) => [before, after]));
  const modules = new Set(imports.map(([module]) => module));
  let renamed = 0;
  const to = (whole, head, name, names, tail = "") => {
    if (!names.has(name)) return whole;
    renamed += 1;
    return head + names.get(name) + tail;
  };
  // An export is used as `wasm.name`; the imports are the methods of one object, which stands for the one module they are of.
  const text = readFileSync(file, "utf8")
    .replace(/\bwasm\.(\w+)/g, (whole, name) => to(whole, "wasm.", name, exported))
    .replace(/^( +)(\w+): function\b/gm, (whole, space, name) => to(whole, space, name, imported, ": function"))
    .replace(/"([^"]+)": import0/, (whole, name) => (modules.has(name) ? "a: import0" : whole));
  if (modules.size !== 1 || renamed < exports.length + imports.length - 4 || !text.includes("a: import0")) {
    throw new Error(`the glue of ${file} does not look as expected: read what wasm-bindgen makes now`);
  }
  writeFileSync(file, text);
}
