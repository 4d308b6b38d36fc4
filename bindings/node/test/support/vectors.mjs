// Vectors: finding and reading them, and saying what came of them.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "./compare.mjs";
import { vectorsOf } from "./format.mjs";
import { WAYS } from "./machines.mjs";

/** Failures listed of one run. */
const LISTED_PER_RUN = 500;

/**
 * Runs a file or a folder in each way on a build of the package, and prints what came of it. What a process should exit with: 1
 * if anything differs, 2 if there is nothing to run.
 */
export function runAll(build, switchgear, path) {
  const vectors = loadFor(switchgear, path);
  if (vectors === null) return 2;
  const held = Object.entries(WAYS).map(([way, start]) => print(run(build + way, vectors, start(switchgear))));
  return held.every(Boolean) ? 0 : 1;
}

/** The vectors of a file or a folder, by default all of the project; null, and a word on stderr, if there is nothing to run. */
export function loadFor(switchgear, path = ALL) {
  try {
    return load(path, (config) => checkConfig(switchgear, config));
  } catch (error) {
    console.error(error.message);
    return null;
  }
}

const ALL = fileURLToPath(new URL("../../../../tests/vectors", import.meta.url));

/** A configuration is the machine's alone: no option that only concerns running functions belongs into a vector. */
function checkConfig({ CircuitBreakerState }, config) {
  for (const name of ["timeoutMs", "slowCallMs", "observe", "refusalStack"]) {
    if (Object.hasOwn(config, name)) throw new Error(`config: unknown key \`${name}\``);
  }
  new CircuitBreakerState(config);
}

/** A file, or every `*.json` of a folder and of the folders in it, in the order of the paths. */
function load(path, checkConfig) {
  const files = statSync(path).isDirectory()
    ? readdirSync(path, { recursive: true })
        .filter((file) => file.endsWith(".json"))
        .map((file) => join(path, file))
        .sort()
    : [path];
  const vectors = files.flatMap((file) => {
    try {
      return loadFile(file, checkConfig);
    } catch (error) {
      throw new Error(`${file}: ${error.message}`);
    }
  });
  if (vectors.length === 0) throw new Error(`${path}: no vector in it`);
  return vectors;
}

/** The counts on stdout, the failures on stderr; whether there were none. */
export function print({ runner, vectors, steps, failures }) {
  console.log(`${runner}: ${vectors} vectors, ${steps} steps`);
  for (const failure of failures.slice(0, LISTED_PER_RUN)) console.error(failure);
  if (failures.length > LISTED_PER_RUN) console.error(`${runner}: ${failures.length - LISTED_PER_RUN} more`);
  return failures.length === 0;
}

function loadFile(file, checkConfig) {
  return vectorsOf(JSON.parse(readFileSync(file, "utf8")), checkConfig);
}
