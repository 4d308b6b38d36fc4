// A real HTTP server on a free port of this machine that counts what reaches it and answers as it is told.
import { once } from "node:events";
import { createServer } from "node:http";

/** Starts one. */
export async function startOrigin() {
  const origin = new Origin();
  await origin.start();
  return origin;
}

class Origin {
  /** How many requests came, the browser's own questions (preflights, icons) aside. */
  requests = 0;
  /** The last of them. */
  last = null;
  /**
   * What is answered: `status`, `headers`, and `body` or `chunks`; `breaks` cuts the connection after them, `hang` leaves the answer
   * open; with nothing to say before, it answers nothing until {@link release}.
   */
  answer = {};
  #server = createServer((request, response) => this.#take(request, response));
  #waiting = [];
  #hanging = [];

  async start() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.origin = `http://127.0.0.1:${this.#server.address().port}`;
  }

  /** Resolves when so many requests have come. */
  reached(count) {
    return new Promise((resolve) => {
      this.#waiting.push({ count, resolve });
      this.#tell();
    });
  }

  /** Answers, at last, what was left without an answer. */
  release(answer) {
    for (const response of this.#hanging.splice(0)) this.#say(response, answer);
  }

  async close() {
    if (!this.#server.listening) return;
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #take(request, response) {
    let body = "";
    for await (const chunk of request) body += chunk;
    const cross = {
      "access-control-allow-origin": "*",
      "access-control-allow-headers": "*",
      "access-control-allow-methods": "*",
      "access-control-expose-headers": "*",
    };
    for (const [name, value] of Object.entries(cross)) response.setHeader(name, value);
    if (request.method === "OPTIONS" || request.url === "/favicon.ico") {
      response.writeHead(204).end();
      return;
    }
    this.requests += 1;
    this.last = { method: request.method, url: request.url, headers: request.headers, body };
    this.#tell();
    if (this.answer.hang && this.answer.chunks === undefined) this.#hanging.push(response);
    else this.#say(response, this.answer);
  }

  #say(response, { status = 200, headers = {}, body, chunks, breaks = false, hang = false }) {
    response.writeHead(status, headers);
    const parts = [...(chunks ?? (body === undefined ? [] : [body]))];
    const next = () => {
      const part = parts.shift();
      if (part !== undefined) response.write(part, next);
      else if (breaks) response.destroy();
      else if (!hang) response.end();
    };
    next();
  }

  #tell() {
    const ready = this.#waiting.filter(({ count }) => count <= this.requests);
    this.#waiting = this.#waiting.filter((each) => !ready.includes(each));
    for (const { resolve } of ready) resolve();
  }
}
