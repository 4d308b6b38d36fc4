// Builds bindings/wasm/dist: of each WebAssembly module its bytes, made small, and its glue. `node bindings/wasm/build.mjs
// [module...]`; by default those that the package ships. Cargo skips what has not changed.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { built, builtForWasm } from "./cargo.mjs";
import { CRATE, variablesFor } from "./flags.mjs";
import { toolchain } from "./toolchain.mjs";

const dist = join(import.meta.dirname, "dist");
const require = createRequire(import.meta.url);
/** The modules and the features of the crate that make them. The package ships the first two. */
const MODULES = { local: ["local"], shared: ["shared"], objects: ["local", "objects"] };
const SHIPPED = ["local", "shared"];

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
  const { file } = builtForWasm(chosen, [...CRATE, "--features", features.join(",")], variablesFor(chosen));
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
