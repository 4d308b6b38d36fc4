/** What is done by hand: buttons that add it at the moment shown, and the list of what was added. */

import { type Act, HAND_CALLS, HAND_CONTROLS, MAX_ACTS } from "../sim/setup";
import { button, byId, fill, h } from "./dom";
import { moment } from "./text";

const NAMES: { readonly [what in Act["do"]]: string } = {
  succeed: "call that succeeds",
  fail: "call that fails",
  hang: "call that hangs",
  cancel: "call that is cancelled",
  trip: "trip",
  reset: "reset",
  forceOpen: "forceOpen",
  disable: "disable",
};

export class Hand {
  private acts: readonly Act[] = [];

  constructor(
    private readonly add: (what: Act["do"]) => void,
    private readonly keep: (acts: readonly Act[]) => void,
  ) {
    const press = (what: Act["do"], text: string) =>
      button(text, { id: `hand-${what}`, class: "small", title: `At this moment: ${NAMES[what]}` }, () =>
        this.add(what),
      );
    fill(byId("hand-calls", HTMLElement), ...HAND_CALLS.map((what) => press(what, SHORT[what])));
    fill(byId("hand-controls", HTMLElement), ...HAND_CONTROLS.map((what) => press(what, NAMES[what])));
  }

  show(acts: readonly Act[]): void {
    this.acts = acts;
    const full = acts.length >= MAX_ACTS;
    for (const host of ["hand-calls", "hand-controls"]) {
      for (const press of byId(host, HTMLElement).querySelectorAll("button")) press.disabled = full;
    }
    const chips = acts.map((act) => {
      const text = `${moment(act.at)} ${NAMES[act.do]}`;
      const remove = button(text, { class: "chip", "aria-label": `Remove: ${text}`, title: "Remove" }, () => {
        const place = this.acts.indexOf(act);
        this.keep(this.acts.filter((other) => other !== act));
        this.focusNear(place);
      });
      return h("li", {}, remove);
    });
    fill(byId("acts", HTMLElement), ...chips);
  }

  /** Who removed something by keyboard goes on there. */
  private focusNear(place: number): void {
    const chips = byId("acts", HTMLElement).querySelectorAll("button");
    const next = chips[Math.min(place, chips.length - 1)] ?? byId("hand-succeed", HTMLButtonElement);
    next.focus();
  }
}

const SHORT = { succeed: "succeeds", fail: "fails", hang: "hangs", cancel: "is cancelled" };
