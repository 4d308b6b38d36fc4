// Every way in which the package guards requests, as one: what differs is who sends them.
import axios from "axios";
import { type CircuitBreaker, type GuardFetchOptions, guardFetch } from "switchgear";
import { type CircuitAdapter, circuitBreaker as circuitAdapter } from "switchgear/axios";
import { type CircuitInterceptor, circuitBreaker as circuitInterceptor } from "switchgear/undici";
import { Agent, request } from "undici";
import { Agent as Agent6, request as request6 } from "undici6";

/** What a test asks for. */
export interface Asked {
  method?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** The head of an answer; its body is read whole, or given up. */
export interface Head {
  status: number;
  read(): Promise<string>;
  cancel(): Promise<void>;
}

/** A guarded client. */
export interface HttpClient {
  /** Rejects with the refusal itself, whatever the client makes of it. */
  ask(url: string, asked?: Asked): Promise<Head>;
  for(origin: string): CircuitBreaker;
  on: CircuitInterceptor<CircuitBreaker>["on"];
  close(): Promise<void>;
}

/** The options that all of them take. */
export type Options = Omit<GuardFetchOptions, "shareTabs" | "onUnavailable" | "fetch">;

/** By name, what makes a client. */
export const CLIENTS: Record<string, (options?: Options) => HttpClient> = {
  guardFetch: (options) => {
    const guarded = guardFetch(options);
    return { ask: byFetch(guarded), for: guarded.for, on: guarded.on, close: async () => undefined };
  },
  "undici 7, fetch": (options) => byUndici(circuitInterceptor(options), Agent, (agent) => fetchThrough(agent)),
  "undici 6, fetch": (options) => byUndici(circuitInterceptor(options), Agent6, (agent) => fetchThrough(agent)),
  "undici 7, request": (options) =>
    byUndici(circuitInterceptor(options), Agent, (agent) => byRequest(request as never, agent)),
  "undici 6, request": (options) =>
    byUndici(circuitInterceptor(options), Agent6, (agent) => byRequest(request6 as never, agent)),
  "axios, http": (options) => byAxios(circuitAdapter({ ...options, adapter: "http" })),
  "axios, fetch": (options) => byAxios(circuitAdapter({ ...options, adapter: "fetch" })),
};

type Ask = HttpClient["ask"];

function byFetch(fetch: typeof globalThis.fetch, more: object = {}): Ask {
  return async (url, asked) => {
    const response = await fetch(url, { redirect: "manual", ...asked, ...more });
    return {
      status: response.status,
      read: () => response.text(),
      cancel: async () => response.body?.cancel(),
    };
  };
}

/** `fetch` hides a refusal in the `cause` of its own error. */
function fetchThrough(dispatcher: object): Ask {
  const ask = byFetch(fetch, { dispatcher });
  return (url, asked) => ask(url, asked).catch((error) => Promise.reject(error.cause ?? error));
}

type Request = (url: string, options: object) => Promise<{ statusCode: number; body: Body }>;
interface Body {
  text(): Promise<string>;
  on(event: "error", listener: () => void): unknown;
  destroy(): unknown;
}

function byRequest(request: Request, dispatcher: object): Ask {
  return async (url, asked) => {
    const { statusCode, body } = await request(url, { ...asked, dispatcher });
    return {
      status: statusCode,
      read: () => body.text(),
      cancel: async () => {
        body.on("error", () => undefined);
        body.destroy();
      },
    };
  };
}

function byUndici(
  breaker: CircuitInterceptor<CircuitBreaker>,
  Kind: new () => { compose(interceptor: never): object; destroy(): Promise<void> },
  ask: (dispatcher: object) => Ask,
): HttpClient {
  const agent = new Kind();
  const composed = agent.compose(breaker as never);
  return { ask: ask(composed), for: breaker.for, on: breaker.on, close: () => agent.destroy() };
}

/** Streams, as the others do: whoever wants a buffered answer is in the tests of axios alone. */
function byAxios(adapter: CircuitAdapter<CircuitBreaker>): HttpClient {
  const http = axios.create({ adapter, responseType: "stream", validateStatus: null, maxRedirects: 0 });
  const ask: Ask = async (url, asked) => {
    const { status, data } = await http.request({ url, ...asked });
    return { status, read: () => textOf(data), cancel: () => cancel(data) };
  };
  return { ask, for: adapter.for, on: adapter.on, close: async () => undefined };
}

async function textOf(data: AsyncIterable<Uint8Array> | null): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of data ?? []) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function cancel(data: { destroy?(): void; cancel?(): Promise<void> }): Promise<void> {
  data.destroy?.();
  await data.cancel?.();
}
