/** What happened: every change of the state to jump to, and the events up to the moment. */

import type { Event, Run } from "../sim/run";
import { transitionsOf } from "../sim/statistics";
import { byId, fill, h } from "./dom";
import { answerText, eventText, moment, reasonText } from "./text";

/** Events that are shown. */
const ROWS = 9;
/** Changes that are listed: whoever has more than these looks at the timeline. */
const LISTED = 200;

/** Lists the changes of a run's state, each a button that goes there. */
export function showTransitions(run: Run, go: (count: number) => void): void {
  const all = transitionsOf(run);
  const items = all.slice(0, LISTED).map(({ index, event }) => {
    const made = event.transition as NonNullable<Event["transition"]>;
    const press = h(
      "button",
      { type: "button", class: "jump", "data-count": index + 1 },
      h("span", { class: "time" }, moment(event.at)),
      h("span", { class: `to ${made.to}` }, made.to),
      h("span", { class: "why" }, reasonText(made)),
    );
    press.addEventListener("click", () => go(index + 1));
    return h("li", {}, press);
  });
  fill(byId("transitions", HTMLElement), ...items);
  const note = byId("transitions-note", HTMLElement);
  note.hidden = all.length > 0 && all.length <= LISTED;
  note.textContent =
    all.length === 0 ? "None: the circuit stays closed." : `${all.length - LISTED} more are not listed.`;
}

/** Marks the change that was the last one at a moment. */
export function markTransition(count: number): void {
  let last: HTMLElement | undefined;
  for (const press of byId("transitions", HTMLElement).querySelectorAll<HTMLElement>(".jump")) {
    press.removeAttribute("aria-current");
    if (Number(press.dataset.count) <= count) last = press;
  }
  last?.setAttribute("aria-current", "step");
}

/** Shows the last events up to a moment, the newest first. */
export function showEvents(run: Run, count: number): void {
  const events = run.events.slice(Math.max(0, count - ROWS), count).reverse();
  const rows = events.map((event) =>
    h(
      "tr",
      { class: kindOf(event) },
      h("td", { class: "time" }, moment(event.at)),
      h("td", {}, eventText(event)),
      h(
        "td",
        {},
        answerText(event),
        event.transition !== null && h("span", { class: `to ${event.transition.to}` }, event.transition.to),
      ),
    ),
  );
  const none = h("tr", {}, h("td", { colspan: 3 }, "Nothing has happened yet."));
  fill(byId("events", HTMLElement), ...(rows.length > 0 ? rows : [none]));
}

function kindOf(event: Event): string {
  if (event.kind === "ask") return event.answer.allowed ? "granted" : "refused";
  return event.kind === "end" && event.call.outcome === "recordFailure" ? "failed" : "done";
}
