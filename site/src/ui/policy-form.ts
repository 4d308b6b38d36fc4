/** The options of the circuit: a field for each row of the core's table, and the core's word where something is wrong. */

import { type Field, fields, problemsOf } from "../core";
import { type Policy, valueIn } from "../sim/setup";
import { byId } from "./dom";
import { FieldView } from "./field";

export class PolicyForm {
  private readonly table: readonly Field[] = fields();
  private readonly views = new Map<string, FieldView>();
  /** The field that decides which others are used. */
  private readonly chooser = this.table.find(({ kind }) => kind === "word") as Field;

  constructor(changed: () => void) {
    const host = byId("policy", HTMLElement);
    for (const field of this.table) {
      const { name, words } = field;
      const options = { id: `policy-${name}`, label: name, code: true, hint: hintOf(field, this.chooser) };
      const view = new FieldView(words.length > 0 ? { ...options, words } : options, changed);
      this.views.set(name, view);
      host.append(view.element);
    }
  }

  /** What was given; undefined, and each problem at its field, if the core does not take it. */
  read(): Policy | undefined {
    const chosen = this.view(this.chooser.name).text;
    const policy: Record<string, number | string> = {};
    for (const { name, usedBy, default: usual } of this.table) {
      const view = this.view(name);
      // A field that this way of tripping does not use keeps what was typed, and the core is not asked about it.
      view.disabled = !usedBy.includes(chosen);
      if (usedBy.includes(chosen) && view.text !== "" && !(name === this.chooser.name && chosen === usual)) {
        policy[name] = valueIn(view.text);
      }
    }
    const problems = new Map(problemsOf(policy).map(({ field, message }) => [field, message]));
    for (const [name, view] of this.views) view.wrong = problems.get(name);
    return problems.size === 0 ? policy : undefined;
  }

  /** Shows a policy. A name of the table's second column is shown at the first. */
  show(policy: Policy): void {
    for (const { name, synonym, default: usual } of this.table) {
      const value = policy[name] ?? (synonym === null ? undefined : policy[synonym]);
      this.view(name).text = String(value ?? (name === this.chooser.name ? usual : ""));
    }
  }

  /** Shows what is in force where nothing was given. */
  showInForce(inForce: Policy): void {
    for (const field of this.table) {
      const { name, usedBy } = field;
      this.view(name).placeholder = String(inForce[name] ?? `for ${usedBy.join(", ")}`);
    }
  }

  private view(name: string): FieldView {
    return this.views.get(name) as FieldView;
  }
}

function hintOf({ valid, default: usual, of, synonym, usedBy }: Field, chooser: Field): string {
  const value = of === null ? String(usual) : usual === 1 ? of : `${usual} x ${of}`;
  const users = usedBy.length < chooser.words.length ? `; for ${chooser.name} ${usedBy.join(" and ")}` : "";
  const other = synonym === null ? "" : `; also called ${synonym}`;
  return `${valid.charAt(0).toUpperCase()}${valid.slice(1)}. Default: ${value}${users}${other}.`;
}
