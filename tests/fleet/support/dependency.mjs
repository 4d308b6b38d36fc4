// The dependency that the fleet guards its calls to: a real TCP server that answers by script, and the witness of all that
// reached it. A caller sends one line of JSON and gets one line back: `ok` or `fail`.
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Starts it on a free port.
 *
 * `script` says how a request ends: `"ok"`, `"fail"`, or a promise of one of them. A request is
 * `{ who, pid, circuit, probe }`. It is over when it is answered, or when its caller has closed the connection, as the kernel
 * does for one that was killed.
 */
export async function startDependency(script) {
  /** How many requests came, by circuit and by who sent them. */
  const hits = {};
  const inFlight = new Set();
  let mostProbes = 0;

  const server = createServer((socket) => {
    let text = "";
    let request;
    const leave = () => inFlight.delete(request);
    socket.on("error", leave).on("close", leave);
    socket.setEncoding("utf8").on("data", async (chunk) => {
      text += chunk;
      if (request !== undefined || !text.includes("\n")) return;
      request = JSON.parse(text);
      const from = `${request.circuit} ${request.who}`;
      hits[from] = (hits[from] ?? 0) + 1;
      inFlight.add(request);
      mostProbes = Math.max(mostProbes, probes().length);
      const answer = await dependency.script(request);
      inFlight.delete(request);
      socket.end(`${answer}\n`);
    });
  });
  const probes = () => [...inFlight].filter(({ probe }) => probe);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  const dependency = {
    port: server.address().port,
    script,
    hits,
    /** The probes that are being answered. */
    probes,
    /** The most of them at any one time. */
    mostProbes: () => mostProbes,
    stop() {
      server.close();
    },
  };
  return dependency;
}
