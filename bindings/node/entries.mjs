// The ESM entries beside the CommonJS implementation in dist/: they re-export it, so that `import` and `require` give the very same
// classes.
import { existsSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";

const require = createRequire(import.meta.url);
const ENTRIES = ["index", "redis", "undici", "axios", "hono", "fastify", "nestjs/index"];

/** What is no re-export: axios is one thing imported and another required, and who imports it wants the errors of that one. */
const WRITTEN = {
  axios: `import axios from "axios";
import { adapterFor } from "./axios-adapter.js";
import "./load.js";
export { CircuitOpenError, ConfigError, NameError, StoreUnavailableError, TimeError } from "./error.js";
export const circuitBreaker = adapterFor(axios);
`,
};

/** Writes them into a folder that holds the implementation. */
export function writeEntries(folder) {
  for (const entry of ENTRIES) {
    if (!existsSync(join(folder, `${entry}.js`))) continue;
    const implementation = `./${basename(entry)}.js`;
    const names = () => Object.keys(require(join(folder, `${entry}.js`))).sort();
    const text = WRITTEN[entry] ?? `export { ${names().join(", ")} } from "${implementation}";\n`;
    writeFileSync(join(folder, `${entry}.mjs`), text);
    writeFileSync(join(folder, `${entry}.d.mts`), `export * from "${implementation}";\n`);
  }
}
