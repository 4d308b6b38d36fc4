// The demo holds what it claims, says so by its exit code, and the README shows what it prints.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { examplesIn, shapeOf } from "../tests/docs/examples.mjs";

const main = fileURLToPath(new URL("main.mjs", import.meta.url));

/** Runs the demo; its exit code and what it printed. */
function play(...options) {
  return new Promise((resolve) => {
    execFile(process.execPath, [main, ...options], { timeout: 300_000 }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}

test("every claim holds, and the README shows the timeline as it is", async () => {
  const { code, stdout, stderr } = await play();
  assert.equal(code, 0, stdout + stderr);
  assert.equal(stderr, "");
  assert.ok(!stdout.includes("BROKEN"), stdout);
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const shown = examplesIn(readme).find((example) => example.code.includes("1. One process"));
  // As sets: which process is first, and how often one is refused, is up to the machine.
  const shapes = (text) => [...new Set(shapeOf(text))].filter((line) => !/\bholds\b/.test(line)).sort();
  assert.deepEqual(shapes(shown?.code ?? ""), shapes(stdout), "run `make demo` and put its timeline into README.md");
});

test("without a breaker the claims of part 1 break, and the demo fails", async () => {
  const { code, stdout } = await play("--without-breaker");
  assert.equal(code, 1, stdout);
  assert.match(stdout, /BROKEN {2}the circuit went closed -> open -> half-open -> closed: one trip/);
  assert.match(stdout, /BROKEN {2}no request reached the dependency while open/);
});

test("with a breaker per process the claims of part 2 break, and the demo fails", async () => {
  const { code, stdout } = await play("--not-shared");
  assert.equal(code, 1, stdout);
  assert.match(stdout, /BROKEN {2}one trip in the whole fleet/);
  assert.match(stdout, /BROKEN {2}one probe did, from the whole fleet/);
  assert.ok(stdout.includes("holds   the redis-server is gone"), stdout);
});
