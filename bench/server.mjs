// The benchmark's own redis-server, and what it says of itself.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { startServer } from "../tests/support/servers.mjs";

/** How long a breaker of the benchmark waits for the store: nothing is measured while the machine is too busy to answer. */
export const PATIENT = { timeoutMs: 5000 };

/** Runs `measure` with the address of a server that nobody else uses and a client of it. */
export async function withServer(measure) {
  const server = await startServer();
  const client = new Redis(server.url);
  try {
    return await measure(client, server.url);
  } finally {
    client.disconnect();
    await server.stop();
  }
}

/** The server, as it names itself. */
export async function redisVersion() {
  const { stdout } = await promisify(execFile)(process.env.REDIS_SERVER ?? "redis-server", ["--version"]);
  return `Redis ${/v=([\d.]+)/.exec(stdout)?.[1] ?? stdout.trim()}`;
}

/**
 * What the server has spent so far: `cpuUs` of processor time, `commands` executed, also by scripts, and `reads` from sockets,
 * which is the number of round trips where one call is made at a time. What is asked by the benchmark, or by clients now and
 * then whatever the calls, is no command here.
 */
export async function spent(client) {
  const info = await client.info("everything");
  const number = (field) => Number(new RegExp(`^${field}:([\\d.]+)`, "m").exec(info)[1]);
  const commands = [
    ...info.matchAll(/^cmdstat_(?!(?:info|time|client|hello|script|memory|scan|flushall)\b)\S+?:calls=(\d+)/gm),
  ];
  return {
    cpuUs: (number("used_cpu_user_main_thread") + number("used_cpu_sys_main_thread")) * 1e6,
    commands: commands.reduce((sum, [, calls]) => sum + Number(calls), 0),
    reads: number("total_reads_processed"),
  };
}

/** Bytes that the server has taken for what it keeps. */
export async function usedMemory(client) {
  return Number(/^used_memory:(\d+)/m.exec(await client.info("memory"))[1]);
}
