/** The rights that the page of the wire contract gives to a user of circuits. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./child";

/** What everybody needs who has circuits. */
export const RIGHTS: readonly string[] = lineOf(/^\+hmget .*$/m);

/** What clients send of their own accord when they connect. */
export const OF_A_CLIENT = ["+hello", "+info", "+client"];

function lineOf(begins: RegExp): string[] {
  const line = begins.exec(readFileSync(join(ROOT, "lua/README.md"), "utf8"))?.[0];
  if (line === undefined) throw new Error(`lua/README.md has no line like ${begins}`);
  return line.split(" ");
}
