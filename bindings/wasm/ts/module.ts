/** From the text that a module is shipped as to a module that may run. */

/** A WebAssembly module as text: what {@link bytesOf} reads. */
export type ModuleText = string;

/**
 * Compiles at once, without a promise: a page's first use does not wait, and nothing is fetched.
 * @throws Error that names what a Content-Security-Policy has to allow
 */
export function compiled(text: ModuleText): WebAssembly.Module {
  try {
    return new WebAssembly.Module(bytesOf(text));
  } catch (cause) {
    // Also where there is no `WebAssembly` at all, as in browsers that are locked down.
    const reason = cause instanceof Error ? cause.message : String(cause);
    const needed = "a Content-Security-Policy must allow it by `script-src 'wasm-unsafe-eval'`";
    throw new Error(`switchgear: WebAssembly may not run here; ${needed}: ${reason}`, { cause });
  }
}

/**
 * One character per byte, so that gzip finds in the text what it finds in the module (base64 would make it a quarter longer). The
 * characters begin behind the quote and leave out the backslash, so that none needs escaping: see `bundle.mjs`.
 */
function bytesOf(text: ModuleText): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    bytes[i] = code - (code > BACKSLASH ? FIRST + 1 : FIRST);
  }
  return bytes;
}

const BACKSLASH = 92;
const FIRST = 35;
