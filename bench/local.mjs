// A guarded call in the process: switchgear beside a bare await, opossum and cockatiel.
import { ConsecutiveBreaker, circuitBreaker, handleAll } from "cockatiel";
import Opossum from "opossum";
import { CircuitBreaker } from "switchgear";
import { measure } from "./measure.mjs";

const HOUR_MS = 3_600_000;

async function healthy() {
  return 42;
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
    [
      {
        name: "bare await",
        async run(n) {
          for (let i = 0; i < n; i++) await healthy();
        },
      },
      {
        name: "switchgear, closed (rolling)",
        async run(n) {
          for (let i = 0; i < n; i++) await rolling.execute(healthy);
        },
      },
      {
        name: "switchgear, closed (consecutive)",
        async run(n) {
          for (let i = 0; i < n; i++) await consecutive.execute(healthy);
        },
      },
      {
        name: "cockatiel 3, closed",
        async run(n) {
          for (let i = 0; i < n; i++) await cockatiel.execute(healthy);
        },
      },
      {
        name: "opossum 9, closed",
        async run(n) {
          for (let i = 0; i < n; i++) await opossum.fire();
        },
      },
    ],
    { rounds: 15, timeMs: 60, batch: 2000 },
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
    [
      {
        name: "switchgear, refused",
        async run(n) {
          for (let i = 0; i < n; i++) {
            try {
              await open.execute(healthy);
            } catch (error) {
              if (error.code !== "circuit_open") throw error;
            }
          }
        },
      },
      {
        name: "cockatiel 3, refused",
        async run(n) {
          for (let i = 0; i < n; i++) {
            try {
              await cockatiel.execute(healthy);
            } catch (error) {
              if (!error.isBrokenCircuitError) throw error;
            }
          }
        },
      },
      {
        name: "opossum 9, refused",
        async run(n) {
          for (let i = 0; i < n; i++) {
            try {
              await opossum.fire();
            } catch (error) {
              if (error.code !== "EOPENBREAKER") throw error;
            }
          }
        },
      },
    ],
    { rounds: 9, timeMs: 60, batch: 500 },
  );
  opossum.shutdown();
  return times;
}

function newCockatiel() {
  return circuitBreaker(handleAll, { halfOpenAfter: HOUR_MS, breaker: new ConsecutiveBreaker(5) });
}
