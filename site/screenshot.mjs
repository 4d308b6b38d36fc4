// Makes docs/playground.png, which stands in the README: `npm run site:screenshot`. The same page gives the same picture.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openPage, startBrowser } from "../tests/support/browser.mjs";
import { frameOf } from "./frame.mjs";
import { smaller } from "./png.mjs";
import { PATH, startPlayground } from "./serve.mjs";
import { digestOfSources } from "./sources.mjs";

const file = join(import.meta.dirname, "../docs/playground.png");
const WIDTH = 1280;
/** Whoever reads the README waits for it. */
const MAX_BYTES = 200_000;

let png;
const [browser, site] = await Promise.all([startBrowser(), startPlayground()]);
try {
  const context = await browser.newContext({
    viewport: { width: WIDTH, height: 1200 },
    colorScheme: "light",
    reducedMotion: "reduce",
  });
  const page = await openPage(context, site.origin + PATH);
  await page.waitForFunction(() => document.documentElement.dataset.ready === "true");
  await page.evaluate(() => document.fonts.ready);
  const height = await frameOf(page);
  const picture = await page.screenshot({ clip: { x: 0, y: 0, width: WIDTH, height } });
  // Says what page it is of: a rule of the repository looks whether that is still so.
  png = smaller(picture, { Source: await digestOfSources() });
  if (page.faults.length > 0) throw new Error(page.faults.join("\n"));
} finally {
  await browser.close();
  await site.close();
}
if (png.length > MAX_BYTES) throw new Error(`${file} would be ${png.length} bytes long: at most ${MAX_BYTES} may be`);
writeFileSync(file, png);
console.log(`docs/playground.png: ${png.length} bytes`);
