/** The adapter, for one instance of axios: imported and required it is not the same, and each has errors of its own. */

import { watchedStream } from "./body";
import type { CircuitBreaker } from "./breaker";
import type { DistributedCircuitBreaker } from "./distributed";
import type { DistributedCircuitBreakerGroup } from "./distributed-group";
import type { CircuitBreakerGroup } from "./group";
import type { HttpCall } from "./http";
import { type AnyBreaker, type Circuits, type GroupOptions, httpCircuits } from "./http-circuits";
import { checkedOrigin, HTTP_ADDRESS, httpOrigin, type OriginOptions } from "./origins";
import { type Upload, watchedUpload } from "./upload";

/** What an adapter takes beside its circuits. */
export interface AdapterOptions {
  /**
   * What sends the requests that are let through: an adapter, its name (`'http'`, `'xhr'`, `'fetch'`), or a list of which the first
   * that works is taken.
   * @defaultValue what axios takes by default
   */
  adapter?: Adapter | string | readonly (Adapter | string)[] | undefined;
}

/** What axios takes as its `adapter`, with its circuits. */
export interface CircuitAdapter<B extends AnyBreaker> extends Circuits<B>, Adapter {}

/** What sends a request, as axios has it. */
// biome-ignore lint/suspicious/noExplicitAny: axios's types are two sets, for `import` and for `require`, and need not be installed.
export type Adapter = (config: any) => Promise<any>;

/** Makes adapters. */
export interface MakeAdapter {
  (options?: OriginOptions & AdapterOptions): CircuitAdapter<CircuitBreaker>;
  /** The same, with the circuits of a local group. */
  (options: GroupOptions<CircuitBreakerGroup> & AdapterOptions): CircuitAdapter<CircuitBreaker>;
  /** The same, with circuits that a whole fleet shares. */
  (options: GroupOptions<DistributedCircuitBreakerGroup> & AdapterOptions): CircuitAdapter<DistributedCircuitBreaker>;
}

/**
 * What makes adapters for one instance of axios.
 * @throws Error where axios is too old, once an adapter is made
 */
export function adapterFor(axios: Axios): MakeAdapter {
  return ((options: (OriginOptions | GroupOptions) & AdapterOptions = {}) => {
    if (typeof axios.getAdapter !== "function") throw new Error("switchgear/axios needs axios 1.5 or later");
    const circuits = httpCircuits(options, ["adapter"], circuitNamed);
    const chosen = circuits.extra.adapter;
    const resolve = axios.getAdapter as (adapters: unknown, config: object) => Adapter;
    // Found out now, not at the first request.
    if (chosen !== undefined) resolve(chosen, {});
    const adapter = async (config: Config): Promise<Answer> => {
      const send = resolve(chosen ?? axios.defaults.adapter, config);
      const origin = originOf(config);
      if (origin === null) return send(config);
      const call = await circuits.ask(origin);
      try {
        // Meanwhile its caller may have given it up: axios would not notice that any more, and send it.
        config.cancelToken?.throwIfRequested();
        if (config.signal?.aborted === true) throw new axios.CanceledError(undefined, config as never);
      } catch (error) {
        call.givenUp();
        await call.settled;
        throw error;
      }
      const broken = { upload: false };
      watchedUpload(config.data, broken);
      let answer: Answer;
      try {
        answer = await send(config);
      } catch (error) {
        threw(error, call, config, broken);
        await call.settled;
        throw error;
      }
      answered(answer, call, config);
      await call.settled;
      return answer;
    };
    return Object.assign(adapter, { for: circuits.for, on: circuits.on });
  }) as MakeAdapter;
}

/** What of axios is used. */
interface Axios {
  readonly getAdapter: unknown;
  readonly defaults: { readonly adapter?: unknown };
  readonly CanceledError: new (message?: string, config?: never) => Error;
}

/** What axios gives an adapter, as far as it is looked at here. */
interface Config {
  readonly url?: string;
  readonly baseURL?: string;
  readonly allowAbsoluteUrls?: boolean;
  readonly socketPath?: string | null;
  readonly data?: unknown;
  readonly signal?: AbortSignal | null;
  readonly cancelToken?: { throwIfRequested(): void };
  readonly maxContentLength?: number;
}

/** What an adapter gives. */
interface Answer {
  readonly status: number;
  readonly headers?: { readonly [name: string]: unknown };
  /** Of `http`, whose answer says where it comes from, or of `xhr`, which says so itself. That of `fetch` says nothing. */
  readonly request?: { readonly res?: { readonly responseUrl?: string }; readonly responseURL?: string } | null;
  data?: unknown;
}

/** Whose circuit a request belongs to; null for what no server answers, and for what is no address. */
function originOf({ url = "", baseURL, allowAbsoluteUrls, socketPath }: Config): string | null {
  if (typeof socketPath === "string") return `unix:${socketPath}`;
  const relative = allowAbsoluteUrls === false || !/^(?:[a-z][a-z\d+\-.]*:)?\/\//i.test(url);
  const { location } = globalThis as { location?: { href?: string } };
  return httpOrigin(baseURL && relative ? baseURL : url, location?.href);
}

/** The circuit that somebody names, who may mean one of a socket. */
function circuitNamed(address: unknown): string {
  return typeof address === "string" && /^unix:./.test(address)
    ? address
    : checkedOrigin(address, `${HTTP_ADDRESS}, or 'unix:' and the path of a socket`);
}

function answered(answer: Answer, call: HttpCall, config: Config): void {
  if (call.answered(answer.status, () => headerOf(answer), answererOf(answer))) return;
  const { data } = answer;
  if (isNodeStream(data)) endsWith(data, call, config);
  else if (data instanceof ReadableStream) answer.data = watchedStream(data, call, config);
  else call.succeeded();
}

function threw(error: unknown, call: HttpCall, config: Config, broken: Upload): void {
  const { response } = (error ?? {}) as { response?: Answer };
  if (typeof response === "object" && response !== null) {
    // What `validateStatus` does not like is an answer all the same. There is no data of one whose body broke.
    if ("data" in response) {
      answered(response, call, config);
      return;
    }
    if (call.answered(response.status, () => headerOf(response), answererOf(response))) return;
  }
  if (broken.upload || isCallers(error, config)) call.givenUp();
  else call.broke(error, gaveUp(error, config));
}

/** A stream of Node's: of what its reader makes of it, only an error with a code is one of the network's, or of what it brought. */
function endsWith(stream: NodeJS.ReadableStream, call: HttpCall, config: Config): void {
  stream.once("end", () => call.succeeded());
  stream.once("error", (error) => {
    if (typeof (error as { code?: unknown }).code !== "string" || isCallers(error, config)) call.givenUp();
    else call.broke(error, gaveUp(error, config));
  });
  stream.once("close", () => call.givenUp());
}

/** What the caller gave a request up with. */
function gaveUp(error: unknown, { signal }: Config): { aborted: boolean; reason: unknown } {
  if (signal?.aborted === true) return signal;
  return { aborted: codeOf(error) === "ERR_CANCELED", reason: undefined };
}

/** Whether an error says something of the caller: a request that was never sent, or an answer larger than is wanted. */
function isCallers(error: unknown, { maxContentLength }: Config): boolean {
  const { isAxiosError, request, response } = (error ?? {}) as Record<string, unknown>;
  const code = String(codeOf(error));
  if (response !== undefined || code === "ERR_NETWORK" || code === "ERR_CANCELED") return false;
  // Of a body that broke off, older versions said the same as of one longer than is wanted.
  if (code === "ERR_BAD_RESPONSE") return (maxContentLength ?? -1) >= 0;
  if (/^ERR_(?:BAD_|INVALID_|UNESCAPED_|HTTP_INVALID_|NOT_SUPPORT|FORM_DATA_|FR_MAX_BODY_|DEPRECATED)/.test(code))
    return true;
  return isAxiosError === true && request === undefined && !/^E(?!RR_)/.test(code);
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | null | undefined)?.code;
}

function headerOf({ headers }: Answer): string | null {
  const value = headers?.["retry-after"];
  return typeof value === "string" ? value : null;
}

/** The origin that an answer comes from, which may be another than was asked; null where that is not known. */
function answererOf({ request }: Answer): string | null {
  return httpOrigin(request?.res?.responseUrl ?? request?.responseURL ?? "");
}

function isNodeStream(data: unknown): data is NodeJS.ReadableStream {
  const { pipe, once } = (data ?? {}) as { pipe?: unknown; once?: unknown };
  return typeof pipe === "function" && typeof once === "function";
}
