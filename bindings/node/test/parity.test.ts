// execute, executeSync, guard, the triad and permits take the same decisions for the same outcomes: random timelines, each
// told in all of these ways, on a breaker of its own and on the bare state machine.
import fc from "fast-check";
import { CircuitBreaker, type CircuitBreakerPolicy, CircuitBreakerState, type Snapshot } from "switchgear";
import { expect, test } from "vitest";
import { ManualClock } from "./support/time";

type Outcome = "success" | "failure" | "neutral";

/** One call that runs to its end, or one operation of an operator, at a time that may stand still or step back. */
interface Step {
  advanceMs: number;
  what: Outcome | "reset" | "trip" | "forceOpen" | "disable";
}

/** A way to make one call with a given outcome; whether it was let through. */
type Way = (breaker: CircuitBreaker, outcome: Outcome) => Promise<boolean>;

const FAILURE = new Error("counts");
const NEUTRAL = new Error("does not count");

function end(outcome: Outcome): string {
  if (outcome === "success") return "ok";
  throw outcome === "failure" ? FAILURE : NEUTRAL;
}

async function letThrough(call: () => unknown): Promise<boolean> {
  try {
    await call();
  } catch (error) {
    if (error !== FAILURE && error !== NEUTRAL) {
      expect(error).toMatchObject({ code: "circuit_open" });
      return false;
    }
  }
  return true;
}

const WAYS: Record<string, Way> = {
  execute: (breaker, outcome) => letThrough(() => breaker.execute(async () => end(outcome))),
  "execute of a sync function": (breaker, outcome) => letThrough(() => breaker.execute(() => end(outcome))),
  "execute with a timeout": (breaker, outcome) =>
    letThrough(() => breaker.execute(() => end(outcome), { timeoutMs: 60_000 })),
  executeSync: (breaker, outcome) => letThrough(() => breaker.executeSync(() => end(outcome))),
  guard: (breaker, outcome) => letThrough(() => breaker.guard(async () => end(outcome))()),
  "guard of a sync function": (breaker, outcome) => letThrough(() => breaker.guard(() => end(outcome))()),
  "guard of an async generator": (breaker, outcome) =>
    letThrough(() =>
      breaker
        // biome-ignore lint/correctness/useYield: it ends before it yields.
        .guard(async function* () {
          end(outcome);
        })()
        .next(),
    ),
  "guard of a generator": (breaker, outcome) =>
    letThrough(() =>
      breaker
        // biome-ignore lint/correctness/useYield: it ends before it yields.
        .guard(function* () {
          end(outcome);
        })()
        .next(),
    ),
  triad: async (breaker, outcome) => {
    if (!breaker.canExecute()) return false;
    if (outcome === "success") breaker.recordSuccess();
    else if (outcome === "failure") breaker.recordFailure(FAILURE);
    else breaker.release();
    return true;
  },
  "triad, which asks isFailure": async (breaker, outcome) => {
    if (!breaker.canExecute()) return false;
    if (outcome === "success") breaker.recordSuccess();
    else breaker.recordFailure(outcome === "failure" ? FAILURE : NEUTRAL);
    return true;
  },
  permit: (breaker, outcome) =>
    letThrough(() => {
      const permit = breaker.acquire();
      if (outcome === "success") permit.recordSuccess();
      else permit.recordFailure(outcome === "failure" ? FAILURE : NEUTRAL);
    }),
};

const policies: fc.Arbitrary<CircuitBreakerPolicy> = fc
  .record({
    openDurationMs: fc.constantFrom(1, 5, 20),
    openBackoff: fc.constantFrom(1, 1.5, 2),
    halfOpenMaxCalls: fc.integer({ min: 1, max: 3 }),
    successThreshold: fc.integer({ min: 1, max: 3 }),
    probeTimeoutMs: fc.constantFrom(1, 10, 1000),
  })
  .chain((common) =>
    fc
      .oneof(
        fc.record({ failureThreshold: fc.integer({ min: 1, max: 4 }), windowMs: fc.constantFrom(1, 10, 100) }),
        fc.record({ tripOn: fc.constant("consecutive" as const), failureThreshold: fc.integer({ min: 1, max: 4 }) }),
        fc.record({
          tripOn: fc.constant("rate" as const),
          failureRate: fc.constantFrom(0.1, 0.5, 1),
          minimumCalls: fc.integer({ min: 1, max: 5 }),
          windowMs: fc.constantFrom(7, 100),
        }),
      )
      .map((own) => ({ ...common, ...own })),
  );

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    advanceMs: fc.oneof(
      { weight: 8, arbitrary: fc.integer({ min: 0, max: 12 }) },
      { weight: 1, arbitrary: fc.integer({ min: -5, max: 200 }) },
    ),
    what: fc.oneof(
      { weight: 12, arbitrary: fc.constantFrom<Outcome>("success", "failure", "failure", "neutral") },
      {
        weight: 1,
        arbitrary: fc.constantFrom("reset" as const, "trip" as const, "forceOpen" as const, "disable" as const),
      },
    ),
  }),
  { minLength: 1, maxLength: 40 },
);

interface Seen {
  letThrough: boolean | null;
  snapshot: Snapshot;
}

async function told(way: Way, policy: CircuitBreakerPolicy, timeline: readonly Step[]): Promise<Seen[]> {
  const clock = new ManualClock(1000);
  const breaker = new CircuitBreaker("c", { ...policy, isFailure: (error) => error !== NEUTRAL, clock: clock.read });
  const seen: Seen[] = [];
  for (const { advanceMs, what } of timeline) {
    clock.now += advanceMs;
    let answer: boolean | null = null;
    if (what === "success" || what === "failure" || what === "neutral") answer = await way(breaker, what);
    else breaker[what]();
    seen.push({ letThrough: answer, snapshot: breaker.getSnapshot() });
  }
  return seen;
}

/** What the bare machine says, asked for everything at every step. */
function expected(policy: CircuitBreakerPolicy, timeline: readonly Step[]): Seen[] {
  const state = new CircuitBreakerState(policy);
  let now = 1000;
  return timeline.map(({ advanceMs, what }) => {
    now += advanceMs;
    let answer: boolean | null = null;
    if (what === "success" || what === "failure" || what === "neutral") {
      const permit = state.acquire(now);
      answer = permit !== null;
      const settle = { success: "recordSuccess", failure: "recordFailure", neutral: "release" } as const;
      permit?.[settle[what]](now);
    } else {
      state[what](now);
    }
    return { letThrough: answer, snapshot: state.snapshot(now) };
  });
}

test.each(Object.entries(WAYS))("%s decides as the bare machine does", async (_name, way) => {
  await fc.assert(
    fc.asyncProperty(policies, steps, async (policy, timeline) => {
      expect(await told(way, policy, timeline)).toEqual(expected(policy, timeline));
    }),
    { numRuns: 150 },
  );
});
