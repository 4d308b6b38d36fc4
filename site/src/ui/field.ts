/** One labelled input, with the place where what is wrong with it is said. */

import { h } from "./dom";

export interface FieldOptions {
  readonly id: string;
  readonly label: string;
  /** Written as code: the name of an option. */
  readonly code?: boolean;
  readonly unit?: string;
  /** What may be chosen; without it, a text is typed. */
  readonly words?: readonly string[];
  /** What is valid and what the default is, in a sentence. */
  readonly hint?: string;
  /** Digits are to be typed. */
  readonly decimal?: boolean;
  /** The label is read out only: a heading above shows what it is. */
  readonly quiet?: boolean;
}

/** A labelled input on the page. */
export class FieldView {
  readonly element: HTMLElement;
  readonly input: HTMLInputElement | HTMLSelectElement;
  private readonly problem: HTMLElement;

  constructor(options: FieldOptions, changed: () => void) {
    const { id, label, code, unit, words, hint, quiet } = options;
    const described = [hint === undefined ? "" : `${id}-hint`, `${id}-problem`].join(" ").trim();
    this.input =
      words === undefined
        ? h("input", {
            id,
            type: "text",
            inputmode: "decimal",
            autocomplete: "off",
            spellcheck: "false",
            "aria-describedby": described,
          })
        : h(
            "select",
            { id, "aria-describedby": described },
            ...words.map((word) => h("option", { value: word }, word)),
          );
    this.problem = h("p", { id: `${id}-problem`, class: "wrong", hidden: true });
    const name = h("label", { for: id, class: quiet ? "unseen" : code ? "code" : "" }, label);
    const box = h("span", { class: "box" }, this.input, unit !== undefined && h("span", { class: "unit" }, unit));
    const about = hint !== undefined && h("p", { id: `${id}-hint`, class: "hint" }, hint);
    this.element = h("div", { class: "field" }, name, box, about, this.problem);
    this.input.addEventListener(words === undefined ? "input" : "change", changed);
  }

  /** What was typed or chosen. */
  get text(): string {
    return this.input.value.trim();
  }

  set text(text: string) {
    this.input.value = text;
  }

  /** What is in force where nothing is typed. */
  set placeholder(text: string) {
    if (this.input instanceof HTMLInputElement) this.input.placeholder = text;
  }

  set disabled(disabled: boolean) {
    this.input.disabled = disabled;
    this.element.classList.toggle("unused", disabled);
  }

  /** Says what is wrong; undefined: nothing. */
  set wrong(message: string | undefined) {
    this.problem.hidden = message === undefined;
    if (this.problem.textContent !== (message ?? "")) this.problem.textContent = message ?? "";
    if (message === undefined) this.input.removeAttribute("aria-invalid");
    else this.input.setAttribute("aria-invalid", "true");
  }
}
