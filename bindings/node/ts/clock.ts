/**
 * The host's monotonic clock, anchored once to the wall clock: it reads as whole epoch milliseconds, and a wall clock that
 * is set back or ahead while the process runs neither prolongs nor shortens anything.
 */
export function monotonicNow(): number {
  return Math.floor(performance.timeOrigin + performance.now());
}
