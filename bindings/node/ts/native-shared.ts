/** The shared half of the native module: bindings/node/src/shared.rs as the facade sees it. */

import type { NativeTransition } from "./native";
import type { Snapshot } from "./types";

declare module "./native" {
  interface Native {
    /** The version of the crate, which is that of the package. */
    version(): string;
    /** The stable codes of all errors, as the core knows them. */
    errorCodes(): string[];
    /** Whether a number is a moment: an integer, 0 to 2^52. */
    isMoment(now: number): boolean;
    /** The defaults of what a store reads itself. */
    defaults(): { prefix: string; storeTimeoutMs: number };
    /** Throws with code `name_invalid` unless the text can be the prefix of a store's keys. */
    checkPrefix(prefix: string): void;
    /** Builds a configuration from layers, the outermost first; throws with code `config_invalid`. */
    SharedConfig: new (
      layers: FieldValue[][],
    ) => SharedConfig;

    /**
     * The engine of one circuit. What is done to it takes the server that it lives on, and two times, each an integer from 0 to
     * 2^52; anything else throws. The host's clock only ever goes forward; the store's is -1 where the engine asks for it.
     */
    sharedCircuit(options: EngineOptions, config: SharedConfig): Engine;
    /** A server of the store, of which nothing is known. */
    sharedNode(): Server;
    /** The server's time at this moment of the host's clock; -1 as long as it was not asked. */
    sharedNodeNow(server: Server, host: number): number;
    /** Another server has taken over what this one had: whether listeners are to hear that it is no trouble any more. */
    sharedNodeReplaced(server: Server): boolean;
    /** The key that every command is routed by. */
    sharedRoutingKey(engine: Engine): string;
    /** The command that asks for a call; always the same. */
    sharedAdmitCommand(engine: Engine): string[];
    /** Whether the success of a call admitted while closed need not be settled. */
    sharedSuccessIsFree(engine: Engine): boolean;

    /**
     * Begins something. 0 or more: the answer, one of the low values plus flags. Negative: it is to be waited for, under the
     * ticket `n >> 1` of `n = -answer`; where n is even what is to be sent is the command that asks for a call, else it is
     * what {@link sharedAsk} says.
     */
    sharedAdmit(engine: Engine, server: Server, host: number, store: number): number;
    sharedSettle(
      ...args: [
        ...at: [engine: Engine, server: Server, host: number, store: number],
        kind: number,
        epoch: number,
        counter: number,
        outcome: number,
      ]
    ): number;
    sharedGetState(engine: Engine, server: Server, host: number, store: number): number;
    sharedReset(engine: Engine, server: Server, host: number, store: number): number;
    sharedTrip(engine: Engine, server: Server, host: number, store: number, forMs: FieldValue | undefined): number;
    sharedForceOpen(engine: Engine, server: Server, host: number, store: number): number;
    sharedDisable(engine: Engine, server: Server, host: number, store: number): number;

    /** What all others answer: one of the low values plus flags. */
    sharedAdmitUnasked(engine: Engine, host: number, store: number): number;
    sharedOnReading(
      ...args: [...at: [engine: Engine, server: Server, host: number, store: number], ticket: number, ...fields: Fields]
    ): number;
    sharedOnReply(
      ...args: [...at: [engine: Engine, server: Server, host: number, store: number], ticket: number, reply: number[]]
    ): number;
    sharedOnError(
      ...args: [...at: [engine: Engine, server: Server, host: number, store: number], ticket: number, error: string]
    ): number;
    sharedOnDeadline(engine: Engine, server: Server, host: number, store: number, ticket: number): number;

    /** What instances announce the circuits of a prefix on. */
    sharedChannel(prefix: string): string;
    /** Reads a message of that channel; null for what no script of ours has sent. */
    sharedAnnouncement(message: string): Announcement | null;
    /** Takes a message that is about this circuit: whether it is news. */
    sharedOnEvent(engine: Engine, server: Server, host: number, store: number, message: string): boolean;

    /**
     * Finds the circuits of a prefix; the second is what the client puts in front of keys by itself. Throws with code
     * `name_invalid`.
     */
    sharedListing(prefix: string, keyPrefix: string): Listing;
    /** The pattern for SCAN's MATCH. */
    sharedListingPattern(listing: Listing): string;
    /** The name of the circuit that a key belongs to; null if it is no circuit's. */
    sharedListingName(listing: Listing, key: string): string | null;
    /** Reads what masters of a cluster answer to `CLUSTER NODES`; null where one of them answers something else. */
    sharedSurvey(replies: string[]): Survey | null;
    /** Who has circuits, or may have, and is none of those that answered; null if nobody. */
    sharedSurveyMissing(survey: Survey): MissingMaster | null;
    /** Whether nothing has changed its place between these two. */
    sharedSurveyStoodStill(survey: Survey, before: Survey): boolean;

    /** Of the last answer: the numbers of its permit, the wait of its refusal (-1 = unknown), and what else it holds. */
    sharedPermitEpoch(engine: Engine): number;
    sharedPermitCounter(engine: Engine): number;
    sharedRefusalWait(engine: Engine): number;
    sharedTransition(engine: Engine): NativeTransition | null;
    sharedSnapshot(engine: Engine): Snapshot | null;
    /** What to send next; null when there is nothing more. */
    sharedAsk(engine: Engine): Ask | null;
    /** Whether there may ever be calls that need not be asked for. */
    sharedMayBeFree(engine: Engine): boolean;
    /**
     * What need not be asked, until the next call that takes a time: every request from when until when, on the host's clock,
     * is admitted, with a permit of that epoch and counter. Empty where every request is to be asked for; null where it is what
     * it was when this was called last.
     */
    sharedFree(engine: Engine): [] | [from: number, until: number, epoch: number, counter: number] | null;
  }
}

/** Who a circuit is, and how it is read. */
export interface EngineOptions {
  name: string;
  prefix: string;
  /** Drawn at random: two halves of 32 bits each. */
  nonce: [number, number];
  /** Who we are to others. */
  instance: string;
  /** Whether a plain read goes to the server that takes writes; else a script, which always does, reads for us. */
  readsPrimary: boolean;
}

/** A checked configuration. Made once per policy, taken by every circuit that runs by it. */
export type SharedConfig = { readonly __brand: "SharedConfig" };

/** What is read of a circuit for an admission, field by field; null for one that is not there. */
export type Fields = [string | null, string | null, string | null, string | null, string | null];

/** The engine of one circuit, handed to functions, which are cheaper to call than methods of a native class. */
export type Engine = { readonly __brand: "Engine" };

/** One server of the store as the engine knows it: what time it has, and whether it is worth asking. */
export type Server = { readonly __brand: "Server" };

/** What finds the circuits of a prefix among keys. */
export type Listing = { readonly __brand: "Listing" };

/** What the masters of a cluster say of their slots. */
export type Survey = { readonly __brand: "Survey" };

/** A master that was not asked. */
export interface MissingMaster {
  /** Where it is, as the cluster knows it. */
  address: string;
  /** A slot that leads to it. */
  slot: number;
}

/** What an instance has announced of a circuit. */
export interface Announcement {
  circuit: string;
  instance: string;
  transition: NativeTransition;
}

/** A command to send, and the ticket to hand its reply in with. */
export interface Ask {
  ticket: number;
  delayMs: number;
  /** Whether the reply is the fields of a reading. */
  reads: boolean;
  /** Whether it asks the server that has the circuit's keys for its time, and names no key itself. */
  asksTime: boolean;
  command: string[];
}

/** The low values of what the engine answers, and the flags: core/src/shared/code.rs says what each means. */
export const GRANTED_CLOSED = 1;
export const GRANTED_PROBE = 2;
export const GRANTED_BYPASS = 3;
export const GRANTED_UNASKED = 4;
export const GRANTED_LOCAL_CLOSED = 5;
export const GRANTED_LOCAL_PROBE = 6;
export const REFUSED_OPEN = 7;
export const REFUSED_HALF_OPEN = 8;
export const UNAVAILABLE = 9;
export const STALE = 10;
export const APPLIED = 11;
export const CONTROLLED = 12;
export const SNAPSHOT = 13;
export const JOIN = 14;
export const ANSWER = 31;
export const ASK = 1 << 5;
export const TRANSITION = 1 << 6;
export const CONFIG_MISMATCH = 1 << 7;
export const MALFORMED = 1 << 8;
export const COUNTED = 1 << 9;
export const OTHERS_ASK_AGAIN = 1 << 10;
export const OTHERS_GO_ON = 1 << 11;
export const DEGRADED = 1 << 12;
export const RESTORED = 1 << 13;
export const OF_CIRCUIT = 1 << 14;
export const NEW_PERMIT = 1 << 15;
