import type { Observable } from "rxjs";

/**
 * Says that a method gave an Observable, which nobody knew before it was called: so far nothing has happened that could be
 * counted, and its subscriptions are what is guarded. Thrown within the guarded call, and caught right behind it.
 */
export class Assembled extends Error {
  constructor(readonly source: Observable<unknown>) {
    super("the method gave an Observable, whose subscriptions are guarded instead");
    this.name = "Assembled";
  }
}
