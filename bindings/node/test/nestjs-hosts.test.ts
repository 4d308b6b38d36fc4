// Hosts that are not HTTP: microservices, gateways and GraphQL get the refusal as if our filter were not there.
import { type ArgumentsHost, Catch, Controller, type ExceptionFilter, Inject, Injectable } from "@nestjs/common";
import { APP_FILTER, ExternalContextCreator, NestFactory } from "@nestjs/core";
import { type CustomTransportStrategy, MessagePattern, Server } from "@nestjs/microservices";
import { WsAdapter } from "@nestjs/platform-ws";
import { SubscribeMessage, WebSocketGateway } from "@nestjs/websockets";
import { lastValueFrom, type Observable, throwError } from "rxjs";
import { CircuitOpenError } from "switchgear";
import { CircuitBreakerModule, CircuitOpenException, WithCircuitBreaker } from "switchgear/nestjs";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { closing, moduleOf, once, QUIET, serve } from "./support/nest";
import { boom } from "./support/time";

@Injectable()
class Billing {
  @WithCircuitBreaker({ policy: once() })
  async charge(): Promise<string> {
    throw boom;
  }
}

@Controller()
class Desk {
  constructor(@Inject(Billing) private readonly billing: Billing) {}

  @MessagePattern("charge")
  async charge(): Promise<string> {
    return this.billing.charge();
  }
}

/** What reports everything that comes to it, for any host; it is found behind ours. */
@Catch()
class Everything implements ExceptionFilter {
  static seen: unknown[] = [];

  catch(error: unknown, host: ArgumentsHost): unknown {
    Everything.seen.push([host.getType(), error instanceof CircuitOpenException]);
    return host.getType() === "rpc" ? throwError(() => "mine") : undefined;
  }
}

/** A transport without a network: what comes before and after it is Nest's. */
class Direct extends Server implements CustomTransportStrategy {
  listen(ready: () => void): void {
    ready();
  }

  close(): void {}
  on(): void {}
  unwrap<T>(): T {
    return undefined as T;
  }

  async ask(pattern: string): Promise<unknown> {
    const handler = this.getHandlerByPattern(pattern) as (data: unknown) => Promise<Observable<unknown>>;
    return lastValueFrom(await handler({}));
  }
}

const errorOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

async function microservice(providers: object[] = []) {
  const strategy = new Direct();
  const root = moduleOf({
    imports: [CircuitBreakerModule.forRoot()],
    controllers: [Desk],
    providers: [Billing, ...(providers as [])],
  });
  await closing(await NestFactory.createMicroservice(root, { strategy, ...QUIET })).listen();
  return strategy;
}

describe("a microservice", () => {
  test("answers a refusal as it answers any error", async () => {
    const strategy = await microservice();
    const first = await errorOf(strategy.ask("charge"));
    expect(first).toEqual({ status: "error", message: "Internal server error" });
    expect(await errorOf(strategy.ask("charge"))).toEqual(first);
  });

  test("asks the application's own filter, though ours comes before it", async () => {
    Everything.seen = [];
    const strategy = await microservice([{ provide: APP_FILTER, useClass: Everything }]);
    expect(await errorOf(strategy.ask("charge"))).toBe("mine");
    expect(await errorOf(strategy.ask("charge"))).toBe("mine");
    expect(Everything.seen).toEqual([
      ["rpc", false],
      ["rpc", true],
    ]);
  });
});

test("a gateway answers a refusal as it answers any error", async () => {
  @WebSocketGateway()
  class Gateway {
    static refusals: unknown[] = [];

    constructor(@Inject(Billing) private readonly billing: Billing) {}

    @SubscribeMessage("charge")
    async charge(): Promise<object> {
      return this.billing.charge().then(
        () => ({}),
        (error) => {
          Gateway.refusals.push(error);
          throw error;
        },
      );
    }

    @SubscribeMessage("ping")
    ping(): object {
      return { event: "pong" };
    }
  }
  const parts = { imports: [CircuitBreakerModule.forRoot()], providers: [Billing, Gateway] };
  const { url } = await serve("Express", parts, (app) => app.useWebSocketAdapter(new WsAdapter(app)));
  const socket = new WebSocket(url.replace("http", "ws"));
  const messages: string[] = [];
  let heard = (): void => undefined;
  socket.on("message", (data) => {
    messages.push(String(data));
    heard();
  });
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  for (let i = 0; i < 2; i += 1) {
    const pong = new Promise<void>((resolve) => {
      heard = resolve;
    });
    for (const event of ["charge", "ping"]) socket.send(JSON.stringify({ event }));
    await pong;
  }
  socket.terminate();
  expect(Gateway.refusals).toEqual([boom, expect.any(CircuitOpenException)]);
  // To clients of `ws` Nest says nothing of errors; ours says nothing either.
  expect(messages).toEqual(['{"event":"pong"}', '{"event":"pong"}']);
});

describe("GraphQL", () => {
  /** A resolver as Nest's GraphQL modules make them: by the context creator of Nest, for hosts of this type. */
  async function resolver(providers: object[] = []) {
    const { app } = await serve("Express", {
      imports: [CircuitBreakerModule.forRoot()],
      providers: [Billing, Desk, ...(providers as [])],
    });
    const desk = app.get(Desk);
    const { charge } = desk;
    const creator = app.get(ExternalContextCreator);
    const call = creator.create(
      desk,
      charge as never,
      "charge",
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      "graphql",
    );
    return () => call({}, {}, {}, {});
  }

  test("gets the refusal itself", async () => {
    const call = await resolver();
    expect(await errorOf(call())).toBe(boom);
    const refusal = await errorOf(call());
    expect(refusal).toBeInstanceOf(CircuitOpenException);
    expect(refusal).toBeInstanceOf(CircuitOpenError);
  });

  test("asks the application's own filter, though ours comes before it", async () => {
    Everything.seen = [];
    const call = await resolver([{ provide: APP_FILTER, useClass: Everything }]);
    expect(await errorOf(call())).toBe(boom);
    await errorOf(call());
    expect(Everything.seen).toEqual([
      ["graphql", false],
      ["graphql", true],
    ]);
  });
});
