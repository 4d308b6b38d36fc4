// A fleet that is moved over from NestJS RedisX 1.x instance by instance, on the same keys: docs/migrating/nestjs-redisx.md.
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { describe, expect, test } from "vitest";
import { RedisXInstance, type RedisXPolicy } from "./support/redisx";
import { place } from "./support/stores";
import { ManualClock } from "./support/time";

const here = place();
const PATIENT = 10_000;
const POLICY: RedisXPolicy = {
  failureThreshold: 3,
  windowMs: 10_000,
  openDurationMs: 30_000,
  halfOpenMaxCalls: 1,
  successThreshold: 1,
  probeTimeoutMs: 30_000,
};

/** What a test does with an instance, old or new. */
interface Instance {
  readonly kind: "old" | "new";
  canRequest(): Promise<boolean>;
  recordSuccess(): Promise<unknown>;
  recordFailure(): Promise<unknown>;
  getState(): Promise<string>;
}

let circuits = 0;

/** A circuit of its own with a clock, and what makes its instances. */
function fleet(policy: Partial<RedisXPolicy> = {}) {
  circuits += 1;
  const name = `payments ${circuits}`;
  const clock = new ManualClock(1_700_000_000_000);
  const settings = { ...POLICY, ...policy };
  const older = (): Instance => {
    const instance = new RedisXInstance(here.redis, `cb:${name}`, settings, clock.read);
    return Object.assign(instance, { kind: "old" as const });
  };
  const breakerOf = (prefix = "cb:"): DistributedCircuitBreaker =>
    new DistributedCircuitBreaker(
      name,
      new RedisStore(here.redis, { prefix, clock: clock.read, timeoutMs: PATIENT }),
      settings,
    );
  const newer = (): Instance => {
    const breaker = breakerOf();
    return {
      kind: "new",
      canRequest: () => breaker.canExecute(),
      recordSuccess: () => breaker.recordSuccess(),
      recordFailure: () => breaker.recordFailure(new Error("down")),
      getState: () => breaker.getState(),
    };
  };
  return { name, clock, older, newer, breakerOf };
}

type Fleet = ReturnType<typeof fleet>;

const PAIRS = [
  ["an old instance", "a new one", (all: Fleet) => [all.older(), all.newer()] as const],
  ["a new instance", "an old one", (all: Fleet) => [all.newer(), all.older()] as const],
] as const;

describe.each(PAIRS)("%s before %s", (_first, _second, pairOf) => {
  async function tripped(policy?: Partial<RedisXPolicy>) {
    const all = fleet(policy);
    const [one, other] = pairOf(all);
    for (const instance of [other, one, one]) {
      expect(await instance.canRequest()).toBe(true);
      await instance.recordFailure();
    }
    return { ...all, one, other };
  }

  test("they trip together, and both refuse", async () => {
    const { one, other } = await tripped();
    expect([await one.getState(), await other.getState()]).toEqual(["open", "open"]);
    expect([await one.canRequest(), await other.canRequest()]).toEqual([false, false]);
  });

  test("failures that have left the window count for neither", async () => {
    const { clock, ...all } = fleet();
    const [one, other] = pairOf({ clock, ...all });
    await one.recordFailure();
    await one.recordFailure();
    clock.now += 10_000;
    await other.recordFailure();
    expect([await one.getState(), await other.getState()]).toEqual(["closed", "closed"]);
  });

  test("they share the probe slots of a reopening", async () => {
    const { one, other, clock } = await tripped({ halfOpenMaxCalls: 2, successThreshold: 2 });
    clock.now += 30_000;
    expect([await one.canRequest(), await other.canRequest()]).toEqual([true, true]);
    expect([await one.canRequest(), await other.canRequest()]).toEqual([false, false]);
  });

  test("the probe of one closes for both, and what was counted is forgotten", async () => {
    const { one, other, clock } = await tripped();
    clock.now += 30_000;
    expect(await one.canRequest()).toBe(true);
    await one.recordSuccess();
    expect([await one.getState(), await other.getState()]).toEqual(["closed", "closed"]);
    await other.recordFailure();
    await other.recordFailure();
    expect(await one.getState()).toBe("closed");
    await one.recordFailure();
    expect([await one.getState(), await other.getState()]).toEqual(["open", "open"]);
  });

  test("successes of both add up to what closes", async () => {
    const { one, other, clock } = await tripped({ halfOpenMaxCalls: 2, successThreshold: 2 });
    clock.now += 30_000;
    expect([await one.canRequest(), await other.canRequest()]).toEqual([true, true]);
    await one.recordSuccess();
    expect(await other.getState()).toBe("half-open");
    await other.recordSuccess();
    expect([await one.getState(), await other.getState()]).toEqual(["closed", "closed"]);
  });

  test("the failed probe of one reopens for both, for a whole time", async () => {
    const { one, other, clock } = await tripped();
    clock.now += 30_000;
    expect(await one.canRequest()).toBe(true);
    clock.now += 500;
    await one.recordFailure();
    clock.now += 29_999;
    expect([await one.canRequest(), await other.canRequest()]).toEqual([false, false]);
    clock.now += 1;
    expect(await other.canRequest()).toBe(true);
  });

  test("the slot of a probe that never ends is free for both after probeTimeoutMs", async () => {
    const { one, other, clock } = await tripped({ probeTimeoutMs: 5_000 });
    clock.now += 30_000;
    expect(await one.canRequest()).toBe(true);
    clock.now += 4_999;
    expect(await other.canRequest()).toBe(false);
    clock.now += 1;
    expect(await other.canRequest()).toBe(true);
  });
});

/** Numbers from 0 to 1 that depend on the seed alone. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test.each([1, 2, 3, 4, 5])(
  "four instances are replaced one by one under load: they never disagree, and probes keep to their slots (seed %d)",
  async (seed) => {
    const { clock, older, newer } = fleet();
    const next = random(seed);
    const instances: Instance[] = [older(), older(), older(), older()];
    const seen = new Set<string>();
    for (let outage = 0; outage <= instances.length; outage += 1) {
      for (let round = 0; round < 24; round += 1) {
        const isDown = round >= 4 && round < 10;
        // In the middle of an outage, or while it is being recovered from.
        if (round === 6 + outage * 2 && outage < instances.length) instances[outage] = newer();
        const state = await instances[0]?.getState();
        const begun: Instance[] = [];
        for (let call = 0; call < 6; call += 1) {
          const instance = instances[Math.floor(next() * instances.length)] as Instance;
          if (await instance.canRequest()) begun.push(instance);
        }
        // All that were let through are in flight together now.
        if (state !== "closed") expect(begun.length).toBeLessThanOrEqual(POLICY.halfOpenMaxCalls);
        else expect(begun).toHaveLength(6);
        clock.now += Math.floor(next() * 1_000);
        for (const instance of begun) await (isDown ? instance.recordFailure() : instance.recordSuccess());
        const states = await Promise.all(instances.map((instance) => instance.getState()));
        expect(new Set(states).size).toBe(1);
        const old = instances.filter(({ kind }) => kind === "old").length;
        for (const now of states) seen.add(`${old} old: ${now}`);
        clock.now += 1_000 + Math.floor(next() * 5_000);
      }
    }
    // Each mixture went through an outage and came out of it again.
    for (let old = 0; old <= instances.length; old += 1) {
      expect([seen.has(`${old} old: open`), seen.has(`${old} old: closed`)]).toEqual([true, true]);
    }
  },
);

describe("what an old instance does not know", () => {
  test("it calls through a circuit that is forced open, and may trip it", async () => {
    const { breakerOf, older } = fleet();
    const [breaker, old] = [breakerOf(), older()];
    await breaker.forceOpen();
    expect([await breaker.canExecute(), await old.canRequest()]).toEqual([false, true]);
    await breaker.disable();
    for (let i = 0; i < 3; i += 1) await old.recordFailure();
    expect([await breaker.canExecute(), await old.canRequest()]).toEqual([true, false]);
  });

  test("it closes on the success of a call from before the trip, once the time open is over", async () => {
    const { clock, older } = fleet();
    const [slow, other] = [older(), older()];
    expect(await slow.canRequest()).toBe(true);
    for (let i = 0; i < 3; i += 1) await other.recordFailure();
    clock.now += 30_000;
    expect(await other.canRequest()).toBe(true);
    await slow.recordSuccess();
    expect(await other.getState()).toBe("closed");
  });

  test("a fleet on another prefix has circuits of its own", async () => {
    const { breakerOf, older } = fleet();
    await breakerOf("new:").trip();
    expect([await older().getState(), await breakerOf().getState()]).toEqual(["closed", "closed"]);
  });
});
