// What the fault scenarios have in common: a worker of each kind on one circuit, a proxy before the server for each, a dependency
// that works or fails as it is told, and what must hold whatever is injected.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { startDependency } from "./dependency.mjs";
import { startProxy } from "./proxy.mjs";
import { until } from "./until.mjs";
import { hire, KINDS } from "./workers.mjs";

/** A deadline that ends soon what never comes, and that no healthy command misses three times in a row. */
const IMPATIENT = { timeoutMs: 1_000 };

/** Where nothing hangs, nothing is to be missed. */
const PATIENT = { timeoutMs: 60_000 };

/** An opening that passes while the test waits; a window that nothing falls out of. */
export const POLICY = { failureThreshold: 5, windowMs: 600_000, openDurationMs: 1_000, probeTimeoutMs: 600_000 };

/** How often the guard of a store looks whether it is back. */
const GUARD_PROBE_MS = 1_000;

/** Failures in a row that the guard of a store takes for an outage. */
const GUARD_FAILURES = 3;

/** One worker of each kind, and the dependency they guard. */
export class Crew {
  workers = [];
  proxies = [];
  /** The circuits whose dependency fails. */
  failing = new Set();

  static async start() {
    const crew = new Crew();
    crew.dependency = await startDependency(({ circuit }) => (crew.failing.has(circuit) ? "fail" : "ok"));
    crew.workers = await Promise.all(KINDS.map((kind) => hire(kind, kind)));
    return crew;
  }

  /** Gives each worker a circuit: on a server by a proxy of its own, or on a cluster. */
  async open({ server, cluster, patient = false, as = "it", circuit = "shared", policy = {}, ...more }) {
    if (server && this.proxies.length === 0) {
      this.proxies = await Promise.all(KINDS.map(() => startProxy(server.port)));
    }
    const where = (index) =>
      cluster ? { cluster: cluster.nodes.map(({ port }) => port) } : { port: this.proxies[index].port };
    const store = patient ? PATIENT : IMPATIENT;
    await this.each("open", (index) => ({
      as,
      who: KINDS[index],
      circuit: typeof circuit === "string" ? circuit : circuit(KINDS[index]),
      store,
      policy: { ...POLICY, ...policy },
      ...where(index),
      ...more,
    }));
  }

  each(operation, options = () => ({})) {
    return Promise.all(this.workers.map((worker, index) => worker.do(operation, { as: "it", ...options(index) })));
  }

  /** Has each worker make calls, one after the other: what their callers got, when each began, and how long all took. */
  async calls(n, as = "it") {
    const all = await this.each("calls", () => ({ as, n, dependency: this.dependency.port }));
    return all.map(({ got, at, ms }) => ({ got, at, ms }));
  }

  stats(as = "it") {
    return this.each("stats", () => ({ as }));
  }

  /** How often the store was said to be away, and to be back. */
  async health(as = "it") {
    return (await this.stats(as)).map(({ degraded, restored }) => [degraded.length, restored.length]);
  }

  /** The dependency works from now on, or fails. */
  dependencyWorks(works, as = "it") {
    if (works) this.failing.delete(as);
    else this.failing.add(as);
  }

  /** How many calls have reached the dependency, by kind of worker. */
  hits(as = "it") {
    return KINDS.map((kind) => this.dependency.hits[`${as} ${kind}`] ?? 0);
  }

  /** Does something to the network of each worker. */
  network(act) {
    for (const proxy of this.proxies) act(proxy);
  }

  /** All is well: each gets through. */
  async isHealthy(as = "it") {
    for (const { got } of await this.calls(2, as)) assert.deepEqual(got, ["ok", "ok"], "before anything is injected");
  }

  /** An operator opens the circuit by one worker, and all are refused; resets it by another, and all get through. */
  async agrees(as = "it") {
    this.dependencyWorks(true, as);
    const [first, second, third] = this.workers;
    const steer = (worker, operation, options) =>
      // Late is not done: it is asked for again.
      until(`${worker.who} has done: ${operation}`, () =>
        worker.do("control", { as, operation, options }).then(
          () => true,
          () => false,
        ),
      );
    const allGet = (what) =>
      until(`all get: ${what}`, async () => {
        const all = await this.calls(1, as);
        return all.every(({ got: [one] }) => one === what) || sleep(50);
      });
    await steer(second, "trip", { forMs: 600_000 });
    await allGet("refused open");
    await steer(third, "reset");
    await allGet("ok");
    await steer(first, "forceOpen");
    await allGet("refused open");
    await steer(second, "reset");
    await allGet("ok");
  }

  async stop() {
    await Promise.all(this.workers.map((worker) => worker.leave()));
    for (const proxy of this.proxies) proxy.stop();
    this.dependency.stop();
  }
}

/**
 * The store is away for a while: what must hold.
 *
 * `breaks` is done, then `heals`. `reads`: whether reading it still works, so that only an outcome finds out. Gives what was
 * seen, by kind of worker.
 */
export async function outage(crew, { breaks, heals, reads = false, as = "it", healthy = true, policy = POLICY }) {
  if (healthy) await crew.isHealthy(as);
  const { failureThreshold: threshold, openDurationMs } = { ...POLICY, ...policy };
  const before = await crew.stats(as);
  const troubles = async () =>
    (await crew.stats(as)).map(({ storeError }, index) => storeError.length - before[index].storeError.length);
  const hitsBefore = crew.hits(as);
  await breaks();

  // While the dependency works, its answers are what callers get.
  let waits;
  if (!reads) {
    waits = await untilDegraded(crew, as, "ok");
    const troublesBefore = await troubles();
    const asked = crew.proxies.map((proxy) => proxy.asked());
    const all = await crew.calls(60, as);
    const troublesAfter = await troubles();
    all.forEach(({ got, ms }, index) => {
      assert.deepEqual([...new Set(got)], ["ok"], `${KINDS[index]}: callers get their own results`);
      const probes = 1 + Math.floor(ms / GUARD_PROBE_MS);
      assert.ok(troublesAfter[index] - troublesBefore[index] <= probes, `${KINDS[index]}: nobody waits for the store`);
      if (crew.proxies.length > 0) {
        const more = crew.proxies[index].asked() - asked[index];
        assert.ok(more <= probes, `${KINDS[index]}: ${more} commands in ${ms} ms, and no caller's`);
      }
    });
  }

  // When it fails, each process finds out for itself, and then leaves it alone.
  crew.dependencyWorks(false, as);
  const hits = crew.hits(as);
  const asked = crew.proxies.map((proxy) => proxy.asked());
  const all = await crew.calls(threshold + 20, as);
  const reached = crew.hits(as).map((count, index) => count - hits[index]);
  all.forEach((calls, index) => {
    const probes = afterTrip(KINDS[index], calls, { threshold, openDurationMs });
    assert.equal(reached[index], threshold + probes, `${KINDS[index]}: what reaches the dependency`);
  });
  if (reads) {
    waits = (await troubles()).map((count, index) => {
      assert.ok(
        count <= GUARD_FAILURES + Math.floor(all[index].ms / GUARD_PROBE_MS),
        `${KINDS[index]}: ${count} waited`,
      );
      return Math.min(count, GUARD_FAILURES);
    });
    crew.proxies.forEach((proxy, index) => {
      // Each call asks whether it may go ahead until the circuit is open, and three try to tell their outcome.
      const more = proxy.asked() - asked[index];
      const most =
        threshold + 2 * GUARD_FAILURES + 2 * Math.floor(all[index].ms / Math.min(openDurationMs, GUARD_PROBE_MS));
      assert.ok(more <= most, `${KINDS[index]}: ${more} commands, at most ${most}`);
    });
  }
  // What a guard looks with, once a second, may be taken where outcomes are not: then it was wrong, as often as it has looked.
  const looks = all.map(({ ms }) => (reads ? Math.floor(ms / GUARD_PROBE_MS) : 0));
  const since = (stats) =>
    stats.map(({ degraded, restored }, index) => [
      degraded.length - before[index].degraded.length,
      restored.length - before[index].restored.length,
    ]);
  for (const [index, [degraded, restored]] of since(await crew.stats(as)).entries()) {
    const times = `${KINDS[index]}: degraded ${degraded}, restored ${restored}, ${looks[index]} looks`;
    assert.ok(degraded >= 1 && degraded <= 1 + restored && restored <= degraded && restored <= looks[index], times);
  }

  await heals();
  crew.dependencyWorks(true, as);
  await untilRestored(crew, as);
  await crew.agrees(as);
  const after = await crew.stats(as);
  const health = since(after);
  for (const [index, seen] of health.entries()) {
    const [times] = seen;
    assert.ok(times >= 1 && times <= 1 + looks[index], `${KINDS[index]}: said ${times} times, ${looks[index]} looks`);
    assert.deepEqual(seen, [times, times], `${KINDS[index]}: each time, and each time that it is over`);
    const { lines } = after[index];
    if (lines !== undefined) oneLineEach(lines, times);
  }
  return {
    waits,
    got: `own results; ${threshold} own errors, then refused`,
    reached: reached.map(
      (count, _index) => `${threshold}${count > threshold ? ` and ${count - threshold} probes` : ""}`,
    ),
    health,
    total: crew.hits(as).map((count, index) => count - hitsBefore[index]),
  };
}

/**
 * So many failures trip a process's own breaker: how many of its calls came through after that. Each of them is a probe, one for each
 * opening that has passed since the call that tripped. That may be the very next, where the machine is slow, or where that call had to
 * wait for the store with its outcome.
 */
export function afterTrip(where, { got, at, ms }, { threshold, openDurationMs }) {
  assert.deepEqual(
    got.slice(0, threshold),
    Array(threshold).fill("own error"),
    `${where}: callers get their own errors`,
  );
  const later = got.slice(threshold);
  assert.ok(later.includes("refused open"), `${where}: its own breaker trips`);
  const through = later.filter((one) => !/^refused (open|half-open)$/.test(one));
  const most = Math.floor((ms - at[threshold - 1]) / openDurationMs);
  const text = `${where}: ${got} in ${ms} ms, the trip after ${at[threshold - 1]} ms: at most ${most} come through`;
  assert.ok(through.every((one) => one === "own error") && through.length <= most, text);
  return through.length;
}

/** Calls until each process takes the store for away: how many calls that took of each. */
async function untilDegraded(crew, as, expected) {
  const counts = crew.workers.map(() => 0);
  const begin = await crew.stats(as);
  await Promise.all(
    crew.workers.map(async (worker, index) => {
      for (;;) {
        const { degraded, storeError } = await worker.do("stats", { as });
        if (degraded.length > begin[index].degraded.length) return;
        const troubles = JSON.stringify(storeError.slice(begin[index].storeError.length));
        assert.ok(counts[index] < GUARD_FAILURES, `${worker.who}: more than three calls waited: ${troubles}`);
        counts[index] += 1;
        const { got } = await worker.do("calls", { as, n: 1, dependency: crew.dependency.port });
        assert.deepEqual(got, [expected], worker.who);
      }
    }),
  );
  return counts;
}

/** Calls until each gets through again and takes the store for back. An outcome is what finds out that it takes outcomes. */
export async function untilRestored(crew, as) {
  await until("all get through again", async () => {
    const all = await crew.calls(1, as);
    return all.every(({ got }) => got[0] === "ok") || sleep(50);
  });
  const health = () => crew.health(as);
  const isRestored = async () => (await health()).every(([degraded, restored]) => degraded === restored);
  // A minute's worth of the guard's own questions: each is asked when a call comes along.
  for (let attempt = 0; !(await isRestored()); attempt++) {
    assert.ok(attempt < 20, `degraded and restored: ${JSON.stringify(await health())}`);
    await crew.calls(1, as);
    // An outcome that is to be told: a success is not, under `rolling`.
    crew.dependencyWorks(false, as);
    await crew.calls(1, as);
    crew.dependencyWorks(true, as);
    for (let look = 0; look < 30 && !(await isRestored()); look++) await sleep(50);
  }
}

/** In Python there is a line in the log for each of the two, and not one for each call. */
function oneLineEach(lines, times) {
  const kinds = lines.map((line) => line.split(" ")[0]);
  assert.deepEqual(kinds, Array(times).fill(["WARNING", "INFO"]).flat(), lines.join("\n"));
}

/**
 * The store stays: what is injected costs nobody anything. `injects` is done before and between the calls. Six failures, two of
 * each worker, trip the fleet once.
 */
export async function steady(crew, { injects, as = "it", again = () => undefined }) {
  await crew.isHealthy(as);
  const changed = () => crew.workers.flatMap(({ changes }) => changes);
  const changesBefore = changed().length;
  await injects();
  await crew.isHealthy(as);
  await again();
  crew.dependencyWorks(false, as);
  const hits = crew.hits(as);
  for (const { got } of await crew.calls(2, as))
    assert.deepEqual(got, ["own error", "own error"], "callers get their own errors");
  for (const { got } of await crew.calls(5, as))
    assert.deepEqual([...new Set(got)], ["refused open"], "they trip together");
  const reached = crew.hits(as).map((count, index) => count - hits[index]);
  assert.deepEqual(reached, [2, 2, 2], "what reaches the dependency");
  assert.deepEqual(
    changed()
      .slice(changesBefore)
      .map(({ fromState, toState, reason }) => `${fromState} to ${toState}: ${reason}`),
    ["closed to open: threshold"],
    "one trip, told by the process that made it",
  );
  const stats = await crew.stats(as);
  const health = await crew.health(as);
  assert.deepEqual(
    health,
    [
      [0, 0],
      [0, 0],
      [0, 0],
    ],
    "the store was not away",
  );
  await crew.agrees(as);
  return {
    waits: stats.map(({ storeError }) => storeError.length),
    got: "own results and errors; 6 failures trip the fleet, once",
    reached: reached.map(String),
    health,
  };
}

/** The policy under which two failures of each worker trip. */
export const TOGETHER = { failureThreshold: 6, openDurationMs: 600_000 };
