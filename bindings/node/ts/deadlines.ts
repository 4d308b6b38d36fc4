import { afterInput, holdProcess } from "./timers";

/**
 * Deadlines of one length, kept by one timer: what starts first is due first, so the oldest is all there is to watch.
 * A timer per call would cost a healthy call more than the rest of what is done for it here.
 */
export class Deadlines {
  private first: Deadline | null = null;
  private last: Deadline | null = null;
  /** When the timer looks next; never, if none runs. */
  private armedFor = Number.POSITIVE_INFINITY;
  private timer: unknown;

  /** @param ms - how long after its start a deadline is due, in milliseconds */
  constructor(private readonly ms: number) {}

  /** When what starts now is due. */
  due(): number {
    return performance.now() + this.ms;
  }

  /** From now on `expired` is called once, when the time is over, unless the deadline is ended before. */
  start(deadline: Deadline): void {
    deadline.dueAt = this.due();
    this.insert(deadline, this.last, this.ms);
  }

  /** The same for one that began earlier: it keeps the moment at which it is due. */
  resume(deadline: Deadline): void {
    if (deadline.waiting) return;
    let before = this.last;
    while (before !== null && before.dueAt > deadline.dueAt) before = before.before;
    this.insert(deadline, before, this.wait(deadline));
  }

  private insert(deadline: Deadline, before: Deadline | null, wait: number): void {
    const after = before === null ? this.first : before.after;
    const isOnly = this.first === null;
    deadline.waiting = true;
    deadline.before = before;
    deadline.after = after;
    if (before === null) this.first = deadline;
    else before.after = deadline;
    if (after === null) this.last = deadline;
    else after.before = deadline;
    if (deadline.dueAt < this.armedFor) this.arm(deadline.dueAt, wait);
    // Whoever waits is owed an answer before the process ends, also by a client that holds it open for none.
    else if (isOnly) holdProcess(this.timer, true);
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

  private arm(dueAt: number, wait: number): void {
    clearTimeout(this.timer as ReturnType<typeof setTimeout>);
    this.armedFor = dueAt;
    // Replies may be waiting behind a busy event loop, and timers run before them: let them in first.
    const timer = setTimeout(() => afterInput(() => this.expire(timer)), wait);
    this.timer = timer;
  }

  private expire(timer: unknown): void {
    // An earlier one is watched by another timer already.
    if (timer !== this.timer) return;
    this.armedFor = Number.POSITIVE_INFINITY;
    const now = performance.now();
    for (let first = this.first; first !== null && first.dueAt <= now; first = this.first) {
      this.end(first);
      first.expired();
    }
    if (this.first !== null && this.first.dueAt < this.armedFor) this.arm(this.first.dueAt, this.wait(this.first));
  }

  private wait({ dueAt }: Deadline): number {
    return Math.max(1, Math.ceil(dueAt - performance.now()));
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
