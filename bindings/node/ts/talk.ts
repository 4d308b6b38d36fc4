/** What is under way at the store, and who waits for it. */

import { Deadline } from "./deadlines";
import type { StoreError } from "./error";
import type { Admission } from "./shared-permit";
import type { Place } from "./store";
import type { Snapshot } from "./types";

/** What comes of a conversation; the error where the store gave no answer and nobody else has one. */
export type Answer = Admission | Snapshot | StoreError | "applied" | "stale" | "done";

/** What a conversation and its callers need of their circuit. */
interface Circuit {
  expired(talk: Talk): void;
  overdue(caller: Caller): void;
  unwanted(admission: Admission): void;
  forget(caller: Caller): void;
}

/** One conversation: it is answered at the deadline at the latest. What the store says later still goes to the engine. */
export class Talk extends Deadline {
  /** Whether the store's listeners know of its trouble. */
  reported = false;
  /** Whether the reply to come is a reading. */
  reads = true;
  /** Who has joined, if it is an admission. */
  others: Caller[] = [];

  constructor(
    private readonly circuit: Circuit,
    /** Where it was begun: there it counts, whatever becomes of the circuit's slot. */
    readonly place: Place,
    /** On the host's clock. */
    readonly startedAt: number,
    /** What the engine knows it by. */
    readonly ticket: number,
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

/** Somebody who waits for an admission, his own or one that he joined. */
export class Caller extends Deadline {
  answered = false;

  constructor(
    private readonly circuit: Circuit,
    readonly resolve: (admission: Admission) => void,
  ) {
    super();
  }

  take(admission: Admission): void {
    if (this.answered) {
      this.circuit.unwanted(admission);
      return;
    }
    this.answered = true;
    if (this.waiting) this.circuit.forget(this);
    this.resolve(admission);
  }

  override expired(): void {
    this.circuit.overdue(this);
  }
}
