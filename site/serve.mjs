// Serves the playground as it was built, on this machine alone: `node site/serve.mjs`, until it is stopped.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startSite } from "../tests/support/browser.mjs";

const dist = join(import.meta.dirname, "dist");
const index = join(dist, "index.html");

/** Serves it on a free port; whoever does so closes it. `headers` go with the page itself. */
export function startPlayground(headers = {}) {
  if (!existsSync(index)) throw new Error("there is no site/dist: run `npm run site`");
  return startSite({
    // Not at the root of the server: nothing is there but this.
    folders: { playground: dist },
    pages: { [PATH]: { text: readFileSync(index, "utf8"), headers } },
  });
}

/** Where on the server it is. */
export const PATH = "/playground/";

if (process.argv[1] === import.meta.filename) {
  const { origin } = await startPlayground();
  console.log(`${origin}${PATH}`);
}
