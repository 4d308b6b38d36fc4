// CircuitBreakerModule: what it takes, how it checks it at boot, and what it gives.
import { Injectable, Scope } from "@nestjs/common";
import { Test } from "@nestjs/testing";
import { type Breaker, CircuitBreaker, ConfigError, NameError, type StateChange, TimeError } from "switchgear";
import {
  CircuitBreakerModule,
  CircuitBreakerService,
  getCircuitBreakerToken,
  InjectCircuitBreaker,
  WithCircuitBreaker,
} from "switchgear/nestjs";
import { describe, expect, test, vi } from "vitest";
import { booted, closing, moduleOf, once, start } from "./support/nest";
import { boom, ManualClock } from "./support/time";

@Injectable()
class Billing {
  @WithCircuitBreaker({ policy: { failureThreshold: 2 } })
  async charge(fail: boolean): Promise<string> {
    if (fail) throw boom;
    return "charged";
  }
}

/** How many failures trip a circuit. */
async function threshold(breaker: Breaker): Promise<number> {
  let failures = 0;
  for (; (await breaker.getState()) === "closed"; failures += 1) await breaker.recordFailure();
  return failures;
}

const failure = (boot: Promise<unknown>): Promise<unknown> =>
  boot.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("forRoot", () => {
  test("begins with the defaults, goes on with the circuit's own, and ends with what stands beside the method", async () => {
    const app = await booted(
      { providers: [Billing] },
      {
        defaults: { failureThreshold: 7, openDurationMs: 1234 },
        circuits: { "Billing.charge": { failureThreshold: 3, openDurationMs: 99 }, search: { failureThreshold: 4 } },
      },
    );
    const service = app.get(CircuitBreakerService);
    expect(await threshold(service.get("other"))).toBe(7);
    expect(await threshold(service.get("search"))).toBe(4);
    expect(await threshold(service.get("Billing.charge"))).toBe(2);
    expect((await service.get("Billing.charge").getSnapshot()).remainingOpenMs).toBeLessThanOrEqual(99);
    expect((await service.get("search").getSnapshot()).remainingOpenMs).toBeGreaterThan(99);
  });

  test.each<[string, unknown, string, RegExp]>([
    [
      "an unknown option",
      { default: {} },
      "default",
      /`default` is not an option; valid are defaults, circuits, redis, prefix/,
    ],
    ["no object", 5, "options", /`options` must be an object, got `5`/],
    [
      "a wrong default",
      { defaults: { failureThreshold: 0 } },
      "failureThreshold",
      /`failureThreshold` must be .*, got `0` \(in defaults\)/,
    ],
    ["defaults that are none", { defaults: [] }, "defaults", /`defaults` must be an object/],
    [
      "a wrong circuit",
      { circuits: { a: { windowMs: "1s" } } },
      "windowMs",
      /`windowMs` must be .* \(in circuits\.a\)/,
    ],
    [
      "an unknown option of a circuit",
      { circuits: { a: { tripsOn: "rate" } } },
      "tripsOn",
      /`tripsOn` is not an option.*circuits\.a/,
    ],
    ["a circuit that is none", { circuits: { a: 5 } }, "circuits.a", /`circuits\.a` must be an object, got `5`/],
    [
      "a client that is none",
      { redis: 5, prefix: "a:" },
      "redis",
      /`redis` must be a client of Redis or its injection token, got `5`/,
    ],
    [
      "an object that is no client",
      { redis: {}, prefix: "a:" },
      "redis",
      /`redis` must be a client of ioredis.*got `Object`/,
    ],
    [
      "a client without a prefix",
      { redis: { command: async () => null } },
      "prefix",
      /`prefix` must be given with `redis`/,
    ],
    [
      "a token that nobody has",
      { redis: "REDIS", prefix: "a:" },
      "redis",
      /`redis` must be the token of a provider of some module, got `REDIS`/,
    ],
    [
      "a URL in place of a client, whose password nobody is shown",
      { redis: "redis://user:secret@localhost:6379", prefix: "a:" },
      "redis",
      /`redis` must be the token of a provider of some module, got `redis:\/\/\*\*\*@localhost:6379`/,
    ],
    [
      "a wrong prefix",
      { redis: { command: async () => null }, prefix: 5 },
      "prefix",
      /`prefix` must be a text, got `5`/,
    ],
    [
      "a wrong option of sharing",
      { redis: { command: async () => null }, prefix: "a:", shared: { quorum: 0 } },
      "quorum",
      /`quorum` must be .*\(in shared\)/,
    ],
    [
      "a wrong option of the store",
      { redis: { command: async () => null }, prefix: "a:", shared: { events: 1 } },
      "events",
      /`events` must be true or false.*\(in shared\)/,
    ],
    ["isGlobal that is none", { isGlobal: 1 }, "isGlobal", /`isGlobal` must be true or false, got `1`/],
    [
      "an unknown event",
      { on: { opened: () => undefined } },
      "on",
      /`on` must be an object of stateChange.*degraded.*got .*opened/,
    ],
    ["a listener that is none", { on: { failure: 5 } }, "on.failure", /`on\.failure` must be a function, got `5`/],
  ])("fails the boot for %s, and names the field", async (_what, options, field, message) => {
    const error = await failure(start({ imports: [CircuitBreakerModule.forRoot(options as never)] }));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({ field, message: expect.stringMatching(message) });
  });

  test("fails the boot for a name, a prefix and a clock that are none", async () => {
    const redis = { command: async () => null };
    const boots = [{ circuits: { "a\n": {} } }, { redis, prefix: "" }, { defaults: { clock: () => Number.NaN } }];
    const errors = await Promise.all(boots.map((options) => failure(booted({}, options))));
    expect(errors).toEqual([expect.any(NameError), expect.any(NameError), expect.any(TimeError)]);
  });

  test("fails the boot for the policy of a method, also of one that is only made with a request", async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Wrong {
      @WithCircuitBreaker({ policy: { failureThreshold: -1 } })
      async find(): Promise<void> {}
    }
    const error = await failure(booted({ providers: [Wrong] }));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({
      field: "failureThreshold",
      message: expect.stringMatching(/got `-1` \(in @WithCircuitBreaker of Wrong\.find\)/),
    });
  });

  test("fails the boot where one name is to be two circuits", async () => {
    const named = (name: string, policy?: object, key?: () => string) => {
      @Injectable()
      class Named {
        @WithCircuitBreaker({ name, policy, key })
        async one(): Promise<void> {}
      }
      return Named;
    };
    const errors = await Promise.all([
      failure(booted({ providers: [named("a", { failureThreshold: 1 }), named("a", { failureThreshold: 2 })] })),
      failure(booted({ providers: [named("a"), named("a", undefined, () => "key")] })),
      failure(
        booted({ providers: [Billing, { provide: "b", useClass: { Billing: class extends Billing {} }.Billing }] }),
      ),
    ]);
    expect(errors).toEqual([
      expect.objectContaining({
        field: "policy",
        message: expect.stringMatching(
          /`policy` of circuit `a` must be one and the same wherever it is given; one @WithCircuitBreaker of Named\.one and another differ in `failureThreshold`$/,
        ),
      }),
      expect.objectContaining({
        field: "key",
        message: expect.stringMatching(/`key` must be given by all or by none/),
      }),
      expect.objectContaining({
        field: "name",
        message: expect.stringMatching(/two classes have a circuit called `Billing\.charge`/),
      }),
    ]);
    await booted({ providers: [named("a", { failureThreshold: 1 }), named("a", { failureThreshold: 1 }), named("a")] });
  });

  test("fails the boot where a name is that of another's key", async () => {
    @Injectable()
    class Pay {
      @WithCircuitBreaker({ name: "pay", key: ([region]) => region, policy: { failureThreshold: 1 } })
      async send(_region: string): Promise<void> {}
    }
    @Injectable()
    class Europe {
      @WithCircuitBreaker({ name: "pay:eu", policy: { failureThreshold: 5 } })
      async send(): Promise<void> {}
    }
    @Injectable()
    class Regions {
      @WithCircuitBreaker({ name: "pay:eu", key: ([city]) => city })
      async send(_city: string): Promise<void> {}
    }
    const why = "@WithCircuitBreaker of Pay.send has a circuit per key, and so is that of key `eu` called";
    const message = (by: string) =>
      `\`name\` must not be \`pay:eu\` for ${by}: ${why}; to share it, give \`name: 'pay'\` and a \`key\``;
    for (const providers of [
      [Pay, Europe],
      [Europe, Pay],
      [Pay, Regions],
      [Regions, Pay],
    ]) {
      const [other] = providers.filter((one) => one !== Pay);
      expect(await failure(booted({ providers }))).toMatchObject({
        code: "config_invalid",
        field: "name",
        value: "pay:eu",
        message: message(`@WithCircuitBreaker of ${other?.name}.send`),
      });
    }
    expect(await failure(booted({ providers: [Pay] }, { circuits: { "pay:eu": {} } }))).toMatchObject({
      message: message("`circuits` of CircuitBreakerModule"),
    });
    const app = await booted({ providers: [Pay] }, { circuits: { pay: {}, "payments:eu": {} } });
    await app.get(Pay).send("eu");
    const service = app.get(CircuitBreakerService);
    expect(service.get("pay:eu")).toBe(service.list()[0]);
  });

  test("fails the boot where two methods of a class have one default name", async () => {
    const one = Symbol("charge");
    const other = Symbol("charge");
    @Injectable()
    class Symbols {
      @WithCircuitBreaker()
      async [one](): Promise<void> {}

      @WithCircuitBreaker()
      async [other](): Promise<void> {}
    }
    @Injectable()
    class Mixed {
      @WithCircuitBreaker()
      async [one](): Promise<void> {}

      @WithCircuitBreaker()
      async charge(): Promise<void> {}
    }
    @Injectable()
    class Named {
      @WithCircuitBreaker()
      async [one](): Promise<void> {}

      @WithCircuitBreaker({ name: "other" })
      async [other](): Promise<void> {}
    }
    for (const of of [Symbols, Mixed]) {
      const why = `for two methods of one class have a circuit called \`${of.name}.charge\``;
      expect(await failure(booted({ providers: [of] }))).toMatchObject({
        field: "name",
        message: `\`name\` must be given to @WithCircuitBreaker of one of them, ${why}`,
      });
    }
    const app = await booted({ providers: [Named] });
    const names = app
      .get(CircuitBreakerService)
      .list()
      .map(({ name }) => name);
    expect(names).toEqual(["Named.charge", "other"]);
  });

  test("is one for the application, or one for each import where it is not global", async () => {
    const feature = (failureThreshold: number) => {
      @Injectable()
      class Feature {
        constructor(@InjectCircuitBreaker("feature") readonly breaker: Breaker) {}
      }
      const imports = [CircuitBreakerModule.forRoot({ isGlobal: false, defaults: { failureThreshold } })];
      return { Feature, Module: moduleOf({ providers: [Feature], exports: [Feature], imports }) };
    };
    const [one, other] = [feature(2), feature(3)];
    // What one import says of circuits is nothing to classes that see another.
    @Injectable()
    class Strict {
      @WithCircuitBreaker({ policy: { windowMs: 5 } })
      async find(): Promise<void> {}
    }
    const consecutive = CircuitBreakerModule.forRoot({ isGlobal: false, defaults: { tripOn: "consecutive" } });
    const rolling = CircuitBreakerModule.forRoot({ isGlobal: false });
    const passedOn = moduleOf({ imports: [rolling], exports: [CircuitBreakerModule] });
    const value = new Strict();
    const values = [Strict, { provide: "value", useValue: value }];
    await start({
      imports: [moduleOf({ imports: [consecutive] }), moduleOf({ imports: [passedOn], providers: values })],
    });
    expect(await value.find()).toBeUndefined();
    const wrong = start({ imports: [moduleOf({ imports: [consecutive], providers: [Strict] })] });
    expect(await failure(wrong)).toMatchObject({ field: "windowMs" });
    const app = await start({ imports: [one.Module, other.Module] });
    expect(await threshold(app.get(one.Feature, { strict: false }).breaker)).toBe(2);
    expect(await threshold(app.get(other.Feature, { strict: false }).breaker)).toBe(3);
  });
});

describe("forRootAsync", () => {
  @Injectable()
  class Settings {
    readonly failureThreshold = 3;

    async createCircuitBreakerOptions() {
      return { defaults: { failureThreshold: this.failureThreshold } };
    }
  }
  const SettingsModule = moduleOf({ providers: [Settings], exports: [Settings] });

  test.each([
    [
      "useFactory",
      {
        imports: [SettingsModule],
        inject: [Settings],
        useFactory: async (settings: Settings) => ({ defaults: { failureThreshold: settings.failureThreshold } }),
      },
    ],
    ["useFactory that injects nothing", { useFactory: () => ({ defaults: { failureThreshold: 3 } }) }],
    ["useClass", { useClass: Settings }],
    ["useExisting", { imports: [SettingsModule], useExisting: Settings }],
  ])("%s", async (_way, options) => {
    const app = await start({ imports: [CircuitBreakerModule.forRootAsync(options)] });
    expect(await threshold(app.get(CircuitBreakerService).get("a"))).toBe(3);
  });

  test.each<[string, object, RegExp]>([
    ["none of them", {}, /`options` must have one of useFactory, useClass, useExisting, got none of them/],
    ["two of them", { useFactory: () => ({}), useClass: Settings }, /got useFactory and useClass/],
    ["no function", { useFactory: 5 }, /`useFactory` must be a function, got `5`/],
    ["an unknown option", { useFactory: () => ({}), global: true }, /`global` is not an option; valid are useFactory/],
    ["isGlobal that is none", { useFactory: () => ({}), isGlobal: "yes" }, /`isGlobal` must be true or false/],
  ])("takes one of the three: %s", async (_what, options, message) => {
    const error = await failure(start({ imports: [CircuitBreakerModule.forRootAsync(options as never)] }));
    expect(error).toMatchObject({ code: "config_invalid", message: expect.stringMatching(message) });
  });

  test("checks at boot what the factory gives: isGlobal comes too late there", async () => {
    const boot = (given: unknown) =>
      failure(start({ imports: [CircuitBreakerModule.forRootAsync({ useFactory: () => given as never })] }));
    expect(await boot({ defaults: { minimumCalls: 0 } })).toMatchObject({ field: "minimumCalls" });
    expect(await boot(undefined)).toMatchObject({ field: "options" });
    expect(await boot({ isGlobal: false })).toMatchObject({
      field: "isGlobal",
      message: expect.stringContaining("beside `useFactory`"),
    });
    class Empty {}
    const empty = start({ imports: [CircuitBreakerModule.forRootAsync({ useClass: Empty as never })] });
    expect(await failure(empty)).toMatchObject({
      field: "useClass",
      message: expect.stringContaining("a class with a method `createCircuitBreakerOptions`"),
    });
    const breaking = start({
      imports: [CircuitBreakerModule.forRootAsync({ useFactory: () => Promise.reject(boom) })],
    });
    expect(await failure(breaking)).toBe(boom);
  });
});

describe("CircuitBreakerService", () => {
  test("gives the one breaker of a name, and makes it where there is none", async () => {
    const app = await booted({ providers: [Billing] });
    const service = app.get(CircuitBreakerService);
    const breaker = service.get("search", { failureThreshold: 3 });
    expect(breaker).toBeInstanceOf(CircuitBreaker);
    expect(service.get("search")).toBe(breaker);
    expect(service.get("search", { failureThreshold: 3 })).toBe(breaker);
    expect(service.list().map(({ name }) => name)).toEqual(["Billing.charge", "search"]);
    expect(await threshold(breaker)).toBe(3);
    await expect(app.get(Billing).charge(false)).resolves.toBe("charged");
    await service.get("Billing.charge").forceOpen();
    await expect(app.get(Billing).charge(false)).rejects.toMatchObject({
      circuit: "Billing.charge",
      retryAfterMs: null,
    });
  });

  test("says what is wrong with a name or a policy", async () => {
    @Injectable()
    class Keyed {
      @WithCircuitBreaker({ key: ([id]) => String(id) })
      async find(_id: string): Promise<void> {}
    }
    @Injectable()
    class Injected {
      @InjectCircuitBreaker("injected") readonly breaker!: Breaker;
    }
    const app = await booted({ providers: [Keyed, Injected] });
    const service = app.get(CircuitBreakerService);
    service.get("search", { failureThreshold: 3 });
    expect(() => service.get("search", { failureThreshold: 4, windowMs: 5 })).toThrow(
      "`policy` of circuit `search` must be one and the same wherever it is given; one CircuitBreakerService.get and another differ in `failureThreshold`, `windowMs`",
    );
    expect(() => service.get("injected", { failureThreshold: 4 })).toThrow(
      /wherever it is given; @InjectCircuitBreaker has made it without one$/,
    );
    expect(() => service.get("")).toThrow(NameError);
    expect(() => service.get("other", { failureThreshold: 0 })).toThrow(/`failureThreshold` must be/);
    expect(() => service.get("Keyed.find")).toThrow(/`name` must have a key, `Keyed\.find:key`/);
    expect(() => service.get("Keyed.find:a", {})).toThrow(/cannot be given here/);
    expect(service.list().map(({ name }) => name)).toEqual(["injected", "search"]);
    expect(service.get("Keyed.find:a:b").name).toBe("Keyed.find:a:b");
  });
});

describe("@InjectCircuitBreaker", () => {
  @Injectable()
  class Search {
    @InjectCircuitBreaker("search") readonly property!: Breaker;

    constructor(@InjectCircuitBreaker("search") readonly parameter: Breaker) {}
  }

  test("injects the breaker of a name into parameters and properties", async () => {
    const app = await booted({ providers: [Search] }, { circuits: { search: { failureThreshold: 4 } } });
    const search = app.get(Search);
    expect(search.property).toBe(search.parameter);
    expect(search.parameter).toBe(app.get(CircuitBreakerService).get("search"));
    expect(await threshold(search.parameter)).toBe(4);
  });

  test("injects that of a method, whose policy stands beside it", async () => {
    @Injectable()
    class Watch {
      constructor(@InjectCircuitBreaker("Billing.charge") readonly breaker: Breaker) {}
    }
    const app = await booted({ providers: [Watch, Billing] });
    expect(await threshold(app.get(Watch).breaker)).toBe(2);
  });

  test("says without the module what to import", async () => {
    const error = await failure(start({ providers: [Search] }));
    expect((error as Error).message).toMatch(/is CircuitBreakerModule\.forRoot\(\) of switchgear\/nestjs imported\?/);
  });

  test("can be given something else in a test", async () => {
    const instead = new CircuitBreaker("instead");
    const module = await Test.createTestingModule({ imports: [CircuitBreakerModule.forRoot()], providers: [Search] })
      .overrideProvider(getCircuitBreakerToken("search"))
      .useValue(instead)
      .compile();
    expect(closing(module).get(Search).parameter).toBe(instead);
  });

  test("takes only what names a circuit", () => {
    expect(() => InjectCircuitBreaker("")).toThrow(NameError);
  });
});

describe("listeners", () => {
  test("hear of all circuits, in order, and one that throws harms nothing", async () => {
    const clock = new ManualClock();
    const told: string[] = [];
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    const app = await booted(
      { providers: [Billing] },
      {
        defaults: once(clock),
        on: {
          stateChange: ({ circuit, toState }: StateChange) => void told.push(`${circuit} ${toState}`),
          failure: ({ circuit, error }) => void told.push(`${circuit} ${error === boom}`),
          success: () => {
            throw boom;
          },
          refused: undefined,
        },
      },
    );
    const service = app.get(CircuitBreakerService);
    await app.get(Billing).charge(false);
    for (let i = 0; i < 2; i += 1)
      await app
        .get(Billing)
        .charge(true)
        .catch(() => undefined);
    await service.get("search").recordFailure(boom);
    expect(told).toEqual([
      "Billing.charge true",
      "Billing.charge open",
      "Billing.charge true",
      "search open",
      "search true",
    ]);
    expect(warned).toHaveBeenCalledOnce();
    warned.mockRestore();
  });
});
