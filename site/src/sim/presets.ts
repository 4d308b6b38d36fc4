/** Set-ups to begin with, each of which shows one thing. */

import { LOAD, type Setup } from "./setup";

/** A set-up with a name. */
export interface Preset {
  readonly id: string;
  readonly name: string;
  /** What to look at. */
  readonly about: string;
  readonly setup: Setup;
  /** The moment to begin at. */
  readonly at: number;
}

export const PRESETS: readonly Preset[] = [
  {
    id: "outage",
    name: "An outage",
    about: "The dependency hangs for 35 seconds. Who was under way then waits in vain; everybody else is told at once.",
    setup: {
      policy: { openDurationMs: 10_000 },
      load: LOAD,
      outages: [{ at: 15_000, forMs: 35_000, kind: "hang", share: 1 }],
      acts: [],
    },
    at: 28_600,
  },
  {
    id: "backoff",
    name: "A long outage, with backoff",
    about: "Each probe that fails doubles the wait for the next one, up to a cap.",
    setup: {
      policy: { openDurationMs: 3_000, openBackoff: 2, openDurationMaxMs: 20_000 },
      load: { ...LOAD, lengthMs: 120_000 },
      outages: [{ at: 10_000, forMs: 75_000, kind: "error", share: 1 }],
      acts: [],
    },
    at: 60_000,
  },
  {
    id: "rate",
    name: "A brownout, by rate",
    about: "Two of three calls fail. Counting a share of calls trips on that, and not on a busy day's noise.",
    setup: {
      policy: { tripOn: "rate", failureRate: 0.4, minimumCalls: 40, windowMs: 8_000, openDurationMs: 8_000 },
      load: { ...LOAD, failureShare: 0.08, lengthMs: 90_000 },
      outages: [{ at: 25_000, forMs: 30_000, kind: "error", share: 0.66 }],
      acts: [],
    },
    at: 36_000,
  },
  {
    id: "flapping",
    name: "A flapping dependency",
    about: "It comes back for moments only. Three successful probes are asked for before the circuit closes.",
    setup: {
      policy: {
        tripOn: "consecutive",
        failureThreshold: 4,
        openDurationMs: 4_000,
        halfOpenMaxCalls: 2,
        successThreshold: 3,
      },
      load: { ...LOAD, latencyMs: 400, lengthMs: 80_000 },
      outages: [
        { at: 12_000, forMs: 10_000, kind: "error", share: 1 },
        { at: 28_000, forMs: 8_000, kind: "hang", share: 1 },
        { at: 44_000, forMs: 12_000, kind: "error", share: 0.8 },
      ],
      acts: [],
    },
    at: 33_000,
  },
  {
    id: "probes",
    name: "Probes that get lost",
    about:
      "Callers are patient, the circuit is not: a probe that is not back in two seconds gives its slot to another.",
    setup: {
      policy: { openDurationMs: 6_000, halfOpenMaxCalls: 2, probeTimeoutMs: 2_000 },
      load: { ...LOAD, callsPerSecond: 6, timeoutMs: 9_000, lengthMs: 75_000 },
      outages: [{ at: 12_000, forMs: 30_000, kind: "hang", share: 1 }],
      acts: [],
    },
    at: 22_000,
  },
  {
    id: "touchy",
    name: "Too touchy",
    about: "No outage at all, but a threshold of two: the circuit refuses calls that would have worked.",
    setup: {
      policy: { failureThreshold: 2, openDurationMs: 5_000 },
      load: { ...LOAD, failureShare: 0.04 },
      outages: [],
      acts: [],
    },
    at: 30_000,
  },
];

/** What a page begins with. */
export const FIRST = PRESETS[0] as Preset;
