/** Bodies of requests. One that breaks is the caller's own: it says nothing of the server that it was on its way to. */

/** Whether the body of a request has broken. */
export interface Upload {
  upload: boolean;
}

/** Notes when a stream of Node's breaks. Whether it is one. */
export function watchedUpload(body: unknown, broken: Upload): boolean {
  const { pipe, once } = (body ?? {}) as Partial<NodeJS.ReadableStream>;
  if (typeof pipe !== "function" || typeof once !== "function") return false;
  (body as NodeJS.ReadableStream).once("error", () => {
    broken.upload = true;
  });
  return true;
}

/** What reads an async iterable in its place, and notes when it breaks; anything else as it is. */
export function notingUpload(body: unknown, broken: Upload): unknown {
  if (watchedUpload(body, broken)) return body;
  const iterable = body as AsyncIterable<unknown> | null | undefined;
  return typeof iterable?.[Symbol.asyncIterator] === "function" ? noting(iterable, broken) : body;
}

async function* noting(body: AsyncIterable<unknown>, broken: Upload): AsyncGenerator<unknown, void, undefined> {
  try {
    yield* body;
  } catch (error) {
    broken.upload = true;
    throw error;
  }
}
