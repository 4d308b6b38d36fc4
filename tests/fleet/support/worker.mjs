// A process of the fleet, in Node: it does what its lines of JSON say, and answers each with one. The operations are those of
// worker.py and worker_asyncio.py; options are spelled as in JavaScript.
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster, Redis } from "ioredis";
import { CircuitOpenError } from "switchgear";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";

const circuits = new Map();
let now = 0;

/** One circuit, and what was heard of it. */
class Circuit {
  heard = { degraded: [], restored: [], storeError: [], configMismatch: [] };
  told = { done: 0, failed: 0, "refused open": 0, "refused half-open": 0 };
  errors = [];
  loops = [];
  isOver = false;

  constructor(as, { who, circuit, port, cluster, username, password, store = {}, policy = {}, clock }) {
    this.as = as;
    this.who = who;
    const auth = { username, password };
    this.client = cluster
      ? new Cluster(
          cluster.map((at) => ({ host: "127.0.0.1", port: at })),
          { redisOptions: auth },
        )
      : new Redis({ port, host: "127.0.0.1", ...auth });
    // What goes wrong is for the breaker to say.
    this.client.on("error", () => undefined);
    this.store = new RedisStore(this.client, { instance: who, ...store, ...(clock && { clock: () => now }) });
    for (const [event, list] of Object.entries(this.heard)) {
      this.store.on(event, (e) => list.push({ circuit: e.circuit, error: e.error?.message }));
    }
    this.breaker = new DistributedCircuitBreaker(circuit, this.store, policy);
    this.breaker.on("stateChange", ({ fromState, toState, reason, source }) => {
      say({ change: { circuit, fromState, toState, reason, source } });
    });
  }

  /** One guarded call: what the caller got. */
  async call(dependency) {
    let own;
    try {
      const got = await this.breaker.execute(async () => {
        own = { text: await this.ask(dependency, false) };
        if (own.text === "ok") return own;
        own = new Error(own.text);
        throw own;
      });
      return got === own ? "ok" : "something else";
    } catch (error) {
      if (error === own) return "own error";
      return error instanceof CircuitOpenError ? `refused ${error.state}` : `${error.name}: ${error.message}`;
    }
  }

  /** Calls by hand, again and again until the end, so that the dependency knows which of them are probes. */
  async loop(dependency) {
    while (!this.isOver) {
      let permit;
      try {
        permit = await this.breaker.acquire();
      } catch (error) {
        if (error instanceof CircuitOpenError) this.told[`refused ${error.state}`] += 1;
        else this.errors.push(`${error.name}: ${error.message}`);
        await sleep(10);
        continue;
      }
      if ((await this.ask(dependency, permit.probe)) === "ok") {
        await permit.recordSuccess();
        this.told.done += 1;
      } else {
        await permit.recordFailure();
        this.told.failed += 1;
      }
      await sleep(10);
    }
  }

  /** Asks the dependency. */
  async ask(port, probe) {
    const socket = connect(port, "127.0.0.1").setEncoding("utf8");
    socket.write(`${JSON.stringify({ who: this.who, pid: process.pid, circuit: this.as, probe })}\n`);
    const [answer] = await once(socket, "data");
    socket.destroy();
    return answer.trim();
  }
}

const OPERATIONS = {
  open: async ({ as, ...options }) => {
    if (options.clock !== undefined) now = options.clock;
    circuits.set(as, new Circuit(as, options));
    if (options.connects !== false) await circuits.get(as).client.ping();
  },
  calls: async ({ as, n, dependency }) => {
    const begin = performance.now();
    const got = [];
    const at = [];
    for (let i = 0; i < n; i++) {
      at.push(performance.now() - begin);
      got.push(await circuits.get(as).call(dependency));
    }
    return { got, at, ms: performance.now() - begin };
  },
  ask: ({ as }) => circuits.get(as).breaker.canExecute(),
  loop: ({ as, n, dependency }) => {
    const circuit = circuits.get(as);
    circuit.loops = Array.from({ length: n }, () => circuit.loop(dependency));
  },
  end: async ({ as }) => {
    const circuit = circuits.get(as);
    circuit.isOver = true;
    await Promise.all(circuit.loops);
  },
  snapshot: ({ as }) => circuits.get(as).breaker.getSnapshot(),
  control: ({ as, operation, options }) => circuits.get(as).breaker[operation](options),
  stats: ({ as }) => {
    const { heard, told, errors } = circuits.get(as);
    return { ...heard, told, errors };
  },
  close: () => {
    for (const { client } of circuits.values()) client.disconnect();
    circuits.clear();
  },
  clock: ({ to }) => {
    now = to;
  },
};

const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

createInterface({ input: process.stdin })
  .on("line", async (line) => {
    const { id, do: operation, ...rest } = JSON.parse(line);
    try {
      say({ id, result: (await OPERATIONS[operation](rest)) ?? null });
    } catch (error) {
      say({ id, error: `${error.name}: ${error.message}` });
    }
  })
  .on("close", () => process.exit());
say({ ready: true });
