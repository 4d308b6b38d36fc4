// A request that a circuit refuses, on real servers: Express and Fastify.
import {
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  Inject,
  Injectable,
  type MiddlewareConsumer,
  Module,
  Param,
  ParseIntPipe,
  Post,
  Req,
  Res,
  Scope,
  UseFilters,
  UseGuards,
} from "@nestjs/common";
import { APP_FILTER, REQUEST } from "@nestjs/core";
import { of, throwError } from "rxjs";
import { type Breaker, CircuitOpenError, StoreError, StoreUnavailableError } from "switchgear";
import {
  CircuitBreakerModule,
  CircuitBreakerService,
  InjectCircuitBreaker,
  WithCircuitBreaker,
} from "switchgear/nestjs";
import { describe, expect, test } from "vitest";
import { ADAPTERS, once, serve } from "./support/nest";
import { boom, ManualClock } from "./support/time";

/** Time stands still, so that each refusal says the same. */
const STANDING = { defaults: { clock: new ManualClock().read } };

const PROBLEM = {
  type: "about:blank",
  title: "Service Unavailable",
  status: 503,
  detail: "The service cannot answer this request now. Try again in 30 s.",
};

/** What a client sees. */
async function seen(url: string, init?: RequestInit) {
  const response = await fetch(url, init);
  const { status, headers } = response;
  const body = await response.text();
  const type = headers.get("content-type")?.replace(/; *charset=utf-8/i, "");
  return {
    status,
    type,
    retryAfter: headers.get("retry-after"),
    body: type?.endsWith("json") ? JSON.parse(body) : body,
  };
}

const REFUSED = { status: 503, type: "application/problem+json", retryAfter: "30", body: PROBLEM };

@Injectable()
class Billing {
  @WithCircuitBreaker({ policy: { failureThreshold: 1 } })
  async charge(fail: boolean): Promise<string> {
    if (fail) throw boom;
    return "charged";
  }
}

describe.each(Object.keys(ADAPTERS))("on %s", (adapter) => {
  test("importing the module is all the wiring: 503, Retry-After and a problem that says nothing of the inside", async () => {
    @Controller()
    class Shop {
      constructor(@Inject(Billing) private readonly billing: Billing) {}

      @Post("pay/:how")
      async pay(@Param("how") how: string): Promise<string> {
        return this.billing.charge(how === "badly");
      }
    }
    const { url } = await serve(adapter, {
      imports: [CircuitBreakerModule.forRoot(STANDING)],
      controllers: [Shop],
      providers: [Billing],
    });
    const pay = (how: string) => seen(`${url}/pay/${how}`, { method: "POST" });
    expect(await pay("well")).toMatchObject({ status: 201, body: "charged" });
    expect(await pay("badly")).toMatchObject({ status: 500 });
    expect(await pay("well")).toEqual(REFUSED);
  });

  test("a controller's own method is guarded, with its parameters, in whatever order its decorators stand", async () => {
    @Controller({ path: "items", scope: Scope.REQUEST })
    class Items {
      constructor(@Inject(REQUEST) readonly request: object) {}

      @Get("above/:id")
      @WithCircuitBreaker({ policy: { failureThreshold: 1 } })
      above(@Param("id", ParseIntPipe) id: number): object {
        if (id === 0) throw boom;
        return { id, scoped: this.request !== undefined };
      }

      @WithCircuitBreaker({ policy: { failureThreshold: 1 } })
      @Get("below/:id")
      below(@Param("id", ParseIntPipe) id: number) {
        return id === 0 ? throwError(() => boom) : of({ id, scoped: this.request !== undefined });
      }
    }
    const { app, url } = await serve(adapter, {
      imports: [CircuitBreakerModule.forRoot(STANDING)],
      controllers: [Items],
    });
    for (const where of ["above", "below"]) {
      expect(await seen(`${url}/items/${where}/7`)).toMatchObject({ status: 200, body: { id: 7, scoped: true } });
      expect(await seen(`${url}/items/${where}/x`)).toMatchObject({ status: 400 });
      expect(await seen(`${url}/items/${where}/0`)).toMatchObject({ status: 500 });
      expect(await seen(`${url}/items/${where}/7`)).toEqual(REFUSED);
    }
    const names = app
      .get(CircuitBreakerService)
      .list()
      .map(({ name }) => name);
    expect(names).toEqual(["Items.above", "Items.below"]);
  });

  test("so are guards and middleware, ahead of any route", async () => {
    @Injectable()
    class Sessions implements CanActivate {
      @WithCircuitBreaker({ policy: { failureThreshold: 1 } })
      async canActivate(): Promise<boolean> {
        throw boom;
      }
    }
    @Injectable()
    class Audit {
      @WithCircuitBreaker({ policy: { failureThreshold: 1 } })
      async use(_request: unknown, _response: unknown, _next: () => void): Promise<void> {
        throw boom;
      }
    }
    @Controller()
    class Routes {
      @Get("guarded")
      @UseGuards(Sessions)
      guarded(): string {
        return "in";
      }

      @Get("audited")
      audited(): string {
        return "in";
      }
    }
    @Module({ controllers: [Routes], providers: [Sessions] })
    class Feature {
      configure(consumer: MiddlewareConsumer): void {
        consumer.apply(Audit).forRoutes("audited");
      }
    }
    const { url } = await serve(adapter, { imports: [CircuitBreakerModule.forRoot(STANDING), Feature] });
    for (const path of ["guarded", "audited"]) {
      expect((await seen(`${url}/${path}`)).status, path).toBe(500);
      expect(await seen(`${url}/${path}`), path).toEqual(REFUSED);
    }
  });

  test("refusals of any breaker are answered: an injected one, one made by hand, and a store that does not answer", async () => {
    const clock = new ManualClock();
    const errors: Record<string, () => Error> = {
      "without-wait": () =>
        new CircuitOpenError({ circuit: "a", state: "open", retryAfterMs: null, lastFailure: null }),
      "half-open": () => new CircuitOpenError({ circuit: "a", state: "half-open", retryAfterMs: 1, lastFailure: null }),
      store: () => new StoreUnavailableError("a", new StoreError("LOADING")),
    };
    @Controller()
    class Routes {
      constructor(@InjectCircuitBreaker("injected") readonly breaker: Breaker) {}

      @Get("injected")
      async injected(): Promise<string> {
        return this.breaker.execute(() => Promise.reject(boom));
      }

      @Get("thrown/:what")
      thrown(@Param("what") what: string): never {
        throw (errors[what] as () => Error)();
      }
    }
    const { url } = await serve(adapter, {
      imports: [CircuitBreakerModule.forRoot({ defaults: once(clock) })],
      controllers: [Routes],
    });
    expect((await seen(`${url}/injected`)).status).toBe(500);
    expect(await seen(`${url}/injected`)).toMatchObject({ status: 503, retryAfter: "1" });
    const later = { ...PROBLEM, detail: "The service cannot answer this request now. Try again later." };
    expect(await seen(`${url}/thrown/without-wait`)).toEqual({ ...REFUSED, retryAfter: null, body: later });
    expect(await seen(`${url}/thrown/store`)).toEqual({ ...REFUSED, retryAfter: null, body: later });
    expect(await seen(`${url}/thrown/half-open`)).toMatchObject({ status: 503, retryAfter: "1" });
  });

  test("an answer that was begun is ended, and no other error is touched", async () => {
    @Controller()
    class Routes {
      @Get("begun")
      begun(@Res() response: { raw?: NodeJS.WritableStream; write(text: string): void }): never {
        (response.raw ?? response).write("begun ");
        throw new CircuitOpenError({ circuit: "a", state: "open", retryAfterMs: 1, lastFailure: null });
      }

      @Get("other")
      other(): never {
        throw boom;
      }
    }
    const { url } = await serve(adapter, { imports: [CircuitBreakerModule.forRoot(STANDING)], controllers: [Routes] });
    expect(await seen(`${url}/begun`)).toMatchObject({ status: 200, body: expect.stringMatching(/^begun /) });
    expect(await seen(`${url}/other`)).toMatchObject({
      status: 500,
      retryAfter: null,
      body: { statusCode: 500, message: "Internal server error" },
    });
  });

  test("a filter of the application's own comes first: at a route, or for all of it", async () => {
    @Catch(CircuitOpenError)
    class Own implements ExceptionFilter {
      catch(error: CircuitOpenError, host: import("@nestjs/common").ArgumentsHost): void {
        const response = host.switchToHttp().getResponse();
        response.status(418).send(`${error.circuit} ${error instanceof CircuitOpenError}`);
      }
    }
    @Controller()
    class Routes {
      constructor(@Inject(Billing) private readonly billing: Billing) {}

      @Get("own")
      @UseFilters(Own)
      async own(): Promise<string> {
        return this.billing.charge(true);
      }

      @Get("common")
      async common(@Req() _request: object): Promise<string> {
        return this.billing.charge(true);
      }
    }
    const parts = { imports: [CircuitBreakerModule.forRoot(STANDING)], controllers: [Routes], providers: [Billing] };
    const { url } = await serve(adapter, parts);
    await seen(`${url}/own`);
    expect(await seen(`${url}/own`)).toMatchObject({ status: 418, body: "Billing.charge true" });
    expect(await seen(`${url}/common`)).toEqual(REFUSED);
    const { url: other } = await serve(adapter, parts, (app) => app.useGlobalFilters(new Own()));
    await seen(`${other}/common`);
    expect((await seen(`${other}/common`)).status).toBe(418);
  });

  test("a filter for everything that the root module provides leaves refusals to ours", async () => {
    @Catch()
    class Everything implements ExceptionFilter {
      catch(_error: unknown, host: import("@nestjs/common").ArgumentsHost): void {
        host.switchToHttp().getResponse().status(418).send("mine");
      }
    }
    @Controller()
    class Routes {
      constructor(@Inject(Billing) private readonly billing: Billing) {}

      @Get()
      async get(): Promise<string> {
        return this.billing.charge(true);
      }
    }
    const { url } = await serve(adapter, {
      imports: [CircuitBreakerModule.forRoot(STANDING)],
      controllers: [Routes],
      providers: [Billing, { provide: APP_FILTER, useClass: Everything }],
    });
    expect((await seen(url)).status).toBe(418);
    expect(await seen(url)).toEqual(REFUSED);
  });
});
