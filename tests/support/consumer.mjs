// The package as a user gets it: packed by npm, installed from the tarball into a project of its own.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The root of the repository. */
export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Packs the package and installs the tarball into an empty project.
 *
 * `tools` are packages of the repository's own node_modules to lend to that project (a Redis client, types).
 * `lend` does so later. `build: false` packs what is in dist/ as it is. `node`, `tsc` and `npm` run there and resolve with `{ stdout, stderr }`, or
 * reject with both in the message.
 */
export async function installPackage({ tools = [], build = true } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "switchgear-consumer-"));
  const remove = () => rm(folder, { recursive: true, force: true });
  const inside = async (command, args, options = {}) => {
    try {
      return await run(command, args, { cwd: folder, maxBuffer: 1 << 26, ...options });
    } catch (error) {
      throw new Error(`\`${[command, ...args].join(" ")}\` failed (${error.code}):\n${error.stdout}\n${error.stderr}`);
    }
  };
  const lend = async (...names) => {
    for (const name of names) {
      const there = join(folder, "node_modules", name);
      if (!existsSync(there)) await symlink(join(ROOT, "node_modules", name), there, "dir");
    }
  };
  try {
    const scripts = build ? [] : ["--ignore-scripts"];
    await inside("npm", ["pack", "--silent", "--pack-destination", folder, ...scripts], { cwd: ROOT });
    const { name, version } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
    await writeFile(join(folder, "package.json"), JSON.stringify({ private: true }));
    // Offline: what it needs at run time is in the tarball.
    await inside("npm", ["install", "--offline", `./${name}-${version}.tgz`]);
    await lend(...tools);
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    folder,
    remove,
    lend,
    write: (file, text) => writeFile(join(folder, file), text),
    node: (args, options) => inside(process.execPath, args, options),
    tsc: (args) => inside(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), ...args]),
    npm: (args) => inside("npm", args),
  };
}
