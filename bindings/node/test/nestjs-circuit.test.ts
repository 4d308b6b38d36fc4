// A method with @WithCircuitBreaker: what stays as it was, what is shared, and where it works.
import { Inject, Injectable, type Provider, Scope, SetMetadata } from "@nestjs/common";
import { ContextIdFactory, LazyModuleLoader, ModuleRef, REQUEST } from "@nestjs/core";
import { CallTimeoutError, CircuitOpenError, ConfigError, NameError } from "switchgear";
import {
  CircuitBreakerModule,
  CircuitBreakerService,
  CircuitOpenException,
  WithCircuitBreaker,
} from "switchgear/nestjs";
import { describe, expect, test } from "vitest";
import { booted, moduleOf, once, start } from "./support/nest";
import { boom, ManualClock } from "./support/time";

const errorOf = (call: () => unknown): Promise<unknown> =>
  (async () => call())().then(
    () => undefined,
    (error: unknown) => error,
  );

/** Calls that a test tells what to do. */
@Injectable()
class Billing {
  runs = 0;

  @WithCircuitBreaker({ policy: once() })
  async charge(work: () => unknown): Promise<unknown> {
    this.runs += 1;
    return work();
  }

  @WithCircuitBreaker({ policy: once() })
  priceOf(work: () => number): number {
    this.runs += 1;
    return work();
  }

  @WithCircuitBreaker({ policy: once() })
  promised(work: () => Promise<string>): Promise<string> {
    return work();
  }
}

const fails = (): never => {
  throw boom;
};

describe("a guarded method", () => {
  test("is async as before: its value and its own error come through, and a refusal runs nothing", async () => {
    const app = await booted({ providers: [Billing] });
    const billing = app.get(Billing);
    expect(await billing.charge(() => "charged")).toBe("charged");
    expect(await errorOf(() => billing.charge(fails))).toBe(boom);
    const refusal = billing.charge(() => "charged");
    expect(refusal).toBeInstanceOf(Promise);
    expect(await errorOf(() => refusal)).toBeInstanceOf(CircuitOpenException);
    expect(billing.runs).toBe(2);
  });

  test("is sync as before", async () => {
    const app = await booted({ providers: [Billing] });
    const billing = app.get(Billing);
    expect(billing.priceOf(() => 42)).toBe(42);
    expect(() => billing.priceOf(fails)).toThrow(boom);
    expect(() => billing.priceOf(() => 42)).toThrow(CircuitOpenException);
    expect(billing.runs).toBe(2);
  });

  test("that gives promises is known as async from its first call on", async () => {
    const app = await booted({ providers: [Billing] });
    const billing = app.get(Billing);
    expect(await billing.promised(async () => "ok")).toBe("ok");
    expect(await errorOf(() => billing.promised(async () => fails()))).toBe(boom);
    const refusal = billing.promised(async () => "ok");
    expect(refusal).toBeInstanceOf(Promise);
    expect(await errorOf(() => refusal)).toBeInstanceOf(CircuitOpenException);
  });

  test("has its circuit called after class and method", async () => {
    const app = await booted({ providers: [Billing] });
    const names = app
      .get(CircuitBreakerService)
      .list()
      .map(({ name }) => name);
    expect(names).toEqual(["Billing.charge", "Billing.priceOf", "Billing.promised"]);
  });

  test("keeps name, length and what other decorators have put at the function, below and above", () => {
    const marked: MethodDecorator = (_target, _key, descriptor) => {
      Object.assign(descriptor.value as object, { mark: "below" });
    };
    class Documented {
      @SetMetadata("above", 1)
      @WithCircuitBreaker()
      @SetMetadata("below", 2)
      @marked
      find(_term: string, _limit: number, _rest = 0): string {
        return "";
      }
    }
    const { find } = Documented.prototype;
    expect({ name: find.name, length: find.length }).toEqual({ name: "find", length: 2 });
    expect(Reflect.getMetadata("above", find)).toBe(1);
    expect(Reflect.getMetadata("below", find)).toBe(2);
    expect(Reflect.get(find, "mark")).toBe("below");
    expect(Object.getOwnPropertyDescriptor(Documented.prototype, "find")?.enumerable).toBe(false);
  });

  test("leaves nothing to be seen on its instance", async () => {
    const app = await booted({ providers: [Billing] });
    const billing = app.get(Billing);
    expect(Reflect.ownKeys(billing).filter((key) => Object.getOwnPropertyDescriptor(billing, key)?.enumerable)).toEqual(
      ["runs"],
    );
    const proxied = new Proxy(billing, {});
    expect(await proxied.charge(() => "charged")).toBe("charged");
  });

  test("guards generators from the first step to the last", async () => {
    @Injectable()
    class Pages {
      @WithCircuitBreaker({ policy: once() })
      *sync(fail: boolean): Generator<number, string> {
        yield 1;
        if (fail) throw boom;
        return "end";
      }

      @WithCircuitBreaker({ policy: once() })
      async *async(fail: boolean): AsyncGenerator<number, string> {
        yield 1;
        if (fail) throw boom;
        return "end";
      }
    }
    const app = await booted({ providers: [Pages] });
    const pages = app.get(Pages);
    const whole = pages.sync(false);
    expect([whole.next(), whole.next()]).toEqual([
      { value: 1, done: false },
      { value: "end", done: true },
    ]);
    expect(() => [...pages.sync(true)]).toThrow(boom);
    expect(() => [...pages.sync(false)]).toThrow(CircuitOpenException);
    const drain = async (fail: boolean) => {
      const seen: number[] = [];
      for await (const page of pages.async(fail)) seen.push(page);
      return seen;
    };
    expect(await drain(false)).toEqual([1]);
    expect(await errorOf(() => drain(true))).toBe(boom);
    expect(await errorOf(() => drain(false))).toBeInstanceOf(CircuitOpenException);
  });

  test("has timeouts, classifiers and observe, as any breaker", async () => {
    @Injectable()
    class Search {
      @WithCircuitBreaker({ policy: { ...once(), timeoutMs: 1 } })
      async hang(): Promise<void> {
        await new Promise(() => undefined);
      }

      @WithCircuitBreaker({ policy: { ...once(), isFailure: (error) => error !== boom } })
      async neutral(): Promise<never> {
        throw boom;
      }

      @WithCircuitBreaker({ policy: { ...once(), observe: true } })
      async watched(): Promise<never> {
        throw boom;
      }
    }
    const app = await booted({ providers: [Search] });
    const search = app.get(Search);
    expect(await errorOf(() => search.hang())).toBeInstanceOf(CallTimeoutError);
    expect(await errorOf(() => search.hang())).toBeInstanceOf(CircuitOpenException);
    for (let i = 0; i < 3; i += 1) expect(await errorOf(() => search.neutral())).toBe(boom);
    for (let i = 0; i < 3; i += 1) expect(await errorOf(() => search.watched())).toBe(boom);
  });
});

describe("a refusal", () => {
  test("is an exception of Nest and a CircuitOpenError, with all its fields", async () => {
    const clock = new ManualClock(5_000);
    @Injectable()
    class Clocked {
      @WithCircuitBreaker({ policy: { failureThreshold: 1, openDurationMs: 1000 } })
      async charge(work: () => unknown): Promise<unknown> {
        return work();
      }
    }
    const app = await booted({ providers: [Clocked] }, { circuits: { "Clocked.charge": { clock: clock.read } } });
    const billing = app.get(Clocked);
    await errorOf(() => billing.charge(fails));
    clock.now += 100;
    const refusal = (await errorOf(() => billing.charge(fails))) as CircuitOpenException;
    const same = new CircuitOpenError(refusal.toJSON());
    expect(refusal).toBeInstanceOf(CircuitOpenException);
    expect(refusal).toBeInstanceOf(CircuitOpenError);
    const fields = [
      "circuit",
      "code",
      "state",
      "retryAfterMs",
      "lastFailure",
      "status",
      "statusCode",
      "expose",
    ] as const;
    for (const field of [...fields, "headers", "retryable", "message"] as const) {
      expect(Reflect.get(refusal, field), field).toEqual(same[field]);
    }
    expect(refusal.toJSON()).toEqual({ ...same.toJSON(), name: "CircuitOpenException" });
    expect(refusal).toMatchObject({ circuit: "Clocked.charge", retryAfterMs: 900, lastFailure: "ECONNREFUSED" });
    expect(refusal.getStatus()).toBe(503);
    expect(refusal.getResponse()).toEqual({
      type: "about:blank",
      title: "Service Unavailable",
      status: 503,
      detail: "The service cannot answer this request now. Try again in 1 s.",
    });
    expect(refusal.stack).not.toContain("\n");
  });
});

describe("fallbacks", () => {
  @Injectable()
  class Prices {
    readonly cached = 7;

    @WithCircuitBreaker({
      policy: once(),
      fallback(this: Prices, error, item: string, work: () => number) {
        return [this.cached, (error as Error).name, item, work];
      },
    })
    async refused(_item: string, work: () => number): Promise<unknown> {
      return work();
    }

    @WithCircuitBreaker({ policy: once(), fallbackOn: "failure", fallback: (error, work) => [error, work] })
    failed(work: () => unknown): unknown {
      return work();
    }
  }

  test("get the error, the arguments and the instance, and by default only refusals", async () => {
    const app = await booted({ providers: [Prices] });
    const prices = app.get(Prices);
    expect(await errorOf(() => prices.refused("tea", fails))).toBe(boom);
    expect(await prices.refused("tea", fails)).toEqual([7, "CircuitOpenException", "tea", fails]);
  });

  test("get failures where that is asked for, of sync methods too", async () => {
    const app = await booted({ providers: [Prices] });
    const prices = app.get(Prices);
    expect(prices.failed(fails)).toEqual([boom, fails]);
    expect(prices.failed(fails)).toEqual([expect.any(CircuitOpenException), fails]);
  });
});

describe("keys", () => {
  @Injectable()
  class Delivery {
    @WithCircuitBreaker({ key: (args) => new URL(args[0]).host, policy: { ...once(), maxKeys: 2 } })
    async send(endpoint: string, fail = false): Promise<string> {
      if (fail) throw boom;
      return endpoint;
    }
  }

  test("are a function of the array of arguments: a circuit for each, called name:key", async () => {
    const app = await booted({ providers: [Delivery] });
    const delivery = app.get(Delivery);
    const service = app.get(CircuitBreakerService);
    await errorOf(() => delivery.send("https://a.example/1", true));
    expect(await errorOf(() => delivery.send("https://a.example/2"))).toMatchObject({
      circuit: "Delivery.send:a.example",
    });
    expect(await delivery.send("https://b.example/1")).toBe("https://b.example/1");
    expect(service.list().map(({ name }) => name)).toEqual(["Delivery.send:a.example", "Delivery.send:b.example"]);
    expect(service.get("Delivery.send:a.example").getState()).toBe("open");
  });

  test("are bounded by maxKeys: the closed ones go first", async () => {
    const app = await booted({ providers: [Delivery] });
    const delivery = app.get(Delivery);
    await errorOf(() => delivery.send("https://a.example/1", true));
    for (const host of ["b", "c", "d"]) await delivery.send(`https://${host}.example/1`);
    const names = app
      .get(CircuitBreakerService)
      .list()
      .map(({ name }) => name);
    expect(names).toEqual(["Delivery.send:a.example", "Delivery.send:d.example"]);
    expect(await errorOf(() => delivery.send("https://a.example/2"))).toBeInstanceOf(CircuitOpenException);
  });

  test("that cannot be had are the caller's error, which counts nowhere", async () => {
    const app = await booted({ providers: [Delivery] });
    const delivery = app.get(Delivery);
    const error = await errorOf(() => delivery.send("no address"));
    expect(error).toBeInstanceOf(TypeError);
    expect(app.get(CircuitBreakerService).list()).toEqual([]);
    @Injectable()
    class Numbers {
      @WithCircuitBreaker({ key: ([id]) => id })
      async find(_id: unknown): Promise<void> {}
    }
    const other = await booted({ providers: [Numbers] });
    expect(await errorOf(() => other.get(Numbers).find(1))).toBeInstanceOf(NameError);
  });
});

describe("one circuit", () => {
  test("is shared by all instances of a class: transient ones, and those of requests", async () => {
    for (const scope of [Scope.TRANSIENT, Scope.REQUEST]) {
      @Injectable({ scope })
      class Scoped {
        @WithCircuitBreaker({ policy: once() })
        async charge(fail: boolean): Promise<string> {
          if (fail) throw boom;
          return "ok";
        }
      }
      const app = await booted({ providers: [Scoped] });
      const one = await app.resolve(Scoped, ContextIdFactory.create());
      const other = await app.resolve(Scoped, ContextIdFactory.create());
      expect(one).not.toBe(other);
      expect(await other.charge(false)).toBe("ok");
      await errorOf(() => one.charge(true));
      expect(await errorOf(() => other.charge(false))).toBeInstanceOf(CircuitOpenException);
    }
  });

  test("is not shared by two applications of one process", async () => {
    const [one, other] = [await booted({ providers: [Billing] }), await booted({ providers: [Billing] })];
    await errorOf(() => one.get(Billing).charge(fails));
    expect(await errorOf(() => one.get(Billing).charge(() => 1))).toBeInstanceOf(CircuitOpenException);
    expect(await other.get(Billing).charge(() => 1)).toBe(1);
    await one.close();
    expect(await other.get(Billing).charge(() => 1)).toBe(1);
  });

  test("is shared by methods that give it a name, and may have its policy from any of them", async () => {
    @Injectable()
    class Ledger {
      @WithCircuitBreaker({ name: "ledger" })
      async read(): Promise<string> {
        return "ok";
      }

      @WithCircuitBreaker({ name: "ledger", policy: { failureThreshold: 1 } })
      async write(): Promise<never> {
        throw boom;
      }
    }
    const app = await booted({ providers: [Ledger] });
    const ledger = app.get(Ledger);
    expect(await ledger.read()).toBe("ok");
    await errorOf(() => ledger.write());
    expect(await errorOf(() => ledger.read())).toMatchObject({ circuit: "ledger" });
  });

  test("is another one for a class that inherits the method, and none where it is written anew", async () => {
    @Injectable()
    class Http {
      @WithCircuitBreaker({ policy: once() })
      async get(fail: boolean): Promise<string> {
        if (fail) throw boom;
        return "ok";
      }
    }
    @Injectable()
    class Tea extends Http {}
    @Injectable()
    class Coffee extends Http {
      override async get(fail: boolean): Promise<string> {
        return `coffee ${await super.get(fail)}`;
      }
    }
    @Injectable()
    class Water extends Http {
      override async get(): Promise<string> {
        return "water";
      }
    }
    @Injectable()
    class Milk extends Http {
      @WithCircuitBreaker({ policy: { failureThreshold: 2 } })
      override async get(fail: boolean): Promise<string> {
        return `milk ${await super.get(fail)}`;
      }
    }
    const app = await booted({ providers: [Http, Tea, Coffee, Water, Milk] });
    await errorOf(() => app.get(Tea).get(true));
    expect(await errorOf(() => app.get(Tea).get(false))).toMatchObject({ circuit: "Tea.get" });
    expect(await app.get(Http).get(false)).toBe("ok");
    expect(await app.get(Coffee).get(false)).toBe("coffee ok");
    expect(await app.get(Water).get()).toBe("water");
    const names = app
      .get(CircuitBreakerService)
      .list()
      .map(({ name }) => name);
    expect(names).toEqual(["Http.get", "Tea.get", "Milk.get", "Coffee.get"]);
    expect(await app.get(Milk).get(false)).toBe("milk ok");
    expect(await errorOf(() => app.get(Milk).get(true))).toBe(boom);
    expect(await errorOf(() => app.get(Milk).get(true))).toMatchObject({ circuit: "Http.get" });
  });
});

describe("a provider", () => {
  test("may be a value, or what a factory gives, in any scope", async () => {
    const value = new Billing();
    const app = await booted({
      providers: [
        { provide: "value", useValue: value },
        { provide: "factory", useFactory: () => new Billing() },
        { provide: "async factory", useFactory: async () => new Billing() },
        { provide: "transient", useFactory: () => new Billing(), scope: Scope.TRANSIENT },
        { provide: "request", useFactory: () => new Billing(), scope: Scope.REQUEST },
        { provide: "by request", useFactory: async () => new Billing(), inject: [REQUEST] },
        { provide: "alias", useExisting: "value" },
      ],
    });
    const scoped = ["transient", "request", "by request"].map((token) => app.resolve<Billing>(token));
    const made = [
      ...["value", "factory", "async factory", "alias"].map((token) => app.get<Billing>(token)),
      ...(await Promise.all(scoped)),
    ];
    for (const billing of made) expect(await billing.charge(() => "charged")).toBe("charged");
    await errorOf(() => value.charge(fails));
    for (const billing of made)
      expect(await errorOf(() => billing.charge(() => 1))).toBeInstanceOf(CircuitOpenException);
  });

  test.each<[string, () => Billing]>([
    ["frozen", () => Object.freeze(new Billing())],
    ["sealed", () => Object.seal(new Billing())],
  ])("may be %s", async (_how, make) => {
    @Injectable()
    class Closed extends Billing {
      override runs = 0;

      constructor() {
        super();
        Object.preventExtensions(this);
      }
    }
    const value = make();
    const app = await booted({
      providers: [Closed, { provide: "value", useValue: value }, { provide: "factory", useFactory: make }],
    });
    expect(await errorOf(() => value.promised(async () => fails()))).toBe(boom);
    for (const billing of [value, app.get<Billing>("factory")])
      expect(await errorOf(() => billing.promised(async () => "ok"))).toBeInstanceOf(CircuitOpenException);
    expect(app.get(Closed).priceOf(() => 42)).toBe(42);
  });

  test.each<[string, (billing: Billing) => Provider]>([
    ["a value", (billing) => ({ provide: "billing", useValue: billing })],
    ["what a factory gives", (billing) => ({ provide: "billing", useFactory: () => billing })],
  ])("that outlives its application, %s, comes into the circuits of the next one", async (_what, provider) => {
    const billing = new Billing();
    const first = await booted({ providers: [provider(billing)] });
    expect(await errorOf(() => billing.charge(fails))).toBe(boom);
    await first.close();
    // Until there is another one it stays where it was.
    expect(await errorOf(() => billing.charge(() => "charged"))).toBeInstanceOf(CircuitOpenException);
    const second = await booted({ providers: [provider(billing)] });
    expect(await billing.charge(() => "charged")).toBe("charged");
    expect(second.get(CircuitBreakerService).list()).toMatchObject([{ name: "Billing.charge" }]);
  });

  test("may be made by hand, through ModuleRef", async () => {
    const app = await booted({});
    const billing = await app.get(ModuleRef).create(Billing);
    expect(await billing.charge(() => "charged")).toBe("charged");
  });

  test("may be of a module that is loaded later", async () => {
    const app = await booted({ providers: [Billing] });
    @Injectable()
    class Late extends Billing {}
    const value = new Late();
    const late = moduleOf({ providers: [Late, { provide: "value", useValue: value }] });
    const loaded = await app.get(LazyModuleLoader).load(() => late);
    expect(loaded.get(Late).priceOf(() => 1)).toBe(1);
    expect(value.priceOf(() => 2)).toBe(2);
    await errorOf(() => value.charge(fails));
    expect(await errorOf(() => loaded.get(Late).charge(fails))).toMatchObject({ circuit: "Late.charge" });
  });

  test("may call its guarded methods while the application boots", async () => {
    @Injectable()
    class Early {
      readonly answers: unknown[] = [];

      constructor(@Inject(Billing) readonly billing: Billing) {
        this.answers.push(billing.priceOf(() => 1));
      }

      async onModuleInit(): Promise<void> {
        this.answers.push(await this.billing.charge(() => 2));
      }
    }
    const app = await booted({ providers: [Early, Billing] });
    expect(app.get(Early).answers).toEqual([1, 2]);
  });
});

describe("outside of Nest", () => {
  test("a guarded method throws, and does not run: an async one rejects", async () => {
    const billing = new Billing();
    const rejected = billing.charge(() => 1);
    expect(await errorOf(() => rejected)).toMatchObject({
      message: expect.stringMatching(/`Billing.charge`.*CircuitBreakerModule/),
    });
    expect(() => billing.priceOf(() => 1)).toThrow(/`Billing.priceOf` has @WithCircuitBreaker.*Nest/);
    const { priceOf } = billing;
    expect(() => priceOf(() => 1)).toThrow(/CircuitBreakerModule/);
    expect(billing.runs).toBe(0);
  });

  test("so it does beside an application that runs, which its object is not in", async () => {
    await booted({ providers: [Billing] });
    expect(() => new Billing().priceOf(() => 1)).toThrow(/CircuitBreakerModule/);
  });

  test("without the module no application boots, and the error says what to import", async () => {
    const error = await errorOf(() => start({ providers: [Billing] }));
    expect((error as Error).message).toMatch(
      /Billing\b.*import CircuitBreakerModule\.forRoot\(.*\) of 'switchgear\/nestjs' into the root module/s,
    );
  });

  test("a module that is not global has to be imported where it is used", async () => {
    const feature = (imports: object[]) => moduleOf({ providers: [Billing], imports: imports as never });
    const local = CircuitBreakerModule.forRoot({ isGlobal: false });
    const error = await errorOf(() => start({ imports: [local, feature([])] }));
    expect((error as Error).message).toContain("import CircuitBreakerModule.forRoot(");
    const app = await start({ imports: [feature([CircuitBreakerModule.forRoot({ isGlobal: false })])] });
    expect(app.get(Billing, { strict: false }).priceOf(() => 1)).toBe(1);
  });
});

describe("what cannot be decorated", () => {
  class Static {
    static find(): void {}

    find(): void {}
  }
  const methodOf = (of: typeof Static) => Object.getOwnPropertyDescriptor(of, "find") as PropertyDescriptor;

  test.each<[string, () => unknown, RegExp]>([
    ["a static method", () => WithCircuitBreaker()(Static, "find", methodOf(Static)), /must stand before a method/],
    ["a field", () => WithCircuitBreaker()({}, "field", undefined as never), /must stand before a method/],
    ["a getter", () => WithCircuitBreaker()({}, "getter", { get: () => 1 }), /must stand before a method/],
    [
      "a method, by the decorators that Nest does not have",
      () => WithCircuitBreaker()(() => 1, { kind: "method" } as never, {}),
      /experimentalDecorators/,
    ],
  ])("%s", (_what, decorated, message) => expect(decorated).toThrow(message));

  test.each<[string, unknown, string, RegExp]>([
    ["an unknown option", { policies: {} }, "policies", /`policies` is not an option; valid are policy, key, name/],
    ["a policy that is none", { policy: 5 }, "policy", /`policy` must be an object, got `5`/],
    ["a key that is no function", { key: "host" }, "key", /`key` must be a function/],
    ["maxKeys without a key", { policy: { maxKeys: 5 } }, "maxKeys", /`maxKeys` must be given with `key`/],
    ["an order that is no number", { order: "first" }, "order", /`order` must be a number/],
    ["a fallback that is no function", { fallback: 0 }, "fallback", /`fallback` must be a function/],
    ["an unknown fallbackOn", { fallbackOn: "always" }, "fallbackOn", /`fallbackOn` must be 'refusal' or 'failure'/],
  ])("%s", (_what, options, field, message) => {
    const error = (() => {
      try {
        return WithCircuitBreaker(options as never);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({ field, message: expect.stringMatching(message) });
  });

  test("a method twice by one name; by two it is guarded by both circuits, of the same order the upper one outside", async () => {
    const twice = (name?: string) => {
      @Injectable()
      class Twice {
        @WithCircuitBreaker({ name, policy: once() })
        @WithCircuitBreaker({ policy: { failureThreshold: 2 } })
        async find(): Promise<never> {
          throw boom;
        }
      }
      return Twice;
    };
    expect(() => twice()).toThrow(/`name` must differ between the @WithCircuitBreaker of one method/);
    const Both = twice("upper");
    const app = await booted({ providers: [Both] });
    const states = () =>
      app
        .get(CircuitBreakerService)
        .list()
        .map((breaker) => [breaker.name, breaker.getState()]);
    expect(await errorOf(() => app.get(Both).find())).toBe(boom);
    expect(states()).toEqual([
      ["Twice.find", "closed"],
      ["upper", "open"],
    ]);
    expect(await errorOf(() => app.get(Both).find())).toMatchObject({ circuit: "upper" });
  });

  test("a name that names no circuit", () => {
    expect(() => WithCircuitBreaker({ name: "" })).toThrow(NameError);
  });
});
