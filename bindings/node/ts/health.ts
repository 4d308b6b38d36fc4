/** Says what has become of the store. */

import type { Connection, StoreEvent } from "./store";
import { warn } from "./warn";

/** Says once that the store, or a circuit, is or is not asked any more. */
export function tellHealth(events: Connection["events"], what: "degraded" | "restored", event: StoreEvent): void {
  if (events.hears(what)) {
    events.emit(what, event);
    return;
  }
  const whose = event.circuit === undefined ? "the store" : `the store of circuit \`${event.circuit}\``;
  if (what === "restored") warn(`${whose} is asked again`, "switchgear_restored");
  else
    warn(`${whose} does not answer and is not asked for now: ${(event.error as Error).message}`, "switchgear_degraded");
}
