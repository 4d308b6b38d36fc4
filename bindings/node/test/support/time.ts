/** A clock that stands still until it is moved, and the functions that tests guard. */
export class ManualClock {
  now: number;
  /** How often it was read. */
  reads = 0;
  readonly read = (): number => {
    this.reads += 1;
    return this.now;
  };

  constructor(now = 0) {
    this.now = now;
  }
}

/** A call that is in flight until the test ends it. */
export class Deferred<T = string> {
  readonly promise: Promise<T>;
  resolve!: (value: T) => void;
  reject!: (error: unknown) => void;

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}

export const succeed = async (): Promise<string> => "ok";

export const fail = async (): Promise<never> => {
  throw boom;
};

/** What `fail` throws: always the same object, so that a test can see that nobody wrapped it. */
export const boom = Object.assign(new Error("no answer"), { code: "ECONNREFUSED" });
