import { Observable } from "rxjs";

/** The longest timer, in milliseconds. */
export const LONGEST = 2_147_483_647;

/** Emits once when so many milliseconds are over. Its timer ends with the subscription. */
export function waiting(ms: number): Observable<void> {
  return new Observable((subscriber) => {
    const until = performance.now() + ms;
    let timer: NodeJS.Timeout;
    const sleep = (left: number, done: () => void) => {
      const step = Math.min(left, LONGEST);
      timer = setTimeout(() => (left > step ? sleep(left - step, done) : done()), step);
    };
    sleep(ms, () => {
      // Node counts a timer from the beginning of a turn, so after a long one it fires early: a circuit would still refuse.
      const left = until - performance.now();
      if (left > 0 && left <= MOST_EARLY) sleep(Math.ceil(left), () => subscriber.next());
      else subscriber.next();
    });
    return () => clearTimeout(timer);
  });
}

/** By more no timer is early: where more is left, timers are imitated and that clock is not. */
const MOST_EARLY = 50;
