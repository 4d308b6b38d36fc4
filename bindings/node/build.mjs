// Builds dist/: the native module of this platform, the CommonJS implementation, and beside it the ESM entries, which
// re-export it, so that `import` and `require` give the very same classes. Cargo skips what has not changed.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join, relative } from "node:path";
import { bundle } from "../wasm/bundle.mjs";
import { writeEntries } from "./entries.mjs";

const root = join(import.meta.dirname, "../..");
/** Where it is built, and then put in place whole: nobody ever sees half a package. */
const fresh = join(root, `.cache/dist-${process.pid}`);
const dist = join(root, "dist");
const require = createRequire(import.meta.url);
/** What cargo calls a dynamic library, by platform. */
const LIBRARY = { darwin: "libswitchgear_node.dylib", win32: "switchgear_node.dll" };

rmSync(fresh, { recursive: true, force: true });
mkdirSync(fresh, { recursive: true });
process.on("exit", () => rmSync(fresh, { recursive: true, force: true }));

const cargo = ["build", "--release", "--package", "switchgear-node", "--message-format", "json-render-diagnostics"];
const built = execFileSync("cargo", cargo, {
  cwd: root,
  encoding: "utf8",
  maxBuffer: 1 << 28,
  stdio: ["ignore", "pipe", "inherit"],
});
// Cargo itself says where it put the library: the target folder may be anywhere.
const library = built
  .split("\n")
  .flatMap((line) => (line.startsWith("{") ? (JSON.parse(line).filenames ?? []) : []))
  .find((file) => basename(file) === (LIBRARY[process.platform] ?? "libswitchgear_node.so"));
copyFileSync(library, join(fresh, `switchgear.${process.platform}-${process.arch}.node`));

execFileSync(
  process.execPath,
  [require.resolve("typescript/bin/tsc"), "-p", "tsconfig.build.json", "--outDir", fresh],
  {
    cwd: root,
    stdio: "inherit",
  },
);

writeEntries(fresh);
await bundle(fresh);
// Between the two renames there is no package: who runs on it while another packs it must not meet that for nothing.
if (!isSame(fresh, dist)) {
  if (existsSync(dist)) renameSync(dist, `${fresh}-old`);
  renameSync(fresh, dist);
  rmSync(`${fresh}-old`, { recursive: true, force: true });
}
console.log(`dist/: ${readdirSync(dist).length} files`);

/** Whether two folders hold the same files; one that is not there holds none. */
function isSame(one, other) {
  if (!existsSync(one) || !existsSync(other)) return false;
  const [files, others] = [one, other].map((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
      .sort(),
  );
  const same = (file) => readFileSync(join(one, file)).equals(readFileSync(join(other, file)));
  return files.join("\n") === others.join("\n") && files.every(same);
}
