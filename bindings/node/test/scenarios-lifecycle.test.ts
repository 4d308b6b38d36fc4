// The users' scenarios about listeners, lifecycle and memory, on the local breaker.
import { CircuitBreaker, CircuitBreakerGroup, type Events } from "switchgear";
import { describe, expect, test, vi } from "vitest";
import { runScript } from "./support/child";
import { boom, fail, ManualClock, succeed } from "./support/time";

describe("listeners", () => {
  test("scenario 37: a listener may read, execute and reset the same breaker; events come after the fact, in order", async () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("c", { failureThreshold: 2, clock: clock.read });
    const told: string[] = [];
    const inside: Promise<unknown>[] = [];
    breaker.on("stateChange", ({ fromState, toState }) => {
      told.push(`first: ${fromState} -> ${toState}`);
      if (toState !== "open") return;
      expect(breaker.getState()).toBe("open");
      expect(breaker.getSnapshot().trips).toBe(1);
      inside.push(breaker.execute(succeed).catch((error) => error));
      breaker.reset();
      expect(breaker.getState()).toBe("closed");
      inside.push(breaker.execute(succeed));
    });
    breaker.on("stateChange", ({ fromState, toState }) => told.push(`second: ${fromState} -> ${toState}`));
    breaker.on("refused", () => told.push("refused"));
    breaker.on("failure", () => told.push("failure"));
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    await expect(breaker.execute(fail)).rejects.toBe(boom);
    expect(told).toEqual([
      "failure",
      "first: closed -> open",
      "second: closed -> open",
      "refused",
      "first: open -> closed",
      "second: open -> closed",
      "failure",
    ]);
    expect(await inside[0]).toMatchObject({ code: "circuit_open", lastFailure: "ECONNREFUSED" });
    expect(await inside[1]).toBe("ok");
  });

  test("scenario 37: a listener that trips and resets without end does not recurse", () => {
    const breaker = new CircuitBreaker("c");
    let changes = 0;
    breaker.on("stateChange", ({ toState }) => {
      changes += 1;
      if (changes >= 100_000) return;
      if (toState === "open") breaker.reset();
      else breaker.trip();
    });
    breaker.trip();
    expect(changes).toBe(100_000);
  });

  test("scenario 38: a listener that throws changes nothing, the others still run, and it is reported once", async () => {
    const warning = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    try {
      const breaker = new CircuitBreaker("c", { failureThreshold: 3 });
      const heard = vi.fn();
      for (const event of ["stateChange", "success", "failure", "refused"] as const) {
        breaker.on(event, () => {
          throw new Error(`from ${event}`);
        });
        breaker.on(event, async () => {
          throw new Error(`later, from ${event}`);
        });
        breaker.on(event, heard);
      }
      await expect(breaker.execute(succeed)).resolves.toBe("ok");
      for (let n = 0; n < 3; n++) await expect(breaker.execute(fail)).rejects.toBe(boom);
      expect(breaker.getState()).toBe("open");
      await expect(breaker.execute(succeed)).rejects.toMatchObject({ code: "circuit_open" });
      await expect(breaker.execute(succeed)).rejects.toMatchObject({ code: "circuit_open" });
      expect(heard).toHaveBeenCalledTimes(1 + 3 + 1 + 2);
      await new Promise((resolve) => setImmediate(resolve));
      // Four events, each with a listener that throws and one that rejects.
      expect(warning).toHaveBeenCalledTimes(8);
      expect(warning.mock.calls[0]?.[0]).toMatch("a listener of `success` threw (reported once): Error: from success");
    } finally {
      warning.mockRestore();
    }
  });

  test("unsubscribing removes one registration, once", async () => {
    const breaker = new CircuitBreaker("c");
    const heard = vi.fn();
    const first = breaker.on("success", heard);
    breaker.on("success", heard);
    await breaker.execute(succeed);
    expect(heard).toHaveBeenCalledTimes(2);
    first();
    first();
    await breaker.execute(succeed);
    expect(heard).toHaveBeenCalledTimes(3);
  });

  test("a listener added or removed while an event is told does not disturb the others", async () => {
    const breaker = new CircuitBreaker("c");
    const told: string[] = [];
    const off = breaker.on("success", () => {
      told.push("first");
      off();
      breaker.on("success", () => told.push("late"));
    });
    breaker.on("success", () => told.push("second"));
    await breaker.execute(succeed);
    expect(told).toEqual(["first", "second"]);
    await breaker.execute(succeed);
    expect(told).toEqual(["first", "second", "second", "late"]);
  });

  test("events say circuit, time, duration and error", async () => {
    const clock = new ManualClock(1000);
    const breaker = new CircuitBreaker("billing", { failureThreshold: 1, openDurationMs: 500, clock: clock.read });
    const told: [string, Events[keyof Events]][] = [];
    for (const event of ["stateChange", "success", "failure", "ignored", "refused"] as const) {
      breaker.on(event, (e) => told.push([event, e]));
    }
    await breaker.execute(() => {
      clock.now += 7;
      return succeed();
    });
    breaker.release();
    await breaker.execute(fail).catch(() => undefined);
    const refusal = await breaker.execute(succeed).catch((error) => error);
    expect(told).toEqual([
      ["success", { circuit: "billing", at: 1007, durationMs: 7 }],
      ["ignored", { circuit: "billing", at: 1007, durationMs: null }],
      [
        "stateChange",
        {
          circuit: "billing",
          fromState: "closed",
          toState: "open",
          at: 1007,
          failures: 1,
          openMs: 500,
          reason: "threshold",
          source: "local",
          instance: null,
        },
      ],
      ["failure", { circuit: "billing", at: 1007, durationMs: 0, error: boom }],
      ["refused", { circuit: "billing", at: 1007, durationMs: null, error: refusal }],
    ]);
  });

  test("a group hears what happens to its breakers, present and future", async () => {
    const group = new CircuitBreakerGroup({ failureThreshold: 1, name: "hosts" });
    const early = group.for("a");
    const told: string[] = [];
    group.on("success", ({ circuit }) => told.push(`success ${circuit}`));
    const off = group.on("stateChange", ({ circuit, toState }) => told.push(`${toState} ${circuit}`));
    early.on("success", () => told.push("own"));
    await early.execute(succeed);
    group.for("b").recordFailure();
    off();
    group.for("c").recordFailure();
    expect(told).toEqual(["own", "success hosts:a", "open hosts:b"]);
  });
});

describe("lifecycle and memory", () => {
  test("scenario 39: ten thousand refusals: a fresh error each, and the stack equally long", async () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker("billing", { failureThreshold: 1, openDurationMs: 12_345, clock: clock.read });
    await breaker.execute(fail).catch(() => undefined);
    const seen = new Set<unknown>();
    const lengths = new Set<number | undefined>();
    for (let n = 0; n < 10_000; n++) {
      const error = await breaker.execute(succeed).catch((refusal) => refusal);
      seen.add(error);
      lengths.add(error.stack?.length);
    }
    expect(seen.size).toBe(10_000);
    expect(lengths.size).toBe(1);
    const [error] = seen as Set<Error>;
    expect(error?.message).toBe("circuit `billing` is open, retry in 12.4 s (last failure: ECONNREFUSED)");
    expect(error?.stack).toBe(`CircuitOpenError: ${error?.message}`);
  });

  test("scenario 39: with refusalStack the stack leads to the caller", async () => {
    const breaker = new CircuitBreaker("c", { refusalStack: true });
    breaker.forceOpen();
    const limit = Error.stackTraceLimit;
    function theCaller() {
      return breaker.execute(succeed);
    }
    await expect(theCaller()).rejects.toHaveProperty("stack", expect.stringContaining("theCaller"));
    expect(Error.stackTraceLimit).toBe(limit);
  });

  test("scenario 39: the heap stays flat: a million successes, a million refusals", async () => {
    const { code, stdout, stderr } = await runScript(HEAP_OF_CALLS, ["--expose-gc"]);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    for (const [what, grown] of Object.entries(JSON.parse(stdout) as Record<string, number>)) {
      expect(grown, what).toBeLessThan(1_048_576);
    }
  });

  test("scenario 40: a million keys through a group of ten thousand keep ten thousand, open ones longest", async () => {
    const { code, stdout, stderr } = await runScript(HEAP_OF_KEYS, ["--expose-gc"]);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    const { size, kept, state, grown } = JSON.parse(stdout);
    expect({ size, kept, state }).toEqual({ size: 10_000, kept: true, state: "open" });
    expect(grown).toBeLessThan(1_048_576);
  });

  test("scenario 41: the process exits by itself", async () => {
    const { code, stdout, stderr } = await runScript(`
      import { CircuitBreaker, CircuitBreakerGroup } from "switchgear";
      const policy = { failureThreshold: 1, openDurationMs: 3_600_000, timeoutMs: 3_600_000 };
      const breaker = new CircuitBreaker("c", policy);
      const group = new CircuitBreakerGroup(policy);
      breaker.on("stateChange", () => {});
      await breaker.execute(async () => 1);
      await breaker.execute(async () => { throw new Error("no answer") }).catch(() => {});
      await breaker.execute(async () => 1).catch(() => {});
      await group.for("a").execute((signal) => 1, { signal: new AbortController().signal });
      await breaker.guard(async function* () { yield 1 })().next().catch(() => {});
      console.log(breaker.getState());
    `);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "open\n", stderr: "" });
  });

  test("scenario 41: a refusal nobody waits for is as loud as any rejection", async () => {
    const { code, stderr } = await runScript(`
      import { CircuitBreaker } from "switchgear";
      const breaker = new CircuitBreaker("c");
      breaker.forceOpen();
      breaker.execute(async () => 1);
    `);
    expect(code).toBe(1);
    expect(stderr).toContain("CircuitOpenError: circuit `c` is open");
  });
});

/** Prints by how many bytes the heap grew from call 200 000 to call 1 000 000. */
const HEAP_OF_CALLS = `
  import { CircuitBreaker } from "switchgear";
  const used = () => { gc(); gc(); return process.memoryUsage().heapUsed; };
  async function growth(breaker, fn) {
    let before;
    for (let n = 1; n <= 1_000_000; n++) {
      await breaker.execute(fn).catch(() => {});
      if (n === 200_000) before = used();
    }
    return used() - before;
  }
  const succeed = async () => 1;
  const open = (name) => { const breaker = new CircuitBreaker(name); breaker.trip({ forMs: 3_600_000 }); return breaker; };
  const listened = new CircuitBreaker("listened");
  listened.on("success", () => {});
  const refused = open("refused");
  refused.on("refused", () => {});
  console.log(JSON.stringify({
    successes: await growth(new CircuitBreaker("a"), succeed),
    "successes, listened to": await growth(listened, succeed),
    refusals: await growth(open("b"), succeed),
    "refusals, listened to": await growth(refused, succeed),
    failures: await growth(new CircuitBreaker("f", { failureThreshold: 1_000_000, windowMs: 1 }), async () => { throw 1 }),
  }));
`;

/** Prints what is left of a group of ten thousand through which a million keys went, and how the heap grew meanwhile. */
const HEAP_OF_KEYS = `
  import { CircuitBreakerGroup } from "switchgear";
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const group = new CircuitBreakerGroup({ maxKeys: 10_000, failureThreshold: 1 });
  const first = group.for("down");
  first.recordFailure();
  let before;
  for (let n = 0; n < 1_000_000; n++) {
    group.for("key " + n).recordSuccess();
    // What the native side holds is given back between turns of the event loop.
    if (n % 10_000 === 0) await turn();
    if (n === 200_000) { gc(); await turn(); gc(); before = process.memoryUsage().heapUsed; }
  }
  gc(); await turn(); gc();
  const grown = process.memoryUsage().heapUsed - before;
  const down = group.for("down");
  console.log(JSON.stringify({ size: [...group].length, kept: down === first, state: down.getState(), grown }));
`;
