// Applications whose circuits are in a real Redis.
import { Injectable, Module } from "@nestjs/common";
import { Redis } from "ioredis";
import { lastValueFrom, Observable, of } from "rxjs";
import { type Breaker, type StateChange, StoreUnavailableError } from "switchgear";
import {
  CircuitBreakerModule,
  type CircuitBreakerModuleOptions,
  CircuitBreakerService,
  CircuitOpenException,
  InjectCircuitBreaker,
  WithCircuitBreaker,
} from "switchgear/nestjs";
import { DistributedCircuitBreaker } from "switchgear/redis";
import { describe, expect, test } from "vitest";
import { booted, moduleOf, once, start } from "./support/nest";
import { intercepting, place, quiet } from "./support/stores";
import { boom, Deferred } from "./support/time";

const here = place();
const errorOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

/** What a compiler that keeps types says of a method that is declared to give an Observable; the one of these tests keeps none. */
const declared = Reflect.metadata("design:returntype", Observable);

@Injectable()
class Billing {
  @WithCircuitBreaker({ policy: { failureThreshold: 1 } })
  async charge(fail: boolean): Promise<string> {
    if (fail) throw boom;
    return "charged";
  }

  @WithCircuitBreaker({ policy: { failureThreshold: 1 } })
  priceOf(fail: boolean): number {
    if (fail) throw boom;
    return 42;
  }

  @WithCircuitBreaker({ policy: { failureThreshold: 1 } })
  @declared
  stream(): Observable<number> {
    return of(1, 2);
  }

  @WithCircuitBreaker({ policy: { failureThreshold: 1 } })
  undeclared(): Observable<number> {
    return of(1, 2);
  }

  @WithCircuitBreaker({ policy: { failureThreshold: 1, maxKeys: 4 }, key: ([tenant]) => tenant })
  async *pages(_tenant: string): AsyncGenerator<number> {
    yield 1;
    throw boom;
  }
}

let prefixes = 0;
/** Options of a service whose circuits no other test sees. */
function shared(more: CircuitBreakerModuleOptions = {}): CircuitBreakerModuleOptions & { prefix: string } {
  prefixes += 1;
  // A slow machine is not a store that does not answer.
  return { redis: here.redis, prefix: `nest${prefixes}:`, ...more, shared: { timeoutMs: 60_000, ...more.shared } };
}

describe("with a client of Redis", () => {
  test("every circuit is shared, under the prefix: two applications of one service trip together", async () => {
    const options = shared();
    const [one, other] = [
      await booted({ providers: [Billing] }, options),
      await booted({ providers: [Billing] }, options),
    ];
    expect(await one.get(Billing).charge(false)).toBe("charged");
    expect(await errorOf(one.get(Billing).charge(true))).toBe(boom);
    const refusal = await errorOf(other.get(Billing).charge(false));
    expect(refusal).toBeInstanceOf(CircuitOpenException);
    expect(refusal).toMatchObject({ circuit: "Billing.charge", state: "open" });
    expect(await here.redis.exists(`{${options.prefix}Billing.charge}`)).toBe(1);
    expect(one.get(CircuitBreakerService).get("Billing.charge")).toBeInstanceOf(DistributedCircuitBreaker);
    const third = await booted({ providers: [Billing] }, shared());
    expect(await third.get(Billing).charge(false)).toBe("charged");
  });

  test("a sync method gives a promise, and one that is declared to give an Observable gives one", async () => {
    const app = await booted({ providers: [Billing] }, shared());
    const billing = app.get(Billing);
    const price: unknown = billing.priceOf(false);
    expect(price).toBeInstanceOf(Promise);
    expect(await price).toBe(42);
    const failed: unknown = billing.priceOf(true);
    expect(await errorOf(failed as Promise<unknown>)).toBe(boom);
    expect(await errorOf(billing.priceOf(false) as never)).toBeInstanceOf(CircuitOpenException);
    expect(await lastValueFrom(billing.stream())).toBe(2);
    await app.get(CircuitBreakerService).get("Billing.stream").trip();
    expect(await errorOf(lastValueFrom(billing.stream()))).toBeInstanceOf(CircuitOpenException);
  });

  test("one that is not declared to gives a promise of one at its first call, and then knows", async () => {
    const app = await booted({ providers: [Billing] }, shared());
    const first: unknown = await (app.get(Billing).undeclared() as unknown);
    expect(await lastValueFrom(first as Observable<number>)).toBe(2);
    expect(await lastValueFrom(app.get(Billing).undeclared())).toBe(2);
  });

  test("keys, async generators, injected breakers and manual control are shared, too", async () => {
    @Injectable()
    class Operator {
      constructor(@InjectCircuitBreaker("Billing.charge") readonly breaker: Breaker) {}
    }
    const options = shared();
    const parts = { providers: [Billing, Operator] };
    const [one, other] = [await booted(parts, options), await booted(parts, options)];
    const drain = async (billing: Billing) => {
      for await (const page of billing.pages("acme")) expect(page).toBe(1);
    };
    expect(await errorOf(drain(one.get(Billing)))).toBe(boom);
    expect(await errorOf(drain(other.get(Billing)))).toMatchObject({ circuit: "Billing.pages:acme" });
    await one.get(Operator).breaker.forceOpen();
    expect(await errorOf(other.get(Billing).charge(false))).toMatchObject({ retryAfterMs: null });
    await other.get(Operator).breaker.reset();
    const names = one
      .get(CircuitBreakerService)
      .list()
      .map(({ name }) => name);
    expect(names).toContain("Billing.pages:acme");
  });

  test("a sync generator fails the boot", async () => {
    @Injectable()
    class Pages {
      @WithCircuitBreaker()
      *all(): Generator<number> {
        yield 1;
      }
    }
    expect(await errorOf(booted({ providers: [Pages] }, shared()))).toMatchObject({
      message: expect.stringMatching(/@WithCircuitBreaker of Pages\.all cannot guard a sync generator/),
    });
  });
});

describe("the client", () => {
  class Client extends Redis {}

  test.each([
    ["a text", "REDIS"],
    ["a symbol", Symbol("REDIS")],
    ["a class", Client],
  ])("may be given by its token, %s, of a module that is neither global nor imported", async (_kind, token) => {
    const events: string[] = [];
    @Module({
      providers: [
        {
          provide: token,
          useFactory: async () => {
            await new Promise((resolve) => setImmediate(resolve));
            events.push("made");
            return here.redis;
          },
        },
      ],
    })
    class RedisModule {}
    @Injectable()
    class Early {
      constructor(@InjectCircuitBreaker("early") readonly breaker: Breaker) {
        events.push(breaker.constructor.name);
      }
    }
    const { prefix } = shared();
    const options = { redis: token, prefix, shared: { timeoutMs: 60_000 } };
    const imports = [CircuitBreakerModule.forRoot(options), RedisModule];
    const app = await start({ imports, providers: [Billing, Early] });
    expect(events).toEqual(["made", "DistributedCircuitBreaker"]);
    await errorOf(app.get(Billing).charge(true));
    expect(await here.redis.exists(`{${prefix}Billing.charge}`)).toBe(1);
  });

  test("cannot be made by what has circuits itself: that is said, rather than waited for", async () => {
    const needsBilling = { provide: "REDIS", useFactory: () => here.redis, inject: [Billing] };
    const parts = { providers: [Billing, needsBilling], exports: ["REDIS", Billing] };
    const { prefix } = shared();
    const byToken = start({ ...parts, imports: [CircuitBreakerModule.forRoot({ redis: "REDIS", prefix })] });
    expect(await errorOf(byToken)).toMatchObject({
      code: "config_invalid",
      field: "redis",
      message: "`redis` must be there before the circuits, but REDIS needs Billing, which needs a circuit",
    });
    const RedisModule = moduleOf(parts);
    const byFactory = CircuitBreakerModule.forRootAsync({
      imports: [RedisModule],
      inject: [{ token: "REDIS", optional: true }],
      useFactory: (redis: Redis) => ({ redis, prefix }),
    });
    expect(await errorOf(start({ imports: [byFactory] }))).toMatchObject({
      field: "options",
      message: "`options` must be there before the circuits, but REDIS needs Billing, which needs a circuit",
    });
    // Circuits of another import are no hindrance.
    const own = moduleOf({ ...parts, imports: [CircuitBreakerModule.forRoot({ isGlobal: false })] });
    const options = { redis: "REDIS", prefix, isGlobal: false, shared: { timeoutMs: 60_000 } };
    const feature = moduleOf({
      providers: [{ provide: "feature", useClass: Billing }],
      imports: [CircuitBreakerModule.forRoot(options)],
    });
    const app = await start({ imports: [own, feature] });
    expect(await app.get<Billing>("feature", { strict: false }).charge(false)).toBe("charged");
  });

  test("may be given by a factory, and stays open when the application closes", async () => {
    const RedisModule = moduleOf({ providers: [{ provide: "REDIS", useValue: here.redis }], exports: ["REDIS"] });
    const { prefix } = shared();
    const app = await start({
      imports: [
        CircuitBreakerModule.forRootAsync({
          imports: [RedisModule],
          inject: ["REDIS"],
          useFactory: (redis: Redis) => ({ redis, prefix, shared: { timeoutMs: 60_000 } }),
        }),
      ],
      providers: [Billing],
    });
    expect(await app.get(Billing).charge(false)).toBe("charged");
    await app.close();
    expect(await here.redis.ping()).toBe("PONG");
  });
});

describe("the store", () => {
  test("closes its own connection when the application shuts down, and no other", async () => {
    const redis = quiet(new Redis(here.server.port));
    const names = async () =>
      ((await here.redis.client("LIST")) as string).split("\n").filter((line) => /sub=1/.test(line));
    const app = await booted({ providers: [Billing] }, shared({ redis, shared: { events: true } }));
    await expect.poll(async () => (await names()).length, { timeout: 60_000 }).toBe(1);
    await app.close();
    await expect.poll(async () => (await names()).length, { timeout: 60_000 }).toBe(0);
    expect(await redis.ping()).toBe("PONG");
    redis.disconnect();
  });

  test("tells the module's listeners what other instances bring about", async () => {
    const heard = new Deferred<StateChange>();
    const options = shared({ shared: { events: true, instance: "one" } });
    await booted({ providers: [Billing] }, { ...options, on: { stateChange: (change) => heard.resolve(change) } });
    const announce = () => here.redis.publish(`${options.prefix}events`, "nobody understands this");
    await expect.poll(announce, { timeout: 60_000 }).toBe(1);
    const other = await booted(
      { providers: [Billing] },
      { ...options, shared: { timeoutMs: 60_000, instance: "other" } },
    );
    await errorOf(other.get(Billing).charge(true));
    const change = { circuit: "Billing.charge", toState: "open", source: "remote", instance: "other" };
    expect(await heard.promise).toMatchObject(change);
  });

  test("that does not answer is an error of its own under fail-closed, and under local nobody notices", async () => {
    const dead = intercepting(
      () => here.redis,
      () => Promise.reject(new Error("LOADING Redis is loading the dataset in memory")),
    );
    const storeErrors: unknown[] = [];
    const on = { storeError: (event: object) => void storeErrors.push(event), degraded: () => undefined };
    const closed = await booted(
      { providers: [Billing] },
      shared({ redis: dead, on, shared: { onStoreFailure: "fail-closed" } }),
    );
    expect(await errorOf(closed.get(Billing).charge(false))).toBeInstanceOf(StoreUnavailableError);
    expect(storeErrors.length).toBeGreaterThan(0);
    const local = await booted({ providers: [Billing] }, shared({ redis: dead, on, defaults: once() }));
    expect(await local.get(Billing).charge(false)).toBe("charged");
    await errorOf(local.get(Billing).charge(true));
    expect(await errorOf(local.get(Billing).charge(false))).toBeInstanceOf(CircuitOpenException);
  });
});
