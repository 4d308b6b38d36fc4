// Vectors in a page of a real browser: `node bindings/wasm/test/vectors-browser.mjs [file or folder]`, runners `browser` and
// `browser-hints`.
import { fileURLToPath } from "node:url";
import * as switchgear from "../../../dist/wasm/index.mjs";
import { openPage, startBrowser, startSite } from "../../../tests/support/browser.mjs";
import { loadFor, print } from "../../node/test/support/vectors.mjs";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const PAGE = `<!doctype html><title>vectors</title><script type="module">
  import * as switchgear from "/switchgear/index.mjs";
  import { run } from "/support/compare.mjs";
  import { WAYS } from "/support/machines.mjs";
  const vectors = await (await fetch("/vectors.json")).json();
  window.results = Object.entries(WAYS).map(([way, start]) => run("browser" + way, vectors, start(switchgear)));
</script>`;

const vectors = loadFor(switchgear, process.argv[2]);
if (vectors === null) process.exitCode = 2;
else process.exitCode = (await runInPage(vectors)).map(print).every(Boolean) ? 0 : 1;

async function runInPage(vectors) {
  const site = await startSite({
    folders: { switchgear: here("../../../dist/wasm"), support: here("../../node/test/support") },
    pages: { "/": { text: PAGE }, "/vectors.json": { text: JSON.stringify(vectors) } },
  });
  const browser = await startBrowser();
  try {
    const page = await openPage(browser, site.origin);
    const results = page.waitForFunction(() => window.results);
    const fault = page.waitForEvent("pageerror", { timeout: 0 }).then((error) => Promise.reject(error));
    return await (await Promise.race([results, fault])).jsonValue();
  } finally {
    await browser.close();
    await site.close();
  }
}
