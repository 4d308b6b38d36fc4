// What the playground looks like comes from these files: by their digest docs/playground.png is known to be of the page as it is.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { transform } from "esbuild";

const STATIC = ["index.html", "style.css", "icon.svg", "frame.mjs"];
const PACKAGE = join(import.meta.dirname, "../package.json");

/**
 * The digest of the page's sources, the same on every machine. Comments and the layout of code make no difference; nor does what the
 * core decides, whose numbers are in the picture, too.
 * @param folder - where they are
 */
export async function digestOfSources(folder = import.meta.dirname) {
  const code = readdirSync(join(folder, "src"), { recursive: true })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => `src/${file.split(sep).join("/")}`);
  const hash = createHash("sha256");
  for (const file of [...STATIC, ...code].sort()) {
    hash.update(`${file}\n${await bare(file, readFileSync(join(folder, file), "utf8"))}\n`);
  }
  const { devDependencies } = JSON.parse(readFileSync(PACKAGE, "utf8"));
  const fonts = Object.entries(devDependencies).filter(([name]) => name.startsWith("@fontsource"));
  return hash.update(JSON.stringify(fonts)).digest("hex");
}

async function bare(file, text) {
  const loader = { ts: "ts", mjs: "js", css: "css" }[file.split(".").at(-1)];
  if (loader === undefined) return text;
  return (await transform(text, { loader, minifyWhitespace: true, legalComments: "none", charset: "utf8" })).code;
}
