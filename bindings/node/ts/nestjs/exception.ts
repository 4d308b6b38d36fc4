import { ServiceUnavailableException } from "@nestjs/common";
import { type RefusalFields, refusalMessage, retryAfterHeader } from "../error";
import { type Problem, problemOf } from "../problem";

/**
 * The circuit refused the call; nothing was run. What the breakers of the module throw: an exception of Nest, which any
 * filter answers with 503, and by `instanceof` also a `CircuitOpenError`, with all its fields.
 *
 * `message` is for the log of the service; {@link getResponse} is what its clients may know, a problem of RFC 9457.
 */
export class CircuitOpenException extends ServiceUnavailableException implements RefusalFields {
  /** The stable code of this error. */
  declare readonly code: "circuit_open";
  declare readonly circuit: string;
  declare readonly state: "open" | "half-open";
  declare readonly retryAfterMs: number | null;
  declare readonly lastFailure: string | null;
  /** The HTTP status that fits: 503. There is also `status`, which the types of Nest call private. */
  declare readonly statusCode: 503;
  /** The message names circuits and failures: it is not for the clients of an HTTP service. */
  declare readonly expose: false;
  /** A retry loop should stop here and come back after {@link retryAfterMs}. */
  declare readonly retryable: false;

  /** @param fields - what the refusal says; also the answer of {@link toJSON} */
  constructor(fields: RefusalFields) {
    super(problemOf({ headers: retryAfterHeader(fields.retryAfterMs) }));
    const { circuit, state, retryAfterMs, lastFailure } = fields;
    this.message = refusalMessage(circuit, state, retryAfterMs, lastFailure);
    Object.assign(this, { code: "circuit_open", circuit, state, retryAfterMs, lastFailure });
  }

  /** `Retry-After` in whole seconds, rounded up; empty where the wait is unknown. */
  get headers(): Record<string, string> {
    return retryAfterHeader(this.retryAfterMs);
  }

  /** The body of the answer. */
  override getResponse(): Problem {
    return super.getResponse() as Problem;
  }

  /** What it says, as plain data. */
  toJSON(): RefusalFields & Pick<CircuitOpenException, "name" | "code" | "message"> {
    const { name, code, message, circuit, state, retryAfterMs, lastFailure } = this;
    return { name, code, message, circuit, state, retryAfterMs, lastFailure };
  }
}

for (const [name, value] of Object.entries({ statusCode: 503, expose: false, retryable: false })) {
  Object.defineProperty(CircuitOpenException.prototype, name, { value, configurable: true, writable: true });
}
