/** A response whose body is watched to its end. */

/** What is told of a body, once: it was read to its end, it broke off, or its reader gave it up. */
export interface BodyEnding {
  read(): void;
  broken(error: unknown): void;
  cancelled(): void;
}

/** So much of a body is taken in ahead of its reader: most bodies end within it, and then nobody need read them. */
const AHEAD = 65_536;

/**
 * The same response, and whoever asks hears of the end of its body. One without a body has ended, and so has one that cannot be
 * watched: somebody reads it already, or it is none of a `Response`.
 */
export function watched(response: Response, ending: BodyEnding): Response {
  const { body, status, statusText, headers } = response;
  // A status that no script can give a response is left as it is, too.
  if (typeof body?.getReader !== "function" || body.locked || status < 200 || status > 599) {
    ending.read();
    return response;
  }
  const reader = body.getReader();
  const fault: Fault = {};
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) {
            controller.enqueue(value);
            return;
          }
          ending.read();
          controller.close();
        } catch (error) {
          fault.error = error;
          ending.broken(error);
          controller.error(error);
        }
      },
      cancel(reason) {
        ending.cancelled();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: AHEAD, size: (chunk) => chunk?.byteLength ?? 1 },
  );
  return seenAs(response, new Response(stream as never, { status, statusText, headers }), fault);
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
