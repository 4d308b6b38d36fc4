// What all of the example calls: a card processor that one may break. It counts what reaches it.
//
//   GET /charge      200, or 503 while it is broken
//   POST /break, POST /recover
//   GET /count       how many charges have reached it
import { once } from "node:events";
import { createServer } from "node:http";

let isBroken = false;
let reached = 0;

const server = createServer((request, response) => {
  const route = `${request.method} ${new URL(request.url, "http://localhost").pathname}`;
  if (route === "POST /break" || route === "POST /recover") isBroken = route === "POST /break";
  if (route === "GET /charge") {
    reached += 1;
    response.statusCode = isBroken ? 503 : 200;
  }
  response.end(String(route === "GET /count" ? reached : route));
}).listen(Number(process.argv[2] ?? 0), "127.0.0.1");
await once(server, "listening");
console.log(`listening on http://127.0.0.1:${server.address().port}`);
