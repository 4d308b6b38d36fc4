/**
 * Which circuits there are in a store. A SCAN says nothing of what it has missed: so whether all masters were looked through, and
 * whether circuits changed their place meanwhile, is asked of the masters themselves.
 */

import type { Master } from "./clients";
import { readSnapshot } from "./control";
import { Deadline } from "./deadlines";
import { ConfigError, fromNative, StoreError, StoreUnavailableError } from "./error";
import { native } from "./native";
import type { Listing, Survey } from "./native-shared";
import { errorText } from "./replies";
import { SharedCircuit } from "./shared";
import type { SteeringPolicy } from "./shared-policy";
import { slotOf } from "./slots";
import type { Connection } from "./store";
import type { Snapshot } from "./types";

/** A circuit that the store knows. */
export interface ListedCircuit {
  /** Its name. */
  readonly name: string;
  /** What it looked like when it was read. */
  readonly snapshot: Readonly<Snapshot>;
}

/** The circuits under the store's prefix, sorted by name: all of them, or an error. */
export async function listCircuits(connection: Connection, policy: SteeringPolicy): Promise<ListedCircuit[]> {
  const { masters } = connection;
  if (masters === undefined) throw needsMasters();
  let names: Set<string>;
  try {
    names = await namesAt({ connection, masters });
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    connection.events.emit("storeError", { at: Date.now(), error });
    throw new StoreUnavailableError("*", error);
  }
  return eachOf([...names].sort(), async (name) => {
    const circuit = new SharedCircuit({ name, connection, ...policy, onTransition: ignore });
    return Object.freeze({ name, snapshot: Object.freeze(await readSnapshot(circuit)) });
  });
}

/** Where to look. */
interface Places {
  readonly connection: Connection;
  readonly masters: NonNullable<Connection["masters"]>;
}

/** The masters to look through, and what those of a cluster say of their slots. */
interface Look {
  readonly masters: readonly Master[];
  readonly survey: Survey | null;
}

/** The names of all circuits. Where something moves meanwhile, a second look finds it at its end: a key moves once at most. */
async function namesAt(places: Places): Promise<Set<string>> {
  const { prefix, keyPrefix } = places.connection;
  const listing = checked(() => native().sharedListing(prefix, keyPrefix));
  const names = new Set<string>();
  const first = await lookThrough(places, await look(places), listing, names);
  if (first.survey === null) return names;
  const second = await look(places);
  if (second.survey === null || native().sharedSurveyStoodStill(second.survey, first.survey)) return names;
  await lookThrough(places, second, listing, names);
  return names;
}

/** Adds the names of the circuits at these masters, or at those there are when none of them is connected anew meanwhile. */
async function lookThrough(places: Places, begun: Look, listing: Listing, names: Set<string>): Promise<Look> {
  let here = begun;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const renewals = watch(here.masters);
    try {
      await scanAll(places.connection, here.masters, listing, names);
    } finally {
      renewals.end();
    }
    if (renewals.count === 0) return here;
    here = await look(places);
  }
  throw new StoreError(
    "the connection was made anew again and again: the circuits could not be looked through in one go",
  );
}

/** The first may still be connecting. */
const ATTEMPTS = 4;

/** Counts how often masters are connected anew. Who is there then may be another server, and a cursor of SCAN means nothing to it. */
function watch(masters: readonly Master[]): { count: number; end(): void } {
  const count = () => {
    renewals.count += 1;
  };
  const each = (what: "on" | "off") => {
    for (const { connection } of masters) {
      if (typeof connection !== "object" || connection === null) continue;
      const emitter = connection as Record<string, unknown>;
      const tell = emitter[what];
      if (typeof tell === "function") for (const event of RENEWED) tell.call(emitter, event, count);
    }
  };
  const renewals = { count: 0, end: () => each("off") };
  each("on");
  return renewals;
}

/** What clients say when they are connected, and node-redis when a sentinel leads it to another master. */
const RENEWED = ["ready", "topology-change"];

/** All masters that there are. A client may not have heard of each: then it is led there, and asked again. */
async function look({ connection, masters }: Places): Promise<Look> {
  const { isCluster, timeoutMs } = connection;
  const until = performance.now() + timeoutMs;
  for (let attempt = 1; ; attempt++) {
    const known = await answer(connection, undefined, masters);
    if (known.length === 0) throw new StoreError("the client knows no server that takes writes");
    if (!isCluster) return { masters: known, survey: null };
    const replies = await Promise.all(known.map((master) => ask(connection, master, ["CLUSTER", "NODES"])));
    const survey = native().sharedSurvey(replies.map(String));
    if (survey === null) throw new StoreError("the reply is none that CLUSTER NODES gives");
    const missing = native().sharedSurveyMissing(survey);
    if (missing === null) return { masters: known, survey };
    if (attempt > 1 && performance.now() >= until)
      throw new StoreError(`the cluster has a master at ${missing.address} that the client does not know`);
    await lead(connection, missing.slot);
  }
}

/** Asks for a key in this slot, so that the client is told where the slot is; and gives it time to look around. */
async function lead(connection: Connection, slot: number): Promise<void> {
  const key = keyIn(slot, connection);
  if (key !== undefined) {
    const asked = answer(connection, undefined, () => connection.send(["HMGET", key, "state"], key));
    // What matters is the way there, not what comes of it.
    await asked.catch(() => undefined);
  }
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}

const PAUSE_MS = 10;

/** A key like that of a circuit, in this slot; none where all circuits are in another one, for the client's prefix has braces. */
function keyIn(slot: number, { prefix, keyPrefix }: Connection): string | undefined {
  for (let n = 0; n < KEYS_TO_TRY; n++) {
    const key = `{${prefix}${n}}`;
    if (slotOf(keyPrefix + key) === slot) return key;
  }
  return undefined;
}

/** Sixteen for each slot. */
const KEYS_TO_TRY = 16 * 16_384;

/** Adds the names of the circuits at these masters. */
async function scanAll(
  connection: Connection,
  masters: readonly Master[],
  listing: Listing,
  names: Set<string>,
): Promise<void> {
  const pattern = native().sharedListingPattern(listing);
  await eachOf(masters, async (master, goesOn) => {
    let cursor = "0";
    do {
      const reply = await ask(connection, master, ["SCAN", cursor, "MATCH", pattern, "COUNT", PAGE]);
      const [next, keys] = page(reply);
      for (const key of keys) {
        const name = native().sharedListingName(listing, key);
        if (name !== null) names.add(name);
      }
      cursor = next;
    } while (cursor !== "0" && goesOn());
  });
}

/** How many keys a server looks at for one SCAN: a fraction of a millisecond, for others wait meanwhile. */
const PAGE = "1000";

/** What SCAN answers, however the client decodes it. A key that is no UTF-8 is no circuit's. */
function page(reply: unknown): [cursor: string, keys: string[]] {
  const [cursor, keys] = Array.isArray(reply) ? reply : [];
  if (!/^\d+$/.test(String(cursor)) || !Array.isArray(keys)) throw new StoreError("the reply is none that SCAN gives");
  return [String(cursor), keys.flatMap(keyText)];
}

function keyText(key: unknown): string | [] {
  if (!(key instanceof Uint8Array)) return String(key);
  try {
    return UTF8.decode(key);
  } catch {
    return [];
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Asks one master. The error is a {@link StoreError} that names it. */
function ask(connection: Connection, { name, send }: Master, args: readonly string[]): Promise<unknown> {
  return answer(connection, name, () => send(args));
}

/** What comes of a question within the deadline. The error is a {@link StoreError}. */
function answer<T>(connection: Connection, whose: string | undefined, question: () => PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = (text: string) => reject(new StoreError(whose === undefined ? text : `${whose}: ${text}`));
    const waiting = new Waiting(() => fail(`no answer within ${connection.timeoutMs} ms`));
    const failed = (error: unknown) => {
      connection.deadlines.end(waiting);
      fail(errorText(error));
    };
    connection.deadlines.start(waiting);
    try {
      question().then((given) => {
        connection.deadlines.end(waiting);
        resolve(given);
      }, failed);
    } catch (error) {
      failed(error);
    }
  });
}

class Waiting extends Deadline {
  constructor(override readonly expired: () => void) {
    super();
  }
}

/** Does something with each, some at a time; the first that fails ends it. */
async function eachOf<T, R>(items: readonly T[], work: (item: T, goesOn: () => boolean) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  let next = 0;
  let failed = false;
  const goesOn = () => !failed;
  const worker = async () => {
    while (next < items.length && !failed) {
      const at = next++;
      done[at] = await work(items[at] as T, goesOn);
    }
  };
  const stopping = () =>
    worker().catch((error) => {
      failed = true;
      throw error;
    });
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, stopping));
  return done;
}

/** Enough to hide the way there and back, and few enough for each to be answered in time. */
const AT_ONCE = 64;

function needsMasters(): ConfigError {
  const valid = "have `masters()`, which gives an object with `command(args, key)` for each server that takes writes";
  return new ConfigError(`\`client\` must ${valid}, to list circuits`, "client", null);
}

function checked<T>(ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    throw fromNative(error);
  }
}

function ignore(): void {
  // Reading brings nothing about.
}
