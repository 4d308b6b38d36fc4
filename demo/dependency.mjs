// The dependency that the demo guards calls to: a real HTTP server that fails and recovers when told.
import { once } from "node:events";
import { createServer } from "node:http";

/** How long a broken dependency takes to say so, in ms: the wait that a breaker spares its callers. */
const BROKEN_ANSWER_MS = 150;

/** How long a healthy one takes: long enough for the calls that race a probe to come while it is in flight. */
const HEALTHY_ANSWER_MS = 40;

/** Starts it on a free port. It keeps the log of its requests, the witness for what the demo claims. */
export async function startDependency() {
  let broken = false;
  /** Each request: when it came and when its answer went out (epoch ms), and the status of that answer. */
  const requests = [];

  const server = createServer((_, response) => {
    const request = { receivedAt: Date.now(), answeredAt: null, status: broken ? 503 : 200 };
    requests.push(request);
    setTimeout(
      () => {
        request.answeredAt = Date.now();
        response.writeHead(request.status).end(`${request.status}`);
      },
      broken ? BROKEN_ANSWER_MS : HEALTHY_ANSWER_MS,
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    url: `http://127.0.0.1:${server.address().port}/charge`,
    requests,
    answerMs: BROKEN_ANSWER_MS,
    break: () => (broken = true),
    recover: () => (broken = false),
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
