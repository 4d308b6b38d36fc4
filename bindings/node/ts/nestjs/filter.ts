import { ServerResponse } from "node:http";
import { type ArgumentsHost, Catch, type ExceptionFilter, Inject, type Type } from "@nestjs/common";
import { ApplicationConfig, HttpAdapterHost } from "@nestjs/core";
import { CircuitOpenError, StoreUnavailableError } from "../error";
import { answerTo, type ProblemAnswer } from "../problem";
import type { Refusal } from "../types";

/**
 * Answers a request that a circuit refused: 503, `Retry-After` where the wait is known, a problem of RFC 9457. It works for
 * HTTP alone: to any other host it is as if it were not there.
 */
// By their codes, so whoever throws them.
@Catch(CircuitOpenError, StoreUnavailableError)
export class RefusalFilter implements ExceptionFilter<Refusal> {
  constructor(
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(ApplicationConfig) private readonly config: ApplicationConfig,
  ) {}

  /** What Nest calls. */
  catch(error: Refusal, host: ArgumentsHost): unknown {
    if (host.getType() !== "http") return this.passOn(error, host);
    const { httpAdapter } = this.host;
    const response: unknown = host.getArgByIndex(1);
    const answer = answerTo(error);
    if (isRaw(response)) answerRaw(response, answer);
    else if (httpAdapter.isHeadersSent(response) || hasBegun(response)) httpAdapter.end(response);
    else {
      for (const [name, value] of Object.entries(answer.headers)) httpAdapter.setHeader(response, name, value);
      httpAdapter.reply(response, answer.body, answer.status);
    }
    return undefined;
  }

  /** Nest takes the first global filter that fits, and then no other: so the next one is asked here. */
  private passOn(error: unknown, host: ArgumentsHost): unknown {
    const filters = this.config.getGlobalFilters().toReversed();
    const next = filters.slice(filters.indexOf(this) + 1).find((filter) => takes(filter, error));
    return next?.catch(error, host);
  }
}

/** Ahead of a route, in a middleware, Fastify has no reply yet: what is there is Node's. */
function isRaw(response: unknown): response is ServerResponse {
  return response instanceof ServerResponse && !("header" in response);
}

/** Fastify's reply does not know what a route has written to the response behind it. */
function hasBegun(response: unknown): boolean {
  return (response as { raw?: Partial<ServerResponse> }).raw?.headersSent === true;
}

function answerRaw(response: ServerResponse, { status, headers, body }: ProblemAnswer): void {
  if (response.headersSent) response.end();
  else response.writeHead(status, headers).end(body);
}

/** What `@Catch` keeps its classes under. */
const CAUGHT = "__filterCatchExceptions__";

function takes(filter: ExceptionFilter, error: unknown): boolean {
  const caught: Type[] = Reflect.getMetadata(CAUGHT, filter.constructor) ?? [];
  return caught.length === 0 || caught.some((type) => error instanceof type);
}
