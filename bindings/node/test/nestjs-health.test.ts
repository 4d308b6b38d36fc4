// Readiness with @nestjs/terminus: which circuits are open, and when that makes a service not ready.
import { Controller, Get, Inject, Injectable } from "@nestjs/common";
import { HealthCheck, HealthCheckService, TerminusModule } from "@nestjs/terminus";
import { ConfigError } from "switchgear";
import {
  CircuitBreakerHealthIndicator,
  CircuitBreakerModule,
  CircuitBreakerService,
  type CircuitHealthOptions,
  WithCircuitBreaker,
} from "switchgear/nestjs";
import { expect, test } from "vitest";
import { ADAPTERS, booted, once, serve } from "./support/nest";
import { intercepting } from "./support/stores";
import { ManualClock } from "./support/time";

@Injectable()
class Billing {
  @WithCircuitBreaker()
  async charge(): Promise<void> {}

  @WithCircuitBreaker()
  async refund(): Promise<void> {}
}

function application(clock: ManualClock, options: () => CircuitHealthOptions | undefined) {
  @Controller()
  class Health {
    constructor(
      @Inject(HealthCheckService) private readonly health: HealthCheckService,
      @Inject(CircuitBreakerHealthIndicator) private readonly circuits: CircuitBreakerHealthIndicator,
    ) {}

    @Get("ready")
    @HealthCheck()
    ready() {
      return this.health.check([() => this.circuits.check("circuits", options())]);
    }
  }
  return {
    imports: [TerminusModule, CircuitBreakerModule.forRoot({ defaults: once(clock) })],
    controllers: [Health],
    providers: [Billing],
  };
}

test.each(Object.keys(ADAPTERS))("open circuits are in the details of readiness, on %s", async (adapter) => {
  const clock = new ManualClock();
  let options: CircuitHealthOptions | undefined;
  const { app, url } = await serve(
    adapter,
    application(clock, () => options),
  );
  const ready = async () => {
    const response = await fetch(`${url}/ready`);
    const { status, details } = (await response.json()) as { status: string; details: { circuits: unknown } };
    return { code: response.status, status, circuits: details.circuits };
  };
  expect(await ready()).toEqual({ code: 200, status: "ok", circuits: { status: "up", circuits: 2, open: [] } });

  await app.get(CircuitBreakerService).get("Billing.charge").recordFailure();
  clock.now += 400;
  const open = { circuit: "Billing.charge", state: "open", mode: "auto", remainingOpenMs: 600 };
  const circuits = { status: "up", circuits: 2, open: [open] };
  expect(await ready()).toEqual({ code: 200, status: "ok", circuits });

  options = { critical: ["Billing.refund"] };
  expect(await ready()).toEqual({ code: 200, status: "ok", circuits });

  options = { critical: ["Billing.charge"] };
  expect(await ready()).toEqual({ code: 503, status: "error", circuits: { ...circuits, status: "down" } });

  // Loud, and never ready: whoever deploys it sees it.
  options = { critical: ["Billing.charges"] };
  expect((await fetch(`${url}/ready`)).status).toBe(500);
  options = { critical: ["Billing.charge"] };

  // Half-open: it is being tried, and an answer is on its way.
  clock.now += 600;
  await app.get(CircuitBreakerService).get("Billing.charge").canExecute();
  expect(await ready()).toMatchObject({ code: 200, circuits: { open: [{ state: "half-open", remainingOpenMs: 0 }] } });
});

test("a critical circuit that there is not is no silence: the check fails, and says which there are", async () => {
  @Injectable()
  class Hooks {
    @WithCircuitBreaker({ name: "hooks", key: ([host]) => host })
    async deliver(_host: string): Promise<void> {}
  }
  const named = { imports: [TerminusModule], providers: [Billing, Hooks] };
  const app = await booted(named, { circuits: { search: {} } });
  const health = app.get(CircuitBreakerHealthIndicator);
  const check = (...critical: string[]) => health.check("circuits", { critical });
  const there = "there are `Billing.charge`, `Billing.refund`, `hooks:key`, `search`";
  const later = "one that is made later has to be in `circuits` of CircuitBreakerModule";
  await expect(check("Billing.charge", "Biling.refund")).rejects.toMatchObject({
    code: "config_invalid",
    field: "critical",
    value: "'Biling.refund'",
    message: `\`critical\` must be circuits that there are, got \`'Biling.refund'\`; ${there}; ${later}`,
  });
  // Those of the options and of keys are made when somebody asks for them.
  await expect(check("search", "hooks:eu", "Billing.refund")).resolves.toMatchObject({ circuits: { status: "up" } });
  await expect(check("hooks")).rejects.toThrow("got `'hooks'`");
  await expect(check("mail")).rejects.toBeInstanceOf(ConfigError);
  const breakers = app.get(CircuitBreakerService);
  for (let i = 0; i < 100; i++) breakers.get(`mail ${i}`);
  await expect(check("mail 99")).resolves.toMatchObject({ circuits: { status: "up" } });
  await expect(check("mail")).rejects.toThrow("`mail 16`, ...; one that is made later");
});

test("a circuit whose store does not answer is told as unknown", async () => {
  const redis = intercepting(
    () => undefined as never,
    () => Promise.reject(new Error("LOADING")),
  );
  const app = await booted(
    { imports: [TerminusModule], providers: [Billing] },
    {
      redis,
      prefix: "a:",
      shared: { onStoreFailure: "fail-closed", timeoutMs: 60_000 },
      on: { degraded: () => undefined },
    },
  );
  expect(await app.get(CircuitBreakerHealthIndicator).check()).toEqual({
    circuits: {
      status: "up",
      circuits: 2,
      open: [
        { circuit: "Billing.charge", state: "unknown" },
        { circuit: "Billing.refund", state: "unknown" },
      ],
    },
  });
});

test("it says what is missing, and what is wrong", async () => {
  const app = await booted({});
  await expect(app.get(CircuitBreakerHealthIndicator).check()).rejects.toThrow(/needs TerminusModule/);
  const other = await booted({ imports: [TerminusModule] });
  const health = other.get(CircuitBreakerHealthIndicator);
  await expect(health.check("circuits", { critical: "a" as never })).rejects.toThrow(/`critical` must be an array/);
  await expect(health.check("circuits", { criticals: [] } as never)).rejects.toBeInstanceOf(ConfigError);
});
