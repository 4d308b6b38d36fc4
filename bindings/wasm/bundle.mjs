// Puts the WebAssembly build of the package together: the same facade as Node's, with another native module behind it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { build } from "esbuild";
import { minify } from "terser";
import { lean } from "./lean.mjs";

const here = import.meta.dirname;
const root = join(here, "../..");
const facade = join(here, "../node/ts");
const require = createRequire(import.meta.url);
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** What stands in a bundle for a file of the facade that only Node has. */
const INSTEAD = { index: "load-local.ts", redis: "load-shared.ts", axios: "load-local.ts" };

/**
 * Writes into a folder `dist` that holds the facade already:
 * - `wasm/index.mjs`, `wasm/redis.mjs`, `wasm/axios.mjs`, `wasm/hono.mjs` and what they share, for pages, workers and bundlers;
 * - `wasm/native.js`, for Node where the native file is missing;
 * - `wasm/index.js`, and `wasm/node.mjs` that re-exports it, for Node where WebAssembly was asked for.
 */
export async function bundle(dist) {
  const folder = join(dist, "wasm");
  const common = {
    bundle: true,
    minify: true,
    legalComments: "none",
    // Else every byte beyond ASCII of the module's text would be written out as four.
    charset: "utf8",
    target: "es2022",
    outdir: folder,
    logLevel: "warning",
    // A field that only says that there is one need not be said twice.
    tsconfigRaw: { compilerOptions: { useDefineForClassFields: false } },
    plugins: [replaced, moduleAsText, leanGlue],
  };
  const entries = { index: join(facade, "index.ts"), redis: join(facade, "redis.ts") };
  await build({
    ...common,
    // Not for Node, where the facade beside it is asked by the names that it has in its sources.
    mangleProps: privateNames(),
    entryPoints: { ...entries, axios: join(facade, "axios.ts"), hono: join(facade, "hono.ts") },
    external: ["axios"],
    format: "esm",
    platform: "browser",
    splitting: true,
    chunkNames: "shared-[hash]",
    outExtension: { ".js": ".mjs" },
  });
  await build({
    ...common,
    entryPoints: { index: entries.index, native: join(here, "ts/fallback.ts") },
    format: "cjs",
    platform: "node",
  });
  for (const file of readdirSync(folder)) if (file.endsWith(".mjs")) await shrink(join(folder, file));
  const names = Object.keys(require(join(folder, "index.js")));
  writeFileSync(join(folder, "node.mjs"), `export { ${names.sort().join(", ")} } from "./index.js";\n`);
  writeFileSync(join(folder, "index.d.mts"), 'export * from "../index.js";\n');
  writeFileSync(join(folder, "index.d.ts"), 'export * from "../index";\n');
  for (const entry of ["redis", "axios", "hono"]) {
    writeFileSync(join(folder, `${entry}.d.mts`), `export * from "../${entry}.js";\n`);
  }
}

/** A second look at what pages load and what was minified already: it finds two percent more. */
async function shrink(file) {
  const { code } = await minify(readFileSync(file, "utf8"), {
    module: true,
    ecma: 2020,
    // A function that is called once is shorter by its name than where it is called, once gzip has seen a few of them.
    compress: { passes: 3, keep_fargs: false, reduce_funcs: false },
  });
  writeFileSync(file, code);
}

/** What the files of the facade say to each other and to the module, and nobody else. */
const INTERNAL = [
  ...["admitEpoch", "successFree", "successIgnored", "refuseFrom", "refuseUntil", "refusalWait", "loudness", "pointer"],
  ...["closedChanged", "maxKeysDefault", "evicted", "isOver", "hears", "enterSync", "abandon"],
  ...["hints", "transition", "refusalClass", "timed", "longestMs", "takeWord"],
  ...["answered", "succeeded", "broke", "givenUp"],
];

/**
 * The names of what is private in the facade, which nobody outside uses, but for those that its tests look at: they are shortened. One
 * that is also the name of something public, here or in what JavaScript itself has, stays as it is.
 */
function privateNames() {
  const files = readdirSync(facade).filter((file) => file.endsWith(".ts"));
  const sources = files.map((file) => readFileSync(join(facade, file), "utf8"));
  const declared = (pattern) => sources.flatMap((source) => [...source.matchAll(pattern)].map(([, name]) => name));
  const glue = ["local", "shared"].map((name) => readFileSync(join(here, `dist/${name}.js`), "utf8")).join("\n");
  const taken = new Set([
    ...["core", "machine"],
    // What streams of Node's have.
    "once",
    // What the glue exports is no property, though it looks like one of the namespace that it is imported as.
    ...[...glue.matchAll(/^export (?:function|class) (\w+)/gm)].map(([, name]) => name),
    ...declared(/^(?: *(?:readonly |declare |static )*| +["'])(\w+)["']?\??[:(<]/gm),
    ...declared(/^ +get (\w+)/gm),
    ...declared(/^ +readonly (\w+)/gm),
    ...Object.getOwnPropertyNames(globalThis).flatMap((name) => {
      const of = globalThis[name];
      return [name, ...[of, of?.prototype].flatMap((object) => (object ? Object.getOwnPropertyNames(object) : []))];
    }),
  ]);
  const names = [...INTERNAL, ...declared(/\bprivate (?:readonly |static )*(\w+)/g).filter((name) => !taken.has(name))];
  return new RegExp(`^(?:${[...new Set(names)].join("|")})$`);
}

/** What loads the native module, asks it for its version at once, or asks the machine for its name, is another file here. */
const replaced = {
  name: "replaced",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\/load$/ }, ({ importer }) => ({
      path: join(here, "ts", INSTEAD[basename(importer, ".ts")]),
      sideEffects: true,
    }));
    onResolve({ filter: /^\.\/version$/ }, () => ({ path: "version", namespace: "constant" }));
    onLoad({ filter: /^version$/, namespace: "constant" }, () => ({
      contents: `export const version = ${JSON.stringify(version)};`,
    }));
    onResolve({ filter: /^node:os$/ }, ({ kind }) =>
      kind === "import-statement" ? { path: join(here, "ts/os.ts") } : undefined,
    );
  },
};

/** A module as text, see `ts/module.ts`. */
const moduleAsText = {
  name: "module-as-text",
  setup({ onLoad }) {
    onLoad({ filter: /\.wasm$/ }, ({ path }) => ({ contents: textOf(readFileSync(path)), loader: "text" }));
  },
};

/** The glue of a module, see `lean.mjs`. */
const leanGlue = {
  name: "lean-glue",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]wasm[\\/]dist[\\/]\w+\.js$/ }, ({ path }) => ({
      contents: lean(readFileSync(path, "utf8")),
    }));
  },
};

const FIRST = 35;
const BACKSLASH = 92;

function textOf(bytes) {
  return Array.from(bytes, (byte) => {
    const code = byte + FIRST;
    return String.fromCharCode(code < BACKSLASH ? code : code + 1);
  }).join("");
}
