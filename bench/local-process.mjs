// Measures one task in a process of its own: beside others, what V8 makes of a call depends on who was called before.
import { sample } from "./measure.mjs";
import { CLOSED, REFUSED } from "./tasks.mjs";

const call = await { ...CLOSED, ...REFUSED }[process.argv[2]]();

process.on("message", async (options) => process.send(await sample(call, options)));
// Opossum's timers would keep the process.
process.on("disconnect", () => process.exit());
