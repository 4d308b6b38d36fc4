/** Moving through time: buttons, the slider, and playing. */

import { button, byId, fill, iconButton } from "./dom";
import { moment } from "./text";

/** Where to go. */
export interface Moves {
  start(): void;
  end(): void;
  /** So many events on, or back. */
  events(by: number): void;
  /** To the next change of the state, or the last one. */
  transitions(by: number): void;
  /** To a moment. */
  seek(at: number): void;
  /** So much time on; whether there is any left. */
  advance(ms: number): boolean;
}

const ICONS = {
  start: "M3 3v10M13 3.5v9L5.5 8z",
  end: "M13 3v10M3 3.5v9L10.5 8z",
  backMuch: "M8 3.5v9L1.5 8zM14.5 3.5v9L8 8z",
  onMuch: "M8 3.5v9L14.500 8zM1.500 3.5v9L8 8z",
  back: "M11 3v10L4 8z",
  on: "M5 3v10l7-5z",
};

/** How fast it plays; 1: as in life. */
const SPEEDS = ["0.5", "1", "2", "5", "10", "30"];
const USUAL_SPEED = "5";
/** Where motion is unwelcome, time goes in steps. */
const STEP_MS = 500;

export class Transport {
  private readonly slider = byId("slider", HTMLInputElement);
  private readonly speed = byId("speed", HTMLSelectElement);
  private readonly play: HTMLButtonElement;
  private playing = false;

  constructor(private readonly moves: Moves) {
    this.play = button("Play", { id: "play", class: "main" }, () => (this.playing ? this.pause() : this.start()));
    const halting = (go: () => void) => () => {
      this.pause();
      go();
    };
    fill(
      byId("transport", HTMLElement),
      iconButton(
        "To the beginning",
        ICONS.start,
        { id: "to-start" },
        halting(() => moves.start()),
      ),
      iconButton(
        "To the last change of state",
        ICONS.backMuch,
        { id: "last-change" },
        halting(() => moves.transitions(-1)),
      ),
      iconButton(
        "One event back",
        ICONS.back,
        { id: "back" },
        halting(() => moves.events(-1)),
      ),
      this.play,
      iconButton(
        "One event on",
        ICONS.on,
        { id: "on" },
        halting(() => moves.events(1)),
      ),
      iconButton(
        "To the next change of state",
        ICONS.onMuch,
        { id: "next-change" },
        halting(() => moves.transitions(1)),
      ),
      iconButton(
        "To the end",
        ICONS.end,
        { id: "to-end" },
        halting(() => moves.end()),
      ),
    );
    for (const speed of SPEEDS)
      this.speed.add(new Option(`${speed}x`, speed, speed === USUAL_SPEED, speed === USUAL_SPEED));
    this.slider.addEventListener("input", () => {
      this.pause();
      moves.seek(Number(this.slider.value));
    });
  }

  /** Shows where time stands. */
  show(at: number, lengthMs: number, count: number, all: number, says: string): void {
    // A hundred steps of the arrow keys from end to end, or a tenth of a second each.
    this.slider.max = String(lengthMs);
    this.slider.step = "1";
    this.slider.value = String(at);
    this.slider.setAttribute("aria-valuetext", `${moment(at)}, ${says}`);
    byId("where", HTMLElement).textContent = `${moment(at)}`;
    byId("where-event", HTMLElement).textContent = `event ${count} of ${all}`;
  }

  pause(): void {
    this.playing = false;
    this.play.textContent = "Play";
  }

  private start(): void {
    this.playing = true;
    this.play.textContent = "Pause";
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let last = performance.now();
    // What the clock measures here is how far to go on; what is then is the core's to say.
    const tick = () => {
      if (!this.playing) return;
      const now = performance.now();
      const passed = now - last;
      if (!still || passed >= STEP_MS) {
        last = now;
        if (!this.moves.advance(passed * Number(this.speed.value))) this.pause();
      }
      if (this.playing) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }
}
