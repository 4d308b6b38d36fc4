/** Making and finding elements. No attribute carries style: the page's Content-Security-Policy forbids it. */

type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;
type Child = Node | string | false | null | undefined;

/** An HTML element. An attribute that is `true` is there, one that is `false` or undefined is not. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return filled(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** The element of the page with this id, which must be of this class. */
export function byId<E extends Element>(id: string, of: abstract new () => E): E {
  const element = document.getElementById(id);
  if (!(element instanceof of)) throw new Error(`the page has no ${of.name} called ${id}`);
  return element;
}

/** A button with a text. */
export function button(text: string, attributes: Attributes, press: () => void): HTMLButtonElement {
  const made = h("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", press);
  return made;
}

/** A button with a picture: one path on a square of 16 by 16. Its name is read out, and shown when it is pointed at. */
export function iconButton(name: string, path: string, attributes: Attributes, press: () => void): HTMLButtonElement {
  const made = button("", { "aria-label": name, title: name, ...attributes }, press);
  made.classList.add("icon");
  made.append(icon(path));
  return made;
}

export function icon(path: string): SVGSVGElement {
  return s("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, s("path", { d: path }));
}

/** Puts these in the place of all that was in it. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(...children.filter(isThere));
}

function filled<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter(isThere));
  return element;
}

function isThere(child: Child): child is Node | string {
  return child !== false && child !== null && child !== undefined;
}
