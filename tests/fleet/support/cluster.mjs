// A cluster of real servers whose nodes can die for good, come back, have replicas, and pass slots on.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "../../support/servers.mjs";
import { until } from "./until.mjs";

const SLOTS = 16_384;

/** Starts one, of which each master has so many replicas; `args` are more options of its servers. */
export async function startCluster({ masters = 3, replicas = 0, args = [] } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "switchgear-cluster-"));
  const start = async (index, port) => {
    // Outside of the server's own folder, which goes when it does: so it comes back as who it was.
    const own = ["--cluster-enabled", "yes", "--cluster-config-file", join(folder, `${index}.conf`)];
    return startServer({
      port,
      args: [...own, "--cluster-node-timeout", "20000", ...args],
    });
  };
  const nodes = await Promise.all(Array.from({ length: masters * (1 + replicas) }, (_, index) => start(index)));
  const leaders = nodes.slice(0, masters);
  const cluster = {
    nodes,
    /** The master that has this slot. */
    ownerOf: (slot) => leaders[Math.floor((slot * masters) / SLOTS)],
    /** The replicas of a master. */
    replicasOf: (master) => nodes.filter((_, index) => index >= masters && index % masters === nodes.indexOf(master)),
    /** Starts a node again that was stopped. */
    async revive(node) {
      const index = nodes.indexOf(node);
      nodes[index] = await start(index, node.port);
      return nodes[index];
    },
    async isUp() {
      const views = await Promise.all(
        nodes.map(async (node) => [await node.cli("cluster", "info"), await node.cli("cluster", "nodes")]),
      );
      // Until a handshake is over, and a link is there, each knows of the other, but does not tell it everything.
      return views.every(
        ([info, view]) =>
          info.includes("cluster_state:ok") &&
          info.includes(`cluster_known_nodes:${nodes.length}`) &&
          !/disconnected|handshake/.test(view),
      );
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    await Promise.all(
      leaders.map(async (node, index) => {
        const [first, next] = [index, index + 1].map((at) => Math.ceil((at * SLOTS) / masters));
        await node.cli("cluster", "addslotsrange", `${first}`, `${next - 1}`);
        await node.cli("cluster", "set-config-epoch", `${index + 1}`);
      }),
    );
    for (const node of nodes.slice(1)) await nodes[0].cli("cluster", "meet", "127.0.0.1", `${node.port}`);
    await until("the nodes have met", () => cluster.isUp());
    for (const leader of leaders) {
      const id = await leader.cli("cluster", "myid");
      for (const replica of cluster.replicasOf(leader)) {
        await until("a replica has its master", async () => (await replica.cli("cluster", "replicate", id)) === "OK");
        await until("a replica is in step", async () =>
          (await replica.cli("info", "replication")).includes("master_link_status:up"),
        );
      }
    }
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

/** The slot of a circuit. */
export async function slotOf(node, circuit) {
  return Number(await node.cli("cluster", "keyslot", `{cb:${circuit}}`));
}
