// The module that takes and gives objects (feature `objects`): the vectors run on it, and it says what is wrong with a policy.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { gzipSync } from "node:zlib";
import * as switchgear from "../../../dist/wasm/index.mjs";
import { run } from "../../node/test/support/compare.mjs";
import { loadFor } from "../../node/test/support/vectors.mjs";
import { toolchain } from "../toolchain.mjs";

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

test("its table of options is the core's: the package's has the same names and defaults", () => {
  const shown = ({ default: usual, of }) => (of === null ? usual : usual === 1 ? of : `${usual} x ${of}`);
  const table = glue.fields();
  const cells = (row) => [0, 1, 2, 3].map((column) => glue.fieldTable(row, column));
  const expected = table.map((_, row) => cells(row));
  assert.equal(glue.fieldTable(table.length, 0), undefined);
  assert.deepEqual(
    table.map(({ name, synonym, default: usual, of }) => [name, synonym ?? undefined, usual, of ?? undefined]),
    expected,
  );
  assert.equal(shown(table.find(({ name }) => name === "openDurationMaxMs")), "10 x openDurationMs");
  const rate = table.find(({ name }) => name === "failureRate");
  assert.deepEqual(rate, {
    ...{ name: "failureRate", synonym: null, kind: "share", words: [], valid: "a number above 0, at most 1" },
    ...{ default: 0.5, of: null, usedBy: ["rate"] },
  });
  assert.deepEqual(table[0].words, ["rolling", "consecutive", "rate"]);
});

test("it says what is in force, what kind a permit is of, and what an operation did to the state", () => {
  const circuit = new glue.Circuit({ failureThreshold: 1, openDurationMs: 100 });
  assert.deepEqual(circuit.policy(), {
    ...{ tripOn: "rolling", failureThreshold: 1, windowMs: 10_000, openDurationMs: 100, openBackoff: 1 },
    ...{ openDurationMaxMs: 1_000, halfOpenMaxCalls: 1, successThreshold: 1, probeTimeoutMs: 100 },
  });
  const first = circuit.canRequest(5);
  assert.equal(circuit.permitKind(first), "closed");
  assert.equal(circuit.permitKind(first + 1), undefined);
  assert.equal(circuit.transition(), null);
  circuit.settle(7, "recordFailure", first);
  const tripped = { from: "closed", to: "open", at: 7, reason: "threshold", failures: 1, openMs: 100 };
  assert.deepEqual(circuit.transition(), tripped);
  assert.equal(circuit.canRequest(8), -1);
  assert.equal(circuit.transition(), null);
  assert.equal(circuit.permitKind(circuit.canRequest(107)), "probe");
  assert.equal(circuit.transition().reason, "cooldown");
  circuit.control(108, "disable");
  assert.deepEqual([circuit.transition().to, circuit.transition().reason], ["closed", "manual"]);
  assert.equal(circuit.permitKind(circuit.canRequest(109)), "bypass");
});

test("no module says where it was built", () => {
  const folders = [join(here, "../../.."), homedir(), process.env.CARGO_HOME, toolchain().sysroot];
  execFileSync(process.execPath, [join(here, "../build.mjs"), "local", "shared"], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  for (const name of ["local", "shared", "objects"]) {
    const text = bytes(name).toString("latin1");
    for (const folder of folders.filter((folder) => folder?.length > 1)) {
      assert.ok(!text.includes(`${folder}/`), `${name}.wasm names ${folder}`);
    }
    assert.doesNotMatch(text, /\/(?:home|root|Users|tmp|build|usr)\/\w/, name);
  }
  // There is something to hide: where the core may panic it says in which file.
  assert.match(bytes("objects").toString("latin1"), /\w+\.rs/);
});

test("it is why the package ships the other: sizes, gzipped", (context) => {
  const [scalars, objects] = ["local", "objects"].map((name) => gzipSync(bytes(name), { level: 9 }).length);
  context.diagnostic(`with scalars ${scalars} bytes, with objects ${objects} bytes`);
  assert.ok(objects > 1.5 * scalars, "no longer so: ship the one with objects");
});
