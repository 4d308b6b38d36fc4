// Methods that give an Observable: each subscription is a call.
import { Injectable } from "@nestjs/common";
import {
  concat,
  firstValueFrom,
  lastValueFrom,
  NEVER,
  Observable,
  of,
  repeat,
  Subject,
  take,
  throwError,
  toArray,
} from "rxjs";
import { type Breaker, CallTimeoutError } from "switchgear";
import { CircuitBreakerService, CircuitOpenException, WithCircuitBreaker } from "switchgear/nestjs";
import { describe, expect, test } from "vitest";
import { booted, once } from "./support/nest";
import { boom, ManualClock } from "./support/time";

/** What a compiler that keeps types says of a method that is declared to give an Observable; the one of these tests keeps none. */
const declared = Reflect.metadata("design:returntype", Observable);

/** A stream that its test makes, twice: of the second its type is known. */
async function streams(policy: object) {
  const clock = new ManualClock();
  @Injectable()
  class Streams {
    source: () => Observable<unknown> = () => NEVER;
    runs = 0;

    @WithCircuitBreaker({ name: "stream", policy: { ...once(clock), ...policy } })
    plain(): Observable<unknown> {
      this.runs += 1;
      return this.source();
    }

    @WithCircuitBreaker({ name: "stream", policy: { ...once(clock), ...policy } })
    @declared
    typed(): Observable<unknown> {
      this.runs += 1;
      return this.source();
    }
  }
  const app = await booted({ providers: [Streams] });
  const service = app.get(CircuitBreakerService);
  return { clock, streams: app.get(Streams), breaker: service.get("stream") };
}

const errorOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );
const snapshot = async (breaker: Breaker) => breaker.getSnapshot();

describe.each(["plain", "typed"] as const)("a method that gives an Observable (%s)", (method) => {
  test("gives one still, and its values come through", async () => {
    const { streams: made } = await streams({});
    made.source = () => of(1, 2, 3);
    for (let i = 0; i < 2; i += 1) {
      const stream = made[method]();
      expect(stream).toBeInstanceOf(Observable);
      expect(await lastValueFrom(stream.pipe(toArray()))).toEqual([1, 2, 3]);
    }
  });

  test("is guarded per subscription: an error counts, and a refused one runs nothing", async () => {
    const { streams: made, breaker } = await streams({ failureThreshold: 2 });
    made.source = () =>
      concat(
        of(1),
        throwError(() => boom),
      );
    const stream = made[method]();
    expect(await errorOf(lastValueFrom(stream))).toBe(boom);
    expect(await snapshot(breaker)).toMatchObject({ state: "closed", failuresInWindow: 1 });
    expect(await errorOf(lastValueFrom(stream))).toBe(boom);
    expect(await breaker.getState()).toBe("open");
    const { runs } = made;
    const refused = made[method]();
    expect(await errorOf(lastValueFrom(refused))).toBeInstanceOf(CircuitOpenException);
    expect(made.runs).toBe(runs);
    await breaker.reset();
    made.source = () => of("again");
    expect(await lastValueFrom(refused)).toBe("again");
  });

  test("counts nothing before it is subscribed to", async () => {
    const { streams: made, breaker } = await streams({ tripOn: "rate", failureThreshold: undefined });
    made.source = () => of(1);
    made[method]();
    expect(await snapshot(breaker)).toMatchObject({ callsInWindow: 0 });
    await lastValueFrom(made[method]());
    expect(await snapshot(breaker)).toMatchObject({ callsInWindow: 1 });
  });

  test("is neutral where it is unsubscribed from, and its slot is free at once", async () => {
    const { streams: made, breaker, clock } = await streams({});
    let left = 0;
    made.source = () => new Observable(() => () => (left += 1));
    made[method]().subscribe().unsubscribe();
    expect(left).toBe(1);
    await breaker.trip();
    clock.now += 1000;
    for (let i = 0; i < 2; i += 1) {
      const subscription = made[method]().subscribe();
      expect(await snapshot(breaker)).toMatchObject({ state: "half-open", halfOpenInFlight: 1 });
      subscription.unsubscribe();
      await Promise.resolve();
      expect(await snapshot(breaker)).toMatchObject({ state: "half-open", halfOpenInFlight: 0 });
    }
  });

  test("closes a half-open circuit when it completes, also for one who only takes the first of one value", async () => {
    const { streams: made, breaker, clock } = await streams({});
    made.source = () => of("only");
    await lastValueFrom(made[method]());
    for (const read of [lastValueFrom, firstValueFrom]) {
      await breaker.trip();
      clock.now += 1000;
      expect(await read(made[method]())).toBe("only");
      await expect.poll(() => breaker.getState(), { timeout: 60_000 }).toBe("closed");
    }
  });

  test("stops a source that never ends once its reader has left", async () => {
    const { streams: made } = await streams({});
    made.source = () => of("tick").pipe(repeat());
    expect(await lastValueFrom(made[method]().pipe(take(2), toArray()))).toEqual(["tick", "tick"]);
  });

  test("is asked about its last value, and timed as a whole", async () => {
    const { streams: made, breaker } = await streams({
      isFailureResult: (response: { status: number }) => response.status === 503,
      timeoutMs: 20,
    });
    made.source = () => of({ status: 200 });
    await lastValueFrom(made[method]());
    expect(await breaker.getState()).toBe("closed");
    made.source = () => of({ status: 200 }, { status: 503 });
    expect(await lastValueFrom(made[method]())).toEqual({ status: 503 });
    expect(await breaker.getState()).toBe("open");
    await breaker.reset();
    const source = new Subject<number>();
    made.source = () => source;
    expect(await errorOf(lastValueFrom(made[method]()))).toBeInstanceOf(CallTimeoutError);
    expect(source.observed).toBe(false);
    expect(await breaker.getState()).toBe("open");
  });

  test("passes on what the method throws itself, as the error of the subscription", async () => {
    const { streams: made, breaker } = await streams({});
    made.source = () => of(1);
    await lastValueFrom(made[method]());
    made.source = () => {
      throw boom;
    };
    const stream = made[method]();
    expect(await errorOf(lastValueFrom(stream))).toBe(boom);
    expect(await breaker.getState()).toBe("open");
  });
});

describe("a fallback", () => {
  test.each([
    ["an Observable", () => of("a", "b"), ["a", "b"]],
    ["a promise", async () => "later", ["later"]],
    ["a value", () => "value", ["value"]],
  ])("of a method that gives Observables may give %s", async (_what, fallback, values) => {
    @Injectable()
    class Streams {
      @WithCircuitBreaker({
        policy: once(),
        fallbackOn: "failure",
        fallback: (_error, start: number) => [start, fallback()][1],
      })
      @declared
      count(start: number): Observable<unknown> {
        return concat(
          of(start),
          throwError(() => boom),
        );
      }
    }
    const app = await booted({ providers: [Streams] });
    const stream = app.get(Streams).count(1);
    expect(await lastValueFrom(stream.pipe(toArray()))).toEqual([1, ...values]);
    expect(await lastValueFrom(stream.pipe(toArray()))).toEqual(values);
  });

  test("that throws has the first error as the cause of its own", async () => {
    @Injectable()
    class Streams {
      @WithCircuitBreaker({
        policy: once(),
        fallbackOn: "failure",
        fallback: () => {
          throw new Error("no cache");
        },
      })
      @declared
      count(): Observable<number> {
        return throwError(() => boom);
      }
    }
    const app = await booted({ providers: [Streams] });
    expect(await errorOf(lastValueFrom(app.get(Streams).count()))).toMatchObject({ message: "no cache", cause: boom });
  });
});

test("a key that cannot be had is the error of the subscription", async () => {
  @Injectable()
  class Streams {
    @WithCircuitBreaker({ key: ([endpoint]) => new URL(endpoint).host })
    @declared
    read(endpoint: string): Observable<string> {
      return of(endpoint);
    }
  }
  const app = await booted({ providers: [Streams] });
  const streams = app.get(Streams);
  expect(await errorOf(lastValueFrom(streams.read("no address")))).toBeInstanceOf(TypeError);
  expect(await lastValueFrom(streams.read("https://a.example/"))).toBe("https://a.example/");
});
