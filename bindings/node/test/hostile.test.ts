// What is handed in may throw when it is looked at, and hosts have their ways: a call is still settled once, and gives its
// result.
import { runInNewContext } from "node:vm";
import { CircuitBreaker, type CircuitBreakerPolicy } from "switchgear";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { afterEach, describe, expect, test, vi } from "vitest";
import { runScript } from "./support/child";
import { boom, ManualClock, succeed } from "./support/time";

/** What a closed circuit reads as. */
const CLOSED = [null, null, "7", null, null];

/** A half-open circuit with one slot, which is free. */
function halfOpen(policy?: CircuitBreakerPolicy): CircuitBreaker {
  const clock = new ManualClock();
  const breaker = new CircuitBreaker("c", { failureThreshold: 1, openDurationMs: 100, clock: clock.read, ...policy });
  breaker.trip();
  clock.now = 100;
  return breaker;
}

function closed(): CircuitBreaker {
  return new CircuitBreaker("c", { tripOn: "consecutive", failureThreshold: 1 });
}

/** How often each kind of end was told. */
function endsOf(breaker: CircuitBreaker | DistributedCircuitBreaker): string[] {
  const ends: string[] = [];
  for (const end of ["success", "failure", "ignored"] as const) breaker.on(end, () => ends.push(end));
  return ends;
}

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function throwing(key: string | symbol, rest: object = {}): object {
  return Object.defineProperty(rest, key, {
    get() {
      throw boom;
    },
  });
}

/** Values that can be passed on, though looking closer at them throws. */
const PASSED_ON: Record<string, () => unknown> = {
  "a strict proxy": () =>
    new Proxy(
      {},
      {
        get(_, key) {
          if (key === "then") return undefined;
          throw new Error(`no property ${String(key)}`);
        },
      },
    ),
  "an object with a throwing tag": () => throwing(Symbol.toStringTag),
  "a generator, by its tag, whose `next` throws": () => throwing("next", { [Symbol.toStringTag]: "Generator" }),
  "an object with a throwing constructor": () => throwing("constructor"),
};

/** Values that no promise can pass on: whoever awaits them gets a throw. */
const AWAITED_IN_VAIN: Record<string, () => unknown> = {
  "a revoked proxy": () => revoked({}),
  "an object with a throwing `then`": () => throwing("then"),
  "a promise with a throwing constructor": () => throwing("constructor", Promise.resolve(1)),
  "something that only looks like a promise": () => Object.create(Promise.prototype),
};

describe.each(Object.entries(PASSED_ON))("%s", (_name, make) => {
  test.each([
    ["closed", closed],
    ["half-open", halfOpen],
  ])("is a success like any other: %s", async (_state, given) => {
    for (const way of ["execute", "guard", "executeSync"] as const) {
      const breaker = given();
      const value = make();
      const got =
        way === "guard"
          ? breaker.guard(() => value)()
          : way === "execute"
            ? breaker.execute(() => value)
            : breaker.executeSync(() => value);
      expect((await got) === value).toBe(true);
      expect(breaker.getSnapshot()).toMatchObject({ state: "closed", halfOpenInFlight: 0 });
      const told = given();
      const ends = endsOf(told);
      await told.execute(() => value);
      expect(ends).toEqual(["success"]);
    }
  });

  test("is a success of a shared circuit", async () => {
    const breaker = new DistributedCircuitBreaker("c", new RedisStore({ command: async () => CLOSED }));
    const ends = endsOf(breaker);
    const value = make();
    expect((await breaker.execute(() => value)) === value).toBe(true);
    expect(ends).toEqual(["success"]);
  });
});

describe.each(Object.entries(AWAITED_IN_VAIN))("%s", (_name, make) => {
  test.each([
    ["closed", closed],
    ["half-open", halfOpen],
  ])("is a rejection, never a throw, and settles once: %s", async (_state, given) => {
    const breaker = given();
    const call = breaker.execute(make);
    await expect(call).rejects.toBeInstanceOf(Error);
    expect(breaker.getSnapshot()).toMatchObject({ state: "open", halfOpenInFlight: 0 });
    const told = given();
    const ends = endsOf(told);
    await told.execute(make).catch(() => undefined);
    expect(ends).toEqual(["failure"]);
  });
});

test.each(["a revoked proxy", "an object with a throwing `then`"])("a sync call gives back %s as it is", (name) => {
  const breaker = halfOpen();
  const value = AWAITED_IN_VAIN[name]?.();
  expect(breaker.executeSync(() => value) === value).toBe(true);
  expect(breaker.getSnapshot()).toMatchObject({ state: "closed", halfOpenInFlight: 0 });
  expect(closed().guard(() => value)() === value).toBe(true);
});

test("an error that cannot be looked at is passed on, also by a fallback", async () => {
  const error = revoked(new Error());
  const thrower = () => {
    throw error;
  };
  for (const breaker of [closed(), halfOpen()]) {
    const thrown = await breaker.execute(thrower).catch((e) => e === error);
    expect(thrown).toBe(true);
    expect(breaker.getState()).toBe("open");
    const instead = await breaker.execute(succeed, { fallback: thrower }).catch((e) => e === error);
    expect(instead).toBe(true);
  }
});

test("a generator whose step gives nothing that can be looked at is a failure", async () => {
  const odd = { [Symbol.toStringTag]: "Generator", next: () => throwing("done") };
  const breaker = halfOpen();
  const generator = (await breaker.execute(() => odd)) as unknown as Generator;
  expect(() => generator.next()).toThrow(boom);
  expect(breaker.getSnapshot()).toMatchObject({ state: "open", halfOpenInFlight: 0 });
});

describe("listeners", () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  test("a delivery that breaks off, as on an exhausted stack, silences nobody for good", async () => {
    vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const breaker = new CircuitBreaker("c");
    const heard = vi.fn();
    breaker.on("success", () => {
      throw boom;
    });
    breaker.on("success", heard);
    // Where exactly a stack ends is no test's to say: the first thing that is asked after the throw stands for it.
    vi.spyOn(WeakSet.prototype, "has").mockImplementationOnce(() => {
      throw new RangeError("Maximum call stack size exceeded");
    });
    expect(breaker.executeSync(() => 1)).toBe(1);
    expect(heard).not.toHaveBeenCalled();
    for (let n = 1; n <= 3; n++) {
      expect(breaker.executeSync(() => n)).toBe(n);
      expect(heard).toHaveBeenCalledTimes(n);
    }
  });

  test("a host that forbids warnings silences nobody and hides no result", async () => {
    vi.spyOn(process, "emitWarning").mockImplementation(() => {
      throw new Error("no warnings in tests");
    });
    const breaker = new CircuitBreaker("c");
    const heard = vi.fn();
    breaker.on("success", () => {
      throw boom;
    });
    breaker.on("success", heard);
    for (let n = 0; n < 3; n++) await expect(breaker.execute(succeed)).resolves.toBe("ok");
    expect(heard).toHaveBeenCalledTimes(3);
  });

  test("a warning shows no password, one line, and not much of it", async () => {
    const warning = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const breaker = new CircuitBreaker("c");
    breaker.on("success", () => {
      throw new Error(`connect redis://user:secret@host\n${"x".repeat(1000)}`);
    });
    breaker.on("success", () => {
      throw Symbol("odd");
    });
    await breaker.execute(succeed);
    const [first, second] = warning.mock.calls.map(([text]) => String(text));
    expect(first).toContain("connect redis://");
    expect(first).not.toContain("secret");
    expect(first).not.toContain("\n");
    expect(first?.length).toBeLessThan(300);
    expect(second).toContain("Symbol(odd)");
  });

  test("a promise of another realm that rejects ends no process", async () => {
    const ran = await runScript(`
      import { runInNewContext } from "node:vm";
      import { CircuitBreaker } from "switchgear";
      const breaker = new CircuitBreaker("c");
      breaker.on("success", () => runInNewContext("Promise.reject(new Error('theirs'))"));
      await breaker.execute(() => 1);
      try {
        breaker.executeSync(() => runInNewContext("Promise.reject(new Error('theirs'))"));
      } catch (error) {
        console.log(error.name);
      }
    `);
    expect(ran).toMatchObject({ code: 0, stdout: "TypeError\n" });
    expect(ran.stderr).toContain("a listener of `success` threw (reported once): Error: theirs");
  });
});

test("a lazy thenable that executeSync refuses is not begun", () => {
  // biome-ignore lint/suspicious/noThenProperty: a lazy thenable is what this is about.
  const lazy = { then: vi.fn() };
  expect(() => new CircuitBreaker("c").executeSync(() => lazy)).toThrow(TypeError);
  expect(lazy.then).not.toHaveBeenCalled();
});

test("a long failure text is not cut in the middle of a character", async () => {
  const breaker = closed();
  const error = new Error(`${"a".repeat(199)}\u{1f600}\u{1f600}`);
  await breaker.execute(() => Promise.reject(error)).catch(() => undefined);
  const refused = await breaker.execute(succeed).catch((refusal) => refusal);
  expect(refused.lastFailure).toBe(`${"a".repeat(199)}...`);
});

describe.each([null, undefined, Symbol("no time")])("a clock that throws %s", (thrown) => {
  test("while settling hides nothing", async () => {
    const warning = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    try {
      let broken = false;
      const clock = () => {
        if (broken) throw thrown;
        return 5;
      };
      const store = new RedisStore({ command: async () => CLOSED }, { clock });
      for (const breaker of [new CircuitBreaker("c", { clock }), new DistributedCircuitBreaker("c", store)]) {
        broken = false;
        const call = breaker.execute(async () => {
          broken = true;
          throw boom;
        });
        await expect(call).rejects.toBe(boom);
      }
      expect(warning).toHaveBeenCalledTimes(1);
    } finally {
      warning.mockRestore();
    }
  });
});

test.each([Symbol("now"), Object.create(null)])(
  "a clock that gives no number is wrong in the words of any other",
  async (odd) => {
    let now = 0;
    const breaker = new CircuitBreaker("c", { clock: () => now });
    breaker.trip();
    now = odd as unknown as number;
    await expect(breaker.execute(succeed)).rejects.toMatchObject({ code: "time_invalid" });
  },
);

test("a signal that cannot be left is refused", async () => {
  const signal = { aborted: false, addEventListener: () => undefined } as unknown as AbortSignal;
  const call = new CircuitBreaker("c").execute(succeed, { signal });
  await expect(call).rejects.toMatchObject({ code: "config_invalid", field: "signal" });
});

describe("clients and hosts", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  test("a reply stays the client's own, frozen or of Buffers", async () => {
    const reply = Object.freeze([null, null, Buffer.from("5"), null, null]);
    const breaker = new DistributedCircuitBreaker("c", new RedisStore({ command: async () => reply }));
    expect(await breaker.execute(() => "ran")).toBe("ran");
    expect(reply[2]).toEqual(Buffer.from("5"));
  });

  test.each([
    ["a sparse array", () => new Array(10)],
    ["a sparse array of five", () => new Array(5).fill(undefined, 0, 1)],
    [
      "a list that throws",
      () =>
        new Proxy([], {
          get(_, key) {
            if (key !== "then") throw boom;
          },
        }),
    ],
    ["an item that is no text", () => [1, 2, 3, 4, Object.create(null)]],
    ["symbols", () => [Symbol("a"), Symbol("b")]],
  ])("a reply that is none is the store's error: %s", async (_name, make) => {
    const store = new RedisStore(
      { command: async (args) => (args.includes("HMGET") ? CLOSED : make()) },
      { clock: "system" },
    );
    const errors: unknown[] = [];
    store.on("storeError", ({ error }) => errors.push(error));
    const breaker = new DistributedCircuitBreaker("c", store, { onStoreFailure: "fail-closed" });
    expect(await breaker.recordFailure()).toBe("stale");
    expect(errors).toMatchObject([{ code: "store_error", message: "the reply is none that a command of ours gets" }]);
  });

  test("an error of another realm is known by its text", async () => {
    const commands: string[] = [];
    const command = async ([name = ""]: string[]): Promise<unknown> => {
      commands.push(name);
      if (name === "EVALSHA") throw runInNewContext("new Error('NOSCRIPT No matching script')");
      throw new Error("enough");
    };
    const breaker = new DistributedCircuitBreaker("c", new RedisStore({ command }, { clock: "system" }), {
      onStoreFailure: "fail-closed",
    });
    expect(await breaker.recordFailure()).toBe("stale");
    expect(commands).toEqual(["EVALSHA", "EVAL"]);
  });

  test("timers may be numbers", async () => {
    const set = setTimeout;
    vi.stubGlobal("setTimeout", (fn: () => void, ms: number) => Number(set(fn, ms)));
    vi.stubGlobal("setImmediate", undefined);
    const store = new RedisStore({ command: () => new Promise(() => undefined) }, { timeoutMs: 5 });
    const breaker = new DistributedCircuitBreaker("c", store, { onStoreFailure: "fail-closed" });
    for (let n = 0; n < 2; n++) {
      await expect(breaker.execute(succeed)).rejects.toMatchObject({ code: "store_unavailable" });
    }
  });

  test("a store that never answers keeps the process until its callers are told, and no longer", async () => {
    const ran = await runScript(`
      import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
      const hanging = new RedisStore({ command: () => new Promise(() => {}) }, { timeoutMs: 50 });
      const breaker = new DistributedCircuitBreaker("c", hanging, { onStoreFailure: "fail-closed" });
      for (let n = 0; n < 2; n++) console.log(await breaker.execute(() => 1).catch((error) => error.code));
      const command = async () => [null, null, "7", null, null];
      const answering = new RedisStore({ command }, { timeoutMs: 600_000 });
      console.log(await new DistributedCircuitBreaker("c", answering).execute(() => 1));
    `);
    expect(ran).toEqual({ code: 0, stdout: "store_unavailable\nstore_unavailable\n1\n", stderr: "" });
  });

  test("a store of another copy of the package is told from anything else", async () => {
    const ran = await runScript(`
      import { createRequire } from "node:module";
      import { DistributedCircuitBreaker } from "switchgear/redis";
      const require = createRequire(import.meta.url);
      const path = require.resolve("switchgear/redis");
      for (const file of Object.keys(require.cache)) if (!file.endsWith(".node")) delete require.cache[file];
      const { RedisStore } = require(path);
      const store = new RedisStore({ command: async () => null });
      try {
        new DistributedCircuitBreaker("c", store);
      } catch (error) {
        console.log(error.code, error.field, error.message.includes("another copy of switchgear"));
      }
    `);
    expect(ran).toEqual({ code: 0, stdout: "config_invalid store true\n", stderr: "" });
  });
});
