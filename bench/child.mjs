// A process of Node that measures: it is asked by messages, one after another.
import { fork } from "node:child_process";

/** Starts `program`; what it is asked must answer each message with one of its own. */
export function startChild(program, args, execArgv = []) {
  const child = fork(program, args, { execArgv });
  return {
    ask(question) {
      return new Promise((resolve, reject) => {
        const died = (code) => reject(new Error(`the measuring process ${args.join(" ")} ended with ${code}`));
        child.once("exit", died);
        child.once("message", (answer) => {
          child.off("exit", died);
          resolve(answer);
        });
        child.send(question);
      });
    },
    end() {
      if (child.connected) child.disconnect();
    },
  };
}
