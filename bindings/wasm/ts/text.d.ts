/** A WebAssembly module, which the bundler turns into text: see `bundle.mjs`. */
declare module "*.wasm" {
  const text: string;
  export default text;
}
