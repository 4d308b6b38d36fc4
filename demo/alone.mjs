// Part 1: one process, its own breaker, real fetch calls to a dependency that fails and recovers.
import { setTimeout as sleep } from "node:timers/promises";
import { CircuitBreaker } from "switchgear";
import { guardedCall, POLICY } from "./call.mjs";
import { startDependency } from "./dependency.mjs";
import { ms, startReport } from "./report.mjs";

const CALL_EVERY_MS = 200;

/** Plays part 1 and says whether its claims held. `withoutBreaker`: the same calls, unguarded, for comparison. */
export async function playAlone({ withoutBreaker = false } = {}) {
  const report = startReport("1. One process: circuit `billing`, failureThreshold 5, openDurationMs 1000");
  const dependency = await startDependency();
  const breaker = new CircuitBreaker("billing", POLICY);
  const changes = [];
  breaker.on("stateChange", (change) => {
    changes.push({ ...change, requestsBefore: dependency.requests.length });
    report.change(change);
  });

  const results = [];
  const call = async () => {
    const outcome = guardedCall(withoutBreaker ? { execute: (fn) => fn() } : breaker, dependency.url);
    const who = changes.at(-1)?.toState === "half-open" ? "PROBE" : `call ${results.length + 1}`;
    const result = await outcome;
    results.push(result);
    report.line(who, `${result.outcome} in ${ms(result.ms)}: ${result.text}`);
    return result.outcome;
  };
  const count = (outcome) => results.filter((result) => result.outcome === outcome).length;

  for (let i = 0; i < 3; i++) await call();

  dependency.break();
  report.line("dependency", `breaks: 503 after ${dependency.answerMs} ms from now on`);
  for (let i = 0; i < 10 && (await call()) !== "refused"; i++);

  // The dependency recovers while the circuit is open: at once, for a slow machine must not be late for that. Callers keep
  // coming, and the call that finds out is the probe.
  dependency.recover();
  report.line("dependency", "recovers");
  for (let i = 0; i < 40; i++) {
    await sleep(CALL_EVERY_MS);
    if ((await call()) === "answered") break;
  }
  for (let i = 0; i < 3; i++) await call();
  await dependency.stop();

  const [trip, reopening, close] = changes;
  const refusals = results.filter((result) => result.outcome === "refused");
  report.saved(
    `${refusals.length} calls not made, ${((refusals.length * dependency.answerMs) / 1000).toFixed(1)} s not waited`,
  );
  report.claim(
    "the circuit went closed -> open -> half-open -> closed: one trip",
    changes.map((change) => change.toState).join() === "open,half-open,closed",
  );
  report.claim("it took five failures, as configured", trip?.failures === 5 && count("failed") === 5);
  report.claim(
    "no request reached the dependency while open",
    trip?.requestsBefore === reopening?.requestsBefore && !!trip,
  );
  report.claim("one probe did, and it closed the circuit", close?.requestsBefore === reopening?.requestsBefore + 1);
  report.claim(
    "each refusal said when to come back, and the last one was right",
    refusals.length > 0 &&
      refusals.every(({ retryAfterMs }) => retryAfterMs > 0 && retryAfterMs <= POLICY.openDurationMs) &&
      reopening?.at - trip?.at >= POLICY.openDurationMs,
  );
  return report.close();
}
