/** Stands for `node:os` where there is none: what an instance is called in events unless its user says. */

export function hostname(): string {
  return "wasm";
}
