/** The page: starts the core, then both views. */

import { startCore } from "./core";
import { Bench } from "./ui/bench";
import { byId } from "./ui/dom";
import { startTabs } from "./ui/tabs";
import { VectorView } from "./ui/vectors";

/** Where the first link of the page leads, by the view that is shown. */
const SKIPS: Readonly<Record<string, { readonly href: string; readonly textContent: string }>> = {
  simulation: { href: "#timeline", textContent: "Skip to the timeline" },
  vectors: { href: "#vector-body", textContent: "Skip to the vector" },
};

start().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  byId("problem-text", HTMLElement).textContent = `The core could not be started: ${message}`;
  byId("problem", HTMLElement).hidden = false;
});

async function start(): Promise<void> {
  const response = await fetch(new URL("objects.wasm", import.meta.url));
  if (!response.ok) throw new Error(`objects.wasm: HTTP ${response.status}`);
  // Not while streaming: that asks for a content type which plain file servers do not know.
  startCore(await compiled(await response.arrayBuffer()));
  // Where there is no room for both, what is set steps back behind what is shown.
  if (matchMedia("(max-width: 980px)").matches) {
    for (const details of document.querySelectorAll("details")) details.open = false;
  }
  const bench = new Bench();
  const vectors = new VectorView();
  startTabs(["simulation", "vectors"], (id) => {
    bench.pause();
    if (id === "vectors") void vectors.begin();
    const skip = document.querySelector<HTMLAnchorElement>(".skip");
    if (skip !== null) Object.assign(skip, SKIPS[id]);
  });
  document.documentElement.dataset.ready = "true";
}

/** @throws Error that says what a page's Content-Security-Policy has to allow */
async function compiled(bytes: ArrayBuffer): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(bytes);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const needed = "a Content-Security-Policy must allow it by `script-src 'wasm-unsafe-eval'`";
    throw new Error(`WebAssembly may not run here; ${needed}: ${reason}`, { cause });
  }
}
