/**
 * One shared circuit as this process sees it. The engine (core/src/shared) decides; this file carries what it asks to the
 * store, watches the deadlines, and hands the answers to whoever waits.
 */

import { type Clock, clockOf } from "./clock";
import { checkedName } from "./config";
import { fromNative, StoreError } from "./error";
import { tellHealth } from "./health";
import { type FieldValue, type NativeTransition, native, RELEASE, SUCCESS } from "./native";
import {
  ANSWER,
  type Announcement,
  APPLIED,
  ASK,
  type Ask,
  CONFIG_MISMATCH,
  CONTROLLED,
  COUNTED,
  DEGRADED,
  type Engine,
  GRANTED_CLOSED,
  GRANTED_LOCAL_PROBE,
  JOIN,
  MALFORMED,
  NEW_PERMIT,
  OF_CIRCUIT,
  OTHERS_ASK_AGAIN,
  OTHERS_GO_ON,
  REFUSED_HALF_OPEN,
  REFUSED_OPEN,
  RESTORED,
  type SharedConfig,
  SNAPSHOT,
  STALE,
  TRANSITION,
  UNAVAILABLE,
} from "./native-shared";
import { errorText, integers, reading } from "./replies";
import { type Admission, Grant, isProbe, NO_GRANT, Refused } from "./shared-permit";
import type { Connection, Place } from "./store";
import { type Answer, Caller, Talk } from "./talk";
import { holdProcess } from "./timers";
import type { Snapshot } from "./types";

/** Whether an outcome counted. An outcome that the store did not take counts where this process's own breaker took it. */
export type SharedSettlement = "applied" | "stale";

/** The manual operations. */
export type ControlOperation = "reset" | "trip" | "forceOpen" | "disable";

/** What a circuit is made of. */
export interface SharedParts {
  readonly name: string;
  readonly connection: Connection;
  readonly config: SharedConfig;
  /** Replaces the store's clock. */
  readonly clock: (() => number) | undefined;
  /** `instance`: who else has brought it about; null for this process. */
  readonly onTransition: (transition: NativeTransition, instance: string | null) => void;
}

export class SharedCircuit {
  readonly name: string;
  private readonly engine: Engine;
  private readonly native = native();
  private readonly connection: Connection;
  private readonly clock: Clock;
  private readonly onTransition: SharedParts["onTransition"];
  private readonly admitCommand: readonly string[];
  private readonly key: string;
  private readonly serverName: () => string | undefined;
  /** Whether the success of a call that was admitted while closed is nothing to anybody. */
  readonly successIsFree: boolean;
  private readonly mayBeFree: boolean;
  private lastPlace: Place | undefined;
  /** The admission that was begun last: the one that others join. */
  private flight: Talk | null = null;
  /** The permit of the closed period, the same for every call in it. */
  private closed: Grant = NO_GRANT;
  /** While `freeFrom <= host < freeUntil` every request is admitted, with this permit. */
  private freeFrom = 0;
  private freeUntil = 0;
  private free: Grant = NO_GRANT;

  /**
   * Asks nothing of the store.
   * @throws {@link NameError}
   */
  constructor({ name, connection, config, clock, onTransition }: SharedParts) {
    this.name = checkedName(name);
    this.connection = connection;
    this.clock = clock === undefined ? connection.clock : clockOf(clock);
    this.onTransition = onTransition;
    const { prefix, readsPrimary, instance } = connection;
    const options = { name, prefix, nonce: drawNonce(), instance, readsPrimary };
    this.engine = this.checked(() => this.native.sharedCircuit(options, config));
    this.admitCommand = this.native.sharedAdmitCommand(this.engine);
    this.key = this.native.sharedRoutingKey(this.engine);
    this.successIsFree = this.native.sharedSuccessIsFree(this.engine);
    this.mayBeFree = this.native.sharedMayBeFree(this.engine);
    this.serverName = connection.serverOf(this.key);
  }

  /** The permit of a call that need not be asked for at this moment; null where it has to be, or where the clock fails. */
  known(): Grant | null {
    if (this.freeUntil === 0) return null;
    try {
      const host = this.clock.host();
      return host < this.freeUntil && host >= this.freeFrom ? this.free : null;
    } catch {
      return null;
    }
  }

  /**
   * Asks for one call.
   * @throws {@link TimeError} if the clock is wrong, or what the clock throws
   */
  admit(): Admission | Promise<Admission> {
    const host = this.clock.host();
    if (host < this.freeUntil && host >= this.freeFrom) return this.free;
    const store = this.clock.store(host);
    const place = this.place();
    const begun = this.begin(() => this.native.sharedAdmit(this.engine, place.server, host, store));
    if (begun === JOIN && this.flight !== null) return this.join(this.flight);
    if (begun >= 0) return this.step(null, place, begun, null) as Admission;
    return new Promise((resolve) => this.takeOff(new Caller(this, resolve), place, host, begun));
  }

  /**
   * Settles a call; without a grant the plain rules of the current state apply. Neither throws nor rejects.
   *
   * @param counted - called when the outcome has counted, also after the deadline, and before anybody hears of a trip
   */
  settle(grant: Grant | null, outcome: number, counted?: () => void): SharedSettlement | Promise<SharedSettlement> {
    if (this.successIsFree && outcome === SUCCESS && grant?.kind === GRANTED_CLOSED) return "applied";
    const { kind, epoch, counter } = grant ?? NO_GRANT;
    const place = this.place();
    let host: number;
    let begun: number;
    try {
      host = this.clock.host();
      const store = this.clock.store(host);
      begun = this.begin(() =>
        this.native.sharedSettle(this.engine, place.server, host, store, kind, epoch, counter, outcome),
      );
    } catch (error) {
      // A broken clock: the next admission reports it to its caller, this caller has a result to get.
      this.report(error);
      return "stale";
    }
    if (begun < 0) return this.wait(place, host, begun, counted).then(settlement);
    if ((begun & COUNTED) !== 0) counted?.();
    return settlement(this.step(null, place, begun, null));
  }

  /** Reads the circuit; the error is why it cannot be read. */
  snapshot(): Promise<Snapshot | StoreError> {
    return this.ask((...at) => this.native.sharedGetState(...at)) as Promise<Snapshot | StoreError>;
  }

  /** Does a manual operation; the error is why it was not done. */
  async control(operation: ControlOperation, forMs?: FieldValue): Promise<StoreError | null> {
    const answer = await this.ask((...at) => this.native[CONTROLS[operation]](...at, forMs));
    return answer instanceof StoreError ? answer : null;
  }

  /**
   * Another instance, or another circuit object, has brought something about.
   * @internal
   */
  heard({ transition, instance }: Announcement, message: string): void {
    const host = this.later(0);
    const isNews = this.native.sharedOnEvent(this.engine, this.place().server, host, this.laterAtStore(host), message);
    this.refresh();
    if (isNews) this.onTransition(transition, instance);
  }

  /** What time it is, by the clock that circuits go by, as far as that is known; null where the clock fails. */
  now(): number | null {
    try {
      const host = this.clock.host();
      const store = this.clock.store(host);
      const now = store >= 0 ? store : this.native.sharedNodeNow(this.place().server, host);
      return Number.isFinite(now) ? (now < 0 ? host : now) : null;
    } catch {
      return null;
    }
  }

  /** The time that calls are measured by. */
  stopwatch(): number {
    return this.clock.host();
  }

  private async ask(begin: (...at: At) => number): Promise<Answer> {
    const host = this.clock.host();
    const store = this.clock.store(host);
    const place = this.place();
    const begun = this.begin(() => begin(this.engine, place.server, host, store));
    return begun < 0 ? this.wait(place, host, begun) : (this.step(null, place, begun, null) as Answer);
  }

  /** Calls the engine; whatever it does may change what need not be asked. */
  private begin(call: () => number): number {
    const answer = this.checked(call);
    this.refresh();
    return answer;
  }

  /** An admission is under way, and whoever comes meanwhile may join it. */
  private takeOff(caller: Caller, place: Place, host: number, begun: number): void {
    const talk = new Talk(this, place, host, ticketOf(begun), (answer) => caller.take(answer as Admission));
    this.flight = talk;
    this.connection.deadlines.start(talk);
    if (caller.dueAt === 0) caller.dueAt = talk.dueAt;
    if (begun % 2 === 0) this.send(talk, this.admitCommand, false);
    else this.sendAll(talk, this.asks());
  }

  /** A caller waits for what another one has asked. */
  private join(flight: Talk): Promise<Admission> {
    return new Promise((resolve) => {
      const caller = new Caller(this, resolve);
      caller.dueAt = this.connection.deadlines.due();
      flight.others.push(caller);
    });
  }

  /** Somebody waits for the answer of what has been begun. */
  private wait(place: Place, host: number, begun: number, counted?: () => void): Promise<Answer> {
    return new Promise((resolve) => {
      const talk = new Talk(this, place, host, ticketOf(begun), resolve, counted);
      this.connection.deadlines.start(talk);
      this.sendAll(talk, this.asks());
    });
  }

  /** Everything that the engine wants sent. */
  private asks(): Ask[] {
    const asks: Ask[] = [];
    for (let ask = this.native.sharedAsk(this.engine); ask !== null; ask = this.native.sharedAsk(this.engine))
      asks.push(ask);
    return asks;
  }

  /** Sends what was asked, of this conversation and of others that nobody waits for. */
  private sendAll(talk: Talk | null, asks: readonly Ask[], place = talk?.place): void {
    for (const ask of asks) {
      let of = talk;
      if (of === null || of.ticket !== ask.ticket) {
        of = new Talk(this, place as Place, this.later(0), ask.ticket, ignore);
        this.connection.deadlines.start(of);
      }
      this.sendLater(of, ask);
    }
  }

  private sendLater(talk: Talk, ask: Ask): void {
    talk.reads = ask.reads;
    if (ask.delayMs === 0) {
      this.send(talk, ask.command, ask.asksTime);
      return;
    }
    holdProcess(
      setTimeout(() => this.send(talk, ask.command, ask.asksTime), ask.delayMs),
      false,
    );
  }

  private send(talk: Talk, command: readonly string[], isBeside: boolean): void {
    const { connection, key } = this;
    try {
      const sent = isBeside ? connection.sendBeside(command, key) : connection.send(command, key);
      sent.then(
        (reply) => this.replied(talk, reply),
        (error) => this.failed(talk, error),
      );
    } catch (error) {
      this.failed(talk, error);
    }
  }

  private replied(talk: Talk, reply: unknown): void {
    const { engine, native } = this;
    const { server } = talk.place;
    const host = this.later(talk.startedAt);
    const store = this.laterAtStore(host);
    const fields = talk.reads ? reading(reply) : null;
    const code =
      fields === null
        ? native.sharedOnReply(engine, server, host, store, talk.ticket, integers(reply))
        : native.sharedOnReading(engine, server, host, store, talk.ticket, ...fields);
    this.refresh();
    const error = (code & MALFORMED) === 0 ? null : new StoreError("the reply is none that a command of ours gets");
    this.step(talk, talk.place, code, error);
  }

  private failed(talk: Talk, thrown: unknown): void {
    const text = errorText(thrown);
    const host = this.later(talk.startedAt);
    const store = this.laterAtStore(host);
    const code = this.native.sharedOnError(this.engine, talk.place.server, host, store, talk.ticket, text);
    this.refresh();
    this.step(talk, talk.place, code, new StoreError(text));
  }

  /** @internal */
  expired(talk: Talk): void {
    const host = this.later(talk.startedAt);
    const store = this.laterAtStore(host);
    const code = this.native.sharedOnDeadline(this.engine, talk.place.server, host, store, talk.ticket);
    this.refresh();
    this.step(talk, talk.place, code, new StoreError(`no answer within ${this.connection.timeoutMs} ms`));
  }

  /**
   * A caller who joined one flight after another has waited long enough. What he asked goes on without him.
   * @internal
   */
  overdue(caller: Caller): void {
    caller.answered = true;
    caller.resolve(this.unasked());
  }

  /**
   * Does what the engine says next, and gives its answer, if there is one. Everything is read before anybody is told, for a
   * listener may use the circuit.
   */
  private step(talk: Talk | null, place: Place, code: number, error: StoreError | null): Answer | undefined {
    if (error !== null) place.trouble = error;
    const asks = (code & ASK) === 0 ? NOTHING : this.asks();
    const transition = (code & TRANSITION) === 0 ? null : this.native.sharedTransition(this.engine);
    const answer = this.answer(code, place);
    if (talk !== null && answer !== undefined) this.connection.deadlines.end(talk);
    // Also one that nobody waits for is over when it needs nothing more.
    const asksAgain = talk !== null && asks.some(({ ticket }) => ticket === talk.ticket);
    if (talk !== null && !asksAgain) this.connection.deadlines.end(talk);
    if ((code & COUNTED) !== 0) talk?.counted?.();
    if (asks.length > 0) this.sendAll(talk, asks, place);
    if (transition !== null) this.onTransition(transition, null);
    if ((code & NEWS) !== 0) this.tell(code, place);
    if (error !== null && talk !== null && !asksAgain && !talk.reported) {
      talk.reported = true;
      this.report(error);
    }
    if (talk !== null && answer !== undefined) this.land(talk, answer, code);
    return answer;
  }

  private answer(code: number, place: Place): Answer | undefined {
    const { engine, native } = this;
    const low = code & ANSWER;
    if (low === 0) return undefined;
    if (low === GRANTED_CLOSED) {
      if ((code & NEW_PERMIT) !== 0) this.closed = this.granted(low);
      return this.closed;
    }
    if (low <= GRANTED_LOCAL_PROBE) return this.granted(low);
    switch (low) {
      case REFUSED_OPEN:
      case REFUSED_HALF_OPEN: {
        const wait = native.sharedRefusalWait(engine);
        return new Refused(low === REFUSED_OPEN ? "open" : "half-open", wait < 0 ? null : wait);
      }
      case UNAVAILABLE:
        return place.trouble ?? new StoreError("no answer");
      case STALE:
        return "stale";
      case APPLIED:
        return "applied";
      case CONTROLLED:
        return "done";
      case SNAPSHOT:
        return native.sharedSnapshot(engine) as Snapshot;
      default:
        return undefined;
    }
  }

  private granted(kind: number): Grant {
    return new Grant(kind, this.native.sharedPermitEpoch(this.engine), this.native.sharedPermitCounter(this.engine));
  }

  /** Hands out the answer, to whoever asked and to those who joined. */
  private land(talk: Talk, answer: Answer, code: number): void {
    talk.resolve(answer);
    const { others } = talk;
    if (others.length === 0) return;
    talk.others = [];
    if ((code & OTHERS_ASK_AGAIN) !== 0) for (const caller of others) this.askAgain(caller);
    else if ((code & OTHERS_GO_ON) !== 0) for (const caller of others) caller.take(this.unasked());
    else for (const caller of others) caller.take(answer as Admission);
  }

  /** The answer that was joined is nobody else's: the caller asks for himself, or joins the next who does. */
  private askAgain(caller: Caller): void {
    if (caller.answered) return;
    const place = this.place();
    const host = this.later(0);
    const begun = this.native.sharedAdmit(this.engine, place.server, host, this.laterAtStore(host));
    this.refresh();
    if (begun >= 0 && begun !== JOIN) {
      caller.take(this.step(null, place, begun, null) as Admission);
      return;
    }
    // However often he asks, he waits no longer than from when he came.
    this.connection.deadlines.resume(caller);
    if (begun < 0) this.takeOff(caller, place, host, begun);
    else this.flight?.others.push(caller);
  }

  /** What is decided without the store. */
  private unasked(): Admission {
    const place = this.place();
    const host = this.later(0);
    const code = this.native.sharedAdmitUnasked(this.engine, host, this.laterAtStore(host));
    this.refresh();
    return this.step(null, place, code, null) as Admission;
  }

  /**
   * An answer came for a caller who has gone on without it.
   * @internal
   */
  unwanted(admission: Admission): void {
    if (admission instanceof Grant && isProbe(admission)) void this.settle(admission, RELEASE);
  }

  /** @internal */
  forget(caller: Caller): void {
    this.connection.deadlines.end(caller);
  }

  private tell(code: number, place: Place): void {
    const at = this.now() ?? Date.now();
    const { events } = this.connection;
    if ((code & CONFIG_MISMATCH) !== 0) events.emit("configMismatch", { at, circuit: this.name });
    const circuit = (code & OF_CIRCUIT) === 0 ? {} : { circuit: this.name };
    if ((code & DEGRADED) !== 0) tellHealth(events, "degraded", { at, ...circuit, error: place.trouble });
    if ((code & RESTORED) !== 0) tellHealth(events, "restored", { at, ...circuit });
  }

  private report(error: unknown): void {
    this.connection.events.emit("storeError", { at: this.now() ?? Date.now(), circuit: this.name, error });
  }

  /** Keeps up with what need not be asked. */
  private refresh(): void {
    if (!this.mayBeFree) return;
    const free = this.native.sharedFree(this.engine);
    if (free === null) return;
    const [from = 0, until = 0, epoch = 0, counter = 0] = free;
    this.freeFrom = from;
    this.freeUntil = until;
    this.free = new Grant(GRANTED_CLOSED, epoch, counter);
  }

  /**
   * Where the circuit is now, or was when the client knew it last. Of a server that another has taken over from nobody would hear
   * that it is back: so it is no trouble any more.
   */
  private place(): Place {
    const before = this.lastPlace;
    const name = this.serverName();
    const place = name === undefined && before !== undefined ? before : this.connection.placeOf(name);
    this.lastPlace = place;
    if (before !== undefined && before !== place && this.native.sharedNodeReplaced(before.server)) {
      tellHealth(this.connection.events, "restored", { at: this.now() ?? Date.now() });
    }
    return place;
  }

  /** The host's time now, or the time given where the clock is wrong: its next reading for a caller will say so. */
  private later(fallback: number): number {
    if (!this.clock.isForeign) return this.clock.host();
    try {
      const now = this.clock.host();
      return this.isMoment(now) ? now : fallback;
    } catch {
      return fallback;
    }
  }

  /** The same for the store's. */
  private laterAtStore(host: number): number {
    if (!this.clock.isForeign) return this.clock.store(host);
    try {
      const now = this.clock.store(host);
      return now < 0 || this.isMoment(now) ? now : host;
    } catch {
      return host;
    }
  }

  private isMoment(now: number): boolean {
    return typeof now === "number" && this.native.isMoment(now);
  }

  private checked<T>(ask: () => T): T {
    try {
      return ask();
    } catch (error) {
      throw fromNative(error);
    }
  }
}

/** Where and when something is asked of an engine. */
type At = [engine: Engine, server: Place["server"], host: number, store: number];

const CONTROLS = {
  reset: "sharedReset",
  trip: "sharedTrip",
  forceOpen: "sharedForceOpen",
  disable: "sharedDisable",
} as const;

/** The flags that the store's listeners hear of. */
const NEWS = CONFIG_MISMATCH | DEGRADED | RESTORED;

const NOTHING: readonly Ask[] = [];

function ticketOf(begun: number): number {
  return Math.floor(-begun / 2);
}

function settlement(answer: Answer | undefined): SharedSettlement {
  return answer === "applied" ? "applied" : "stale";
}

function ignore(): void {
  // Nobody waits.
}

/**
 * Drawn anew for each circuit object, so that two of one name do not give their calls the same ids; so a worker thread and
 * a forked process have their own as well.
 */
function drawNonce(): [number, number] {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return [high, low];
}
