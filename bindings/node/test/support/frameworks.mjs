// Real applications of each web framework, as short as they are written: one handler for every path, and no word about circuits.
import { once } from "node:events";
import { createServer } from "node:http";
import { serve } from "@hono/node-server";
import express5 from "express";
import express4 from "express4";
import fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";

/** By name: starts an application whose handler is an async function of the path. `wire` has the app before it starts. */
export const FRAMEWORKS = {
  "Express 4": (handler, wire = () => {}) => {
    const app = express4();
    // Express 4 does not look at what a handler returns.
    app.use((request, response, next) => {
      handler(request.path).then((text) => response.send(text), next);
    });
    wire(app);
    return listening(createServer(app));
  },
  "Express 5": (handler, wire = () => {}) => {
    const app = express5();
    app.use(async (request, response) => {
      response.send(await handler(request.path));
    });
    wire(app);
    return listening(createServer(app));
  },
  Koa: (handler, wire = () => {}) => {
    const app = new Koa();
    app.use(async (context) => {
      context.body = await handler(context.path);
    });
    wire(app);
    return listening(createServer(app.callback()));
  },
  "Fastify 5": async (handler, wire = () => {}) => {
    const app = fastify();
    wire(app);
    app.get("/*", (request) => handler(request.url));
    await app.listen({ port: 0, host: "127.0.0.1" });
    return { url: `http://127.0.0.1:${app.server.address().port}`, close: () => app.close() };
  },
  Hono: (handler, wire = () => {}) => {
    const app = new Hono();
    app.use(async (context, next) => {
      context.header("x-by", "a middleware");
      await next();
    });
    app.get("*", async (context) => context.text(await handler(context.req.path)));
    wire(app);
    return listening(serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }));
  },
};

async function listening(server) {
  if (server.address() === null) {
    if (!server.listening) server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
}
