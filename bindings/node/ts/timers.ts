/** Timers of any host: in browsers, and where one is imitated, a timer is a number and holds no process. */

/** Says whether a timer keeps the process alive until it fires. */
export function holdProcess(timer: unknown, hold: boolean): void {
  const { ref, unref } = (timer ?? {}) as { ref?: () => unknown; unref?: () => unknown };
  const say = hold ? ref : unref;
  if (typeof say === "function") say.call(timer);
}

/** Calls it after what is already waiting to be read or run. */
export function afterInput(fn: () => void): void {
  if (typeof setImmediate === "function") setImmediate(fn);
  else setTimeout(fn, 0);
}
