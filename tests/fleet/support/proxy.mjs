// A TCP proxy before a Redis server: it counts the commands of one worker, and is where the network goes wrong.
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { withResolvers } from "./until.mjs";

/** Starts one on a free port, before the server on `target`. */
export async function startProxy(target) {
  /** How many commands came, by name. */
  const commands = {};
  const pairs = new Set();
  let delayMs = 0;
  let losing = 0;
  let lost = 0;
  let holding = false;
  let losingMessages = false;
  let noticed = withResolvers();

  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    const pair = { client, upstream, late: [], held: [], subscribes: false };
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.setNoDelay(true).on("error", end).on("close", end);

    const names = namesIn();
    client.on("data", (chunk) => {
      for (const name of names(chunk)) {
        commands[name] = (commands[name] ?? 0) + 1;
        pair.last = name;
        pair.subscribes ||= name === "SUBSCRIBE";
      }
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => {
      // A script that ran answers an array; that it was not known is no reply to lose.
      if (losing > 0 && pair.last.startsWith("EVAL") && chunk[0] === ARRAY) {
        losing -= 1;
        lost += 1;
        end();
      } else if (pair.subscribes && losingMessages) {
        // As if it had never been said.
      } else if (holding) {
        pair.held.push(chunk);
        if (!pair.subscribes) noticed.resolve();
      } else if (delayMs > 0) {
        pair.late.push(chunk);
        setTimeout(() => pair.late.length > 0 && client.write(pair.late.shift()), delayMs);
      } else {
        client.write(chunk);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    port: server.address().port,
    /** How many commands came that a caller may wait for: the engine's own are TIME, HDEL and, once a second, HMGET. */
    asked: () => ["HMGET", "EVALSHA", "EVAL"].reduce((sum, name) => sum + (commands[name] ?? 0), 0),
    /** New connections go to the server on this port, and the old ones are cut. */
    leadTo(port) {
      target = port;
      for (const { client } of pairs) client.destroy();
    },
    /** Replies come so much later. */
    slowDown(ms) {
      delayMs = ms;
      // What is under way stays in order.
      for (const { client, late } of pairs) for (const chunk of late.splice(0)) client.write(chunk);
    },
    /** The next script's reply is lost, and with it the connection. */
    loseReply() {
      losing += 1;
    },
    lost: () => lost,
    /** From now on replies and messages wait here. */
    hold() {
      holding = true;
      noticed = withResolvers();
    },
    /** Until a reply does: the server has done what it was asked for. */
    held: () => noticed.promise,
    /** They wait no longer. */
    release() {
      holding = false;
      for (const { client, held } of pairs) for (const chunk of held.splice(0)) client.write(chunk);
    },
    /** What is announced does not come any more. */
    loseMessages() {
      losingMessages = true;
    },
    stop() {
      server.close();
      for (const { client } of pairs) client.destroy();
    },
  };
}

const ARRAY = "*".charCodeAt(0);

/** Tells the names of the commands in what a client sends: arrays of texts, each with its length. */
function namesIn() {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    const names = [];
    for (;;) {
      const command = commandAt(rest);
      if (command === undefined) return names;
      names.push(command.name);
      rest = rest.subarray(command.end);
    }
  };
}

/** The name of the first command, and where the next one begins; none while it is not all there. */
function commandAt(bytes) {
  const number = (from) => {
    const end = bytes.indexOf("\r\n", from);
    return end === -1 ? undefined : { value: Number(bytes.toString("latin1", from + 1, end)), end: end + 2 };
  };
  const words = number(0);
  if (words === undefined) return undefined;
  let { end } = words;
  let name;
  for (let word = 0; word < words.value; word++) {
    const length = number(end);
    if (length === undefined || bytes.length < length.end + length.value + 2) return undefined;
    name ??= bytes.toString("latin1", length.end, length.end + length.value).toUpperCase();
    end = length.end + length.value + 2;
  }
  return { name, end };
}
