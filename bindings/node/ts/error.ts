/**
 * One class per stable code; the codes are the core's, and a test compares the two tables. `toJSON` of each is what a log
 * may show: name, code, message and fields, never the inside of a cause.
 */

/** An option that cannot be taken; nothing was changed. */
export class ConfigError extends Error {
  /** The name of the class. */
  declare readonly name: "ConfigError";
  /** The stable code of this error. */
  readonly code = "config_invalid";
  /**
   * @param message - names the field, the value and what is valid
   * @param field - the option's name
   * @param value - the value as an error may show it; null where the name itself is what is wrong
   */
  constructor(
    message: string,
    readonly field: string,
    readonly value: string | null = null,
  ) {
    super(message);
  }

  /** What it says, as plain data. */
  toJSON(): Pick<ConfigError, "name" | "code" | "message" | "field" | "value"> {
    const { name, code, message, field, value } = this;
    return { name, code, message, field, value };
  }
}
constants(ConfigError, { name: "ConfigError" });

/** A text that cannot name a circuit: names are 1 to 512 bytes of UTF-8 without control characters. */
export class NameError extends Error {
  /** The name of the class. */
  declare readonly name: "NameError";
  /** The stable code of this error. */
  readonly code = "name_invalid";

  /** What it says, as plain data. */
  toJSON(): Pick<NameError, "name" | "code" | "message"> {
    const { name, code, message } = this;
    return { name, code, message };
  }
}
constants(NameError, { name: "NameError" });

/** A number that is no moment: `now` is an integer, 0 to 2^52. Nothing was changed. */
export class TimeError extends Error {
  /** The name of the class. */
  declare readonly name: "TimeError";
  /** The stable code of this error. */
  readonly code = "time_invalid";

  /** What it says, as plain data. */
  toJSON(): Pick<TimeError, "name" | "code" | "message"> {
    const { name, code, message } = this;
    return { name, code, message };
  }
}
constants(TimeError, { name: "TimeError" });

/** A guarded call took longer than its `timeoutMs`. It counted as a failure. */
export class CallTimeoutError extends Error {
  /** The name of the class. */
  declare readonly name: "CallTimeoutError";
  /** The stable code of this error. */
  readonly code = "call_timeout";
  /**
   * @param circuit - the circuit's name
   * @param timeoutMs - the timeout in milliseconds
   */
  constructor(
    readonly circuit: string,
    readonly timeoutMs: number,
  ) {
    super(`call of circuit \`${circuit}\` took longer than ${timeoutMs} ms`);
  }

  /** What it says, as plain data. */
  toJSON(): Pick<CallTimeoutError, "name" | "code" | "message" | "circuit" | "timeoutMs"> {
    const { name, code, message, circuit, timeoutMs } = this;
    return { name, code, message, circuit, timeoutMs };
  }
}
constants(CallTimeoutError, { name: "CallTimeoutError" });

/** What a refusal says, as plain data. */
export interface RefusalFields {
  /** The circuit's name. */
  circuit: string;
  /** What refused: an open circuit, or a half-open one whose slots are all taken. */
  state: "open" | "half-open";
  /** Milliseconds until a call may be admitted, never negative; null if unknown: an operator holds it open. */
  retryAfterMs: number | null;
  /** The text of the last failure counted by this process; null if there is none. */
  lastFailure: string | null;
}

/**
 * The circuit refused the call; the function was not run. A fresh object each time, and a cheap one: it carries no stack
 * trace unless the policy says `refusalStack: true`. HTTP frameworks answer it with 503 and `Retry-After`.
 *
 * `structuredClone` keeps its message; to bring it whole to another thread send `toJSON()` and build it anew from that.
 *
 * `instanceof` knows it by its `code`, so also where two copies of this package are loaded, and where a framework has an
 * exception of its own for it.
 */
export class CircuitOpenError extends Error implements RefusalFields {
  /** The name of the class. */
  declare readonly name: "CircuitOpenError";
  /** The stable code of this error. */
  declare readonly code: "circuit_open";
  declare readonly circuit: string;
  declare readonly state: "open" | "half-open";
  declare readonly retryAfterMs: number | null;
  declare readonly lastFailure: string | null;
  /** The HTTP status that fits: 503. */
  declare readonly status: 503;
  /** The same, for the frameworks that call it so. */
  declare readonly statusCode: 503;
  /** The message names circuits and failures: it is not for the clients of an HTTP service. */
  declare readonly expose: false;
  /** A retry loop should stop here and come back after {@link retryAfterMs}. */
  declare readonly retryable: false;

  /** @param fields - what the refusal says; also the answer of {@link toJSON} */
  constructor(fields: RefusalFields) {
    super(refusalMessage(fields.circuit, fields.state, fields.retryAfterMs, fields.lastFailure));
    this.code = "circuit_open";
    this.circuit = fields.circuit;
    this.state = fields.state;
    this.retryAfterMs = fields.retryAfterMs;
    this.lastFailure = fields.lastFailure;
  }

  /** `Retry-After` in whole seconds, rounded up; empty where the wait is unknown. */
  get headers(): Record<string, string> {
    return retryAfterHeader(this.retryAfterMs);
  }

  /** What it says, as plain data. */
  toJSON(): RefusalFields & Pick<CircuitOpenError, "name" | "code" | "message"> {
    const { name, code, message, circuit, state, retryAfterMs, lastFailure } = this;
    return { name, code, message, circuit, state, retryAfterMs, lastFailure };
  }
}
branded(CircuitOpenError, "circuit_open");
constants(CircuitOpenError, {
  name: "CircuitOpenError",
  status: 503,
  statusCode: 503,
  expose: false,
  retryable: false,
});

/**
 * The store of a shared circuit did not answer. Under `fail-closed` it is also a refusal, and carries what
 * {@link CircuitOpenError} carries for web frameworks and retry loops; `code` tells the two apart, and `instanceof` knows it by that.
 */
export class StoreUnavailableError extends Error {
  /** The name of the class. */
  declare readonly name: "StoreUnavailableError";
  /** The stable code of this error. */
  readonly code = "store_unavailable";
  /** The HTTP status that fits: 503. */
  declare readonly status: 503;
  /** The same, for the frameworks that call it so. */
  declare readonly statusCode: 503;
  /** The message names circuits and servers: it is not for the clients of an HTTP service. */
  declare readonly expose: false;
  /** A retry loop should stop here. */
  declare readonly retryable: false;
  /** Nobody knows when the store will answer again. */
  declare readonly retryAfterMs: null;
  /**
   * @param circuit - the circuit's name
   * @param cause - what the store said, or that it said nothing in time; the message repeats a {@link StoreError}
   */
  constructor(
    readonly circuit: string,
    cause: unknown,
  ) {
    // A StoreError's text only: passwords have been taken out of it.
    const said = cause instanceof StoreError ? `: ${cause.message}` : "";
    super(`the store of circuit \`${circuit}\` did not answer${said}`, { cause });
  }

  /** No `Retry-After`, for the wait is unknown. */
  get headers(): Record<string, string> {
    return {};
  }

  /** What it says, as plain data. */
  toJSON(): Pick<StoreUnavailableError, "name" | "code" | "message" | "circuit" | "retryAfterMs"> {
    const { name, code, message, circuit, retryAfterMs } = this;
    return { name, code, message, circuit, retryAfterMs };
  }
}
branded(StoreUnavailableError, "store_unavailable");
constants(StoreUnavailableError, {
  name: "StoreUnavailableError",
  status: 503,
  statusCode: 503,
  expose: false,
  retryable: false,
  retryAfterMs: null,
});

/** The store answered with an error, or could not be reached. */
export class StoreError extends Error {
  /** The name of the class. */
  declare readonly name: "StoreError";
  /** The stable code of this error. */
  readonly code = "store_error";

  /** What it says, as plain data. */
  toJSON(): Pick<StoreError, "name" | "code" | "message"> {
    const { name, code, message } = this;
    return { name, code, message };
  }
}
constants(StoreError, { name: "StoreError" });

/** What a breaker throws for a refusal: {@link CircuitOpenError}, or the exception that a framework has for it. */
export type RefusalClass = new (fields: RefusalFields) => CircuitOpenError;

/**
 * A refusal the cheap way: without a stack trace unless asked for.
 * @internal
 */
export function refusal(fields: RefusalFields, withStack: boolean, Refusal: RefusalClass): CircuitOpenError {
  if (withStack) return new Refusal(fields);
  const limit = Error.stackTraceLimit;
  try {
    Error.stackTraceLimit = 0;
  } catch {
    // A frozen Error (hardened realms): the refusal is only dearer then.
  }
  try {
    return new Refusal(fields);
  } finally {
    if (Error.stackTraceLimit !== limit) Error.stackTraceLimit = limit;
  }
}

/**
 * Turns what the native module threw into the class of its code; any other error is passed through.
 * @internal
 */
export function fromNative(error: unknown): unknown {
  const { code, message, field, value } = error as { code?: string; message: string; field: string; value?: string };
  switch (code) {
    case "config_invalid":
      return new ConfigError(message, field, value ?? null);
    case "name_invalid":
      return new NameError(message);
    case "time_invalid":
      return new TimeError(message);
    case "NumberExpected":
      // What crosses as a number per call is `now`, and the binding's own words would not say so.
      return new TimeError("`now` must be an integer of milliseconds, got something that is no number");
    default:
      return error;
  }
}

/**
 * The header of an answer that says when to come back; none where nobody knows.
 * @internal
 */
export function retryAfterHeader(retryAfterMs: number | null): Record<string, string> {
  return retryAfterMs === null ? {} : { "Retry-After": String(Math.ceil(retryAfterMs / 1000)) };
}

/**
 * What a refusal says to the log of a service.
 * @internal
 */
export function refusalMessage(
  circuit: string,
  state: string,
  retryAfterMs: number | null,
  lastFailure: string | null,
): string {
  const what = `circuit \`${circuit}\` is ${state}`;
  // Only an operator who holds it open leaves the wait unknown.
  if (retryAfterMs === null) return `${what} (forced${lastFailure === null ? "" : `, last failure: ${lastFailure}`})`;
  const message = `${what}, retry in ${seconds(retryAfterMs)} s`;
  return lastFailure === null ? message : `${message} (last failure: ${lastFailure})`;
}

/** Seconds with one decimal, rounded up: a caller who waits that long does not come too early. By hand, for `toFixed` is slow. */
function seconds(ms: number): string {
  const tenths = Math.ceil(ms / 100);
  const whole = Math.floor(tenths / 10);
  return `${whole}.${tenths - whole * 10}`;
}

/** Lets `instanceof` of a class, though not of those that inherit from it, take any error with its code. */
function branded(of: { prototype: object }, code: string): void {
  const isOne = (like: unknown): boolean => {
    try {
      return like instanceof Error && (like as { code?: unknown }).code === code;
    } catch {
      // It does not let itself be looked at.
      return false;
    }
  };
  Object.defineProperty(of, Symbol.hasInstance, {
    value(this: unknown, like: unknown): boolean {
      return Function.prototype[Symbol.hasInstance].call(this, like) || (this === of && isOne(like));
    },
  });
}

/** Puts what is the same in each error of a class on its prototype: a refusal is made often, and small. */
function constants(of: { prototype: object }, values: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(values)) {
    Object.defineProperty(of.prototype, name, { value, configurable: true, writable: true });
  }
}
