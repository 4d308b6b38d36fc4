// How long calls took, as counts by classes that are a twentieth wide: small enough to be sent between processes.
const WIDTH = Math.log(1.05);
const CLASSES = 400;

/** A spread of no calls. */
export function newSpread() {
  return new Array(CLASSES).fill(0);
}

/** Counts one call, in microseconds. */
export function count(spread, us) {
  const at = Math.floor(Math.log(us) / WIDTH);
  spread[Math.min(CLASSES - 1, Math.max(0, at))] += 1;
}

/** All calls of several spreads. */
export function merged(spreads) {
  return newSpread().map((_, at) => spreads.reduce((sum, spread) => sum + spread[at], 0));
}

/** What this share of the calls did not exceed, in microseconds. */
export function quantile(spread, share) {
  const calls = spread.reduce((sum, some) => sum + some, 0);
  let seen = 0;
  const at = spread.findIndex((some) => {
    seen += some;
    return seen >= share * calls;
  });
  return Math.exp((at + 1) * WIDTH);
}
