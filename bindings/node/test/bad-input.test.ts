// Bad input: a clear error that names the field, the value and what is valid, before anything changes.
import { runInNewContext } from "node:vm";
import {
  CircuitBreaker,
  CircuitBreakerGroup,
  type CircuitBreakerPolicy,
  CircuitBreakerState,
  ConfigError,
  NameError,
  TimeError,
} from "switchgear";
import { DistributedCircuitBreaker, DistributedCircuitBreakerGroup, RedisStore } from "switchgear/redis";
import { describe, expect, test, vi } from "vitest";
// The door through which a framework's module hands in its defaults; no entry of the package opens it.
import { PreparedPolicy } from "../../../dist/breaker.js";
import { BREAKER_POLICY, readPolicy } from "../../../dist/config.js";
import { boom, fail, ManualClock, succeed } from "./support/time";

/** The three that take a policy. */
const CONSTRUCTORS: Record<string, (policy: never) => unknown> = {
  CircuitBreaker: (policy) => new CircuitBreaker("c", policy),
  CircuitBreakerGroup: (policy) => new CircuitBreakerGroup(policy),
  CircuitBreakerState: (policy) => new CircuitBreakerState(policy),
};

const COUNT = "an integer from 1 to 1000000";
const DURATION = "an integer from 1 to 3155760000000 (milliseconds)";
const TIMER = "an integer from 1 to 2147483647 (milliseconds)";

/** Policies that cannot be taken: field, value as shown, message. */
const POLICIES: [policy: unknown, field: string, value: string | null, message: string][] = [
  [{ failureThreshold: 0 }, "failureThreshold", "0", `\`failureThreshold\` must be ${COUNT}, got \`0\``],
  [{ failureThreshold: -1 }, "failureThreshold", "-1", `\`failureThreshold\` must be ${COUNT}, got \`-1\``],
  [{ failureThreshold: 1.5 }, "failureThreshold", "1.5", `\`failureThreshold\` must be ${COUNT}, got \`1.5\``],
  [
    { failureThreshold: 1_000_001 },
    "failureThreshold",
    "1000001",
    `\`failureThreshold\` must be ${COUNT}, got \`1000001\``,
  ],
  [{ failureThreshold: Number.NaN }, "failureThreshold", "NaN", `\`failureThreshold\` must be ${COUNT}, got \`NaN\``],
  [{ failureThreshold: "5" }, "failureThreshold", "'5'", `\`failureThreshold\` must be ${COUNT}, got \`'5'\``],
  [{ failureThreshold: 5n }, "failureThreshold", "5n", `\`failureThreshold\` must be ${COUNT}, got \`5n\``],
  [{ failureThreshold: null }, "failureThreshold", "null", `\`failureThreshold\` must be ${COUNT}, got \`null\``],
  [
    { failureThreshold: [5] },
    "failureThreshold",
    "an array",
    `\`failureThreshold\` must be ${COUNT}, got \`an array\``,
  ],
  [
    { failureThreshold: {} },
    "failureThreshold",
    "an object",
    `\`failureThreshold\` must be ${COUNT}, got \`an object\``,
  ],
  [
    { openDurationMs: Infinity },
    "openDurationMs",
    "Infinity",
    `\`openDurationMs\` must be ${DURATION}, got \`Infinity\``,
  ],
  [
    { windowMs: 3_155_760_000_001 },
    "windowMs",
    "3155760000001",
    `\`windowMs\` must be ${DURATION}, got \`3155760000001\``,
  ],
  [{ openBackoff: 0.5 }, "openBackoff", "0.5", "`openBackoff` must be a number from 1 to 100, got `0.5`"],
  [
    { openDurationMs: 10, openDurationMaxMs: 9 },
    "openDurationMaxMs",
    "9",
    "`openDurationMaxMs` must be at least openDurationMs (10), got `9`",
  ],
  [{ tripOn: "Rate" }, "tripOn", "'Rate'", "`tripOn` must be 'rolling', 'consecutive' or 'rate', got `'Rate'`"],
  [{ tripOn: true }, "tripOn", "true", "`tripOn` must be 'rolling', 'consecutive' or 'rate', got `true`"],
  [{ failureRate: 0.5 }, "failureRate", null, "`failureRate` needs tripOn: 'rate'"],
  [
    { tripOn: "rate", failureRate: 0 },
    "failureRate",
    "0",
    "`failureRate` must be a number above 0, at most 1, got `0`",
  ],
  [{ tripOn: "consecutive", windowMs: 1000 }, "windowMs", null, "`windowMs` needs tripOn: 'rolling' or 'rate'"],
  [
    { resetTimeoutMs: 1, openDurationMs: 1 },
    "openDurationMs",
    null,
    "`resetTimeoutMs` and `openDurationMs` are two names of one option; give one of them",
  ],
  [{ isFailure: "always" }, "isFailure", "'always'", "`isFailure` must be a function, got `'always'`"],
  [{ isFailureResult: 1 }, "isFailureResult", "1", "`isFailureResult` must be a function, got `1`"],
  [{ slowCallMs: 0 }, "slowCallMs", "0", `\`slowCallMs\` must be ${DURATION}, got \`0\``],
  [{ timeoutMs: "1s" }, "timeoutMs", "'1s'", `\`timeoutMs\` must be ${TIMER}, got \`'1s'\``],
  [{ timeoutMs: 2_147_483_648 }, "timeoutMs", "2147483648", `\`timeoutMs\` must be ${TIMER}, got \`2147483648\``],
  [{ observe: 1 }, "observe", "1", "`observe` must be true or false, got `1`"],
  [{ refusalStack: "yes" }, "refusalStack", "'yes'", "`refusalStack` must be true or false, got `'yes'`"],
  [{ clock: 5 }, "clock", "5", "`clock` must be a function, got `5`"],
  [5, "policy", "5", "`policy` must be an object, got `5`"],
  [null, "policy", "null", "`policy` must be an object, got `null`"],
  [[], "policy", "an array", "`policy` must be an object, got `an array`"],
  ["redis://me:secret@host", "policy", "'redis://***@host'", "`policy` must be an object, got `'redis://***@host'`"],
];

describe.each(Object.entries(CONSTRUCTORS))("the policy of a %s", (_name, create) => {
  test.each(POLICIES)("%o", (policy, field, value, message) => {
    expect(() => create(policy as never)).toThrow(
      expect.objectContaining({ code: "config_invalid", field, value, message }),
    );
    expect(() => create(policy as never)).toThrow(ConfigError);
  });

  test("one that is not plain: what it inherits would go unread", () => {
    class Limits {
      get failureThreshold() {
        return 1;
      }
    }
    const unread = [Object.create({ failureThreshold: 1 }), new Limits(), new Map(), Object.create(new Limits())];
    for (const policy of [...unread, Object.create(Object.create(null))]) {
      expect(() => create(policy as never)).toThrow(
        expect.objectContaining({
          code: "config_invalid",
          field: "policy",
          value: "an object that inherits from another",
          message:
            "`policy` must be a plain object, `{ ... }` with each option written out, got `an object that inherits from another`",
        }),
      );
    }
    const plain = [{}, Object.create(null), runInNewContext("({ openDurationMs: 5 })"), JSON.parse("{}")];
    for (const policy of plain) expect(() => create(policy as never)).not.toThrow();
  });

  test("each option is read once", () => {
    const reads: string[] = [];
    const policy = {};
    for (const [name, value] of Object.entries({ failureThreshold: 1, isFailure: () => true, observe: false })) {
      const get = () => {
        reads.push(name);
        return value;
      };
      Object.defineProperty(policy, name, { enumerable: true, get });
    }
    create(policy as never);
    expect(reads).toEqual(["failureThreshold", "isFailure", "observe"]);
  });

  test("an unknown option: the error lists those there are", () => {
    for (const name of ["failurethreshold", "threshold", "failure_threshold", "__proto__", "constructor", ""]) {
      const policy = JSON.parse(`{"${name}": 1}`);
      expect(() => create(policy as never), name).toThrow(
        expect.objectContaining({
          code: "config_invalid",
          field: name,
          message: expect.stringMatching(
            new RegExp(
              `^\`${name}\` is not an option; valid are tripOn, failureThreshold, .*probeTimeoutMs, isFailure, .*clock`,
            ),
          ),
        }),
      );
    }
  });

  test("undefined is left out, and the policy is read once: changing it later changes nothing", () => {
    const policy: CircuitBreakerPolicy = { failureThreshold: undefined, isFailure: undefined, clock: undefined };
    expect(() => create(policy as never)).not.toThrow();
    expect(() => create(undefined as never)).not.toThrow();
    expect(() => create(Object.freeze({ failureThreshold: 1 }) as never)).not.toThrow();
  });
});

describe("a policy in levels (module, group, call site), the outermost first", () => {
  const tripsAfter = (levels: object[]) => {
    const { config } = readPolicy(levels, BREAKER_POLICY);
    const breaker = new CircuitBreaker(
      "c",
      new PreparedPolicy(config, readPolicy(levels, BREAKER_POLICY).host) as never,
    );
    let failures = 0;
    while (breaker.getState() === "closed" && failures < 100) {
      breaker.recordFailure();
      failures += 1;
    }
    return failures;
  };

  test("an inner level wins, and defaults it does not use are dropped", () => {
    expect(tripsAfter([{ failureThreshold: 7 }, { failureThreshold: 2 }])).toBe(2);
    expect(tripsAfter([{ failureThreshold: 7 }, { failureThreshold: undefined }])).toBe(7);
    expect(tripsAfter([{ tripOn: "rate", failureRate: 0.1, minimumCalls: 9 }, { tripOn: "rolling" }])).toBe(5);
    expect(tripsAfter([{ windowMs: 1000, failureThreshold: 3 }, { tripOn: "consecutive" }])).toBe(3);
  });

  test("what a level gives and its tripOn does not use is an error there", () => {
    expect(() => tripsAfter([{ failureRate: 0.5 }, { tripOn: "rate" }])).toThrow("`failureRate` needs tripOn: 'rate'");
    expect(() => tripsAfter([{ tripOn: "consecutive" }, { windowMs: 5 }])).toThrow("`windowMs` needs tripOn");
  });
});

describe("a name that is no circuit", () => {
  const NAMES: [name: unknown, end: string][] = [
    ["", ", got an empty text"],
    ["a\0b", ", got one with `U+0000`"],
    ["a\nb", ", got one with `U+000A`"],
    ["\u0085", ", got one with `U+0085`"],
    ["\ud800", ", got one with a lone surrogate"],
    ["a\udc00b", ", got one with a lone surrogate"],
    ["n".repeat(513), ", got 513 bytes"],
    ["\u20ac".repeat(171), ", got 513 bytes"],
    [10_240, " must be a string, got `10240`"],
    [undefined, " must be a string, got `undefined`"],
    [null, " must be a string, got `null`"],
    [Symbol("c"), " must be a string, got `a symbol`"],
  ];

  test.each(NAMES)("%o", (name, end) => {
    const error = expect.objectContaining({ code: "name_invalid", message: expect.stringMatching(`${escaped(end)}$`) });
    expect(() => new CircuitBreaker(name as string)).toThrow(error);
    expect(() => new CircuitBreaker(name as string)).toThrow(NameError);
    const group = new CircuitBreakerGroup({ maxKeys: 1 });
    const other = group.for("other");
    expect(() => group.for(name as string)).toThrow(error);
    expect([...group]).toEqual([other]);
    if (name !== undefined) expect(() => new CircuitBreakerGroup({ name: name as string })).toThrow(NameError);
  });

  test.each(["}x", "a{b}c", "GET /users/{id}", " ", "\u{1f4b3}", "n".repeat(512)])("%o is one", (name) => {
    expect(new CircuitBreaker(name).name).toBe(name);
    expect(new CircuitBreakerGroup().for(name).name).toBe(name);
  });
});

describe("a function that is no function", () => {
  test.each([undefined, null, 5, "fn", {}, Promise.resolve()])("%o", async (fn) => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
    await expect(breaker.execute(fn as never)).rejects.toThrow(TypeError);
    await expect(breaker.execute(fn as never, { timeoutMs: 5 })).rejects.toThrow(
      /^what to guard must be a function, got /,
    );
    expect(() => breaker.executeSync(fn as never)).toThrow(TypeError);
    expect(() => breaker.guard(fn as never)).toThrow(TypeError);
    expect(() => breaker.on("success", fn as never)).toThrow(/^the listener of `success` must be a function, got /);
    expect(breaker.getState()).toBe("closed");
  });

  test("an event there is none of", () => {
    const message = "no event is called 'open'; there are stateChange, success, failure, ignored, refused";
    expect(() => new CircuitBreaker("c").on("open" as never, () => undefined)).toThrow(message);
    expect(() => new CircuitBreakerGroup().on("open" as never, () => undefined)).toThrow(message);
  });
});

describe("the options of a call", () => {
  const OPTIONS: [options: unknown, field: string, message: string][] = [
    [{ timeout: 5 }, "timeout", "`timeout` is not an option; valid are fallback, fallbackOn, signal, timeoutMs"],
    [{ timeoutMs: 0 }, "timeoutMs", `\`timeoutMs\` must be ${TIMER}, got \`0\``],
    [{ timeoutMs: null }, "timeoutMs", `\`timeoutMs\` must be ${TIMER}, got \`null\``],
    [{ fallback: "cached" }, "fallback", "`fallback` must be a function, got `'cached'`"],
    [{ fallbackOn: "error" }, "fallbackOn", "`fallbackOn` must be 'refusal' or 'failure', got `'error'`"],
    [{ signal: {} }, "signal", "`signal` must be an AbortSignal, got `an object`"],
    [{ signal: new AbortController() }, "signal", "`signal` must be an AbortSignal, got `an object`"],
    ["fast", "options", "`options` must be an object, got `'fast'`"],
    [
      Object.create({ timeoutMs: 5 }),
      "options",
      "`options` must be a plain object, `{ ... }` with each option written out, got `an object that inherits from another`",
    ],
    [null, "options", "`options` must be an object, got `null`"],
  ];

  test.each(OPTIONS)("%o", async (options, field, message) => {
    const breaker = new CircuitBreaker("c");
    const body = vi.fn();
    const error = expect.objectContaining({ code: "config_invalid", field, message });
    await expect(breaker.execute(body, options as never)).rejects.toThrow(error);
    expect(() => breaker.guard(body, options as never)).toThrow(error);
    expect(body).not.toHaveBeenCalled();
  });

  test("a sync call takes no signal and no timeout", () => {
    const breaker = new CircuitBreaker("c");
    for (const field of ["signal", "timeoutMs"]) {
      const message = `\`${field}\` is not an option; valid are fallback, fallbackOn`;
      expect(() => breaker.executeSync(() => 1, { [field]: 5 } as never)).toThrow(
        expect.objectContaining({ field, message }),
      );
    }
  });

  test("the options of trip", () => {
    const breaker = new CircuitBreaker("c");
    for (const forMs of [0, -1, 1.5, Number.NaN, "5", null, 3_155_760_000_001]) {
      expect(() => breaker.trip({ forMs } as never)).toThrow(
        expect.objectContaining({ code: "config_invalid", field: "forMs" }),
      );
      expect(() => new CircuitBreakerState().trip(0, forMs as never)).toThrow(ConfigError);
    }
    expect(() => breaker.trip({ ms: 5 } as never)).toThrow("`ms` is not an option; valid are forMs");
    expect(() => breaker.trip(5 as never)).toThrow("`options` must be an object, got `5`");
    expect(breaker.getSnapshot()).toMatchObject({ state: "closed", trips: 0, epoch: 0 });
  });

  test("the options of a group", () => {
    for (const maxKeys of [0, -1, 1.5, 1_000_001, "5"]) {
      const error = expect.objectContaining({ field: "maxKeys", message: expect.stringContaining(COUNT) });
      expect(() => new CircuitBreakerGroup({ maxKeys } as never)).toThrow(error);
    }
    expect(() => new CircuitBreaker("c", { maxKeys: 5 } as never)).toThrow("`maxKeys` is not an option");
  });
});

describe("a sync entry handed an awaitable", () => {
  test("an async function is refused before it runs", () => {
    const breaker = new CircuitBreaker("c");
    const body = vi.fn();
    const message = /^executeSync of circuit `c` was given a function whose result has to be awaited: use execute$/;
    expect(() => breaker.executeSync(async () => body())).toThrow(message);
    expect(() => breaker.executeSync(async () => body())).toThrow(TypeError);
    expect(body).not.toHaveBeenCalled();
  });

  test("a function that returns a promise or a thenable is found out, counts nowhere and frees its slot", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    try {
      const clock = new ManualClock();
      const breaker = new CircuitBreaker("c", { failureThreshold: 1, openDurationMs: 1000, clock: clock.read });
      const then = vi.fn();
      for (const result of [Promise.reject(boom), { then }]) {
        breaker.trip();
        clock.now += 1000;
        expect(() => breaker.executeSync(() => result)).toThrow(/: use execute$/);
        expect(breaker.getSnapshot()).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
      }
      await new Promise((resolve) => setImmediate(resolve));
      expect(then).not.toHaveBeenCalled();
      expect(unhandled).not.toHaveBeenCalled();
    } finally {
      process.off("unhandledRejection", unhandled);
    }
  });
});

describe("a permit settled twice", () => {
  test("does nothing the second time and says so", () => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 2 });
    const state = new CircuitBreakerState({ failureThreshold: 2 });
    const permit = breaker.acquire();
    expect(permit.recordFailure()).toBe("applied");
    expect([permit.recordFailure(), permit.recordSuccess(), permit.release()]).toEqual(Array(3).fill("duplicate"));
    expect(breaker.getSnapshot().failuresInWindow).toBe(1);
    const other = state.acquire(0);
    expect(other?.recordFailure(0)).toBe("applied");
    expect([other?.recordFailure(0), other?.recordSuccess(0), other?.release(0)]).toEqual(Array(3).fill("duplicate"));
    expect(state.snapshot(0).failuresInWindow).toBe(1);
  });

  test("a listener that settles again finds it settled", () => {
    const breaker = new CircuitBreaker("c", { failureThreshold: 1 });
    const permit = breaker.acquire();
    const again: string[] = [];
    breaker.on("stateChange", () => again.push(permit.recordFailure()));
    permit.recordFailure();
    expect(again).toEqual(["duplicate"]);
  });
});

describe("a time that is none", () => {
  const TIMES = [Number.NaN, -1, 0.5, 2 ** 52 + 1, Infinity, -Infinity];
  const OTHERS = [undefined, null, "5", 5n, {}, new Date()];

  test.each(TIMES)("%d is refused by every call of the state machine, and nothing changes", (now) => {
    const state = new CircuitBreakerState({ failureThreshold: 1 });
    const permit = state.acquire(0);
    const before = state.snapshot(0);
    const message = /^`now` must be an integer from 0 to 4503599627370496 \(2\^52\) milliseconds, got `/;
    for (const call of callsAt(state, permit, now)) {
      expect(call).toThrow(TimeError);
      expect(call).toThrow(message);
    }
    expect(state.snapshot(0)).toEqual(before);
    expect(permit?.recordFailure(2 ** 52)).toBe("applied");
  });

  test.each(OTHERS)("%o is no number, and refused alike", (now) => {
    const state = new CircuitBreakerState();
    const permit = state.acquire(0);
    for (const call of callsAt(state, permit, now as never))
      expect(call).toThrow(expect.objectContaining({ code: "time_invalid" }));
    expect(state.snapshot(0).epoch).toBe(0);
  });

  test.each([...TIMES, ...OTHERS])("a clock that reads %o", async (reading) => {
    let now: unknown = 0;
    const breaker = new CircuitBreaker("c", { failureThreshold: 1, clock: () => now as number });
    const permit = breaker.acquire();
    breaker.trip();
    now = reading;
    const body = vi.fn();
    await expect(breaker.execute(body)).rejects.toThrow(TimeError);
    for (const call of [
      () => breaker.executeSync(body),
      () => breaker.guard(body)(),
      () => breaker.canExecute(),
      () => breaker.acquire(),
      () => breaker.recordFailure(),
      () => permit.recordSuccess(),
      () => breaker.getSnapshot(),
      () => breaker.reset(),
      () => breaker.trip(),
      () => breaker.forceOpen(),
      () => breaker.disable(),
    ]) {
      expect(call).toThrow(TimeError);
    }
    expect(body).not.toHaveBeenCalled();
    now = 1;
    expect(breaker.getSnapshot()).toMatchObject({ state: "open", openedAt: 0, trips: 1 });
    expect(permit.recordSuccess()).toBe("stale");
  });

  test("a clock that fails while a call is settled hides neither its value nor its error", async () => {
    const warning = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    try {
      let now = 0;
      const breaker = new CircuitBreaker("c", { tripOn: "consecutive", failureThreshold: 1, clock: () => now });
      now = Number.NaN;
      await expect(breaker.execute(fail)).rejects.toBe(boom);
      await expect(breaker.execute(fail, { timeoutMs: 60_000 })).rejects.toBe(boom);
      await expect(breaker.execute(succeed)).resolves.toBe("ok");
      expect(breaker.getState()).toBe("closed");
      expect(warning).toHaveBeenCalledTimes(1);
      expect(warning.mock.calls[0]?.[0]).toMatch(
        /^the clock of circuit `c` failed \(reported once\): TimeError: `now` must be/,
      );
    } finally {
      warning.mockRestore();
    }
  });

  test("a clock that throws is the caller's error, too", async () => {
    let broken = false;
    const breaker = new CircuitBreaker("c", {
      clock: () => {
        if (broken) throw boom;
        return 0;
      },
    });
    broken = true;
    expect(() => breaker.trip()).toThrow(boom);
    await expect(breaker.execute(succeed)).resolves.toBe("ok");
  });

  describe("is found out when the clock is given, not by a call that counts nothing", () => {
    const WITH_CLOCK: [what: string, make: (clock: () => number) => unknown][] = [
      ["a breaker", (clock) => new CircuitBreaker("c", { clock })],
      ["a group", (clock) => new CircuitBreakerGroup({ clock })],
      ["a store", (clock) => new RedisStore(NOWHERE, { clock })],
      ["a shared breaker", (clock) => new DistributedCircuitBreaker("c", new RedisStore(NOWHERE), { clock })],
      [
        "a group of shared breakers",
        (clock) => new DistributedCircuitBreakerGroup("c", new RedisStore(NOWHERE), { clock }),
      ],
    ];

    test.each(WITH_CLOCK)("of %s", (_what, make) => {
      for (const reading of [...TIMES, ...OTHERS]) {
        expect(() => make(() => reading as number)).toThrow(TimeError);
        expect(() => make(() => reading as number)).toThrow("`now` must be an integer");
      }
      const throwing = () => {
        throw boom;
      };
      expect(() => make(throwing)).toThrow(boom);
      const reads = vi.fn(() => 2 ** 52);
      make(reads);
      expect(reads).toHaveBeenCalledTimes(1);
    });
  });
});

/** A client that is never asked anything. */
const NOWHERE = { command: () => Promise.reject(new Error("asked")) };

function callsAt(
  state: CircuitBreakerState,
  permit: ReturnType<CircuitBreakerState["acquire"]>,
  now: number,
): (() => unknown)[] {
  return [
    () => state.canRequest(now),
    () => state.recordSuccess(now),
    () => state.recordFailure(now),
    () => state.release(now),
    () => state.acquire(now),
    () => state.retryAfterMs(now),
    () => state.snapshot(now),
    () => state.reset(now),
    () => state.trip(now),
    () => state.forceOpen(now),
    () => state.disable(now),
    () => permit?.recordSuccess(now),
    () => permit?.recordFailure(now),
    () => permit?.release(now),
  ];
}

function escaped(text: string): string {
  return text.replace(/[+()]/g, "\\$&");
}
