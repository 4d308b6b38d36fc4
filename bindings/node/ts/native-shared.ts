/** The shared half of the native module: bindings/node/src/shared.rs as the facade sees it. */

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

    /** The engine of one circuit. Every `now` is checked: anything but an integer, 0 to 2^52, throws. */
    sharedCircuit(
      name: string,
      prefix: string,
      nonce: [number, number],
      readsPrimary: boolean,
      config: SharedConfig,
    ): Engine;
    /** The key that every command is routed by. */
    sharedRoutingKey(engine: Engine): string;
    /** The command that asks for a call; always the same. */
    sharedAdmitCommand(engine: Engine): string[];
    /** Whether the success of a call admitted while closed need not be settled. */
    sharedSuccessIsFree(engine: Engine): boolean;
    /** Asks for one call: the ticket of that command. */
    sharedAdmit(engine: Engine, now: number): number;
    /** What all others answer: one of the low values plus flags. */
    sharedSettle(engine: Engine, now: number, kind: number, epoch: number, counter: number, outcome: number): number;
    sharedGetState(engine: Engine, now: number): number;
    sharedReset(engine: Engine, now: number): number;
    sharedTrip(engine: Engine, now: number, forMs: FieldValue | undefined): number;
    sharedForceOpen(engine: Engine, now: number): number;
    sharedDisable(engine: Engine, now: number): number;
    /**
     * Asks for one call and takes what was read for it: the path of a healthy call. The epoch of a grant while closed;
     * anything else as -1 - answer.
     */
    sharedAdmitted(engine: Engine, now: number, ...fields: Fields): number;
    /** Takes what was read for an admission that the engine knows of already. */
    sharedOnReading(engine: Engine, now: number, ticket: number, fields: Fields): number;
    sharedOnReply(engine: Engine, now: number, ticket: number, reply: number[]): number;
    sharedOnError(engine: Engine, now: number, ticket: number, error: string): number;
    sharedOnDeadline(engine: Engine, ticket: number): number;
    /** Of the last answer: the numbers of its permit, the wait of its refusal (-1 = unknown), and what else it holds. */
    sharedPermitEpoch(engine: Engine): number;
    sharedPermitCounter(engine: Engine): number;
    sharedRefusalWait(engine: Engine): number;
    sharedAsk(engine: Engine): Ask | null;
    sharedTransition(engine: Engine): NativeTransition | null;
    sharedSnapshot(engine: Engine): Snapshot | null;
  }
}

/** A checked configuration. Made once per policy, taken by every circuit that runs by it. */
export type SharedConfig = { readonly __brand: "SharedConfig" };

/** What is read of a circuit for an admission, field by field; null for one that is not there. */
export type Fields = [string | null, string | null, string | null, string | null, string | null];

/** The engine of one circuit, handed to functions, which are cheaper to call than methods of a native class. */
export type Engine = { readonly __brand: "Engine" };

/** A command to send, and the ticket to hand its reply in with. */
export interface Ask {
  ticket: number;
  delayMs: number;
  /** Whether the reply is the fields of a reading. */
  reads: boolean;
  command: string[];
}

/** The low values of what the engine answers. */
export const GRANTED_CLOSED = 1;
export const GRANTED_PROBE = 2;
export const GRANTED_BYPASS = 3;
export const GRANTED_UNASKED = 4;
export const REFUSED_OPEN = 5;
export const REFUSED_HALF_OPEN = 6;
export const UNAVAILABLE = 7;
export const STALE = 8;
export const APPLIED = 9;
export const CONTROLLED = 10;
export const SNAPSHOT = 11;
export const ANSWER = 15;
/** The flags: there is a command to send, a transition to tell, another configuration in force, a reply of no script. */
export const ASK = 16;
export const TRANSITION = 32;
export const CONFIG_MISMATCH = 64;
export const MALFORMED = 128;
export const COUNTED = 256;
