// The package as a bundler sees it: installed from its tarball, built without any configuration, and run in a real browser.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";
import * as vite from "vite";
import webpack from "webpack";
import { startOrigin } from "../../bindings/node/test/support/origin.mjs";
import { openPage, startBrowser, startSite } from "../support/browser.mjs";
import { installPackage, ROOT } from "../support/consumer.mjs";

/** What each of them builds: a page, and a worker that the page starts. */
const APP = `
  import { CircuitBreaker, CircuitOpenError, guardFetch } from "switchgear";
  import { DistributedCircuitBreaker } from "switchgear/redis";
  const breaker = new CircuitBreaker("billing", { failureThreshold: 1 });
  const down = await breaker.execute(() => Promise.reject(new Error("down"))).catch((error) => error.message);
  const refusal = await breaker.execute(() => 1).catch((error) => error);
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => {
    window.seen = [down, refusal instanceof CircuitOpenError, typeof guardFetch, typeof DistributedCircuitBreaker, data];
  };
`;
const WORKER = `
  import { CircuitBreaker } from "switchgear";
  const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
  breaker.recordFailure();
  postMessage(breaker.getState());
`;
const SEEN = ["down", true, "function", "function", "open"];

let project;
let browser;
before(async () => {
  project = await installPackage({ tools: ["axios"], build: false });
  await mkdir(join(project.folder, "src"));
  await project.write("src/index.js", APP);
  await project.write("src/worker.js", WORKER);
  await project.write(
    "index.html",
    '<!doctype html><title>t</title><script type="module" src="/src/index.js"></script>',
  );
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  await project?.remove();
});

/** What the page of a folder has seen; `html` where the bundler makes none. */
async function run(folder, html) {
  const site = await startSite({
    folders: { "": join(project.folder, folder) },
    pages: html === undefined ? {} : { "/index.html": { text: html } },
  });
  try {
    const page = await openPage(browser, `${site.origin}/index.html`);
    const seen = page.waitForFunction(() => window.seen);
    const fault = page.waitForEvent("pageerror", { timeout: 0 }).then((error) => Promise.reject(error));
    const value = await (await Promise.race([seen, fault])).jsonValue();
    assert.deepEqual(page.faults, []);
    await page.close();
    return value;
  } finally {
    await site.close();
  }
}

/** Nothing that only Node has may have come along. */
async function onlyForPages(folder) {
  const files = (await readdir(join(project.folder, folder), { recursive: true })).filter((file) =>
    /\.m?js$/.test(file),
  );
  assert.ok(files.length > 0);
  for (const file of files) {
    const text = await readFile(join(project.folder, folder, file), "utf8");
    assert.doesNotMatch(text, /\.node"|node:fs|node:os|worker_threads/, file);
  }
}

test("Vite", async () => {
  await vite.build({ root: project.folder, logLevel: "error", configFile: false, build: { outDir: "vite" } });
  await onlyForPages("vite");
  assert.deepEqual(await run("vite"), SEEN);
});

test("esbuild", async () => {
  await esbuild.build({
    absWorkingDir: project.folder,
    entryPoints: ["src/index.js", "src/worker.js"],
    bundle: true,
    format: "esm",
    outdir: "esbuild",
    logLevel: "error",
  });
  await onlyForPages("esbuild");
  assert.deepEqual(await run("esbuild", '<script type="module" src="/index.js"></script>'), SEEN);
});

test("webpack", async () => {
  const stats = await promisify(webpack)({
    context: project.folder,
    mode: "production",
    output: { path: join(project.folder, "webpack"), publicPath: "/" },
    performance: false,
  });
  assert.deepEqual(stats.toJson({ errors: true, warnings: true }).errors, []);
  assert.deepEqual(stats.toJson({ warnings: true }).warnings, []);
  await onlyForPages("webpack");
  assert.deepEqual(await run("webpack", '<script type="module" src="/main.js"></script>'), SEEN);
});

test("axios in a page, by XMLHttpRequest and by fetch", async () => {
  const server = await startOrigin();
  server.answer = { status: 503, headers: { "retry-after": "60" } };
  try {
    await project.write(
      "src/axios.js",
      `import axios from "axios";
       import { CircuitBreaker, CircuitOpenError } from "switchgear";
       import { circuitBreaker } from "switchgear/axios";
       import { circuitOpenResponse } from "switchgear/hono";
       const seen = [];
       for (const adapter of ["xhr", "fetch"]) {
         const guard = circuitBreaker({ adapter, openJitter: 0 });
         const http = axios.create({ adapter: guard });
         for (let i = 0; i < 2; i++) await http.get("${server.origin}/").catch((error) => seen.push(error));
         seen.push(guard.for("${server.origin}") instanceof CircuitBreaker);
       }
       window.seen = seen.map((each) =>
         each instanceof CircuitOpenError ? circuitOpenResponse(each).status : (each.response?.status ?? each));`,
    );
    await esbuild.build({
      absWorkingDir: project.folder,
      entryPoints: ["src/axios.js"],
      bundle: true,
      format: "esm",
      outdir: "axios",
      logLevel: "error",
    });
    await onlyForPages("axios");
    const site = await startSite({
      folders: { "": join(project.folder, "axios") },
      pages: { "/index.html": { text: '<!doctype html><script type="module" src="/axios.js"></script>' } },
    });
    try {
      const page = await openPage(browser, `${site.origin}/index.html`);
      const seen = await (await page.waitForFunction(() => window.seen)).jsonValue();
      assert.deepEqual(seen, [503, 503, true, 503, 503, true]);
      assert.equal(server.requests, 2);
      await page.close();
    } finally {
      await site.close();
    }
  } finally {
    await server.close();
  }
});

test("a bundle for Node has WebAssembly in it where it cannot take the native file along", async () => {
  await project.write(
    "src/node.js",
    `const { CircuitBreaker } = require("switchgear"); require("switchgear/redis");
     process.on("warning", ({ code, message }) => console.log(code ?? message));
     const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
     breaker.recordFailure();
     console.log(breaker.getState());`,
  );
  await esbuild.build({
    absWorkingDir: project.folder,
    entryPoints: ["src/node.js"],
    bundle: true,
    platform: "node",
    outfile: "bundled/node.cjs",
    logLevel: "error",
  });
  const { stdout } = await project.node(["bundled/node.cjs"]);
  assert.deepEqual(stdout.trim().split("\n"), ["open", "switchgear_wasm"]);
});

test("`switchgear/wasm` is WebAssembly in Node, too, imported and required, beside the native module", async () => {
  await project.write(
    "wasm.mjs",
    `import { createRequire } from "node:module";
     import * as wasm from "switchgear/wasm";
     import * as native from "switchgear";
     const required = createRequire(import.meta.url)("switchgear/wasm");
     const breaker = new wasm.CircuitBreaker("c", { failureThreshold: 1 });
     breaker.recordFailure();
     console.log(breaker.getState(), required.CircuitBreaker === wasm.CircuitBreaker,
       native.CircuitBreaker === wasm.CircuitBreaker, Object.keys(native).sort().join() === Object.keys(wasm).sort().join());`,
  );
  assert.equal((await project.node(["wasm.mjs"])).stdout.trim(), "open true false true");
});

test("the types are found, as pages and as Node look for them", async () => {
  await project.write(
    "types.mts",
    `import { CircuitBreaker, guardFetch } from "switchgear";
     import { CircuitBreaker as Wasm } from "switchgear/wasm";
     export const breakers: CircuitBreaker[] = [new CircuitBreaker("a"), new Wasm("b")];
     export const fetch: typeof globalThis.fetch = guardFetch({ openJitter: 0.1 });
     // @ts-expect-error: no such option
     guardFetch({ openJitters: 0.1 });`,
  );
  const common = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2023,dom,esnext.disposable"];
  for (const module of [
    ["preserve", "bundler"],
    ["node16", "node16"],
  ]) {
    const [kind, resolution] = module;
    await project.tsc([...common, "--module", kind, "--moduleResolution", resolution, "types.mts"]);
  }
});

/** Module, glue and facade, each gzipped, in bytes. */
const LIMIT = 30 * 1024;
/** The same as a page loads it: as one file, in which the module is text. */
const LOADED = 31 * 1024;

test("size: module, glue and facade", async (context) => {
  const { outputFiles } = await esbuild.build({
    stdin: { contents: 'export * from "switchgear"', resolveDir: project.folder },
    bundle: true,
    minify: true,
    format: "esm",
    charset: "utf8",
    write: false,
  });
  const size = (what) => gzipSync(what, { level: 9 }).length;
  const [{ text }] = outputFiles;
  const [longest] = text.match(/"(?:[^"\\]|\\.)*"/g).sort((a, b) => b.length - a.length);
  const module = size(await readFile(join(ROOT, "bindings/wasm/dist/local.wasm")));
  const script = size(text.replace(longest, () => '""'));
  const loaded = size(text);
  context.diagnostic(
    `module ${module} + glue and facade ${script} = ${module + script} bytes gzipped, at most ${LIMIT}; as one file ${loaded}`,
  );
  assert.ok(module > 10_000 && script > 5_000, "something is missing");
  assert.ok(module + script <= LIMIT, `${module + script} bytes`);
  assert.ok(loaded <= LOADED, `${loaded} bytes as one file`);
});
