// Runs vectors on the Node package, as it was built: `node bindings/node/test/vectors.mjs [file or folder]`, by default
// tests/vectors. Once on the state machine alone (`node`), and once on a breaker with an injected clock (`node-hints`),
// which answers from the machine's hints wherever they hold. Exits 1 if anything differs, 2 if there is nothing to run.
import { fileURLToPath } from "node:url";
import { CircuitBreaker, CircuitBreakerState } from "switchgear";
import { ANSWER, APPLIED, FAILURE, REFUSED, RELEASE, SUCCESS } from "../../../dist/native.js";
import { load, print, run } from "./support/vectors.mjs";

const path = process.argv[2] ?? fileURLToPath(new URL("../../../tests/vectors", import.meta.url));

const OUTCOMES = { recordSuccess: SUCCESS, recordFailure: FAILURE, release: RELEASE };

// A vector may settle a permit twice, which a host answers by itself ("duplicate"). What the machine says to it is asked
// one layer below, at the private core of the state and the private machine of the breaker.

/** The state machine: the time goes in with every call. */
class Stateful {
  constructor(config) {
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

  constructor(config) {
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

/** A configuration is the machine's alone: no option that only concerns running functions belongs into a vector. */
function checkConfig(config) {
  for (const name of ["timeoutMs", "slowCallMs", "observe", "refusalStack"]) {
    if (Object.hasOwn(config, name)) throw new Error(`config: unknown key \`${name}\``);
  }
  new CircuitBreakerState(config);
}

let vectors;
try {
  vectors = load(path, checkConfig);
} catch (error) {
  console.error(error.message);
  process.exit(2);
}
const alone = print(run("node", vectors, (config) => new Stateful(config)));
const clocked = print(run("node-hints", vectors, (config) => new Clocked(config)));
process.exitCode = alone && clocked ? 0 : 1;
