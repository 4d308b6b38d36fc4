// Builds site/dist, the playground as static files: `node site/build.mjs`. Serve that folder from any path.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname;
const root = join(here, "..");
const wasm = join(root, "bindings/wasm");
const vectors = join(root, "tests/vectors");
/** Where it is built, and then put in place whole. */
const fresh = join(root, `.cache/site-${process.pid}`);
const dist = join(here, "dist");
const require = createRequire(import.meta.url);
/** The fonts come along: the page loads nothing from elsewhere. */
const FONTS = {
  "inter.woff2": "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
  "mono.woff2": "@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2",
};

execFileSync(process.execPath, [join(wasm, "build.mjs"), "objects"], { stdio: ["ignore", "ignore", "inherit"] });
rmSync(fresh, { recursive: true, force: true });
mkdirSync(join(fresh, "vectors"), { recursive: true });
process.on("exit", () => rmSync(fresh, { recursive: true, force: true }));

/** `theme` is loaded before anything is painted, so it is no module. */
for (const [entry, format] of Object.entries({ main: "esm", theme: "iife" })) {
  await bundle(entry, format);
}
for (const file of ["index.html", "style.css", "icon.svg"]) copyFileSync(join(here, file), join(fresh, file));
for (const [file, from] of Object.entries(FONTS)) copyFileSync(require.resolve(from), join(fresh, file));
for (const font of ["inter", "jetbrains-mono"]) {
  copyFileSync(require.resolve(`@fontsource-variable/${font}/LICENSE`), join(fresh, `${font}-LICENSE.txt`));
}
copyFileSync(join(wasm, "dist/objects.wasm"), join(fresh, "objects.wasm"));
const names = readdirSync(vectors).filter((file) => file.endsWith(".json"));
for (const name of names) copyFileSync(join(vectors, name), join(fresh, "vectors", name));
writeFileSync(join(fresh, "vectors/index.json"), JSON.stringify(names.sort()));

rmSync(dist, { recursive: true, force: true });
renameSync(fresh, dist);
console.log(`site/dist: ${readdirSync(dist, { recursive: true }).length} files`);

function bundle(entry, format) {
  return build({
    entryPoints: [join(here, `src/${entry}.ts`)],
    bundle: true,
    format,
    platform: "browser",
    target: "es2022",
    minify: true,
    legalComments: "none",
    charset: "utf8",
    outdir: fresh,
    logLevel: "warning",
  });
}
