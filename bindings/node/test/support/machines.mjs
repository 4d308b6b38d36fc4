// The two ways to run a vector on a JavaScript build of the package: on the state machine alone, and on a breaker with an
// injected clock, which answers from the machine's hints wherever they hold.

/** How to start each, of a package that was imported: the name that its runner adds to that of the build. */
export const WAYS = {
  "": (switchgear) => (config) => new Stateful(switchgear, config),
  "-hints": (switchgear) => (config) => new Clocked(switchgear, config),
};

/** What crosses to the native module: the constants of `native.ts`, which is no entry of the package. */
const ANSWER = 3;
const REFUSED = 0;
const APPLIED = 1;
const OUTCOMES = { recordSuccess: 0, recordFailure: 1, release: 2 };

// A vector may settle a permit twice, which a host answers by itself ("duplicate"). What the machine says to it is asked
// one layer below, at the private core of the state and the private machine of the breaker.

/** The state machine: the time goes in with every call. */
class Stateful {
  constructor({ CircuitBreakerState }, config) {
    this.state = new CircuitBreakerState(config);
    this.core = this.state.core;
  }
  acquire(at) {
    const kind = this.core.canRequest(at) & ANSWER;
    if (kind === REFUSED) return { retryAfterMs: this.state.retryAfterMs(at) };
    return { permit: { kind, epoch: this.core.permitEpoch(), id: this.core.permitId() }, retryAfterMs: 0 };
  }
  settle(at, operation, permit) {
    if (permit === null) return this.state[operation](at);
    const { kind, epoch, id } = permit;
    return (this.core.settle(at, kind, epoch, id, OUTCOMES[operation]) & ANSWER) === APPLIED ? "applied" : "stale";
  }
  control(at, operation, forMs) {
    this.state[operation](at, forMs);
  }
  snapshot(at) {
    return this.state.snapshot(at);
  }
}

/** A breaker: the time comes from its clock. */
class Clocked {
  now = 0;

  constructor({ CircuitBreaker }, config) {
    this.breaker = new CircuitBreaker("vector", { ...config, clock: () => this.now });
    this.machine = this.breaker.machine;
  }
  acquire(at) {
    this.now = at;
    const admission = this.machine.admit();
    return admission.allowed ? { permit: admission, retryAfterMs: 0 } : { retryAfterMs: admission.retryAfterMs };
  }
  settle(at, operation, permit) {
    this.now = at;
    if (permit === null) return this.breaker[operation]();
    return this.machine.settle(permit, OUTCOMES[operation]) ? "applied" : "stale";
  }
  control(at, operation, forMs) {
    this.now = at;
    this.breaker[operation](forMs === undefined ? undefined : { forMs });
  }
  snapshot(at) {
    this.now = at;
    return this.breaker.getSnapshot();
  }
}
