// The fault scenarios: what goes wrong with real servers, real networks and real rights, and what must be seen then.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { startServer } from "../../support/servers.mjs";
import { slotOf, startCluster } from "./cluster.mjs";
import { afterTrip, Crew, outage, POLICY, steady, TOGETHER, untilRestored } from "./crew.mjs";
import { until } from "./until.mjs";
import { KINDS } from "./workers.mjs";

/** What to begin a scenario with, and what to clean up after it. */
async function withCrew(play) {
  const crew = await Crew.start();
  const servers = [];
  const own = async (starting) => {
    const server = await starting;
    servers.push(server);
    return server;
  };
  try {
    return await play(crew, own);
  } finally {
    await crew.stop();
    await Promise.all(servers.map((server) => server.stop()));
  }
}

/** A scenario on one server. */
const onOne = (play) => () =>
  withCrew(async (crew, own) => {
    const server = await own(startServer());
    return play(crew, server, own);
  });

/** A server that has all that another has, now and later. */
async function startReplica(own, master) {
  const replica = await own(startServer({ args: ["--replicaof", "127.0.0.1", `${master.port}`] }));
  await until("the replica is in step", async () =>
    (await replica.cli("info", "replication")).includes("master_link_status:up"),
  );
  return replica;
}

/** The scenarios, each with what is injected; `play` gives what was seen. */
export const FAULTS = [
  {
    name: "Server killed and restarted",
    injected: "`kill -9`; later a new, empty server on its port",
    play: onOne(async (crew, server, own) => {
      await crew.open({ server });
      return outage(crew, {
        breaks: () => server.stop(),
        heals: () => own(startServer({ port: server.port })),
      });
    }),
  },
  {
    name: "Server hangs",
    injected: "SIGSTOP; later SIGCONT",
    play: onOne(async (crew, server) => {
      await crew.open({ server });
      return outage(crew, { breaks: () => server.pause(), heals: () => server.resume() });
    }),
  },
  {
    name: "Scripts forgotten",
    injected: "SCRIPT FLUSH, twice",
    play: onOne(async (crew, server) => {
      await crew.open({ server, patient: true, policy: TOGETHER });
      const flush = () => server.cli("script", "flush");
      return steady(crew, { injects: flush, again: flush });
    }),
  },
  {
    name: "Everything forgotten",
    injected: "FLUSHALL, first with four failures counted, then with the circuit open",
    play: onOne(async (crew, server) => {
      await crew.open({ server, patient: true, policy: TOGETHER });
      crew.dependencyWorks(false);
      const [first, second] = crew.workers;
      for (const worker of [first, second]) {
        const { got } = await worker.do("calls", { as: "it", n: 2, dependency: crew.dependency.port });
        assert.deepEqual(got, ["own error", "own error"]);
      }
      crew.dependencyWorks(true);
      const seen = await steady(crew, { injects: () => server.cli("flushall") });
      await first.do("control", { as: "it", operation: "trip", options: { forMs: 600_000 } });
      await server.cli("flushall");
      await until("all get through", async () => (await crew.calls(1)).every(({ got: [one] }) => one === "ok"));
      await crew.agrees();
      return seen;
    }),
  },
  {
    name: "Connections cut",
    injected: "CLIENT KILL of every connection, twice",
    play: onOne(async (crew, server) => {
      await crew.open({ server, patient: true, policy: TOGETHER });
      const cut = () => server.cli("client", "kill", "type", "normal");
      return steady(crew, { injects: cut, again: cut });
    }),
  },
  {
    name: "A reply lost, the command sent again",
    injected: "a proxy cuts the connection when the reply to the first failure of each process comes",
    play: onOne(async (crew, server) => {
      await crew.open({ server, patient: true, policy: TOGETHER });
      const seen = await steady(crew, {
        injects: () => undefined,
        again: () => crew.network((proxy) => proxy.loseReply()),
      });
      assert.deepEqual(
        crew.proxies.map((proxy) => proxy.lost()),
        [1, 1, 1],
      );
      return { ...seen, got: `${seen.got}: each counted once` };
    }),
  },
  {
    name: "Replica promoted",
    injected: "the master is killed; later its replica is promoted and has its address",
    play: onOne(async (crew, server, own) => {
      const replica = await startReplica(own, server);
      await crew.open({ server });
      await crew.open({ server, as: "held", circuit: "held" });
      await crew.workers[0].do("control", { as: "held", operation: "forceOpen" });
      await until(
        "the replica knows it, too",
        async () => (await replica.cli("hget", "{cb:held}", "mode")) === "forced-open",
      );
      const seen = await outage(crew, {
        breaks: () => server.stop(),
        heals: async () => {
          await replica.cli("replicaof", "no", "one");
          crew.network((proxy) => proxy.leadTo(replica.port));
        },
      });
      // The guard of the server opened for this circuit too; what it was to the fleet, it still is.
      await until("all know what was forced", async () =>
        (await crew.calls(1, "held")).every(({ got: [one] }) => one === "refused open"),
      );
      return seen;
    }),
  },
  {
    name: "Cluster: replica promoted",
    injected: "the master of the circuit's slot is killed; later its replica takes over",
    play: () =>
      withCrew(async (crew, own) => {
        const cluster = await own(startCluster({ replicas: 1, args: ["--cluster-replica-no-failover", "yes"] }));
        const master = cluster.ownerOf(await slotOf(cluster.nodes[0], "shared"));
        const [replica] = cluster.replicasOf(master);
        await crew.open({ cluster });
        return outage(crew, {
          breaks: () => master.stop(),
          heals: async () => {
            await replica.cli("cluster", "failover", "takeover");
            await until("the replica leads", async () => (await replica.cli("role")).startsWith("master"));
          },
        });
      }),
  },
  {
    name: "Cluster: one of three masters dead",
    injected: "the master of the circuit's slot is killed, of a cluster that serves the others; later it is back",
    play: () =>
      withCrew(async (crew, own) => {
        const cluster = await own(startCluster({ args: ["--cluster-require-full-coverage", "no"] }));
        const [first] = cluster.nodes;
        const master = cluster.ownerOf(await slotOf(first, "shared"));
        const elsewhere = await someCircuit(cluster, (owner) => owner !== master);
        await crew.open({ cluster });
        await crew.open({ cluster, as: "elsewhere", circuit: elsewhere });
        const seen = await outage(crew, {
          breaks: () => master.stop(),
          heals: async () => {
            await crew.isHealthy("elsewhere");
            await cluster.revive(master);
            await until("the cluster is whole", () => cluster.isUp());
          },
        });
        // Its own server was never away; it has its own guard.
        await crew.agrees("elsewhere");
        return seen;
      }),
  },
  {
    name: "Cluster: a slot being moved",
    injected: "the circuit's slot is moving, half of its keys moved; later it has moved",
    play: () =>
      withCrew(async (crew, own) => {
        const cluster = await own(startCluster());
        const [first] = cluster.nodes;
        const slot = await slotOf(first, "shared");
        const source = cluster.ownerOf(slot);
        const target = cluster.nodes.find((node) => node !== source);
        const [from, to] = await Promise.all([source, target].map((node) => node.cli("cluster", "myid")));
        const setSlot = (node, ...how) => node.cli("cluster", "setslot", `${slot}`, ...how);
        const move = (keys) => source.cli("migrate", "127.0.0.1", `${target.port}`, "", "0", "20000", "keys", ...keys);
        await crew.open({ cluster });
        // Two keys, of which one moves: its hash stays, so a plain read is answered by the source.
        await crew.workers[0].do("control", { as: "it", operation: "reset" });
        crew.dependencyWorks(false);
        await crew.workers[0].do("calls", { as: "it", n: 1, dependency: crew.dependency.port });
        crew.dependencyWorks(true);
        return outage(crew, {
          reads: true,
          // The failure above is one of five: to its own breaker of the first, and in the store.
          healthy: true,
          breaks: async () => {
            await crew.workers[0].do("control", { as: "it", operation: "reset" });
            await crew.isHealthy();
            await setSlot(target, "importing", from);
            await setSlot(source, "migrating", to);
          },
          heals: async () => {
            const keys = (await source.cli("cluster", "getkeysinslot", `${slot}`, "10")).split("\n").filter(Boolean);
            if (keys.length > 0) await move(keys);
            for (const node of [target, source, ...cluster.nodes]) await setSlot(node, "node", to);
          },
        });
      }),
  },
  {
    name: "Slow network",
    injected: "each reply comes 3000 ms late, three deadlines; later the network is well",
    play: onOne(async (crew, server) => {
      await crew.open({ server });
      const slowDown = (ms) => crew.network((proxy) => proxy.slowDown(ms));
      return outage(crew, { breaks: () => slowDown(3_000), heals: () => slowDown(0) });
    }),
  },
  {
    name: "Full memory",
    injected: "`maxmemory` reached, `noeviction`",
    play: onOne(async (crew, server) => {
      await crew.open({ server, patient: true, policy: TOGETHER });
      return steady(crew, {
        injects: async () => {
          await server.cli("config", "set", "maxmemory-policy", "noeviction");
          await server.cli("config", "set", "maxmemory", "1");
          assert.match(await server.cli("set", "key", "value"), /^OOM/);
        },
      });
    }),
  },
  {
    name: "A read-only replica by mistake",
    injected: "the address leads to a replica; later to its master",
    play: onOne(async (crew, server, own) => {
      const replica = await startReplica(own, server);
      await crew.open({ server });
      return outage(crew, {
        reads: true,
        breaks: async () => {
          crew.network((proxy) => proxy.leadTo(replica.port));
          await crew.calls(1);
        },
        heals: () => crew.network((proxy) => proxy.leadTo(server.port)),
      });
    }),
  },
  {
    name: "Wrong password",
    injected: "the processes start with a wrong password; later it is right",
    play: () =>
      withCrew(async (crew, own) => {
        const server = await own(startServer({ password: "right" }));
        await crew.open({ server, password: "wrong-secret", connects: false });
        const seen = await outage(crew, {
          healthy: false,
          breaks: () => undefined,
          heals: async () => {
            await server.cli("config", "set", "requirepass", "wrong-secret");
            crew.network((proxy) => proxy.leadTo(server.port));
          },
        });
        const stats = JSON.stringify(await crew.stats());
        assert.ok(!stats.includes("secret"), "no password in what was said");
        return seen;
      }),
  },
  {
    name: "A user with the documented rights",
    injected: "ACL: the rights of lua/README.md, on `{cb:*`, and no more",
    play: onOne(async (crew, server) => {
      await allow(server, "exact", documentedRights());
      await crew.open({
        server,
        patient: true,
        policy: TOGETHER,
        username: "exact",
        password: "exact",
        connects: false,
      });
      const seen = await steady(crew, { injects: () => undefined });
      // The whole life of a circuit, by each: half-open, a probe that fails, one that succeeds.
      for (const [index, worker] of crew.workers.entries()) {
        const call = async () =>
          (await worker.do("calls", { as: "it", n: 1, dependency: crew.dependency.port })).got[0];
        for (const end of ["own error", "ok"]) {
          await worker.do("control", { as: "it", operation: "trip", options: { forMs: 1 } });
          crew.dependencyWorks(end === "ok");
          await until(`the probe of ${KINDS[index]} is admitted`, async () => (await call()) === end);
        }
        await worker.do("control", { as: "it", operation: "disable" });
        await worker.do("control", { as: "it", operation: "reset" });
        assert.equal((await worker.do("snapshot", { as: "it" })).state, "closed");
      }
      for (const { storeError } of await crew.stats()) assert.deepEqual(storeError, []);
      const refused = [...(await server.cli("acl", "log")).matchAll(/^object\n(.*)$/gm)].map(([, object]) => object);
      // What clients send of their own accord when they connect.
      assert.deepEqual(
        refused.filter((object) => !["info", "client|setinfo"].includes(object)),
        [],
      );
      return seen;
    }),
  },
  {
    name: "A user with one right less",
    injected: "ACL: for each documented right a user without it, and circuits of its own; later with it",
    play: onOne(async (crew, server) => {
      const rights = documentedRights();
      const degradedOf = [0, 0, 0];
      let most = 0;
      const without = async (right) => {
        const name = right.slice(1);
        const user = { server, username: name, password: name, patient: true, connects: false };
        await allow(
          server,
          name,
          rights.filter((other) => other !== right),
        );
        // Each has a circuit of its own: a script that stays half done may forget what the fleet has counted.
        await crew.open({ ...user, as: name, circuit: (kind) => `${name}-${kind}` });
        for (const { got } of await crew.calls(2, name)) {
          assert.deepEqual(got, ["ok", "ok"], `without ${right}: callers get their own results`);
        }
        crew.dependencyWorks(false, name);
        const hits = crew.hits(name);
        const all = await crew.calls(12, name);
        const stats = await crew.stats(name);
        all.forEach((calls, index) => {
          const where = `${KINDS[index]}, without ${right}`;
          const { failureThreshold: threshold, openDurationMs } = POLICY;
          const { degraded, restored } = stats[index];
          const probes = afterTrip(where, calls, { threshold, openDurationMs });
          assert.equal(crew.hits(name)[index] - hits[index], threshold + probes, where);
          most = Math.max(most, threshold + probes);
          const { ms } = calls;
          // What a guard looks with, once a second, may be allowed where what it is about is not.
          const looks = Math.floor(ms / 1_000);
          assert.ok(
            degraded.length <= 1 + restored.length && restored.length <= looks,
            `${where}, ${ms} ms: ${JSON.stringify(stats[index])}`,
          );
          for (const event of degraded) {
            assert.equal(event.circuit, `${name}-${KINDS[index]}`, "it is this circuit's trouble alone");
          }
          degradedOf[index] += degraded.length;
        });
        await allow(server, name, [right]);
        crew.dependencyWorks(true, name);
        await untilRestored(crew, name);
        for (const [index, [degraded, restored]] of (await crew.health(name)).entries()) {
          assert.deepEqual([degraded, restored], [stats[index].degraded.length, degraded], `with ${right} again`);
        }
        await crew.open({ ...user, as: `${name} again`, circuit: name });
        await crew.agrees(`${name} again`);
      };
      await Promise.all(rights.map(without));
      return {
        waits: undefined,
        got: "own results; own errors, then refused",
        reached: KINDS.map(() => `at most ${most}`),
        health: degradedOf.map((count) => [count, count]),
      };
    }),
  },
];

/** A circuit whose slot is on a master as it is wanted. */
async function someCircuit(cluster, isWanted) {
  for (let index = 0; ; index++) {
    const circuit = `other-${index}`;
    if (isWanted(cluster.ownerOf(await slotOf(cluster.nodes[0], circuit)))) return circuit;
  }
}

/** The rights that lua/README.md gives: for the scripts, for announcements, and for the server's clock. */
function documentedRights() {
  const text = readFileSync(new URL("../../../lua/README.md", import.meta.url), "utf8");
  const section = /\n## Rights\n([\s\S]*?)\n## /.exec(text)[1];
  // What only listing circuits and listening need is no part of a breaker's life.
  return [...new Set([...section.match(/\+\w+/g), "+time"])].filter(
    (right) => !["+scan", "+cluster", "+subscribe"].includes(right),
  );
}

/** Gives a user rights, on the keys of circuits. */
async function allow(server, name, rights) {
  assert.equal(await server.cli("acl", "setuser", name, "on", `>${name}`, "~{cb:*", "&cb:events", ...rights), "OK");
}
