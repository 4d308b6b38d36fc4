// The Fleet test: four processes in Node and four in Python share one circuit before a dependency that fails, and recovers as
// soon as it is probed. The dependency is the witness: it knows which calls are probes, and holds them until it is told.
import assert from "node:assert/strict";
import { startServer } from "../../support/servers.mjs";
import { startCluster } from "./cluster.mjs";
import { startDependency } from "./dependency.mjs";
import { until, withResolvers } from "./until.mjs";
import { hire } from "./workers.mjs";

const FLEET = ["node", "node", "node", "node", "python", "python", "asyncio", "asyncio"];
const TEN_MINUTES = 600_000;

/** Durations that no slow machine can outlast, but for the opening, which has to pass. */
const POLICY = {
  failureThreshold: 5,
  windowMs: TEN_MINUTES,
  openDurationMs: 500,
  halfOpenMaxCalls: 2,
  successThreshold: 4,
  probeTimeoutMs: TEN_MINUTES,
};
const STORE = { timeoutMs: 60_000 };

/** The scenarios, by name: what is injected, and how the fleet is set up. */
export const FLEETS = [
  { name: "One Redis", injected: "nothing: 8 processes, 4 callers each" },
  { name: "A cluster of three masters", injected: "nothing, on a cluster", clustered: true },
  {
    name: "Wrong clocks",
    injected:
      "the wall clock of one Node process is ten minutes ahead, of one Python process ten minutes behind, from the start",
    skews: { 1: TEN_MINUTES, 5: -TEN_MINUTES },
  },
  {
    name: "Processes killed mid-probe",
    injected: "SIGKILL of every process that holds a probe slot, before its probe is answered",
    kills: true,
    policies: [{ ...POLICY, openDurationMs: 1_000, probeTimeoutMs: 5_000 }],
  },
  {
    name: "Three configurations",
    injected: "thresholds 5, 8 and 6, openings of 500, 700 and 600 ms, 2, 3 and 1 probe slots",
    policies: [
      POLICY,
      { ...POLICY, failureThreshold: 8, openDurationMs: 700, halfOpenMaxCalls: 3, successThreshold: 3 },
      { ...POLICY, failureThreshold: 6, openDurationMs: 600, halfOpenMaxCalls: 1, successThreshold: 2 },
    ],
  },
];

/** Plays one of them, and gives what was seen; an AssertionError says what was not as it should be. */
export async function playFleet(fleet) {
  const { clustered = false, skews = {}, kills = false, policies = [POLICY] } = fleet;
  const gate = withResolvers();
  let wasProbed = false;
  const dependency = await startDependency(async ({ probe }) => {
    wasProbed ||= probe;
    if (probe) await gate.promise;
    return wasProbed ? "ok" : "fail";
  });
  const servers = clustered ? await startCluster() : await startServer();
  const policyOf = (index) => policies[index % policies.length];
  const workers = await Promise.all(
    FLEET.map((kind, index) => hire(kind, `${kind}-${index}`, { skewMs: skews[index] ?? 0 })),
  );
  try {
    // Where slots of the killed are to expire, time is made up: no process that merely is slow loses its own.
    let now = kills ? 1_700_000_000_000 : undefined;
    const where = clustered ? { cluster: servers.nodes.map(({ port }) => port) } : { port: servers.port };
    const options = (index) => ({
      who: workers[index].who,
      circuit: "shared",
      ...where,
      store: STORE,
      policy: policyOf(index),
      clock: now,
    });
    const each = (operation, options = () => ({}), among = workers) =>
      Promise.all(among.map((worker) => worker.do(operation, { as: "it", ...options(workers.indexOf(worker)) })));
    const pass = (ms) => {
      now += ms;
      return Promise.all(alive.map((worker) => worker.do("clock", { to: now })));
    };
    let alive = workers;
    const changes = () => workers.flatMap((worker) => worker.changes);
    const refusals = (state) =>
      each("stats", undefined, alive).then((all) => all.map(({ told }) => told[`refused ${state}`]));
    /** Until each has been refused some more. */
    const untilRefused = async (state) => {
      const before = await refusals(state);
      await until(`all are refused: ${state}`, async () =>
        (await refusals(state)).every((count, index) => count >= before[index] + 3),
      );
    };

    await each("open", options);
    await each("loop", () => ({ n: 4, dependency: dependency.port }));
    if (kills) {
      await untilRefused("open");
      await pass(policies[0].openDurationMs);
    }
    const begun = await until("the circuit is half-open", () =>
      changes().find(({ toState }) => toState === "half-open"),
    );
    const slots = policyOf(workers.findIndex(({ who }) => who === begun.who)).halfOpenMaxCalls;
    await until("all slots are taken", () => dependency.probes().length === slots);
    await untilRefused("half-open");
    assert.equal(dependency.probes().length, slots, "probes in flight while everybody asks");

    let killed = [];
    if (kills) {
      killed = workers.filter(({ pid }) => dependency.probes().some((probe) => probe.pid === pid));
      await Promise.all(killed.map((worker) => worker.kill()));
      alive = workers.filter((worker) => !killed.includes(worker));
      await until("the dependency has noticed", () => dependency.probes().length === 0);
      await untilRefused("half-open");
      assert.equal(dependency.probes().length, 0, "the slots of the killed are theirs until they expire");
      // The processes hear of the time one after the other. Whoever asks by the time before must not have a slot that is over by
      // the next one's: so nearly all of it passes while the slots are still taken.
      await pass(policies[0].probeTimeoutMs - 1);
      await untilRefused("half-open");
      await pass(1);
      await until("all slots are taken again", () => dependency.probes().length === slots);
      await untilRefused("half-open");
    }
    gate.resolve();
    await until("all get through", async () =>
      (await each("stats", undefined, alive)).every(({ told }) => told.done >= 3),
    );
    await each("end", undefined, alive);

    assert.deepEqual(
      changes()
        .map(({ fromState, toState, reason }) => `${fromState} to ${toState}: ${reason}`)
        .sort(),
      ["closed to open: threshold", "half-open to closed: probes-succeeded", "open to half-open: cooldown"],
      "one trip, one half-open period, one close, each told by the process that made it",
    );
    assert.equal(dependency.mostProbes(), slots, "probes in flight at the dependency");
    const stats = await each("stats", undefined, alive);
    assert.deepEqual(
      stats.flatMap(({ storeError, degraded, errors }) => [...storeError, ...degraded, ...errors]),
      [],
      "nobody had trouble",
    );
    const snapshots = await each("snapshot", undefined, alive);
    for (const { state, epoch } of snapshots)
      assert.deepEqual({ state, epoch }, { state: "closed", epoch: snapshots[0].epoch });
    stats.forEach(({ configMismatch }, index) => {
      const differs = policyOf(workers.indexOf(alive[index])).halfOpenMaxCalls !== slots;
      assert.equal(configMismatch.length, differs ? 1 : 0, "told once, where the numbers differ");
    });
    return {
      trips: 1,
      most: `${dependency.mostProbes()} of ${slots}`,
      closes: 1,
      killed: killed.length,
    };
  } finally {
    gate.resolve();
    await Promise.all(workers.map((worker) => worker.leave()));
    await servers.stop();
    dependency.stop();
  }
}
