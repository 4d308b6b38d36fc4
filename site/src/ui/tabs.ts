/** Two views of one page: arrow keys go from one to the other, as everywhere. */

import { byId } from "./dom";

export function startTabs(ids: readonly string[], shown: (id: string) => void): void {
  const tabs = ids.map((id) => byId(`tab-${id}`, HTMLButtonElement));
  const choose = (place: number, focus: boolean) => {
    for (const [other, tab] of tabs.entries()) {
      const chosen = other === place;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      byId(ids[other] as string, HTMLElement).hidden = !chosen;
    }
    if (focus) tabs[place]?.focus();
    shown(ids[place] as string);
  };
  for (const [place, tab] of tabs.entries()) {
    tab.addEventListener("click", () => choose(place, false));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      choose((to + tabs.length) % tabs.length, true);
    });
  }
}
