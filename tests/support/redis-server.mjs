// A real redis-server for tests, the demo and the benchmark: in a folder of its own, on a Unix socket, and gone when
// the process that started it is gone.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Starts a redis-server and resolves when it takes connections.
 *
 * `path` is its Unix socket. With `port: true` it also listens on a free loopback port, and `url` says so. `args` are
 * further command line options of redis-server. `stop()` ends it and removes its folder.
 */
export async function startRedis({ port: wantsPort = false, args = [] } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "switchgear-redis-"));
  const path = join(folder, "redis.sock");
  const port = wantsPort ? await freePort() : 0;
  const options = ["--dir", folder, "--unixsocket", path, "--port", String(port), "--bind", "127.0.0.1"];
  const child = spawn("redis-server", [...options, "--save", "", "--appendonly", "no", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (output += text));

  const cleanUp = () => {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", cleanUp);

  const waiting = new AbortController();
  const gone = exited.then(([code, signal]) => {
    throw new Error(`redis-server ended (${code ?? signal}) before it took connections:\n${output}`);
  });
  try {
    await Promise.race([acceptsConnections(path, waiting.signal), gone]);
  } catch (error) {
    process.removeListener("exit", cleanUp);
    cleanUp();
    throw error;
  } finally {
    waiting.abort();
    gone.catch(() => {}); // it also ends when it is stopped, and then nobody asks
  }

  return {
    path,
    port: wantsPort ? port : undefined,
    url: wantsPort ? `redis://127.0.0.1:${port}` : undefined,
    pid: child.pid,
    async stop() {
      process.removeListener("exit", cleanUp);
      child.kill("SIGKILL");
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Resolves when the server answers PING on its socket, or when the caller no longer waits. */
async function acceptsConnections(path, signal) {
  while (!signal.aborted) {
    const answered = await new Promise((resolve) => {
      const socket = connect(path, () => socket.write("PING\r\n"));
      socket.once("data", (reply) => done(reply.toString().startsWith("+PONG")));
      socket.once("error", () => done(false));
      const done = (answer) => {
        socket.destroy();
        resolve(answer);
      };
    });
    if (answered) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
