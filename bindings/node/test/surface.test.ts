// The surface of the package: what it exports, what its errors carry, and that there is one of each.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import * as esm from "switchgear";
import {
  CallTimeoutError,
  CircuitBreaker,
  CircuitBreakerState,
  CircuitOpenError,
  ConfigError,
  NameError,
  StoreError,
  StoreUnavailableError,
  TimeError,
  version,
} from "switchgear";
import * as nestjs from "switchgear/nestjs";
import { describe, expect, test } from "vitest";
import { native } from "../../../dist/native.js";
import type {} from "../../../dist/native-shared.js";
import { ROOT } from "./support/child";

const require = createRequire(join(ROOT, "package.json"));
const REFUSAL = { circuit: "billing", state: "open", retryAfterMs: 12_300, lastFailure: "ECONNREFUSED" } as const;

describe("the package", () => {
  test("import and require give the very same classes", () => {
    const cjs = require("switchgear");
    expect(Object.keys(esm).sort()).toEqual(Object.keys(cjs).sort());
    for (const [name, value] of Object.entries(esm)) expect(cjs[name], name).toBe(value);
  });

  test("exports what the documentation says and nothing else", () => {
    expect(Object.keys(esm).sort()).toEqual([
      "CallTimeoutError",
      "CircuitBreaker",
      "CircuitBreakerGroup",
      "CircuitBreakerState",
      "CircuitOpenError",
      "ConfigError",
      "NameError",
      "StoreError",
      "StoreUnavailableError",
      "TimeError",
      "guardFetch",
      "version",
    ]);
  });

  test("switchgear/nestjs exports what the documentation says and nothing else, and the same errors", () => {
    expect(Object.keys(nestjs).sort()).toEqual([
      "CallTimeoutError",
      "CircuitBreakerHealthIndicator",
      "CircuitBreakerModule",
      "CircuitBreakerService",
      "CircuitOpenError",
      "CircuitOpenException",
      "ConfigError",
      "InjectCircuitBreaker",
      "NameError",
      "Retryable",
      "StoreError",
      "StoreUnavailableError",
      "TimeError",
      "WithCircuitBreaker",
      "getCircuitBreakerToken",
    ]);
    const cjs = require("switchgear/nestjs");
    for (const [name, value] of Object.entries(nestjs)) expect(cjs[name], name).toBe(value);
    expect(nestjs.CircuitOpenError).toBe(CircuitOpenError);
  });

  test("one version: the workspace's, the package's, the lock file's, the native module's", () => {
    const workspace = /^\[workspace\.package\]\nversion = "(.+)"$/m.exec(
      readFileSync(join(ROOT, "Cargo.toml"), "utf8"),
    );
    expect(workspace?.[1]).toBe(version);
    expect(require("./package.json").version).toBe(version);
    expect(require("./package-lock.json").version).toBe(version);
  });

  test("works in a worker thread, beside the main one", async () => {
    const worker = new Worker(
      `const { CircuitBreaker } = require("switchgear");
       const { parentPort } = require("node:worker_threads");
       const breaker = new CircuitBreaker("c", { failureThreshold: 1, clock: () => 0 });
       breaker.recordFailure();
       breaker.execute(() => 1).catch((error) => parentPort.postMessage({ error, fields: error.toJSON() }));`,
      { eval: true, stdout: true },
    );
    const { error, fields } = await new Promise<{ error: Error; fields: object }>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    await worker.terminate();
    expect(error).toBeInstanceOf(Error);
    expect(error.message).toMatch(/^circuit `c` is open, retry in 30.0 s$/);
    expect(new CircuitOpenError(fields as never)).toMatchObject({
      circuit: "c",
      state: "open",
      message: error.message,
    });
    expect(new CircuitBreaker("c").getState()).toBe("closed");
  });

  test("where no native file fits, it runs on WebAssembly, and says so once per process", () => {
    const platform = `${process.platform}-${process.arch}`;
    const file = `switchgear.${platform}.node`;
    const copy = mkdtempSync(join(tmpdir(), "switchgear-load-"));
    try {
      cpSync(join(ROOT, "dist"), copy, { recursive: true, filter: (path) => !path.endsWith(".node") });
      expect(withoutNative(copy)).toEqual([
        `no native module for ${platform}; this package holds none. It runs on WebAssembly instead.`,
      ]);
      // A module that is there and does not load: what the system says of it is told.
      writeFileSync(join(copy, file), "no module");
      expect(withoutNative(copy)).toEqual([
        expect.stringMatching(
          new RegExp(
            `^Node v\\S+ on \\S+ \\(.*glibc.*\\) cannot load ${file}: .+; this package holds ${file}. It runs on WebAssembly instead.$`,
          ),
        ),
      ]);
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  });

  test("a default in the documentation is the core's", () => {
    const types = readFileSync(join(ROOT, "bindings/node/ts/types.ts"), "utf8");
    for (const { name, default: value } of native().fieldTable()) {
      const documented = new RegExp(`@defaultValue (.+)\\n   \\*/\\n  ${name}\\?`).exec(types)?.[1];
      expect(documented?.replace(/\{@link (\w+)\}/, "$1").replaceAll("`", ""), name).toBe(value);
    }
  });
});

describe("errors", () => {
  const ERRORS: [error: Error & { code: string }, name: string][] = [
    [new ConfigError("`a` must be b, got `c`", "a", "c"), "ConfigError"],
    [new NameError("no name"), "NameError"],
    [new TimeError("no time"), "TimeError"],
    [new CircuitOpenError(REFUSAL), "CircuitOpenError"],
    [new CallTimeoutError("c", 5), "CallTimeoutError"],
    [new StoreError("LOADING"), "StoreError"],
    [new StoreUnavailableError("c", new StoreError("LOADING")), "StoreUnavailableError"],
  ];

  test("there is one class for each code of the core, and no other", () => {
    expect(ERRORS.map(([error]) => error.code)).toEqual(native().errorCodes());
  });

  test.each(ERRORS)("%s", (error, name) => {
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe(name);
    expect(String(error)).toBe(`${name}: ${error.message}`);
    expect(Object.prototype.toString.call(error)).toBe("[object Error]");
  });

  test("instanceof knows a refusal by its code, of whatever copy of the package, and nothing that only has one", () => {
    const path = require.resolve("switchgear");
    const cached = Object.keys(require.cache).filter((file) => !file.endsWith(".node"));
    for (const file of cached) delete require.cache[file];
    const copy = require(path);
    const theirs = new copy.CircuitOpenError(REFUSAL);
    expect(Object.getPrototypeOf(theirs)).not.toBe(CircuitOpenError.prototype);
    expect(theirs instanceof CircuitOpenError).toBe(true);
    expect(new CircuitOpenError(REFUSAL) instanceof copy.CircuitOpenError).toBe(true);
    expect(theirs instanceof StoreUnavailableError).toBe(false);
    expect(new copy.StoreUnavailableError("c", new StoreError("LOADING")) instanceof StoreUnavailableError).toBe(true);
    class Own extends CircuitOpenError {}
    expect(new Own(REFUSAL) instanceof Own && new Own(REFUSAL) instanceof CircuitOpenError).toBe(true);
    expect(theirs instanceof Own || new CircuitOpenError(REFUSAL) instanceof Own).toBe(false);
    const hostile = new Proxy(new Error("no"), {
      get: () => {
        throw new Error("not yours");
      },
    });
    for (const other of [{ code: "circuit_open" }, null, "circuit_open", hostile]) {
      expect((other as unknown) instanceof CircuitOpenError).toBe(false);
    }
  });

  test("a refusal carries what frameworks and retry loops look for", () => {
    const error = new CircuitOpenError(REFUSAL);
    expect(error).toMatchObject({
      ...REFUSAL,
      code: "circuit_open",
      status: 503,
      statusCode: 503,
      expose: false,
      retryable: false,
      headers: { "Retry-After": "13" },
      message: "circuit `billing` is open, retry in 12.3 s (last failure: ECONNREFUSED)",
    });
    expect(new StoreUnavailableError("c", "gone")).toMatchObject({
      status: 503,
      statusCode: 503,
      expose: false,
      headers: {},
      retryable: false,
      retryAfterMs: null,
      cause: "gone",
    });
  });

  test.each([
    [0, "0.0", "0"],
    [1, "0.1", "1"],
    [100, "0.1", "1"],
    [101, "0.2", "1"],
    [1000, "1.0", "1"],
    [1001, "1.1", "2"],
    [59_999, "60.0", "60"],
    [3_155_760_000_000, "3155760000.0", "3155760000"],
  ])("a wait of %d ms is never told too short", (retryAfterMs, seconds, header) => {
    const error = new CircuitOpenError({ ...REFUSAL, retryAfterMs, lastFailure: null });
    expect(error.message).toBe(`circuit \`billing\` is open, retry in ${seconds} s`);
    expect(error.headers).toEqual({ "Retry-After": header });
  });

  test("an unknown wait has no header", () => {
    const error = new CircuitOpenError({ ...REFUSAL, retryAfterMs: null });
    expect(error.headers).toEqual({});
    expect(error.message).toBe("circuit `billing` is open (forced, last failure: ECONNREFUSED)");
    const held = new CircuitBreaker("mail");
    held.forceOpen();
    expect(() => held.acquire()).toThrow(/^circuit `mail` is open \(forced\)$/);
  });

  test("that a store did not answer says why, where the words are the store's", () => {
    const message = (cause: unknown) => new StoreUnavailableError("c", cause).message;
    expect(message(new StoreError("no answer within 100 ms"))).toBe(
      "the store of circuit `c` did not answer: no answer within 100 ms",
    );
    // Anybody else's words may hold a password.
    expect(message(new Error("redis://me:secret@host"))).toBe("the store of circuit `c` did not answer");
  });

  test("each says in JSON what it is, and nothing of the inside of its cause", () => {
    const secret = Object.assign(new StoreError("LOADING"), { command: { args: ["secret"] } });
    const { message } = new StoreUnavailableError("c", secret);
    const told = (error: Error) => JSON.parse(JSON.stringify(error));
    expect(told(new StoreUnavailableError("c", secret))).toEqual({
      name: "StoreUnavailableError",
      code: "store_unavailable",
      message,
      circuit: "c",
      retryAfterMs: null,
    });
    expect(told(secret)).toEqual({ name: "StoreError", code: "store_error", message: "LOADING" });
    expect(told(new CallTimeoutError("c", 5))).toMatchObject({ code: "call_timeout", circuit: "c", timeoutMs: 5 });
    expect(told(new ConfigError("`a` must be b, got `c`", "a", "c"))).toEqual({
      name: "ConfigError",
      code: "config_invalid",
      message: "`a` must be b, got `c`",
      field: "a",
      value: "c",
    });
    for (const [error, name] of ERRORS) {
      expect(told(error)).toMatchObject({ name, code: error.code, message: error.message });
    }
  });

  test("a refusal survives structuredClone as an error, and JSON whole", () => {
    const breaker = new CircuitBreaker("billing", { failureThreshold: 1 });
    breaker.recordFailure(new Error("no answer"));
    const error = thrownBy(() => breaker.acquire()) as CircuitOpenError;
    const clone = structuredClone(error);
    expect(clone).toBeInstanceOf(Error);
    expect(clone.message).toBe(error.message);
    const again = new CircuitOpenError(JSON.parse(JSON.stringify(error)));
    expect(again).toBeInstanceOf(CircuitOpenError);
    expect(again.toJSON()).toEqual(error.toJSON());
    expect(structuredClone(error.toJSON())).toEqual(error.toJSON());
  });
});

describe("the machine alone", () => {
  test("answers by the time it is given, and nothing else", () => {
    const state = new CircuitBreakerState({ failureThreshold: 2, openDurationMs: 100 });
    expect([state.recordFailure(0), state.recordFailure(1), state.getState()]).toEqual(["applied", "applied", "open"]);
    expect([state.canRequest(100), state.retryAfterMs(100), state.canRequest(101)]).toEqual([false, 1, true]);
    expect([state.acquire(101), state.retryAfterMs(101)]).toEqual([null, 100]);
    expect([state.recordSuccess(102), state.getState(), state.recordFailure(103)]).toEqual([
      "applied",
      "closed",
      "applied",
    ]);
    state.trip(200, 7);
    expect([state.retryAfterMs(200), state.snapshot(200).remainingOpenMs]).toEqual([7, 7]);
    state.forceOpen(300);
    expect([state.retryAfterMs(9e12), state.canRequest(9e12), state.getState()]).toEqual([null, false, "open"]);
    state.disable(400);
    expect([state.canRequest(400), state.recordFailure(400), state.getState()]).toEqual([true, "stale", "closed"]);
    state.reset(500);
    const permit = state.acquire(500);
    expect(permit?.release(500)).toBe("applied");
    expect(state.snapshot(500)).toEqual({
      state: "closed",
      mode: "auto",
      failuresInWindow: 0,
      callsInWindow: 0,
      consecutiveFailures: 0,
      halfOpenSuccesses: 0,
      halfOpenInFlight: 0,
      openedAt: null,
      remainingOpenMs: 0,
      trips: 0,
      epoch: 500,
    });
  });

  test("options about running functions are checked, and have no effect", () => {
    expect(() => new CircuitBreakerState({ timeoutMs: 5, isFailure: () => false }).recordFailure(0)).not.toThrow();
    expect(() => new CircuitBreakerState({ timeoutMs: -5 })).toThrow(ConfigError);
  });
});

/** What loading says in a process that takes itself for one of another platform. */
/**
 * The warnings of a process that guards a call with a copy of the package, and of another thread that it starts. Throws unless
 * both are refused what they should be.
 */
function withoutNative(folder: string): string[] {
  const code = `
    const { Worker } = require("node:worker_threads");
    const use = ${String((folder: string) => {
      const { CircuitBreaker } = require(`${folder}/index.js`);
      require(`${folder}/redis.js`);
      const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
      breaker.recordFailure();
      if (breaker.canExecute()) throw new Error("not refused");
    })};
    const warnings = [];
    process.on("warning", ({ message }) => warnings.push(message));
    use(${JSON.stringify(folder)});
    const worker = new Worker(\`process.on("warning", ({ message }) => require("node:worker_threads").parentPort.postMessage(message));
      (\${use})(${JSON.stringify(folder)});\`, { eval: true });
    worker.on("message", (message) => warnings.push("in the thread: " + message));
    worker.on("exit", (code) => console.log(JSON.stringify(code === 0 ? warnings : ["the thread failed"])));`;
  return JSON.parse(execFileSync(process.execPath, ["-e", code], { encoding: "utf8" }));
}

function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error("it threw nothing");
}
