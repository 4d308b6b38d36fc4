// What is measured in the process: switchgear beside a bare await, opossum and cockatiel. Each task loads only what it
// measures, and gives a function that makes one call.
export const HOUR_MS = 3_600_000;

export async function healthy() {
  return 42;
}

export async function failing() {
  throw new Error("ECONNREFUSED");
}

/** Calls that go through. */
export const CLOSED = {
  "bare await": async () => () => healthy(),

  // The least that a breaker written as an `async` function costs: a yardstick.
  "an async wrapper": async () => {
    const wrapped = async (fn) => await fn();
    return () => wrapped(healthy);
  },

  "switchgear, closed (rolling)": async () => {
    const breaker = await newSwitchgear();
    return () => breaker.execute(healthy);
  },

  "switchgear, closed (consecutive)": async () => {
    const breaker = await newSwitchgear({ tripOn: "consecutive" });
    return () => breaker.execute(healthy);
  },

  "cockatiel 3, closed": async () => {
    const breaker = await newCockatiel();
    return () => breaker.execute(healthy);
  },

  "opossum 9, closed": async () => {
    const breaker = await newOpossum(healthy);
    return () => breaker.fire();
  },
};

/** Calls that are refused, with the await and the catch around them, as a caller meets them. */
export const REFUSED = {
  "switchgear, refused": async () => {
    const breaker = await newSwitchgear({ openDurationMs: HOUR_MS });
    await failFive(() => breaker.execute(failing));
    return refusal(
      () => breaker.execute(healthy),
      (error) => error.code === "circuit_open",
    );
  },

  "cockatiel 3, refused": async () => {
    const breaker = await newCockatiel();
    await failFive(() => breaker.execute(failing));
    return refusal(
      () => breaker.execute(healthy),
      (error) => error.isBrokenCircuitError,
    );
  },

  "opossum 9, refused": async () => {
    const breaker = await newOpossum(failing);
    await failFive(() => breaker.fire());
    return refusal(
      () => breaker.fire(),
      (error) => error.code === "EOPENBREAKER",
    );
  },
};

async function newSwitchgear(policy) {
  const { CircuitBreaker } = await import("switchgear");
  return new CircuitBreaker("bench", policy);
}

async function newCockatiel() {
  const { circuitBreaker, ConsecutiveBreaker, handleAll } = await import("cockatiel");
  return circuitBreaker(handleAll, { halfOpenAfter: HOUR_MS, breaker: new ConsecutiveBreaker(5) });
}

async function newOpossum(fn) {
  const { default: Opossum } = await import("opossum");
  return new Opossum(fn, { timeout: false, resetTimeout: HOUR_MS, volumeThreshold: 5 });
}

async function failFive(call) {
  for (let i = 0; i < 5; i++) await call().catch(() => {});
}

/** A call that must be refused, awaited and caught; anything else ends the benchmark. */
export function refusal(call, isRefusal) {
  return async () => {
    try {
      await call();
    } catch (error) {
      if (isRefusal(error)) return;
      throw error;
    }
    throw new Error("not refused");
  };
}
