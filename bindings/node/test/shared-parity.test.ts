// A local and a shared breaker on one clock take the same decisions, whatever happens to them.
import fc from "fast-check";
import type { CircuitBreakerPolicy, Settled } from "switchgear";
import { CircuitBreaker } from "switchgear";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { expect, test } from "vitest";
import { place } from "./support/stores";
import { ManualClock } from "./support/time";
import type { AnyBreaker } from "./support/world";

const here = place();

const OUTCOMES = ["recordSuccess", "recordFailure", "release"] as const;
type Outcome = (typeof OUTCOMES)[number];

/** One thing that is done to both breakers. */
type Step =
  | { do: "wait"; ms: number }
  | { do: "acquire" }
  | { do: "settle"; which: number; outcome: Outcome }
  | { do: "record"; outcome: Outcome }
  | { do: "control"; operation: "reset" | "trip" | "forceOpen" | "disable"; forMs: number | undefined };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("acquire" as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      which: fc.nat(20),
      outcome: fc.constantFrom(...OUTCOMES),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("record" as const), outcome: fc.constantFrom(...OUTCOMES) }) },
  {
    weight: 5,
    // Around the durations of the policies below, and a clock that steps back.
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      ms: fc.constantFrom(0, 1, 99, 100, 101, 999, 1000, 2500, -50),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("control" as const),
      operation: fc.constantFrom("reset" as const, "trip" as const, "forceOpen" as const, "disable" as const),
      forMs: fc.constantFrom(undefined, 1, 500),
    }),
  },
);

const common = { openDurationMs: 1000, probeTimeoutMs: 900, openBackoff: 1.5, openDurationMaxMs: 4000 };
const policy: fc.Arbitrary<CircuitBreakerPolicy> = fc
  .record({ halfOpenMaxCalls: fc.integer({ min: 1, max: 3 }), successThreshold: fc.integer({ min: 1, max: 3 }) })
  .chain((probes) =>
    fc
      .oneof(
        fc.record({ failureThreshold: fc.integer({ min: 1, max: 3 }), windowMs: fc.constantFrom(100, 1000) }),
        fc.record({ tripOn: fc.constant("consecutive" as const), failureThreshold: fc.integer({ min: 1, max: 3 }) }),
        fc.record({
          tripOn: fc.constant("rate" as const),
          minimumCalls: fc.integer({ min: 1, max: 4 }),
          failureRate: fc.constantFrom(0.3, 0.5, 1),
          windowMs: fc.constantFrom(100, 1000),
        }),
      )
      .map((trips) => ({ ...common, ...probes, ...trips })),
  );

interface Held {
  probe: boolean;
  settle(outcome: Outcome): Promise<Settled>;
}

/** Does one step to one breaker, and says everything that came of it. */
async function act(breaker: AnyBreaker, held: Held[], todo: Exclude<Step, { do: "wait" }>): Promise<unknown> {
  switch (todo.do) {
    case "acquire":
      try {
        const permit = await breaker.acquire();
        held.push({ probe: permit.probe, settle: async (outcome) => permit[outcome]() });
        return ["granted", permit.probe];
      } catch (error) {
        const { state, retryAfterMs } = error as { state: string; retryAfterMs: number | null };
        return ["refused", state, retryAfterMs];
      }
    case "settle": {
      const permit = held[todo.which % Math.max(1, held.length)];
      return permit === undefined ? "none held" : permit.settle(todo.outcome);
    }
    case "record":
      return breaker[todo.outcome]();
    case "control":
      return todo.operation === "trip"
        ? breaker.trip(todo.forMs === undefined ? {} : { forMs: todo.forMs })
        : breaker[todo.operation]();
  }
}

/** What a shared breaker waits for nobody to say: it answers `applied` at once, though the period may be over by now. */
function isUnasked(todo: Step, held: Held[]): boolean {
  if (todo.do !== "settle") return false;
  const isClosed = held[todo.which % Math.max(1, held.length)]?.probe === false;
  return isClosed && todo.outcome !== "recordFailure";
}

test("parity: random outcomes, times and manual control", async () => {
  let timelines = 0;
  // An outcome that nobody waits for must not come after the snapshot, as it would if its script had to be sent first.
  const warm = new DistributedCircuitBreaker("parity", new RedisStore(here.redis, { timeoutMs: 10_000 }));
  await warm.recordSuccess();
  await fc.assert(
    fc.asyncProperty(policy, fc.array(step, { minLength: 10, maxLength: 60 }), async (options, steps) => {
      const clock = new ManualClock(1_700_000_000_000);
      const store = new RedisStore(here.redis, { clock: clock.read, timeoutMs: 10_000 });
      const local = new CircuitBreaker("c", { ...options, clock: clock.read });
      const shared = new DistributedCircuitBreaker(`parity ${++timelines}`, store, { ...options, openCacheMs: 0 });
      const held: [Held[], Held[]] = [[], []];
      for (const todo of steps) {
        if (todo.do === "wait") {
          clock.now += todo.ms;
          continue;
        }
        const unasked = isUnasked(todo, held[0]);
        const answers = [await act(local, held[0], todo), await act(shared, held[1], todo)];
        if (unasked && answers[1] === "applied" && answers[0] === "stale") answers[0] = "applied";
        expect(answers[1]).toEqual(answers[0]);
        expect(await shared.getSnapshot()).toEqual(local.getSnapshot());
      }
    }),
    { numRuns: 150 },
  );
  expect(timelines).toBeGreaterThanOrEqual(150);
});
