/** Bodies that are watched to their end. */

import type { HttpCall } from "./http";

/** So much of a body is taken in ahead of its reader: most bodies end within it, and then nobody need read them. */
const AHEAD = 65_536;

/**
 * The same response, whose call ends with its body. One without a body has ended, and so has one that cannot be watched: somebody
 * reads it already, or it is none of a `Response`.
 */
export function watched(response: Response, call: HttpCall, asked: Asked): Response {
  const { body, status, statusText, headers } = response;
  // A status that no script can give a response is left as it is, too.
  if (typeof body?.getReader !== "function" || body.locked || status < 200 || status > 599) {
    call.succeeded();
    return response;
  }
  const fault: Fault = {};
  const stream = watchedStream(body, call, asked, fault);
  return seenAs(response, new Response(stream as never, { status, statusText, headers }), fault);
}

/** The same stream: the call ends when it was read to its end, when it breaks off, or when its reader gives it up. */
export function watchedStream(
  body: ReadableStream<Uint8Array>,
  call: HttpCall,
  asked: Asked,
  fault: Fault = {},
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) {
            controller.enqueue(value);
            return;
          }
          call.succeeded();
          controller.close();
        } catch (error) {
          fault.error = error;
          call.broke(error, asked.signal);
          controller.error(error);
        }
      },
      cancel(reason) {
        call.givenUp();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: AHEAD, size: (chunk) => chunk?.byteLength ?? 1 },
  );
}

/** What was asked. It is kept for as long as the answer is: of a request that is gone, Node no longer hears that it is aborted. */
interface Asked {
  readonly signal?: AbortSignal | null | undefined;
}

/** What broke a body off, once something has. */
interface Fault {
  error?: unknown;
}

/** What a new response cannot be told when it is made. */
function seenAs(original: Response, made: Response, fault: Fault): Response {
  const { url, redirected, type } = original;
  const clone = made.clone.bind(made);
  const own: Record<string, unknown> = { url, redirected, type, clone: () => seenAs(original, clone(), fault) };
  for (const name of ["arrayBuffer", "blob", "bytes", "formData", "json", "text"] as const) {
    const read = (made as unknown as Record<string, (() => Promise<unknown>) | undefined>)[name];
    // Of a stream that breaks, browsers only say that something failed; of a response of their own they say what, as of an abort.
    if (read)
      own[name] = () => read.call(made).catch((error) => Promise.reject("error" in fault ? fault.error : error));
  }
  for (const [name, value] of Object.entries(own)) Object.defineProperty(made, name, { value, configurable: true });
  return made;
}
