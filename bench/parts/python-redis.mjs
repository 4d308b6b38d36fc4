// A guarded call through Redis in Python, with redis-py: switchgear beside a bare EVALSHA and the libraries that keep a circuit there.
import { MANY } from "../in-flight.mjs";
import { ratio } from "../measure.mjs";
import { measurePython } from "../python-process.mjs";
import { withServer } from "../server.mjs";

const SIZES = { full: { rounds: 31, calls: 1000 }, quick: { rounds: 1, calls: 5 } };

const BARE = "bare EVALSHA, one key";
const SUCCESS = "switchgear, guarded success";
const TWO_SCRIPTS = "two scripts, guarded success";
const [CACHED, LOCAL] = ["switchgear, closed_cache_ms", "switchgear, local"];

export async function measure(report, size) {
  await withServer(async (client, url) => {
    const [, pid] = /^process_id:(\d+)/m.exec(await client.info("server"));
    // redis-py takes a connection for each command in flight.
    const environment = {
      BENCH_REDIS_URL: `${url}?max_connections=${2 * MANY}`,
      BENCH_IN_FLIGHT: String(MANY),
      BENCH_SERVER_PID: pid,
    };
    const { sync, asyncio, crowd } = await measurePython("redis_tasks", { ...SIZES[size], environment });
    report.times("In Python through Redis, threads", sync, "us", BARE);
    report.times("In Python through Redis, asyncio", asyncio, "us", BARE);
    report.times(`In Python, asyncio, ${MANY} in flight`, crowd, "us", BARE);
    report.atMost("Python: guarded success / bare EVALSHA", ratio(sync, SUCCESS, BARE), 1.15);
    report.atMost("Python, asyncio: guarded success / bare EVALSHA", ratio(asyncio, SUCCESS, BARE), 1.15);
    report.atLeast(`Python: two scripts / ours, ${MANY} in flight`, ratio(crowd, TWO_SCRIPTS, SUCCESS), 10);
    report.atMost("Python: known to be closed / local breaker", ratio(sync, CACHED, LOCAL), 2);
    report.atMost("Python, asyncio: known to be closed / local breaker", ratio(asyncio, CACHED, LOCAL), 2);
    // Beside who asks Redis at each call, and beside who has asked it within the second.
    const noDearer = (times, name, other) =>
      report.atMost(`Python: ${name.replace("switchgear, ", "")} / ${other}`, ratio(times, name, other), 1);
    noDearer(sync, SUCCESS, "pybreaker 1");
    noDearer(asyncio, SUCCESS, "purgatory 3");
    if (sync.has("interlock-cb 2")) noDearer(sync, CACHED, "interlock-cb 2");
  });
}
