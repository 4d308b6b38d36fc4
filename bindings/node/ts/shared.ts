/**
 * One shared circuit as this process sees it. The engine (core/src/shared) decides; this file carries what it asks to the
 * store, watches the deadline, and hands the answer to whoever waits.
 */

import { checkedName } from "./config";
import { Deadline } from "./deadlines";
import { fromNative, StoreError } from "./error";
import { type FieldValue, type NativeTransition, native, SUCCESS } from "./native";
import {
  ANSWER,
  APPLIED,
  ASK,
  type Ask,
  CONFIG_MISMATCH,
  CONTROLLED,
  COUNTED,
  type Engine,
  type Fields,
  GRANTED_BYPASS,
  GRANTED_CLOSED,
  GRANTED_PROBE,
  GRANTED_UNASKED,
  MALFORMED,
  REFUSED_HALF_OPEN,
  REFUSED_OPEN,
  type SharedConfig,
  SNAPSHOT,
  STALE,
  TRANSITION,
  UNAVAILABLE,
} from "./native-shared";
import { errorText, integers, reading } from "./replies";
import { type Admission, Grant, NO_GRANT, Refused } from "./shared-permit";
import type { Connection } from "./store";
import { holdProcess } from "./timers";
import type { Snapshot } from "./types";

/** Whether an outcome counted. An outcome that the store did not take did not. */
export type SharedSettlement = "applied" | "stale";

/** The manual operations. */
export type ControlOperation = "reset" | "trip" | "forceOpen" | "disable";

export class SharedCircuit {
  private readonly engine: Engine;
  private readonly native = native();
  private readonly admitCommand: readonly string[];
  private readonly key: string;
  private readonly successIsFree: boolean;

  /**
   * Asks nothing of the store.
   * @throws {@link NameError}
   */
  constructor(
    readonly name: string,
    private readonly connection: Connection,
    config: SharedConfig,
    private readonly clock: () => number,
    private readonly onTransition: (transition: NativeTransition) => void,
  ) {
    checkedName(name);
    const { prefix, readsPrimary } = connection;
    this.engine = this.checked(() => this.native.sharedCircuit(name, prefix, drawNonce(), readsPrimary, config));
    this.admitCommand = this.native.sharedAdmitCommand(this.engine);
    this.key = this.native.sharedRoutingKey(this.engine);
    this.successIsFree = this.native.sharedSuccessIsFree(this.engine);
  }

  /** Asks for one call. Rejects with {@link TimeError} if the clock is wrong, or with what the clock throws. */
  admit(): Promise<Admission> {
    return new Promise((resolve) => {
      const now = this.clock();
      if (!this.isMoment(now)) this.checked(() => this.native.sharedAdmit(this.engine, now));
      const talk = new Conversation(this, now, UNTOLD, true, resolve as (answer: Answer) => void);
      this.connection.deadlines.start(talk);
      this.send(talk, this.admitCommand);
    });
  }

  /**
   * Settles a call; without a grant the plain rules of the current state apply. Neither throws nor rejects.
   *
   * @param counted - called when the outcome has counted, also after the deadline, and before anybody hears of a trip
   */
  settle(grant: Grant | null, outcome: number, counted?: () => void): SharedSettlement | Promise<SharedSettlement> {
    if (this.successIsFree && outcome === SUCCESS && grant?.kind === GRANTED_CLOSED) return "applied";
    const { kind, epoch, counter } = grant ?? NO_GRANT;
    let now: number;
    let code: number;
    try {
      now = this.clock();
      code = this.checked(() => this.native.sharedSettle(this.engine, now, kind, epoch, counter, outcome));
    } catch (error) {
      // A broken clock: the next admission reports it to its caller, this caller has a result to get.
      this.report(error);
      return "stale";
    }
    if ((code & ASK) === 0) return code === APPLIED ? "applied" : "stale";
    return this.converse(now, counted).then((answer) => (answer === "applied" ? "applied" : "stale"));
  }

  /** Reads the circuit. */
  async snapshot(): Promise<Snapshot | StoreError> {
    const now = this.clock();
    this.checked(() => this.native.sharedGetState(this.engine, now));
    return (await this.converse(now)) as Snapshot | StoreError;
  }

  /** Does a manual operation; the error is why it was not done. */
  async control(operation: ControlOperation, forMs?: FieldValue): Promise<StoreError | null> {
    const now = this.clock();
    this.checked(() => this.native[CONTROLS[operation]](this.engine, now, forMs));
    const answer = await this.converse(now);
    return answer instanceof StoreError ? answer : null;
  }

  /** The command that the engine asked for last, and what comes of it. */
  private converse(now: number, counted?: () => void): Promise<Answer> {
    const ask = this.native.sharedAsk(this.engine) as Ask;
    return new Promise((resolve) => {
      const talk = new Conversation(this, now, ask.ticket, false, resolve, counted);
      this.connection.deadlines.start(talk);
      this.send(talk, ask.command);
    });
  }

  private send(talk: Conversation, command: readonly string[]): void {
    try {
      this.connection.send(command, this.key).then(
        (reply) => this.replied(talk, reply),
        (error) => this.failed(talk, error),
      );
    } catch (error) {
      this.failed(talk, error);
    }
  }

  private replied(talk: Conversation, reply: unknown): void {
    const fields = talk.reads ? reading(reply) : null;
    if (fields !== null) {
      this.read(talk, fields);
      return;
    }
    const now = this.later(talk.startedAt);
    const code = this.native.sharedOnReply(this.engine, now, this.told(talk), integers(reply));
    if ((code & COUNTED) !== 0) talk.counted?.();
    this.follow(talk, code);
  }

  private read(talk: Conversation, fields: Fields): void {
    const now = this.later(talk.startedAt);
    if (talk.ticket !== UNTOLD) {
      this.follow(talk, this.native.sharedOnReading(this.engine, now, talk.ticket, fields));
      return;
    }
    const answer = this.native.sharedAdmitted(this.engine, now, fields[0], fields[1], fields[2], fields[3], fields[4]);
    if (answer < 0) {
      this.follow(talk, -1 - answer);
    } else {
      this.connection.deadlines.end(talk);
      talk.resolve(new Grant(GRANTED_CLOSED, answer, 0));
    }
  }

  private follow(talk: Conversation, code: number): void {
    const error = (code & MALFORMED) === 0 ? null : new StoreError("the reply is none that a command of ours gets");
    this.step(talk, code, error);
  }

  private failed(talk: Conversation, thrown: unknown): void {
    const text = errorText(thrown);
    const code = this.native.sharedOnError(this.engine, this.later(talk.startedAt), this.told(talk), text);
    this.step(talk, code, new StoreError(text));
  }

  /** @internal */
  expired(talk: Conversation): void {
    const error = new StoreError(`no answer within ${this.connection.timeoutMs} ms`);
    this.step(talk, this.native.sharedOnDeadline(this.engine, this.told(talk)), error);
  }

  /** The ticket of a conversation; the engine hears of it now at the latest. */
  private told(talk: Conversation): number {
    if (talk.ticket === UNTOLD) talk.ticket = this.native.sharedAdmit(this.engine, talk.startedAt);
    return talk.ticket;
  }

  /** Does what the engine says next. Everything is read before anybody is told, for a listener may use the circuit. */
  private step(talk: Conversation, code: number, error: StoreError | null): void {
    const ask = (code & ASK) === 0 ? null : this.native.sharedAsk(this.engine);
    const transition = (code & TRANSITION) === 0 ? null : this.native.sharedTransition(this.engine);
    const answer = this.answer(code & ANSWER, error);
    if (answer !== undefined) this.connection.deadlines.end(talk);
    const asksAgain = ask !== null && (talk.ticket === UNTOLD || talk.ticket === ask.ticket);
    if (asksAgain) {
      talk.ticket = ask.ticket;
      talk.reads = ask.reads;
      this.sendLater(talk, ask);
    } else if (ask !== null) {
      // Something to tidy up, for which nobody waits.
      this.sendLater(new Conversation(this, talk.startedAt, ask.ticket, false, ignore), ask);
    }
    if (transition !== null) this.onTransition(transition);
    if ((code & CONFIG_MISMATCH) !== 0) {
      this.connection.events.emit("configMismatch", { at: this.later(talk.startedAt), circuit: this.name });
    }
    if (error !== null && !asksAgain && !talk.reported) {
      talk.reported = true;
      this.report(error);
    }
    if (answer !== undefined) talk.resolve(answer);
  }

  private answer(low: number, error: StoreError | null): Answer | undefined {
    const { engine, native } = this;
    switch (low) {
      case GRANTED_CLOSED:
      case GRANTED_PROBE:
      case GRANTED_BYPASS:
      case GRANTED_UNASKED:
        return new Grant(low, native.sharedPermitEpoch(engine), native.sharedPermitCounter(engine));
      case REFUSED_OPEN:
      case REFUSED_HALF_OPEN: {
        const wait = native.sharedRefusalWait(engine);
        return new Refused(low === REFUSED_OPEN ? "open" : "half-open", wait < 0 ? null : wait);
      }
      case UNAVAILABLE:
        return error ?? new StoreError("no answer");
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

  private sendLater(talk: Conversation, ask: Ask): void {
    if (ask.delayMs === 0) this.send(talk, ask.command);
    else
      holdProcess(
        setTimeout(() => this.send(talk, ask.command), ask.delayMs),
        false,
      );
  }

  private report(error: unknown): void {
    this.connection.events.emit("storeError", { at: this.later(0), circuit: this.name, error });
  }

  /** The time now, or the time given where the clock is wrong: its next reading for a caller will say so. */
  private later(fallback: number): number {
    try {
      const now = this.clock();
      return this.isMoment(now) ? now : fallback;
    } catch {
      return fallback;
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

type Answer = Admission | Snapshot | "applied" | "stale" | "done";

/** Somebody who waits for an answer, at most until the deadline. What the store says later still goes to the engine. */
class Conversation extends Deadline {
  /** Whether the store's listeners know of its trouble. */
  reported = false;

  constructor(
    private readonly circuit: SharedCircuit,
    readonly startedAt: number,
    /** What the engine knows it by. */
    public ticket: number,
    /** Whether the reply to come is a reading. */
    public reads: boolean,
    readonly resolve: (answer: Answer) => void,
    /** Called when the outcome that this tells has counted. */
    readonly counted?: () => void,
  ) {
    super();
  }

  override expired(): void {
    this.circuit.expired(this);
  }
}

/**
 * An admission of which the engine has not been told: nearly every one is answered by its first reply, and the two are told
 * in one. The command writes nothing, so it is not late then.
 */
const UNTOLD = 0;

const CONTROLS = {
  reset: "sharedReset",
  trip: "sharedTrip",
  forceOpen: "sharedForceOpen",
  disable: "sharedDisable",
} as const;

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
