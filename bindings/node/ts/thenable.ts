/**
 * Whether a value is to be awaited: a promise, or a lazy thenable such as a query builder. One that throws when it is looked
 * at is not: whoever awaits it would get that throw.
 */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  try {
    return typeof (value as { then?: unknown }).then === "function";
  } catch {
    return false;
  }
}

const THEN = Promise.prototype.then;

/**
 * Whether a value is a promise of this realm as it was made: what awaiting it does is known, and cheap. It may still be
 * no promise at all but pass for one; then its `then` throws.
 */
export function isOrdinaryPromise(value: unknown): value is Promise<unknown> {
  // Looking at them would throw, which is slow: functions without a result are common.
  if (value === undefined || value === null) return false;
  try {
    // Not `instanceof`: what only looks like one is found out by `then` itself, which throws.
    const like = value as Promise<unknown>;
    return like.then === THEN && like.constructor === Promise;
  } catch {
    return false;
  }
}

/**
 * Takes the rejection of a promise that nobody will ever see, of whatever realm, so that it does not end the process. A lazy
 * thenable is left alone: it only begins when it is awaited.
 *
 * @param rejected - who hears of it after all; must not throw
 */
export function unseen(value: unknown, rejected: (error: unknown) => void = ignore): void {
  if (!isThenable(value)) return;
  try {
    if (value instanceof Promise || tagOf(value) === "Promise") value.then(undefined, rejected);
  } catch (error) {
    rejected(error);
  }
}

/** What an object says it is; empty for anything else, and for one that throws when it is looked at. */
export function tagOf(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return "";
  try {
    return (value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag];
  } catch {
    return "";
  }
}

function ignore(): void {
  // Nobody's.
}
