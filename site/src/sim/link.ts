/** A set-up as the part of an address behind `#`, and back. Whoever made it, and whatever became of it on the way: it is checked. */

import {
  type Act,
  checkAct,
  checkLoad,
  checkOutage,
  LOAD,
  type Load,
  MAX_ACTS,
  MAX_OUTAGES,
  type Outage,
  type Policy,
  type Setup,
  SetupError,
  valueIn,
} from "./setup";

/** A set-up, and the moment at which it is looked at, in milliseconds. */
export interface Shared {
  readonly setup: Setup;
  readonly at: number;
}

/** What reads such a link knows what the core calls wrong. */
export type CheckPolicy = (policy: Policy) => { readonly message: string } | undefined;

const VERSION = "1";
/** Beyond this it is no link of ours, and is not looked at. */
const MAX_LENGTH = 8_192;
const POLICY = "policy.";
const LOADED = "load.";
const BETWEEN = "~";

/** The link's part behind `#`: the version, what was given of the policy by name, what is not usual of the load, outages and acts in order. */
export function linkOf({ setup, at }: Shared): string {
  const parts: [string, string | number][] = [["v", VERSION]];
  for (const [name, value] of Object.entries(setup.policy).sort()) parts.push([POLICY + name, value]);
  for (const name of Object.keys(LOAD) as (keyof Load)[]) {
    if (setup.load[name] !== LOAD[name]) parts.push([LOADED + name, setup.load[name]]);
  }
  for (const { at, forMs, kind, share } of setup.outages)
    parts.push(["outage", [at, forMs, kind, share].join(BETWEEN)]);
  for (const { at, do: what } of setup.acts) parts.push(["act", [at, what].join(BETWEEN)]);
  parts.push(["at", at]);
  return new URLSearchParams(parts.map(([key, value]) => [key, String(value)])).toString();
}

/**
 * The set-up of a link.
 *
 * @param hash - what stands behind `#`, which may be left in front of it
 * @throws {@link SetupError} naming the part, what it says and what is valid
 */
export function setupOf(hash: string, check: CheckPolicy): Shared {
  const text = hash.replace(/^#/, "");
  if (text.length > MAX_LENGTH)
    throw new SetupError("v", `it is ${text.length} characters long; at most ${MAX_LENGTH} are valid`);
  const given = [...new URLSearchParams(text)];
  const single = new Map<string, string>();
  const outages: Outage[] = [];
  const acts: Act[] = [];
  for (const [key, value] of given) {
    if (key === "outage") outages.push(outageOf(value, outages.length));
    else if (key === "act") acts.push(actOf(value, acts.length));
    else if (single.has(key)) throw new SetupError(key, `\`${shown(key)}\` is given twice; give it once`);
    else single.set(key, value);
  }
  atMost("outage", outages, MAX_OUTAGES);
  atMost("act", acts, MAX_ACTS);
  const version = single.get("v");
  if (version !== VERSION)
    throw new SetupError("v", `\`v\` must be \`${VERSION}\`, got \`${shown(version ?? "nothing")}\``);
  single.delete("v");
  const options: [string, number | string][] = [];
  const load: Record<string, unknown> = { ...LOAD };
  let at: unknown = 0;
  for (const [key, value] of single) {
    if (key.startsWith(POLICY)) options.push([key.slice(POLICY.length), valueIn(value)]);
    else if (key.startsWith(LOADED) && Object.hasOwn(LOAD, key.slice(LOADED.length))) {
      load[key.slice(LOADED.length)] = valueIn(value);
    } else if (key === "at") at = valueIn(value);
    else throw new SetupError(key, `\`${shown(key)}\` is no part of a link; valid are ${PARTS.join(", ")}`);
  }
  const checked = checkLoad(load as Record<keyof Load, unknown>);
  if (typeof at !== "number" || !Number.isInteger(at) || at < 0 || at > checked.lengthMs) {
    throw new SetupError("at", `\`at\` must be an integer from 0 to ${checked.lengthMs}, got \`${shown(String(at))}\``);
  }
  // Of pairs, for a name may be one that an object has a meaning for.
  const policy = Object.fromEntries(options);
  const wrong = check(policy);
  if (wrong !== undefined) throw new SetupError("policy", wrong.message);
  return { setup: { policy, load: checked, outages, acts }, at };
}

const PARTS = ["v", "policy.*", ...Object.keys(LOAD).map((name) => LOADED + name), "outage", "act", "at"];

function outageOf(text: string, place: number): Outage {
  const [at, forMs, kind, share, ...more] = text.split(BETWEEN);
  const field = `outage ${place + 1}`;
  if (share === undefined || more.length > 0) {
    throw new SetupError(field, `\`${field}\` must be begin~length~hang or error~share, got \`${shown(text)}\``);
  }
  return checkOutage(field, { at: valueIn(at ?? ""), forMs: valueIn(forMs ?? ""), kind, share: valueIn(share) });
}

function actOf(text: string, place: number): Act {
  const [at, what, ...more] = text.split(BETWEEN);
  const field = `act ${place + 1}`;
  if (what === undefined || more.length > 0)
    throw new SetupError(field, `\`${field}\` must be time~what, got \`${shown(text)}\``);
  return checkAct(field, { at: valueIn(at ?? ""), do: what });
}

function atMost(field: string, given: readonly unknown[], most: number): void {
  if (given.length > most)
    throw new SetupError(field, `\`${field}\` may be given ${most} times, got \`${given.length}\``);
}

function shown(text: string): string {
  return text.length > 64 ? `${text.slice(0, 64)}...` : text;
}
