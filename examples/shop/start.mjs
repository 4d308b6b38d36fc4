// Starts the whole of the example: Redis, the card processor, the service in NestJS with its page, the one in FastAPI, and the Celery
// worker. `node examples/shop/start.mjs` does so until it is interrupted; the test imports `startShop`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { startServer } from "../../tests/support/servers.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = join(HERE, "../..");
const VENV = join(ROOT, ".cache/venv/bin");

/** A program of Python's: of the clone's virtual environment where there is one. */
const python = (program) => (existsSync(join(VENV, program)) ? join(VENV, program) : program);

/**
 * Starts everything.
 * @param {{ openMs?: number, storeTimeoutMs?: number }} options how long the circuit stays open, and how long the three wait for
 *   Redis before each goes by its own breaker; milliseconds
 * @returns {Promise<{ redis: string, processor: string, nest: string, api: string, stop(): Promise<void> }>}
 */
export async function startShop({ openMs = 10_000, storeTimeoutMs = 100 } = {}) {
  const running = [];
  let redis;
  const stop = async () => {
    for (const child of running.splice(0).reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    await redis?.stop();
  };
  /** Runs a program until it says what it says when it is ready; what that matched. */
  const start = async (ready, command, args, env = {}) => {
    const child = spawn(command, args, {
      cwd: HERE,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    running.push(child);
    const said = [];
    const heard = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`${command} ended with ${code}:\n${said.join("\n")}`)));
      for (const stream of [child.stdout, child.stderr]) {
        createInterface({ input: stream }).on("line", (line) => {
          said.push(line);
          const match = ready.exec(line);
          if (match) resolve(match);
        });
      }
    });
    return heard;
  };
  try {
    await compile();
    redis = await startServer();
    const [, processor] = await start(/listening on (\S+)/, process.execPath, ["dependency.mjs"]);
    const env = {
      REDIS_URL: redis.url,
      PROCESSOR_URL: processor,
      OPEN_MS: String(openMs),
      STORE_TIMEOUT_MS: String(storeTimeoutMs),
      PYTHONUNBUFFERED: "1",
    };
    const main = join(ROOT, ".cache/examples/shop/main.js");
    const [[, nest], [, api]] = await Promise.all([
      start(/listening on (\S+)/, process.execPath, [main, "page", "0"], env),
      start(/running on (\S+)/, python("uvicorn"), ["--port", "0", "api:app"], env),
      start(
        /\bready\b/,
        python("celery"),
        ["--app", "worker", "worker", "--concurrency", "1", "--loglevel", "INFO"],
        env,
      ),
    ]);
    return { redis: redis.url, processor, nest, api, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Nest's decorators need a compiler. */
async function compile() {
  const tsc = spawn(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", join(HERE, "nest")], {
    stdio: "inherit",
  });
  const [code] = await once(tsc, "exit");
  if (code !== 0) throw new Error("the service in NestJS does not compile");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const shop = await startShop();
  console.log(`the page          ${shop.nest}`);
  console.log(`NestJS            ${shop.nest}/charge/1`);
  console.log(`FastAPI           ${shop.api}/charge/1`);
  console.log(`Celery            curl -X POST ${shop.api}/charge/1/later`);
  console.log(`break it          curl -X POST ${shop.processor}/break`);
  console.log(`mend it           curl -X POST ${shop.processor}/recover`);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => shop.stop());
}
