import { afterInput, holdProcess } from "./timers";

/**
 * Deadlines of one length, kept by one timer: what starts first is due first, so the oldest is all there is to watch.
 * A timer per call would cost a healthy call more than the rest of what is done for it here.
 */
export class Deadlines {
  private first: Deadline | null = null;
  private last: Deadline | null = null;
  private armed = false;
  private timer: unknown;

  /** @param ms - how long after its start a deadline is due, in milliseconds */
  constructor(private readonly ms: number) {}

  /** From now on `expired` is called once, when the time is over, unless the deadline is ended before. */
  start(deadline: Deadline): void {
    deadline.dueAt = performance.now() + this.ms;
    deadline.waiting = true;
    deadline.before = this.last;
    const isFirst = this.last === null;
    if (this.last === null) this.first = deadline;
    else this.last.after = deadline;
    this.last = deadline;
    if (!this.armed) this.arm(this.ms);
    // Whoever waits is owed an answer before the process ends, also by a client that holds it open for none.
    else if (isFirst) holdProcess(this.timer, true);
  }

  /** Forgets a deadline; nothing happens to one that is not waiting. */
  end(deadline: Deadline): void {
    if (!deadline.waiting) return;
    deadline.waiting = false;
    if (deadline.before === null) this.first = deadline.after;
    else deadline.before.after = deadline.after;
    if (deadline.after === null) this.last = deadline.before;
    else deadline.after.before = deadline.before;
    deadline.before = null;
    deadline.after = null;
    if (this.first === null) holdProcess(this.timer, false);
  }

  private arm(ms: number): void {
    this.armed = true;
    // Replies may be waiting behind a busy event loop, and timers run before them: let them in first.
    this.timer = setTimeout(() => afterInput(() => this.expire()), ms);
  }

  private expire(): void {
    this.armed = false;
    const now = performance.now();
    for (let first = this.first; first !== null && first.dueAt <= now; first = this.first) {
      this.end(first);
      first.expired();
    }
    if (this.first !== null && !this.armed) this.arm(Math.max(1, Math.ceil(this.first.dueAt - now)));
  }
}

/** Something that waits at most so long. It is its own entry in the list, so that starting and ending allocate nothing. */
export abstract class Deadline {
  /** @internal */
  dueAt = 0;
  /** @internal */
  waiting = false;
  /** @internal */
  before: Deadline | null = null;
  /** @internal */
  after: Deadline | null = null;

  /** Called when it was not ended in time. Must not throw. */
  abstract expired(): void;
}
