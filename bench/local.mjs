// A guarded call in the process: switchgear beside a bare await, opossum and cockatiel.
import { ConsecutiveBreaker, circuitBreaker, handleAll } from "cockatiel";
import Opossum from "opossum";
import { CircuitBreaker } from "switchgear";
import { measure } from "./measure.mjs";

const HOUR_MS = 3_600_000;

async function healthy() {
  return 42;
}
/** The least that a breaker written as an `async` function costs: the yardstick. */
async function wrapped(fn) {
  return await fn();
}
async function failing() {
  throw new Error("ECONNREFUSED");
}

/** Times of one call in ns, per task and round. */
export async function measureLocal() {
  const rolling = new CircuitBreaker("rolling");
  const consecutive = new CircuitBreaker("consecutive", { tripOn: "consecutive" });
  const cockatiel = newCockatiel();
  const opossum = new Opossum(healthy, { timeout: false });

  const closed = await measure(
    {
      "bare await": () => healthy(),
      "an async wrapper": () => wrapped(healthy),
      "switchgear, closed (rolling)": () => rolling.execute(healthy),
      "switchgear, closed (consecutive)": () => consecutive.execute(healthy),
      "cockatiel 3, closed": () => cockatiel.execute(healthy),
      "opossum 9, closed": () => opossum.fire(),
    },
    { rounds: 15, timeMs: 0, batch: 1_000_000 },
  );
  opossum.shutdown();
  return new Map([...closed, ...(await measureRefusals())]);
}

/** A refusal, with the await and the catch around it, as a caller meets it. */
async function measureRefusals() {
  const open = new CircuitBreaker("open", { openDurationMs: HOUR_MS });
  const cockatiel = newCockatiel();
  const opossum = new Opossum(failing, { timeout: false, resetTimeout: HOUR_MS, volumeThreshold: 5 });
  for (let i = 0; i < 5; i++) {
    await Promise.allSettled([open.execute(failing), cockatiel.execute(failing), opossum.fire()]);
  }

  const times = await measure(
    {
      "switchgear, refused": refusal(
        () => open.execute(healthy),
        (error) => error.code === "circuit_open",
      ),
      "cockatiel 3, refused": refusal(
        () => cockatiel.execute(healthy),
        (error) => error.isBrokenCircuitError,
      ),
      "opossum 9, refused": refusal(
        () => opossum.fire(),
        (error) => error.code === "EOPENBREAKER",
      ),
    },
    { rounds: 9, timeMs: 60, batch: 10_000 },
  );
  opossum.shutdown();
  return times;
}

/** A call that must be refused, awaited and caught; anything else ends the benchmark. */
function refusal(call, isRefusal) {
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

function newCockatiel() {
  return circuitBreaker(handleAll, { halfOpenAfter: HOUR_MS, breaker: new ConsecutiveBreaker(5) });
}
