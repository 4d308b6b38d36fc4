/**
 * Real servers for tests, demo and benchmark: a `redis-server` on a free port of 127.0.0.1, a cluster of masters, a
 * sentinel that watches a server.
 *
 * No server outlives its starter: each runs under a small shell that holds the read end of a pipe whose only write end
 * is in this process. However this process ends, SIGKILL included, the pipe closes, and the shell kills the server and
 * removes its folder. Nothing here keeps the process alive.
 *
 * `REDIS_SERVER` names another binary, for example `valkey-server`. The types are in `servers.d.mts`.
 */
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export async function startServer(options = {}) {
  if (options.port !== undefined) return launch(options, options.port);
  return onSomePort((port) => launch(options, port));
}

export async function startSentinel(master, name) {
  const config = `sentinel monitor ${name} 127.0.0.1 ${master.port} 1\n`;
  return onSomePort((port) => launch({ config, args: ["--sentinel"] }, port));
}

export async function startCluster(masters = 3) {
  const nodes = await Promise.all(Array.from({ length: masters }, () => startServer({ args: CLUSTERED })));
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    const addresses = nodes.map((node) => `127.0.0.1:${node.port}`);
    await run("redis-cli", ["--cluster", "create", ...addresses, "--cluster-replicas", "0", "--cluster-yes"]);
    await Promise.all(nodes.map(clusterIsUp));
  } catch (error) {
    await stop();
    throw error;
  }
  return { nodes, stop };
}

export const CLUSTERED = ["--cluster-enabled", "yes", "--cluster-node-timeout", "60000"];

const run = promisify(execFile);

const READY = /Ready to accept connections|Sentinel ID is/;
const TAKEN = /Address already in use/;

// Below the range from which the system takes the ports of outgoing connections, with room for the cluster bus
// (port + 10000) below it too, so that no client of a parallel test can sit on either; nor does a server sit on a bus.
const FIRST_PORT = 11_000;
const PORTS = 10_000;

// The watcher reads until this process closes the pipe or ends; `wait` ends when the server does, whoever ended it.
const GUARDIAN = `
  exec 3<&0
  "$@" --dir "$GUARDED_DIR" </dev/null & server=$!
  echo "guarding $server"
  exec 2>/dev/null
  { read -r line <&3; kill -9 $server; } & watcher=$!
  wait $server; code=$?
  kill $watcher
  rm -rf "$GUARDED_DIR"
  exit $code
`;

class PortTaken extends Error {}

/**
 * A port that no other process starts a server on while this one lives, so that one may go and come back there. Whoever
 * starts servers as this does, `bindings/python/tests/support/servers.py` too, first takes the port at another address of
 * this machine, at which nobody listens otherwise.
 */
async function ownPort() {
  for (let attempt = 1; attempt <= 1000; attempt += 1) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    const taken = await new Promise((resolve) => {
      const own = createServer().once("error", ({ code }) => resolve(code === "EADDRINUSE"));
      // Where there is no such address all that is left is that ports are many. It keeps no process alive.
      own.listen({ port, host: "127.0.0.2", exclusive: true }, () => resolve(false)).unref();
    });
    if (!taken) return port;
  }
  throw new Error("no port is free");
}

async function onSomePort(start) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await start(await ownPort());
    } catch (error) {
      if (attempt === 20 || !(error instanceof PortTaken)) throw error;
    }
  }
}

async function launch({ args = [], password, config }, port) {
  const directory = mkdtempSync(join(tmpdir(), "switchgear-redis-"));
  const command = [process.env.REDIS_SERVER ?? "redis-server"];
  if (config !== undefined) {
    const file = join(directory, "server.conf");
    writeFileSync(file, config);
    command.push(file);
  } else {
    // A replica need not wait for others that might come.
    command.push("--repl-diskless-sync-delay", "0");
  }
  command.push("--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", ...args);
  if (password !== undefined) command.push("--requirepass", password);
  // Detached: Ctrl-C in a terminal goes to this process alone, and the closing pipe does the rest.
  const guardian = spawn("sh", ["-c", GUARDIAN, "guardian", ...command], {
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, GUARDED_DIR: directory },
  });
  const gone = new Promise((resolve) => guardian.once("close", resolve));
  const pid = await untilReady(guardian, port);
  const handles = [guardian, guardian.stdin, guardian.stdout];
  for (const handle of handles) handle.unref();

  return {
    port,
    pid,
    url: `redis://127.0.0.1:${port}`,
    async cli(...cliArgs) {
      const env = password === undefined ? process.env : { ...process.env, REDISCLI_AUTH: password };
      const { stdout } = await run("redis-cli", ["-p", String(port), ...cliArgs], { env });
      return stdout.trimEnd();
    },
    pause() {
      process.kill(pid, "SIGSTOP");
      // It may run on another processor until the signal gets there. Not every system shows that.
      const shown = `/proc/${pid}/stat`;
      while (existsSync(shown) && !/\) T /.test(readFileSync(shown, "utf8")));
    },
    resume: () => process.kill(pid, "SIGCONT"),
    async stop() {
      // The wait must not end with the event loop: hold on to the guardian again until it is gone, and to what it says, for
      // that may end after it.
      for (const handle of handles) handle.ref();
      guardian.stdin.end();
      await gone;
    },
  };
}

/** The server's process id, once it takes connections. Its output is read on afterwards, so that it never blocks. */
function untilReady(guardian, port) {
  return new Promise((resolve, reject) => {
    let output = "";
    let ready = false;
    guardian.stdout.setEncoding("utf8").on("data", (chunk) => {
      if (ready) return;
      output += chunk;
      const pid = /guarding (\d+)/.exec(output)?.[1];
      ready = pid !== undefined && READY.test(output);
      if (ready) resolve(Number(pid));
    });
    guardian.once("error", reject);
    guardian.once("close", (code) => {
      if (TAKEN.test(output)) reject(new PortTaken(`port ${port} is taken`));
      else if (code === 127) reject(new Error("redis-server is not installed (Debian: apt-get install redis-server)"));
      else reject(new Error(`redis-server ended with ${code}:\n${output}`));
    });
  });
}

/** Until a node knows of each slot who has it, and has a link to each other node: what is published does not go to one without. */
async function clusterIsUp(node) {
  // Only there to end what hangs.
  const giveUpAt = performance.now() + 60_000;
  while (performance.now() < giveUpAt) {
    const isOk = (await node.cli("cluster", "info")).includes("cluster_state:ok");
    if (isOk && !/disconnected|handshake/.test(await node.cli("cluster", "nodes"))) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the cluster node on port ${node.port} did not come up`);
}
