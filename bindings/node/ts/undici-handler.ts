/** Who is told by undici what becomes of a request: the caller's own handler, with the circuit listening. */

import type { HttpCall } from "./http";
import type { Upload } from "./upload";

/** A handler, of undici 7 and later (`onRequestStart`) or of those before (`onConnect`). */
export interface Handler {
  onRequestStart?(controller: Controller, context: unknown): void;
  onRequestUpgrade?(controller: Controller, status: number, headers: Headers, socket: unknown): void;
  onResponseStart?(controller: Controller, status: number, headers: Headers, text?: string): void;
  onResponseData?(controller: Controller, chunk: unknown): void;
  onResponseEnd?(controller: Controller, trailers: unknown): void;
  onResponseError?(controller: Controller | null, error: unknown): void;
  onConnect?(abort: (reason?: unknown) => void, context: unknown): void;
  onUpgrade?(status: number, headers: RawHeaders, socket: unknown): void;
  onHeaders?(status: number, headers: RawHeaders, resume: () => void, text?: string): boolean | undefined;
  onData?(chunk: unknown): boolean | undefined;
  onComplete?(trailers: unknown): void;
  onError?(error: unknown): void;
  onResponseStarted?(): void;
  onBodySent?(chunk: unknown): void;
  onRequestSent?(): void;
}

/** Tells a handler that its request was not made. */
export function refuse(handler: Handler, error: unknown): void {
  if (typeof handler.onResponseError === "function") handler.onResponseError(null, error);
  else if (typeof handler.onError === "function") handler.onError(error);
  else throw error;
}

/** The handler in whose place the circuit listens, of the same kind. */
export function guardedHandler(handler: Handler, call: HttpCall, request: Request): Handler {
  return typeof handler.onRequestStart === "function"
    ? new GuardedHandler(handler, call, request)
    : new GuardedOldHandler(handler, call, request);
}

/** What is known of the request. */
interface Request {
  readonly broken: Upload;
  /** The caller's own, if undici was given one: once the head has come, it does not say any more why it gives up. */
  readonly signal: unknown;
}

interface Controller {
  readonly aborted: boolean;
  readonly reason: unknown;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;
type RawHeaders = readonly (Buffer | string)[];

/** What is the same for both kinds. */
class Listening {
  /** Whether it was given up before it was begun, be it by a deadline: that says nothing of the server. */
  private readonly early: boolean;

  constructor(
    protected readonly handler: Handler,
    protected readonly call: HttpCall,
    private readonly about: Request,
  ) {
    this.early = isAborted(about.signal);
  }

  onResponseStarted(): void {
    this.handled(() => this.handler.onResponseStarted?.());
  }

  onBodySent(chunk: unknown): void {
    this.handled(() => this.handler.onBodySent?.(chunk));
  }

  onRequestSent(): void {
    this.handled(() => this.handler.onRequestSent?.());
  }

  /** Has the handler go on. What it throws is its caller's own: it says nothing of the server, though undici gives it out as the outcome. */
  protected handled<T>(go: () => T): T {
    try {
      return go();
    } catch (error) {
      this.call.givenUp();
      throw error;
    }
  }

  protected threw(error: unknown, by: Controller | null): void {
    const { broken, signal } = this.about;
    const { code, statusCode, headers } = (error ?? {}) as { code?: unknown; statusCode?: number; headers?: Headers };
    if (this.early || broken.upload || NEUTRAL.has(code)) this.call.givenUp();
    else if (typeof statusCode === "number" && RESPONSES.has(code)) {
      // An interceptor further in makes errors of answers.
      if (!this.call.answered(statusCode, () => headerOf(headers))) this.call.succeeded();
    } else this.call.broke(error, isAborted(signal) ? signal : by);
  }
}

class GuardedHandler extends Listening implements Handler {
  onRequestStart(controller: Controller, context: unknown): void {
    this.handled(() => this.handler.onRequestStart?.(controller, context));
  }

  onRequestUpgrade(controller: Controller, status: number, headers: Headers, socket: unknown): void {
    this.call.succeeded();
    this.handler.onRequestUpgrade?.(controller, status, headers, socket);
  }

  onResponseStart(controller: Controller, status: number, headers: Headers, text?: string): void {
    this.call.answered(status, () => headerOf(headers));
    this.handled(() => this.handler.onResponseStart?.(controller, status, headers, text));
  }

  onResponseData(controller: Controller, chunk: unknown): void {
    this.handled(() => this.handler.onResponseData?.(controller, chunk));
  }

  onResponseEnd(controller: Controller, trailers: unknown): void {
    this.call.succeeded();
    this.handler.onResponseEnd?.(controller, trailers);
  }

  onResponseError(controller: Controller | null, error: unknown): void {
    this.threw(error, controller);
    refuseAs(this.handler, controller, error);
  }
}

class GuardedOldHandler extends Listening implements Handler {
  private given: Controller = { aborted: false, reason: undefined };

  onConnect(abort: (reason?: unknown) => void, context: unknown): void {
    const noted = (reason?: unknown) => {
      this.given = { aborted: true, reason };
      abort(reason);
    };
    this.handled(() => this.handler.onConnect?.(noted, context));
  }

  onUpgrade(status: number, headers: RawHeaders, socket: unknown): void {
    this.call.succeeded();
    this.handler.onUpgrade?.(status, headers, socket);
  }

  onHeaders(status: number, headers: RawHeaders, resume: () => void, text?: string): boolean | undefined {
    this.call.answered(status, () => rawHeaderOf(headers));
    return this.handled(() => this.handler.onHeaders?.(status, headers, resume, text));
  }

  onData(chunk: unknown): boolean | undefined {
    return this.handled(() => this.handler.onData?.(chunk));
  }

  onComplete(trailers: unknown): void {
    this.call.succeeded();
    this.handler.onComplete?.(trailers);
  }

  onError(error: unknown): void {
    this.threw(error, this.given);
    refuse(this.handler, error);
  }
}

function isAborted(signal: unknown): signal is Controller {
  return (signal as Controller | null | undefined)?.aborted === true;
}

function refuseAs(handler: Handler, controller: Controller | null, error: unknown): void {
  if (typeof handler.onResponseError === "function") handler.onResponseError(controller, error);
  else refuse(handler, error);
}

function headerOf(headers: Headers | undefined): string | null {
  const value = headers?.["retry-after"];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

function rawHeaderOf(headers: RawHeaders): string | null {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (String(headers[i]).toLowerCase() === "retry-after") return String(headers[i + 1]);
  }
  return null;
}

/**
 * What undici says of its caller: arguments that it does not take, a dispatcher that was closed, a body that is not as long as its
 * caller said, an answer longer than its caller wants.
 */
const NEUTRAL: ReadonlySet<unknown> = new Set([
  "UND_ERR_INVALID_ARG",
  "UND_ERR_INVALID_RETURN_VALUE",
  "UND_ERR_NOT_SUPPORTED",
  "UND_ERR_CLOSED",
  "UND_ERR_DESTROYED",
  "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH",
  "UND_ERR_RES_EXCEEDED_MAX_SIZE",
  "UND_ERR_MAX_ORIGINS_REACHED",
]);

/** What undici calls an error that was made of an answer. */
const RESPONSES: ReadonlySet<unknown> = new Set([
  "UND_ERR_RESPONSE",
  "UND_ERR_RESPONSE_STATUS_CODE",
  "UND_ERR_REQ_RETRY",
]);
