/** A WebAssembly module, which the bundler turns into text: see `bundle.mjs`. */
declare module "*.wasm" {
  const text: string;
  export default text;
}

/** What every host has; the types of Node do not say so. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
}
