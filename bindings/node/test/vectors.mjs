// Runs vectors on the Node package, as it was built: `node bindings/node/test/vectors.mjs [file or folder]`, by default
// tests/vectors. Once on the state machine alone (`node`), and once on a breaker with an injected clock (`node-hints`).
import * as switchgear from "switchgear";
import { runAll } from "./support/vectors.mjs";

process.exitCode = runAll("node", switchgear, process.argv[2]);
