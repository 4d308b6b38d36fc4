// What an admission costs the Redis server: processor time, commands and reads, of ours and of other schemes.
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { inFlight, MANY } from "../in-flight.mjs";
import { measure as measureRounds, median } from "../measure.mjs";
import { startPython, tasksOf } from "../python-process.mjs";
import { PATIENT, spent, withServer } from "../server.mjs";
import { HOUR_MS, healthy } from "../tasks.mjs";
import { twoScriptsBreaker } from "../two-scripts.mjs";

const SIZES = { full: { rounds: 31, calls: 2000 }, quick: { rounds: 1, calls: 5 } };

export async function measure(report, size) {
  const { rounds, calls } = SIZES[size];
  await withServer(async (client, url) => {
    const python = await pythonSchemes(url, calls);
    try {
      const schemes = { ...(await nodeSchemes(client, calls)), ...python.schemes };
      const samplers = Object.fromEntries(
        Object.entries(schemes).map(([name, run]) => [name, () => costOf(client, run, calls)]),
      );
      await measureRounds(samplers, 1); // warms up
      const costs = await measureRounds(samplers, rounds);
      const row = ([name, each]) => {
        const of = (what) => median(each.map((cost) => cost[what])).toFixed(2);
        return [name, of("cpuUs"), of("commands"), of("reads")];
      };
      report.table(["What a guarded success costs Redis", "us of CPU", "commands", "reads"], [...costs].map(row));
    } finally {
      python.end();
    }
  });
}

/** Each makes `calls` calls. */
async function nodeSchemes(client, calls) {
  const store = new RedisStore(client, PATIENT);
  const breaker = (name, policy) => new DistributedCircuitBreaker(name, store, policy);
  const shared = breaker("bench");
  const rate = breaker("rate", { tripOn: "rate" });
  const cached = breaker("cached", { closedCacheMs: 1000 });
  const open = breaker("open", { openDurationMs: HOUR_MS });
  await open.trip();
  const twoScripts = await twoScriptsBreaker(client, "bench");
  const digest = await client.script("LOAD", "return 1");
  const bare = () => client.evalsha(digest, 1, "{cb:bench}", Date.now());
  const each = (call) => () => inFlight(call, { width: 1, calls });
  const many = (call) => () => inFlight(call, { width: MANY, calls });
  return {
    "bare EVALSHA, one key": each(bare),
    switchgear: each(() => shared.execute(healthy)),
    "switchgear (rate)": each(() => rate.execute(healthy)),
    "switchgear, closedCacheMs": each(() => cached.execute(healthy)),
    "switchgear, refused (openCacheMs)": each(() => open.execute(healthy, { fallback: () => 0 })),
    "two scripts": each(() => twoScripts.execute(healthy)),
    [`bare EVALSHA, ${MANY} in flight`]: many(bare),
    [`switchgear, ${MANY} in flight`]: many(() => shared.execute(healthy)),
    [`two scripts, ${MANY} in flight`]: many(() => twoScripts.execute(healthy)),
  };
}

/** The Python libraries, with our own beside them, each in a process of its own. */
async function pythonSchemes(url, calls) {
  const { sync, asyncio } = await tasksOf("redis_tasks");
  const tasks = [
    ...sync.map((name) => ["redis_tasks", "sync", name]),
    ...asyncio.filter((name) => name.startsWith("purgatory")).map((name) => ["redis_tasks", "asyncio", name]),
  ].filter(([, , name]) => !/bare|local/.test(name));
  const processes = tasks.map((task) => startPython(task, { BENCH_REDIS_URL: url }));
  const schemes = tasks.map(([, , name], i) => [
    `Python: ${name.replace(", guarded success", "")}`,
    () => processes[i].sample(calls),
  ]);
  return {
    schemes: Object.fromEntries(schemes),
    end: () => {
      for (const each of processes) each.end();
    },
  };
}

/** What the server spends on one call. */
async function costOf(client, run, calls) {
  const before = await spent(client);
  await run();
  const after = await spent(client);
  return Object.fromEntries(Object.entries(after).map(([what, amount]) => [what, (amount - before[what]) / calls]));
}
