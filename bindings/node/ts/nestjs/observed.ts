/** A method that gives an Observable: each subscription is a call. */

import { isObservable, Observable, Subject, type Subscriber, takeUntil } from "rxjs";
import type { AnyBreaker } from "./circuits";

/** What a subscription falls back to. */
interface Falling {
  readonly fallback: (error: unknown) => unknown;
  readonly fallbackOn: "refusal" | "failure";
}

/**
 * An Observable each subscription of which goes through a circuit: it is admitted, then the method runs, and its end is the
 * outcome. Of what it emits the last value is what `isFailureResult` is asked about; a timeout is over all of it.
 *
 * @param run - the method
 * @param breakerOf - the breaker of a subscription
 * @param falling - what gives the result instead
 * @param first - what the method gave before anybody knew that it gives Observables: the first subscription is to that
 */
export function observed(
  run: () => unknown,
  breakerOf: () => AnyBreaker,
  falling: Falling | undefined,
  first?: Observable<unknown>,
): Observable<unknown> {
  let assembled = first;
  return new Observable((subscriber) => {
    const source = assembled;
    assembled = undefined;
    const call = new Call(source === undefined ? run : () => source, subscriber);
    void call.follow(breakerOf, falling);
    return () => call.leave();
  });
}

/** One subscription. */
class Call {
  private readonly controller = new AbortController();
  private readonly stopped = new Subject<void>();
  private delivering = false;
  private ended = false;
  private instead: { readonly value: unknown } | undefined;

  constructor(
    private readonly run: () => unknown,
    private readonly subscriber: Subscriber<unknown>,
  ) {}

  async follow(breakerOf: () => AnyBreaker, falling: Falling | undefined): Promise<void> {
    const { subscriber } = this;
    const fallback =
      falling &&
      (async (error: unknown) => {
        // After a timeout the source would go on, but not for this subscriber.
        this.stopped.next();
        this.instead = { value: await falling.fallback(error) };
      });
    const options = { signal: this.controller.signal, fallback, fallbackOn: falling?.fallbackOn };
    try {
      await breakerOf().execute(() => this.outcome(), options as never);
      if (this.instead === undefined) subscriber.complete();
      else observableOf(this.instead.value).subscribe(subscriber);
    } catch (error) {
      subscriber.error(error);
    }
  }

  /**
   * The subscription has ended. While a value is being delivered its source may be about to complete, as those of one value are:
   * whoever takes the first value and leaves is then no one who gave up.
   */
  leave(): void {
    if (this.delivering) queueMicrotask(() => this.giveUp());
    else this.giveUp();
  }

  /** What the source ends with: its last value, or its error. */
  private outcome(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let last: unknown;
      observableOf(this.run())
        .pipe(takeUntil(this.stopped))
        .subscribe({
          next: (value) => {
            last = value;
            if (this.subscriber.closed) this.giveUp();
            else this.deliver(value);
          },
          error: (error) => {
            this.ended = true;
            reject(error);
          },
          complete: () => {
            this.ended = true;
            resolve(last);
          },
        });
    });
  }

  private deliver(value: unknown): void {
    this.delivering = true;
    try {
      this.subscriber.next(value);
    } finally {
      this.delivering = false;
    }
  }

  /** Neutral, where the source has not ended before. */
  private giveUp(): void {
    if (!this.ended) this.controller.abort();
    this.stopped.next();
  }
}

/** A method may give something else now and then. */
function observableOf(value: unknown): Observable<unknown> {
  if (isObservable(value)) return value;
  return new Observable((subscriber) => {
    Promise.resolve(value).then(
      (result) => {
        subscriber.next(result);
        subscriber.complete();
      },
      (error) => subscriber.error(error),
    );
  });
}
