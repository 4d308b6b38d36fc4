// @Retryable: who is inside of whom, when it stops, how long it waits. Timers are held where the rules are about them.
import { Injectable, SetMetadata } from "@nestjs/common";
import { concat, lastValueFrom, Observable, of, throwError, toArray } from "rxjs";
import { type CallEvent, CircuitOpenError, ConfigError } from "switchgear";
import {
  CircuitBreakerService,
  CircuitOpenException,
  Retryable,
  type RetryableOptions,
  WithCircuitBreaker,
} from "switchgear/nestjs";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { waitBefore } from "../../../dist/nestjs/backoff.js";
import { waiting } from "../../../dist/nestjs/waiting.js";
import { booted } from "./support/nest";
import { boom, ManualClock } from "./support/time";

const NOW = { policy: { baseDelayMs: 0 } } as const;
const errorOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

/** A function that fails so often before it works. */
function failing(times: number, error: unknown = boom) {
  const work = vi.fn(() => {
    if (work.mock.calls.length <= times) throw error;
    return "ok";
  });
  return work;
}

/** A method that is only retried: it needs neither module nor Nest. */
function retried(options?: RetryableOptions) {
  class Calls {
    @Retryable({ ...NOW, ...options })
    async call(work: () => unknown): Promise<unknown> {
      return work();
    }

    @Retryable({ ...NOW, ...options })
    plain(work: () => unknown): unknown {
      return work();
    }
  }
  return new Calls();
}

describe("a retried method", () => {
  test("is called until it works, three times at most", async () => {
    const works = failing(2);
    expect(await retried().call(works)).toBe("ok");
    expect(works).toHaveBeenCalledTimes(3);
    const fails = failing(9);
    expect(await errorOf(retried().call(fails))).toBe(boom);
    expect(fails).toHaveBeenCalledTimes(3);
    const once = failing(9);
    expect(await errorOf(retried({ policy: { maxAttempts: 1 } }).call(once))).toBe(boom);
    expect(once).toHaveBeenCalledTimes(1);
  });

  test("may be sync, throw what is no Error, and give nothing: it gives a promise then", async () => {
    const works = failing(1, "no error");
    const result = retried().plain(works);
    expect(result).toBeInstanceOf(Promise);
    expect(await result).toBe("ok");
    expect(await errorOf(retried().call(failing(9, "no error")))).toBe("no error");
    expect(await retried().call(() => undefined)).toBeUndefined();
    expect(await retried().plain(async () => [1])).toEqual([1]);
  });

  test("stops where retryOn says so, or cannot say", async () => {
    for (const retryOn of [() => false, fail, async () => true] as never[]) {
      const work = failing(9);
      expect(await errorOf(retried({ retryOn }).call(work))).toBe(boom);
      expect(work).toHaveBeenCalledTimes(1);
    }
    const asked = vi.fn(() => true);
    await errorOf(retried({ retryOn: asked }).call(failing(9)));
    expect(asked.mock.calls).toEqual([[boom], [boom]]);
  });

  test("stops by default at an error that says it is not retryable", async () => {
    const work = failing(9, Object.assign(new Error("no"), { retryable: false }));
    await errorOf(retried().call(work));
    expect(work).toHaveBeenCalledTimes(1);
  });

  test("keeps name, length and metadata, and its this", async () => {
    class Calls {
      readonly own = "mine";

      @SetMetadata("above", 1)
      @Retryable(NOW)
      @SetMetadata("below", 2)
      async call(_a: number, _b: number): Promise<string> {
        return this.own;
      }
    }
    const { call } = Calls.prototype;
    expect([call.name, call.length]).toEqual(["call", 2]);
    expect([Reflect.getMetadata("above", call), Reflect.getMetadata("below", call)]).toEqual([1, 2]);
    expect(await new Calls().call(1, 2)).toBe("mine");
  });

  test("that gives an Observable is subscribed to again", async () => {
    class Streams {
      @Retryable(NOW)
      read(works: () => unknown): Observable<unknown> {
        return new Observable((subscriber) => {
          subscriber.next("begun");
          try {
            subscriber.next(works());
            subscriber.complete();
          } catch (error) {
            subscriber.error(error);
          }
        });
      }
    }
    for (let i = 0; i < 2; i += 1) {
      const stream = new Streams().read(failing(1));
      expect(stream).toBeInstanceOf(Observable);
      expect(await lastValueFrom(stream.pipe(toArray()))).toEqual(["begun", "begun", "ok"]);
      const works = failing(9);
      expect(await errorOf(lastValueFrom(new Streams().read(works)))).toBe(boom);
      expect(works).toHaveBeenCalledTimes(3);
    }
  });

  test.each<[string, unknown, string, RegExp]>([
    ["an unknown option", { retries: 3 }, "retries", /`retries` is not an option; valid are policy, retryOn/],
    ["an unknown policy", { policy: { retries: 3 } }, "retries", /`retries` is not an option; valid are maxAttempts/],
    [
      "no attempt",
      { policy: { maxAttempts: 0 } },
      "maxAttempts",
      /`maxAttempts` must be an integer, 1 to 1000, got `0`/,
    ],
    ["half a millisecond", { policy: { baseDelayMs: 0.5 } }, "baseDelayMs", /`baseDelayMs` must be an integer, 0 to/],
    [
      "less than the base",
      { policy: { baseDelayMs: 9, maxDelayMs: 8 } },
      "maxDelayMs",
      /`maxDelayMs` must be an integer, 9 to/,
    ],
    ["retryOn that is no function", { retryOn: 503 }, "retryOn", /`retryOn` must be a function/],
    [
      "waitForCircuit that is no boolean",
      { waitForCircuit: 1 },
      "waitForCircuit",
      /`waitForCircuit` must be true or false/,
    ],
    ["an order that is none", { order: Number.NaN }, "order", /`order` must be a number/],
  ])("says what is wrong with its options: %s", (_what, options, field, message) => {
    let error: unknown;
    try {
      Retryable(options as never);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({ field, message: expect.stringMatching(message) });
  });

  test("cannot be a generator", () => {
    const decorated = () => {
      class Pages {
        @Retryable()
        *all(): Generator<number> {
          yield 1;
        }
      }
      return Pages;
    };
    expect(decorated).toThrow(/@Retryable cannot stand before the generator all/);
  });
});

describe("with a circuit", () => {
  /** The same two decorators both ways, and with an order that turns them around. */
  async function both() {
    const policy = { failureThreshold: 2, clock: new ManualClock().read };
    @Injectable()
    class Billing {
      @WithCircuitBreaker({ policy })
      @Retryable(NOW)
      async above(work: () => unknown): Promise<unknown> {
        return work();
      }

      @Retryable(NOW)
      @WithCircuitBreaker({ policy })
      async below(work: () => unknown): Promise<unknown> {
        return work();
      }

      @Retryable({ ...NOW, order: 400 })
      @WithCircuitBreaker({ policy })
      async inside(work: () => unknown): Promise<unknown> {
        return work();
      }
    }
    const told: string[] = [];
    const note = (what: string) => (event: CallEvent) => void told.push(`${what} ${event.circuit}`);
    const on = { success: note("success"), failure: note("failure"), refused: note("refused") };
    const app = await booted({ providers: [Billing] }, { on });
    return { app, billing: app.get(Billing), told };
  }

  test.each(["above", "below"] as const)(
    "the retry is outside, whatever the order in the source (%s)",
    async (method) => {
      const { billing, told } = await both();
      expect(await billing[method](failing(1))).toBe("ok");
      expect(told).toEqual([`failure Billing.${method}`, `success Billing.${method}`]);
    },
  );

  test("it stops at once when the circuit opens, at the refusal", async () => {
    const { billing, told } = await both();
    const work = failing(9);
    expect(await errorOf(billing.below(work))).toBeInstanceOf(CircuitOpenException);
    expect(work).toHaveBeenCalledTimes(2);
    expect(told.splice(0)).toEqual(["failure Billing.below", "failure Billing.below", "refused Billing.below"]);
    expect(await errorOf(billing.below(work))).toBeInstanceOf(CircuitOpenException);
    expect(told).toEqual(["refused Billing.below"]);
  });

  test("a higher order puts it inside: all attempts are one call", async () => {
    const { app, billing, told } = await both();
    const work = failing(9);
    expect(await errorOf(billing.inside(work))).toBe(boom);
    expect(work).toHaveBeenCalledTimes(3);
    expect(told).toEqual(["failure Billing.inside"]);
    expect(app.get(CircuitBreakerService).get("Billing.inside").getState()).toBe("closed");
  });

  test("each subscription to an Observable is admitted on its own", async () => {
    @Injectable()
    class Streams {
      @Retryable(NOW)
      @WithCircuitBreaker({ policy: { failureThreshold: 2, clock: new ManualClock().read } })
      read(): Observable<unknown> {
        return concat(
          of("begun"),
          throwError(() => boom),
        );
      }
    }
    const app = await booted({ providers: [Streams] });
    for (const seen of [["begun", "begun"], []]) {
      const values: unknown[] = [];
      const stream = app.get(Streams).read();
      const error = await errorOf(
        new Promise((resolve, reject) => {
          stream.subscribe({ next: (value) => values.push(value), error: reject, complete: () => resolve(undefined) });
        }),
      );
      expect(error).toBeInstanceOf(CircuitOpenException);
      expect(values).toEqual(seen);
    }
  });
});

describe("the wait", () => {
  const options = (more: object = {}) => ({
    maxAttempts: 9,
    baseDelayMs: 100,
    maxDelayMs: 1000,
    retryOn: () => true,
    waitForCircuit: false,
    order: 0,
    ...more,
  });
  const refusal = (retryAfterMs: number | null) =>
    new CircuitOpenError({ circuit: "a", state: "open", retryAfterMs, lastFailure: null });

  test("doubles up to the longest, and up to a half of it is left to chance", () => {
    const waits = (random: number) =>
      [1, 2, 3, 4, 5, 900].map((count) => waitBefore(count, boom, options(), () => random));
    expect(waits(0)).toEqual([100, 200, 400, 800, 1000, 1000]);
    expect(waits(0.5)).toEqual([75, 150, 300, 600, 750, 750]);
    for (let i = 0; i < 100; i += 1) {
      const wait = waitBefore(1, boom, options());
      expect(wait).toBeGreaterThan(50);
      expect(wait).toBeLessThanOrEqual(100);
    }
  });

  test("is as long as the circuit says where it waits for that, and none where nobody knows", () => {
    expect(waitBefore(1, refusal(12_345), options({ waitForCircuit: true, retryOn: () => false }))).toBe(12_345);
    expect(waitBefore(1, refusal(null), options({ waitForCircuit: true }))).toBeNull();
    expect(waitBefore(1, boom, options({ waitForCircuit: true }), () => 0)).toBe(100);
  });

  describe("on held timers", () => {
    beforeEach(() => void vi.useFakeTimers());
    afterEach(() => void vi.useRealTimers());

    test("is slept between attempts", async () => {
      vi.spyOn(Math, "random").mockReturnValue(0);
      const work = failing(2);
      const call = retried({ policy: { baseDelayMs: 100 } }).call(work);
      await vi.advanceTimersByTimeAsync(99);
      expect(work).toHaveBeenCalledTimes(1);
      await vi.advanceTimersByTimeAsync(1);
      expect(work).toHaveBeenCalledTimes(2);
      await vi.advanceTimersByTimeAsync(199);
      expect(work).toHaveBeenCalledTimes(2);
      await vi.advanceTimersByTimeAsync(1);
      expect(await call).toBe("ok");
      vi.restoreAllMocks();
    });

    test("for a circuit ends with its opening: the next attempt is the probe that closes it", async () => {
      @Injectable()
      class Billing {
        @Retryable({ ...NOW, waitForCircuit: true })
        @WithCircuitBreaker({
          policy: { failureThreshold: 1, openDurationMs: 5000, clock: () => Math.floor(performance.now()) },
        })
        async charge(work: () => unknown): Promise<unknown> {
          return work();
        }
      }
      const app = await booted({ providers: [Billing] });
      const work = failing(1);
      const call = app.get(Billing).charge(work);
      await vi.advanceTimersByTimeAsync(4999);
      expect(work).toHaveBeenCalledTimes(1);
      await vi.advanceTimersByTimeAsync(1);
      expect(await call).toBe("ok");
      expect(work).toHaveBeenCalledTimes(2);
      expect(app.get(CircuitBreakerService).get("Billing.charge").getState()).toBe("closed");
    });

    test("goes on where a timer was early, and longer than any timer", async () => {
      const over = vi.fn();
      waiting(3_000_000_000).subscribe(over);
      await vi.advanceTimersByTimeAsync(2_999_999_999);
      expect(over).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(1);
      expect(over).toHaveBeenCalledOnce();
      const early = vi.fn();
      // A timer that began before the clock was read.
      const now = vi.spyOn(performance, "now").mockReturnValueOnce(1000).mockReturnValueOnce(1090);
      waiting(100).subscribe(early);
      await vi.advanceTimersByTimeAsync(100);
      expect(early).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(10);
      expect(early).toHaveBeenCalledOnce();
      now.mockRestore();
    });

    test("ends with whoever waits: no timer is left", async () => {
      class Streams {
        @Retryable({ policy: { baseDelayMs: 1000 } })
        read(): Observable<never> {
          return throwError(() => boom);
        }
      }
      const subscription = new Streams().read().subscribe({ error: () => undefined });
      expect(vi.getTimerCount()).toBe(1);
      subscription.unsubscribe();
      expect(vi.getTimerCount()).toBe(0);
    });
  });
});

function fail(): never {
  throw new Error("no answer to what was asked");
}
