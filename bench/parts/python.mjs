// A guarded call in Python, in the process.
import { median, ratio } from "../measure.mjs";
import { measurePython } from "../python-process.mjs";

const SIZES = { full: { rounds: 31 }, quick: { rounds: 1, calls: 10 } };

export async function measure(report, size) {
  const { decorated, entered, awaited, refused } = await measurePython("tasks", SIZES[size]);
  report.times("In Python, a plain call", decorated, "ns", "bare call");
  report.times("In Python, `with`", entered, "ns", "switchgear, with");
  report.times("In Python, asyncio", awaited, "ns", "bare await");
  report.times("In Python, refused", refused, "ns", "switchgear, refused");
  for (const name of ["switchgear, decorator", "switchgear, execute"]) halfOfTheFastest(report, decorated, name);
  for (const name of ["switchgear, async decorator", "switchgear, execute_async"])
    halfOfTheFastest(report, awaited, name);
}

/** The promise that `name` takes at most half of what the fastest guarded call of another library in the table takes. */
function halfOfTheFastest(report, times, name) {
  const others = [...times.keys()].filter((other) => !/^(?:switchgear|bare)/.test(other));
  const [fastest] = others.sort((a, b) => median(times.get(a)) - median(times.get(b)));
  report.atMost(`Python: ${name.replace("switchgear, ", "")} / ${fastest}`, ratio(times, name, fastest), 1 / 2);
}
