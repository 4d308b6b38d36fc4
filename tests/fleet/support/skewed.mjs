// Loaded before anything else (`node --import`): this process's wall clock is wrong, from the first call on. No user could do
// that to one process alone; an operator does it to a host. Monotonic clocks are right, as they are on such a host.
const skewMs = Number(process.env.SKEW_MS);
const { now } = Date;
const { timeOrigin } = performance;

globalThis.Date = class extends Date {
  constructor(...args) {
    super(...(args.length === 0 ? [now() + skewMs] : args));
  }
  static now() {
    return now() + skewMs;
  }
};
Object.defineProperty(performance, "timeOrigin", { get: () => timeOrigin + skewMs });
