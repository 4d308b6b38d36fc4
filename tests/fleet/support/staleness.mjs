// How stale an answer can be: processes of each kind share circuits, open and close them for each other, and ask, in a random order.
// Time is made up, and stands still while anything is done, so that nothing depends on how fast anybody is. What an answer is late by
// is the time since the circuit became what it does not say.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { startServer } from "../../support/servers.mjs";
import { startProxy } from "./proxy.mjs";
import { until } from "./until.mjs";
import { hire, KINDS } from "./workers.mjs";

/** So long at most a reply is under way, in made-up milliseconds: the deadline that a store has by default. */
const DEADLINE_MS = 100;

/** Nothing ends by itself while this is played. */
const POLICY = { failureThreshold: 1, openDurationMs: 1_000_000_000 };

/** On the host's own clock: it never passes. */
const STORE = { timeoutMs: 60_000 };

/** Who can hear what others announce; the others announce all the same. */
const HEARERS = KINDS;

/** For how long a process does not ask, in milliseconds, while a circuit is open and while it is closed; `events`: whether it hears. */
const MODES = [
  { name: "strict: `openCacheMs: 0`", open: 0, closed: 0 },
  { name: "as it comes: `openCacheMs: 1000`", open: 1_000, closed: 0 },
  { name: "`closedCacheMs: 300`", open: 1_000, closed: 300 },
  { name: "`closedCacheMs: 1000`, `events: true`", open: 1_000, closed: 1_000, events: "heard" },
  { name: "`closedCacheMs: 300`, `events: true`, but every message is lost", open: 1_000, closed: 300, events: "lost" },
];

/** What each mode is called. */
export const MODE_NAMES = MODES.map(({ name }) => name);

const START = 1_700_000_000_000;

/** By how much time goes on: within deadlines and caches, up to their very end, and past them. */
const ticks = ({ open, closed }) => [
  1,
  20,
  ...[DEADLINE_MS, open, closed].flatMap((ms) => [ms - 21, ms - 2, ms - 1, ms]),
];

/** How many steps are taken at one circuit before it is another one's turn: so many as make a story of it. */
const STEPS_EACH = 20;

/**
 * Plays so many steps, the same for the same seed.
 *
 * Gives for each mode how late an answer may be, and by kind of process the latest that were seen: those that took a circuit for
 * open which another process had closed, and for closed which it had opened. One that is too late is an AssertionError.
 */
export async function playStaleness({ seed, steps }) {
  const random = numbers(seed);
  const oneOf = (list) => list[Math.floor(random() * list.length)];
  const server = await startServer();
  const workers = await Promise.all(KINDS.map((kind) => hire(kind, kind)));
  const circuits = [];
  let now = START;
  try {
    for (const [index, mode] of MODES.entries()) circuits.push(await openCircuit(index, mode, workers, server.port));
    const pass = async (ms) => {
      now += ms;
      await Promise.all(workers.map((worker) => worker.do("clock", { to: now })));
    };
    for (let step = 0; step < steps; step++) {
      const circuit = circuits[Math.floor(step / STEPS_EACH) % circuits.length];
      const choice = random();
      if (choice < 0.35) {
        // What is under way has until the deadline.
        const left = circuits.flatMap(({ seats }) => seats).map(({ heldAt }) => heldAt + DEADLINE_MS - now);
        const most = Math.min(...left.filter(Number.isFinite), Number.MAX_SAFE_INTEGER);
        const ms = oneOf(ticks(circuit.mode).filter((tick) => tick > 0));
        await pass(Math.min(ms, most));
        if (most <= 0) await releaseAll(circuits, now);
      } else if (choice < 0.5) {
        const seat = oneOf(circuit.seats);
        if (!seat.isHeld()) await circuit.change(seat, oneOf, now);
      } else if (choice < 0.6) {
        const asker = oneOf(circuit.seats.filter(({ asks }) => asks));
        if (asker.isHeld()) await asker.release(now);
        else await asker.askHeld(now);
      } else {
        await Promise.all(circuit.seats.map((each) => each.ask(now)));
      }
    }
    await releaseAll(circuits, now);
    return circuits.map(({ mode, seats }) => ({
      name: mode.name,
      isHeard: mode.events === "heard",
      most: bounds(mode),
      seen: seats.filter(({ asks }) => asks).map(({ kind, asked, late }) => ({ kind, asked, ...late })),
    }));
  } catch (error) {
    error.message = `seed ${seed}: ${error.message}`;
    throw error;
  } finally {
    for (const { seats } of circuits) for (const { proxy } of seats) proxy.stop();
    await Promise.all(workers.map((worker) => worker.leave()));
    await server.stop();
  }
}

/** How late an answer may be: the cache and one deadline; where changes are heard, the deadline alone. */
function bounds({ open, closed, events }) {
  const cache = (ms) => (events === "heard" ? 0 : ms) + DEADLINE_MS;
  return { open: cache(open), closed: cache(closed) };
}

const releaseAll = (circuits, now) =>
  Promise.all(circuits.flatMap(({ seats }) => seats.filter((seat) => seat.isHeld()).map((seat) => seat.release(now))));

/** A circuit, closed, with a seat at it for each process. */
async function openCircuit(index, mode, workers, port) {
  const as = `mode ${index}`;
  const circuit = new Circuit(mode);
  for (const worker of workers) {
    const proxy = await startProxy(port);
    const hears = mode.events !== undefined && HEARERS.includes(worker.kind);
    circuit.seats.push(new Seat(circuit, worker, as, proxy, hears));
    await worker.do("open", {
      as,
      who: worker.kind,
      circuit: as,
      port: proxy.port,
      store: { ...STORE, ...(hears && { events: true }) },
      policy: { ...POLICY, openCacheMs: mode.open, closedCacheMs: mode.closed },
      clock: START,
    });
  }
  if (mode.events) await circuit.listen();
  if (mode.events === "lost") for (const { proxy } of circuit.seats) proxy.loseMessages();
  return circuit;
}

/** A circuit, and what it has been since when. */
class Circuit {
  seats = [];
  isOpen = false;
  since = START;

  constructor(mode) {
    this.mode = mode;
  }

  /** Opens it where it is closed and closes it where it is open, by this process. */
  async change(seat, oneOf, now) {
    await seat.do("control", { operation: this.isOpen ? "reset" : oneOf(["trip", "forceOpen", "recordFailure"]) });
    this.isOpen = !this.isOpen;
    this.since = now;
    if (this.mode.events === "heard") await this.tell(seat);
  }

  /** Until all who hear have heard what this process has done. A message that is held is heard when it comes. */
  async tell(seat) {
    const hearers = this.seats.filter((other) => other !== seat && other.hears);
    for (const hearer of hearers) hearer.toHear += 1;
    await Promise.all(hearers.map((hearer) => hearer.isHeld() || hearer.untilHeard()));
  }

  /** Until each is subscribed: what was announced before nobody hears. */
  async listen() {
    // In Python a process begins to hear with its first question.
    for (const seat of this.seats) await seat.do("snapshot");
    for (const speaker of [this.seats.at(-1), this.seats[0]]) {
      const hearers = this.seats.filter(({ hears }) => hears).filter((seat) => seat !== speaker);
      const before = new Map(hearers.map((hearer) => [hearer, hearer.heard().length]));
      const news = (hearer) => hearer.heard().slice(before.get(hearer));
      const speak = (operation) => speaker.do("control", { operation });
      const untilAll = (what, isSo) => until(what, async () => hearers.every(isSo) || sleep(5, false));
      await until("each hears", async () => {
        await speak("trip");
        await speak("reset");
        return hearers.every((hearer) => news(hearer).length > 0) || sleep(5, false);
      });
      // They come in order: when these have come, all have.
      await speak("recordFailure");
      await untilAll("each hears of the trip", (hearer) => news(hearer).some(({ reason }) => reason === "threshold"));
      await speak("reset");
      await untilAll("each hears of the reset", (hearer) => news(hearer).at(-1).toState === "closed");
    }
    for (const seat of this.seats) seat.toHear = seat.heard().length;
  }
}

/** A process at a circuit, with a connection of its own. */
class Seat {
  /** How late its answers have been, of a circuit that was open, and of one that was closed. */
  late = { open: 0, closed: 0 };
  asked = 0;
  /** How many changes of others it has to hear of. */
  toHear = 0;
  /** Since when its replies are held. */
  heldAt = Number.NaN;
  /** Who waits for them. */
  waiting = [];

  constructor(circuit, worker, as, proxy, hears) {
    Object.assign(this, { circuit, worker, as, proxy, hears, kind: worker.kind });
    /** Where changes are to be heard, those who cannot hear only make them. */
    this.asks = hears || circuit.mode.events === undefined;
  }

  do(operation, options) {
    return this.worker.do(operation, { as: this.as, ...options });
  }

  isHeld() {
    return this.waiting.length > 0;
  }

  /** The changes of others that it has been told of. */
  heard() {
    return this.worker.changes.filter(({ circuit, source }) => circuit === this.as && source === "remote");
  }

  untilHeard() {
    return until(`${this.kind} hears of ${this.as}`, () => this.heard().length >= this.toHear || sleep(1, false));
  }

  /** Asks, and looks how late the answer is. One that has to wait for a reply that is held joins who waits already. */
  async ask(now) {
    if (!this.asks) return;
    const answer = this.do("ask");
    if (this.isHeld()) this.waiting.push(answer);
    else this.look(await answer, now);
  }

  /** Asks, and holds the reply, if there is one to come. */
  async askHeld(now) {
    this.proxy.hold();
    const answer = this.do("ask");
    const isAnswered = answer.then(() => true);
    if (await Promise.race([isAnswered, this.proxy.held().then(() => false)])) {
      this.proxy.release();
      this.look(await answer, now);
    } else {
      this.waiting = [answer];
      this.heldAt = now;
    }
  }

  async release(now) {
    this.proxy.release();
    for (const answer of await Promise.all(this.waiting)) this.look(answer, now);
    this.waiting = [];
    this.heldAt = Number.NaN;
    if (this.circuit.mode.events === "heard") await this.untilHeard();
  }

  look(isAdmitted, now) {
    this.asked += 1;
    const { mode, isOpen, since } = this.circuit;
    if (isAdmitted === !isOpen) return;
    const taken = isAdmitted ? "closed" : "open";
    const late = now - since;
    const most = bounds(mode)[taken];
    assert.ok(
      late <= most,
      `${mode.name}, ${this.kind}: took the circuit for ${taken} ${late} ms later, at most ${most}`,
    );
    this.late[taken] = Math.max(this.late[taken], late);
  }
}

/** Random numbers from 0 to 1, the same for the same seed (a multiplicative generator, by Park and Miller). */
function numbers(seed) {
  let state = 1 + (seed % 2_147_483_646);
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
