/** The simulation's view: from a set-up to a run, and from a moment of it to what is shown. */

import { Circuit, problemsOf } from "../core";
import { vectorOf } from "../sim/export";
import { linkOf, setupOf } from "../sim/link";
import { FIRST, PRESETS, type Preset } from "../sim/presets";
import { type Event, eventsBy, Replay, type Run, runSetup } from "../sim/run";
import { type Act, type Policy, type Setup, SetupError } from "../sim/setup";
import { statisticsAt, transitionsOf } from "../sim/statistics";
import { showCards } from "./cards";
import { byId } from "./dom";
import { Hand } from "./hand";
import { LoadForm } from "./load-form";
import { markTransition, showEvents, showTransitions } from "./log";
import { PolicyForm } from "./policy-form";
import { counted, moment } from "./text";
import { Timeline } from "./timeline";
import { Transport } from "./transport";

const make = (policy: Policy) => new Circuit(policy);

/** How long nothing must change before the address says what is shown. */
const SETTLED_MS = 250;

export class Bench {
  private setup: Setup = FIRST.setup;
  private run: Run = runSetup(FIRST.setup, make);
  private replay = new Replay(this.run, make);
  private inForce: Policy = {};
  /** Where time stands: so many events have happened, the last of them not after the moment. */
  private count = 0;
  private at = 0;

  private readonly policy = new PolicyForm(() => this.typed());
  private readonly load = new LoadForm(() => this.typed());
  private readonly timeline = new Timeline(byId("graph", HTMLElement), (at) => {
    this.transport.pause();
    this.seek(at);
  });
  private readonly hand = new Hand(
    (what) => this.act(what),
    (acts) => this.change({ ...this.setup, acts }),
  );
  private readonly transport = new Transport({
    start: () => this.go(0),
    end: () => this.seek(this.setup.load.lengthMs),
    events: (by) => this.go(this.count + by),
    transitions: (by) => this.toTransition(by),
    seek: (at) => this.seek(at),
    advance: (ms) => this.advance(ms),
  });

  constructor() {
    const presets = byId("preset", HTMLSelectElement);
    for (const { id, name } of PRESETS) presets.add(new Option(name, id));
    presets.add(new Option("Your own", ""));
    presets.addEventListener("change", () => {
      const preset = PRESETS.find(({ id }) => id === presets.value);
      if (preset !== undefined) this.begin(preset);
    });
    byId("copy", HTMLButtonElement).addEventListener("click", () => void this.share());
    byId("save", HTMLButtonElement).addEventListener("click", () => this.save());
    byId("close-problem", HTMLButtonElement).addEventListener("click", () => {
      byId("problem", HTMLElement).hidden = true;
      presets.focus();
      this.address();
    });
    addEventListener("hashchange", () => this.follow());
    this.begin(FIRST);
    if (location.hash.length > 1) this.follow();
  }

  /** Stops playing. */
  pause(): void {
    this.transport.pause();
  }

  /** Begins with a set-up of the page's own. */
  private begin(preset: Preset): void {
    this.adopt(preset.setup, preset.at);
  }

  /** Follows the address, if it holds a set-up. One that is broken changes nothing. */
  private follow(): void {
    this.told = location.hash;
    // A place of the page, as the one to skip to.
    if (document.getElementById(location.hash.slice(1)) !== null) {
      this.address();
      return;
    }
    if (location.hash.length <= 1 || location.hash.slice(1) === linkOf({ setup: this.setup, at: this.at })) return;
    const problem = byId("problem", HTMLElement);
    try {
      const { setup, at } = setupOf(location.hash, (policy) => problemsOf(policy)[0]);
      problem.hidden = true;
      this.adopt(setup, at);
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      byId("problem-text", HTMLElement).textContent =
        `This link holds no set-up: ${error.message}. What is shown is what was shown before.`;
      problem.hidden = false;
    }
  }

  /** Shows a set-up that comes from outside in the forms, too. */
  private adopt(setup: Setup, at: number): void {
    this.policy.show(setup.policy);
    this.load.show(setup.load, setup.outages);
    this.at = at;
    this.typed(setup.acts);
  }

  /** Takes what the forms say, if all of it can be; else what was shown stays, and the fields say why. */
  private typed(acts: readonly Act[] = this.setup.acts): void {
    const [policy, load, outages] = [this.policy.read(), this.load.readLoad(), this.load.readOutages()];
    const stale = policy === undefined || load === undefined || outages === undefined;
    byId("stale", HTMLElement).hidden = !stale;
    if (!stale) this.change({ policy, load, outages, acts });
  }

  private change(setup: Setup): void {
    this.setup = setup;
    this.run = runSetup(setup, make);
    this.replay.free();
    this.replay = new Replay(this.run, make);
    this.inForce = this.replay.after(0).policy();
    this.policy.showInForce(this.inForce);
    this.hand.show(setup.acts);
    this.timeline.show(this.run, this.inForce);
    showTransitions(this.run, (count) => {
      this.transport.pause();
      this.go(count);
    });
    const preset = PRESETS.find((each) => linkOf({ ...each, at: 0 }) === linkOf({ setup, at: 0 }));
    byId("preset", HTMLSelectElement).value = preset?.id ?? "";
    byId("about", HTMLElement).textContent = preset?.about ?? "";
    this.seek(Math.min(this.at, setup.load.lengthMs));
  }

  /** Goes to a moment: all that happened by then has happened. */
  private seek(at: number): void {
    this.at = at;
    this.count = eventsBy(this.run, at);
    this.show();
  }

  /** Goes to a number of events. */
  private go(count: number): void {
    this.count = Math.min(this.run.events.length, Math.max(0, count));
    this.at = this.count === 0 ? 0 : (this.run.events[this.count - 1] as Event).at;
    this.show();
  }

  private toTransition(by: number): void {
    const places = transitionsOf(this.run).map(({ index }) => index + 1);
    const next = by > 0 ? places.find((place) => place > this.count) : places.findLast((place) => place < this.count);
    if (next !== undefined) this.go(next);
    else if (by > 0) this.seek(this.setup.load.lengthMs);
    else this.go(0);
  }

  private advance(ms: number): boolean {
    const { lengthMs } = this.setup.load;
    const from = this.at >= lengthMs ? 0 : this.at;
    this.seek(Math.min(lengthMs, from + Math.max(1, Math.round(ms))));
    return this.at < lengthMs;
  }

  private act(what: Act["do"]): void {
    const act = { at: Math.min(this.at, this.setup.load.lengthMs - 1), do: what };
    this.at = act.at;
    this.change({ ...this.setup, acts: [...this.setup.acts, act] });
  }

  private show(): void {
    const { run, inForce, count, at } = this;
    const circuit = this.replay.after(count);
    const snapshot = circuit.snapshot(at);
    const statistics = statisticsAt(run, count, at);
    this.timeline.move(at);
    this.transport.show(at, run.setup.load.lengthMs, count, run.events.length, snapshot.state);
    showCards({ run, inForce, circuit, snapshot, count, at, statistics });
    markTransition(count);
    showEvents(run, count);
    this.address();
  }

  private settling: ReturnType<typeof setTimeout> | undefined;
  /** What the address held when this page last wrote or followed it. Anything else is still to be followed. */
  private told = location.hash;

  /** The address follows what is shown, once that has come to rest: browsers refuse to be told at every frame. */
  private address(): void {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      // A broken link stays to be looked at.
      if (!byId("problem", HTMLElement).hidden || location.hash !== this.told) return;
      history.replaceState(null, "", `#${linkOf({ setup: this.setup, at: this.at })}`);
      this.told = location.hash;
    }, SETTLED_MS);
  }

  private async share(): Promise<void> {
    const link = `${location.href.split("#")[0]}#${linkOf({ setup: this.setup, at: this.at })}`;
    const field = byId("link", HTMLInputElement);
    field.value = link;
    byId("link-box", HTMLElement).hidden = false;
    field.select();
    try {
      await navigator.clipboard.writeText(link);
      this.say("The link is copied.");
    } catch {
      this.say("This page may not write to the clipboard: copy the link from the field.");
    }
  }

  /** Hands out what has happened so far as a vector. */
  private save(): void {
    const text = `${JSON.stringify(vectorOf(this.run, this.count, make), null, 1)}\n`;
    const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = "playground-vector.json";
    link.click();
    URL.revokeObjectURL(url);
    this.say(`Saved ${counted(this.count, "event")} up to ${moment(this.at)} as a vector.`);
  }

  private say(text: string): void {
    byId("said", HTMLElement).textContent = text;
  }
}
