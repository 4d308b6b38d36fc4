// Builds bindings/component/dist/switchgear.wasm, the component. `node bindings/component/build.mjs`; Cargo skips what has not
// changed. WASM_TOOLCHAIN names the toolchain, as for bindings/wasm.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { built, builtForWasm } from "../wasm/cargo.mjs";
import { toolchain } from "../wasm/toolchain.mjs";

const dist = join(import.meta.dirname, "dist");

const chosen = toolchain();
const encoder = built(["-p", "switchgear-component-encoder"]).executable;
const { file } = builtForWasm(chosen, ["-p", "switchgear-component", "--profile", "component"]);
mkdirSync(dist, { recursive: true });
execFileSync(encoder, [file, join(dist, "switchgear.wasm")], { stdio: "inherit" });
