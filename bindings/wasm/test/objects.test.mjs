// The module that takes and gives objects (feature `objects`): the vectors run on it, and it says what is wrong with a policy.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { gzipSync } from "node:zlib";
import * as switchgear from "../../../dist/wasm/index.mjs";
import { run } from "../../node/test/support/compare.mjs";
import { loadFor } from "../../node/test/support/vectors.mjs";

const here = import.meta.dirname;
const bytes = (name) => readFileSync(join(here, `../dist/${name}.wasm`));
let glue;

before(async () => {
  execFileSync(process.execPath, [join(here, "../build.mjs"), "objects"], { stdio: ["ignore", "ignore", "inherit"] });
  glue = await import("../dist/objects.js");
  glue.initSync({ module: new WebAssembly.Module(bytes("objects")) });
});

class Machine {
  constructor(config) {
    this.circuit = new glue.Circuit(config);
  }
  acquire(at) {
    const permit = this.circuit.canRequest(at);
    if (permit >= 0) return { permit, retryAfterMs: 0 };
    const wait = this.circuit.wait(at);
    return { retryAfterMs: wait < 0 ? null : wait };
  }
  settle(at, operation, permit) {
    return this.circuit.settle(at, operation, permit ?? undefined);
  }
  control(at, operation, forMs) {
    this.circuit.control(at, operation, forMs);
  }
  snapshot(at) {
    return this.circuit.snapshot(at);
  }
}

test("every vector, with objects in and out", () => {
  const vectors = loadFor(switchgear);
  assert.ok(vectors.length > 400);
  const { failures } = run("objects", vectors, (config) => new Machine(config));
  assert.deepEqual(failures, []);
});

test("a policy is checked by the core's own table", () => {
  const refused = (policy) => {
    try {
      return new glue.Circuit(policy) && "taken";
    } catch (error) {
      return String(error.message ?? error);
    }
  };
  assert.match(refused({ failureTreshold: 5 }), /`failureTreshold` is not an option; valid are tripOn, /);
  assert.match(refused({ failureThreshold: 0 }), /`failureThreshold` must be an integer from 1 to 1000000, got `0`/);
  assert.match(refused({ openDurationMs: 1, resetTimeoutMs: 1 }), /two names of one option/);
  assert.equal(refused({ failureThreshold: 3 }), "taken");
});

test("it is why the package ships the other: sizes, gzipped", (context) => {
  const [scalars, objects] = ["local", "objects"].map((name) => gzipSync(bytes(name), { level: 9 }).length);
  context.diagnostic(`with scalars ${scalars} bytes, with objects ${objects} bytes`);
  assert.ok(objects > 1.5 * scalars, "no longer so: ship the one with objects");
});
