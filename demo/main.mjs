// `make demo`: a failing dependency, guarded, first by one process, then by four that share one circuit.
// It checks what it claims, and exits with 1 if anything does not hold.
//
//   node demo/main.mjs [--without-breaker] [--not-shared]
//
// The options show the same traffic unguarded, or with a breaker per process. The claims then break.
import { parseArgs } from "node:util";
import { playAlone } from "./alone.mjs";
import { playFleet } from "./fleet.mjs";

const { values } = parseArgs({
  options: { "without-breaker": { type: "boolean" }, "not-shared": { type: "boolean" } },
});
const alone = await playAlone({ withoutBreaker: values["without-breaker"] });
const fleet = await playFleet({ notShared: values["not-shared"] });

console.log(alone && fleet ? "\nEvery claim holds." : "\nA claim is broken; see above.");
process.exitCode = alone && fleet ? 0 : 1;
