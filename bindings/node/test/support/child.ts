import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The root of the repository, where `switchgear` names the package itself. */
export const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));

/** What a script did that ran in a process of its own. */
export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs an ES module in a process of its own; one that does not end by itself within 300 seconds is killed, with code -1. */
export function runScript(script: string, flags: readonly string[] = []): Promise<Ran> {
  return new Promise((resolve) => {
    const args = [...flags, "--input-type=module", "--eval", script];
    execFile(process.execPath, args, { cwd: ROOT, timeout: 300_000 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
      resolve({ code, stdout, stderr });
    });
  });
}
