// What of wasm-bindgen's glue no page needs: it is for callers and engines that this package does not have.

/** By what it is for, a part of the glue and what stands in its place. */
const PARTS = {
  "a module that has no realloc: these have": [/^ {4}if \(realloc === undefined\) \{\n.*?^ {4}\}\n/ms, ""],
  "engines without encodeInto: those have none of what the modules need, either": [
    /^if \(!\('encodeInto' in cachedTextEncoder\)\) \{\n.*?^\}\n/ms,
    "",
  ],
  "how initSync was called once, and where it is called without a compiled module": [
    /^ {4}if \(module !== undefined\) \{\n( {8}if .*?console\.warn\('[^']*`initSync.*?)^ {4}\}\n/ms,
    "    ({ module } = module);\n",
  ],
  "initSync a second time": [
    /^function initSync\(module\) \{\n {4}if \(wasm !== undefined\) return wasm;\n/m,
    "function initSync(module) {\n",
  ],
  "what an earlier module has left": [/^( {4}wasmModule = module;\n)(?: {4}cached\w+ = null;\n)+/m, "$1"],
  "views that are kept until the memory has moved: of those that few calls use, which are made in no time": [
    /^let cached(DataView|Uint16Array)Memory0 = null;\n(function .*?\n).*?cached\1Memory0 = (new \1\(wasm\.\w+\.buffer\);\n).*?^\}\n/gms,
    "$2    return $3}\n",
  ],
  "initSync with bytes": [
    /^ {4}if \(!\(module instanceof WebAssembly\.Module\)\) \{\n {8}module = new WebAssembly\.Module\(module\);\n {4}\}\n/m,
    "",
  ],
};

/**
 * The glue without those parts.
 * @throws Error if one of them is not there: then wasm-bindgen makes something else now
 */
export function lean(glue) {
  return Object.entries(PARTS).reduce((text, [what, [part, instead]]) => {
    if (!part.test(text)) throw new Error(`the glue does not look as expected, it has nothing for ${what}`);
    return text.replace(part, instead);
  }, glue);
}
