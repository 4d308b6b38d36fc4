// The playground as it was built, served from below a path, in a real Chromium.
import { join } from "node:path";
import { openPage } from "../../../tests/support/browser.mjs";
import { PATH } from "../../serve.mjs";

export { PATH, startPlayground } from "../../serve.mjs";

export const ROOT = join(import.meta.dirname, "../../..");

/**
 * Opens it, and waits until it is ready. What goes wrong in the page is in `page.faults`.
 *
 * What the page draws anew, it draws of new elements: what asks for an element and then for something of it has two
 * turns, between which the page may have replaced it. Measures of such elements are taken within one `page.evaluate`.
 */
export async function open(context, site, hash = "") {
  const page = await openPage(context, `${site.origin}${PATH}${hash}`);
  await ready(page);
  return page;
}

/** Until its core has started, and until it has drawn the graph again with the font that came later. */
export async function ready(page) {
  await page.waitForFunction(() => document.documentElement.dataset.ready === "true");
  await page.evaluate(async () => {
    await document.fonts.ready;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  });
}

/** Shows the vectors' view, with the project's own file that comes first. */
export async function openVectors(page) {
  await page.click("#tab-vectors");
  await page.waitForSelector("#vector-body:not([hidden])");
}

/** All that a reader sees of the simulation: what is typed, and what is said. */
export function seen(page) {
  return page.evaluate(() => {
    const typed = [...document.querySelectorAll("form input, form select")]
      .filter(({ id }) => id !== "link")
      .map(({ id, value }) => [id.replace(/^outage-\d+/, "outage"), value]);
    const said = [
      ...document.querySelectorAll(
        ".view dd, .view .says, .view .lamp, .view .big, .view td, .view .jump, .chip, .where",
      ),
    ];
    const graph = [...document.querySelectorAll(".graph path, .graph rect, .graph line")].map(
      (shape) => shape.outerHTML,
    );
    return { typed, said: said.map(({ textContent }) => textContent), graph };
  });
}
