// A real Chromium without a window, and pages for it from a real server on a free port of this machine.
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { chromium } from "playwright-core";

/** Debian's, unless CHROMIUM names another. */
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const QUIET = ["gpu", "quic", "background-networking", "component-update", "sync"].map((what) => `--disable-${what}`);

/** Milliseconds that are only there to end what hangs: a machine that is busy takes its time. */
export const PATIENT = 600_000;

/** Starts the browser; its user closes it. */
export async function startBrowser() {
  if (!existsSync(CHROMIUM)) throw new Error(`no browser at ${CHROMIUM}: install Debian's chromium, or set CHROMIUM`);
  const args = ["--no-first-run", ...QUIET];
  return chromium.launch({ executablePath: CHROMIUM, chromiumSandbox: false, args, timeout: PATIENT });
}

/** Opens a page and keeps what goes wrong in it: `page.faults`. */
export async function openPage(context, url) {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENT);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") page.faults.push(message.text());
  });
  await page.goto(url);
  return page;
}

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".json": "application/json",
  ".wasm": "application/wasm",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/**
 * Serves pages and files.
 *
 * `folders`: by the first part of the path, where files are. `pages`: by path, `{ text, headers }`; the ending says of what type.
 */
export async function startSite({ folders = {}, pages = {} }) {
  const server = createServer((request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    const page = pages[path];
    const file = page === undefined ? fileOf(folders, path) : undefined;
    if (page === undefined && file === undefined) {
      // No page has an icon, and none is missed.
      response.writeHead(path === "/favicon.ico" ? 204 : 404).end();
      return;
    }
    const type = TYPES[extname(path)] ?? TYPES[".html"];
    response.writeHead(200, { "content-type": type, "cache-control": "no-store", ...page?.headers });
    response.end(page?.text ?? readFileSync(file));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function fileOf(folders, path) {
  const [, first, ...rest] = path.split("/");
  const [folder, inside] = first in folders ? [folders[first], rest] : [folders[""], [first, ...rest]];
  if (folder === undefined) return undefined;
  const file = join(folder, normalize(join("/", ...inside)));
  return existsSync(file) && statSync(file).isFile() ? file : undefined;
}
