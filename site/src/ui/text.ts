/** Numbers and happenings as people read them. */

import type { Transition } from "../core";
import type { Event } from "../sim/run";

/** A duration, to three digits or so: `640 ms`, `12.4 s`, `7 min 12 s`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.round(minutes / 60 / 24)} days`;
}

/** A moment of a run, to the millisecond: `31.240 s`. */
export function moment(ms: number): string {
  return `${(ms / 1_000).toFixed(3)} s`;
}

/** A share in percent. */
export function percent(share: number): string {
  return `${Math.round(share * 1_000) / 10} %`;
}

/** `1 call`, `2 calls`. */
export function counted(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

/** What happened. */
export function eventText(event: Event): string {
  switch (event.kind) {
    case "control":
      return `by hand: ${event.operation}`;
    case "ask":
      return `${nameOf(event)} asks`;
    case "end":
      return `${nameOf(event)} ${event.call.how} after ${duration(event.call.endsAt - event.call.at)}`;
  }
}

/** What the circuit answered. */
export function answerText(event: Event): string {
  switch (event.kind) {
    case "control":
      return "done";
    case "ask": {
      const { answer } = event;
      if (answer.allowed) return answer.probe ? "admitted as a probe" : "admitted";
      return answer.retryAfterMs === null ? "refused" : `refused, retry in ${duration(answer.retryAfterMs)}`;
    }
    case "end":
      return event.status;
  }
}

/** Why the state changed. */
export function reasonText({ reason, failures }: Transition): string {
  return reason === "threshold" ? `threshold, ${counted(failures, "failure")}` : reason.replaceAll("-", " ");
}

function nameOf(event: Extract<Event, { kind: "ask" | "end" }>): string {
  const probe = event.kind === "ask" ? event.answer.allowed && event.answer.probe : event.probe;
  return `${event.call.byHand ? "hand call" : probe ? "probe" : "call"} ${event.call.id}`;
}
