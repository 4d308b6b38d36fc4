// Waiting for what happens in other processes.
import { setTimeout as sleep } from "node:timers/promises";

/** Long enough for anything on a slow machine: it is only there to end what hangs. */
const GIVE_UP_MS = 100_000;

/** Asks again until it is so. */
export async function until(what, isSo) {
  const giveUpAt = performance.now() + GIVE_UP_MS;
  for (;;) {
    const result = await isSo();
    if (result) return result;
    if (performance.now() > giveUpAt) throw new Error(`waited in vain until ${what}`);
    await sleep(10);
  }
}

/** `Promise.withResolvers` came with Node 22. */
export function withResolvers() {
  let resolve;
  const promise = new Promise((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
