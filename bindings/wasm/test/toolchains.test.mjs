// Both ways to build: with rustup's standard library for WebAssembly, and with a system's Rust that brings the sources of its own.
// On a machine that has one of them only, the other must say how to get it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { toolchain } from "../toolchain.mjs";

const BUILD = join(import.meta.dirname, "../build.mjs");
const MODULE = join(import.meta.dirname, "../dist/local.wasm");
const HOW = /rustup target add wasm32-unknown-unknown.*apt-get install rustc-web cargo-web rust-web-src/;

for (const way of ["rustup", "debian"]) {
  test(`the way of ${way}`, () => {
    const { status, stderr } = spawnSync(process.execPath, [BUILD, "local"], {
      encoding: "utf8",
      env: { ...process.env, WASM_TOOLCHAIN: way },
    });
    if (available(way)) {
      assert.equal(status, 0, stderr);
      assert.ok(WebAssembly.validate(readFileSync(MODULE)));
    } else {
      assert.equal(status, 1);
      assert.match(stderr, HOW);
    }
  });
}

test("there is one of them, and it is taken when none is asked for", () => {
  assert.ok(available("rustup") || available("debian"));
  assert.equal(toolchain("auto").name, available("rustup") ? "rustup" : "debian");
});

test("a way that there is not", () => {
  assert.throws(() => toolchain("guess"), /WASM_TOOLCHAIN must be auto, rustup or debian, got guess/);
});

function available(way) {
  try {
    return toolchain(way).name === way;
  } catch {
    return false;
  }
}
