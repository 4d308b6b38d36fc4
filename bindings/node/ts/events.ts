import { describe } from "./config";
import { thrownText } from "./failure-text";
import { unseen } from "./thenable";
import type { CallEvent, Events } from "./types";
import { warn } from "./warn";

type Listener<E> = (event: E) => void;

/**
 * Who listens to what. Events are delivered one after another and in order, also when a listener causes the next one;
 * a listener that throws, or whose promise rejects, disturbs nobody and is reported once.
 *
 * @typeParam M - the events, by name
 */
export class Emitter<M extends object = Events> {
  /**
   * How many listen, here and in the rest of the group, to what every single call emits. While it is 0, a healthy call has
   * nothing to tell; one cell for a whole group, so that this is one question.
   */
  loudness: { calls: number };

  /** How many of them are our own. */
  private own = 0;
  private left = false;
  /** Made for the first listener: most breakers of a big group never have one. */
  private byEvent: Map<keyof M, readonly Listener<never>[]> | undefined;
  private pending: Queue | undefined;

  /**
   * @param names - the events there are
   * @param outer - who also hears everything: the group's listeners
   */
  constructor(
    private readonly names: readonly (keyof M & string)[],
    private readonly outer?: Emitter<M>,
  ) {
    this.loudness = outer?.loudness ?? { calls: 0 };
  }

  /** Adds a listener; the answer removes it. */
  on<K extends keyof M & string>(event: K, fn: Listener<M[K]>): () => void {
    if (!this.names.includes(event)) {
      throw new TypeError(`no event is called ${describe(event)}; there are ${this.names.join(", ")}`);
    }
    if (typeof fn !== "function")
      throw new TypeError(`the listener of \`${event}\` must be a function, got ${describe(fn)}`);
    // One entry per registration: the same function may listen twice, and each answer removes its own.
    const entry: Listener<M[K]> = (e) => fn(e);
    this.byEvent ??= new Map();
    this.byEvent.set(event, [...this.listeners(event), entry as Listener<never>]);
    if (CALL_EVENTS.has(event)) this.count(1);
    let listening = true;
    return () => {
      if (!listening) return;
      listening = false;
      this.byEvent?.set(
        event,
        this.listeners(event).filter((other) => other !== entry),
      );
      if (CALL_EVENTS.has(event)) this.count(-1);
    };
  }

  /**
   * The group has given this breaker up. Who still holds it goes on listening, but that makes nobody else loud any more; the
   * group's listeners go on hearing it.
   */
  leave(): void {
    if (this.outer === undefined || this.left) return;
    this.left = true;
    this.outer.loudness.calls -= this.own;
    this.count(0);
  }

  /** Whether anybody listens to an event: if not, it need not be put together. */
  hears(event: keyof M & string): boolean {
    return this.listeners(event).length > 0 || (this.outer?.hears(event) ?? false);
  }

  /** Tells everybody who listens, after the events that are being told right now. */
  emit<K extends keyof M & string>(event: K, e: M[K]): void {
    if (!this.hears(event)) return;
    const queue = this.queue();
    queue.events.push(() => this.tell(event, e));
    if (!queue.busy) drain(queue);
  }

  /** A group and its breakers share one queue, so that the group's listeners hear everything in order. */
  private queue(): Queue {
    if (this.outer !== undefined) return this.outer.queue();
    this.pending ??= { events: [], next: 0, busy: false };
    return this.pending;
  }

  private count(more: number): void {
    this.own += more;
    if (!this.left) this.loudness.calls += more;
    else if (this.own > 0) this.loudness = { calls: this.own };
    else if (this.outer !== undefined) this.loudness = this.outer.loudness;
  }

  private listeners(event: keyof M): readonly Listener<never>[] {
    return this.byEvent?.get(event) ?? NOBODY;
  }

  private tell<K extends keyof M & string>(event: K, e: M[K]): void {
    for (const listener of this.listeners(event) as readonly Listener<M[K]>[]) {
      try {
        const answer: unknown = listener(e);
        // An async listener: its rejection is nobody's, and must not end the process.
        unseen(answer, (error) => report(listener, event, error));
      } catch (error) {
        report(listener, event, error);
      }
    }
    this.outer?.tell(event, e);
  }
}

/** The events of breakers and groups. */
export const EVENT_NAMES = [
  "stateChange",
  "success",
  "failure",
  "ignored",
  "refused",
] as const satisfies (keyof Events)[];

/** One call's event, without an `error` where there is none. */
export function callEvent(circuit: string, at: number, durationMs: number | null, error: unknown): CallEvent {
  return error === undefined ? { circuit, at, durationMs } : { circuit, at, durationMs, error };
}

/** What a call that was let through emits; refusals are told without being asked for at the start of a call. */
const CALL_EVENTS: ReadonlySet<unknown> = new Set(["success", "failure", "ignored"]);

const NOBODY: readonly Listener<never>[] = [];

const reported = new WeakSet<Listener<never>>();

function report(listener: Listener<never>, event: string, error: unknown): void {
  if (reported.has(listener)) return;
  reported.add(listener);
  warn(`a listener of \`${event}\` threw (reported once): ${thrownText(error)}`, "switchgear_listener");
}

/** What is still to be told, from `next` on. */
interface Queue {
  readonly events: (() => void)[];
  next: number;
  busy: boolean;
}

/**
 * Tells what waits. No listener's throw gets here, but an exhausted stack may break off anywhere: it loses the one event that
 * was being told, and the next one that happens brings the rest. So what is put right at the end calls nothing.
 */
function drain(queue: Queue): void {
  const { events } = queue;
  queue.busy = true;
  try {
    while (queue.next < events.length) {
      const tell = events[queue.next];
      queue.next += 1;
      tell?.();
    }
    events.length = 0;
    queue.next = 0;
  } catch {
    // See above; the call that this is about has its own result to give.
  } finally {
    queue.busy = false;
  }
}
