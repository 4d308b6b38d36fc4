// A guarded call through Redis, one at a time and many at once: switchgear beside the least that any script costs, and beside the
// scheme of two scripts a call; and beside a local breaker, where nothing is asked.
import { CircuitBreaker } from "switchgear";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { inFlight, MANY } from "../in-flight.mjs";
import { measure as measureRounds, ratio, sample } from "../measure.mjs";
import { PATIENT, spent, withServer } from "../server.mjs";
import { failing, HOUR_MS, healthy, refusal } from "../tasks.mjs";
import { twoScriptsBreaker } from "../two-scripts.mjs";

const SIZES = {
  full: { rounds: 101, samples: 5, sequential: 100, crowd: 10 * MANY, known: 1000, refused: 100, counted: 1000 },
  quick: { rounds: 1, samples: 1, sequential: 5, crowd: MANY, known: 10, refused: 5, counted: 10 },
};

const BARE = "bare EVALSHA, one key";
const SUCCESS = "switchgear, guarded success";
const TWO_SCRIPTS = "two scripts, guarded success";

export async function measure(report, size) {
  const { rounds, samples, sequential, crowd, known, refused, counted } = SIZES[size];
  await withServer(async (client) => {
    const { alone, together, closed, open, shared } = await callsOf(client);
    /** A table is measured by itself, after a warm-up. */
    const measured = async (calls, sampled) => {
      const samplers = Object.fromEntries(Object.entries(calls).map(([name, call]) => [name, () => sampled(call)]));
      await measureRounds(samplers, size === "full" ? 3 : 0);
      return measureRounds(samplers, rounds);
    };
    const oneAtATime = (batch) => (call) => sample(call, { samples, batch });
    const manyAtOnce = async (call) => {
      const all = () => inFlight(call, { width: MANY, calls: crowd });
      return (await sample(all, { samples, batch: 1 })) / crowd;
    };

    const times = await measured(alone, oneAtATime(sequential));
    report.times("Through Redis, one call at a time", times, "us", BARE);
    const crowded = await measured(together, manyAtOnce);
    report.times(`Through Redis, ${MANY} calls in flight`, crowded, "us", BARE);
    const knownClosed = await measured(closed, oneAtATime(known));
    report.times("Known to be closed", knownClosed, "ns", "local breaker");
    const knownOpen = await measured(open, oneAtATime(refused));
    report.times("Known to be open", knownOpen, "ns", "local breaker, refused");

    report.atMost("admission / bare EVALSHA", ratio(times, "switchgear, admission", BARE), 1.15);
    report.atMost("guarded success / bare EVALSHA", ratio(times, SUCCESS, BARE), 1.15);
    report.atLeast(`two scripts / ours, ${MANY} in flight`, ratio(crowded, TWO_SCRIPTS, SUCCESS), 10);
    report.atMost(
      "known to be closed / local breaker",
      ratio(knownClosed, "switchgear, closedCacheMs", "local breaker"),
      2,
    );
    report.atMost("commands per guarded success", await commandsPer(client, counted, () => shared.execute(healthy)), 1);
  });
}

/** What is measured side by side, by table. */
async function callsOf(client) {
  const store = new RedisStore(client, PATIENT);
  const breaker = (name, policy) => new DistributedCircuitBreaker(name, store, policy);
  const shared = breaker("bench");
  const rate = breaker("rate", { tripOn: "rate" });
  const cached = breaker("cached", { closedCacheMs: 1000 });
  const local = new CircuitBreaker("local");
  const twoScripts = await twoScriptsBreaker(client, "bench");
  const bare = await client.script("LOAD", "return 1");
  const [asking, knowing, localOpen] = [
    breaker("asking", { openDurationMs: HOUR_MS, openCacheMs: 0 }),
    breaker("knowing", { openDurationMs: HOUR_MS }),
    new CircuitBreaker("local", { openDurationMs: HOUR_MS }),
  ];
  await Promise.all([asking, knowing, localOpen].map((each) => each.trip()));
  const refusalOf = (each) =>
    refusal(
      () => each.execute(failing),
      (error) => error.code === "circuit_open",
    );

  const together = {
    [BARE]: () => client.evalsha(bare, 1, "{cb:bench}", Date.now()),
    [SUCCESS]: () => shared.execute(healthy),
    [TWO_SCRIPTS]: () => twoScripts.execute(healthy),
  };
  return {
    shared,
    together,
    alone: {
      [BARE]: together[BARE],
      "switchgear, admission": () => shared.acquire(),
      [SUCCESS]: together[SUCCESS],
      "switchgear, guarded success (rate)": () => rate.execute(healthy),
      "switchgear, refused (openCacheMs: 0)": refusalOf(asking),
      [TWO_SCRIPTS]: together[TWO_SCRIPTS],
    },
    closed: {
      "local breaker": () => local.execute(healthy),
      "switchgear, closedCacheMs": () => cached.execute(healthy),
    },
    open: {
      "local breaker, refused": refusalOf(localOpen),
      "switchgear, refused (openCacheMs)": refusalOf(knowing),
    },
  };
}

async function commandsPer(client, calls, call) {
  const before = await spent(client);
  for (let i = 0; i < calls; i++) await call();
  return ((await spent(client)).commands - before.commands) / calls;
}
