/** The real core, and small set-ups whose runs can be worked out by hand. */

import { readFileSync } from "node:fs";
import { Circuit, startCore } from "../src/core";
import { LOAD, type Load, type Policy, type Setup } from "../src/sim/setup";

startCore(new WebAssembly.Module(readFileSync(new URL("../../bindings/wasm/dist/objects.wasm", import.meta.url))));

export const make = (policy: Readonly<Record<string, unknown>>) => new Circuit(policy);

/** A set-up: what is not given is calm. */
export function setupWith(given: Partial<Omit<Setup, "load">> & { readonly load?: Partial<Load> } = {}): Setup {
  const policy: Policy = given.policy ?? {};
  const load: Load = { ...LOAD, failureShare: 0, ...given.load };
  return { policy, load, outages: given.outages ?? [], acts: given.acts ?? [] };
}
