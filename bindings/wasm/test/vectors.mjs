// The same on WebAssembly, as pages load it: `node bindings/wasm/test/vectors.mjs [file or folder]`, runners `wasm` and
// `wasm-hints`.
import * as switchgear from "../../../dist/wasm/index.mjs";
import { runAll } from "../../node/test/support/vectors.mjs";

process.exitCode = runAll("wasm", switchgear, process.argv[2]);
