// One process of a fleet: `fleet-process.mjs URL IN_FLIGHT`. Asked for a scheme and a time, it makes calls for so long, so many at
// once, and says how many they were and how long they took.
import { Redis } from "ioredis";
import { callsThrough } from "./schemes.mjs";
import { count, newSpread } from "./spread.mjs";

const [url, width] = [process.argv[2], Number(process.argv[3])];
const calls = await callsThrough(new Redis(url));

process.on("message", async ({ scheme, ms }) => process.send(await callFor(ms, calls[scheme])));
process.on("disconnect", () => process.exit());

async function callFor(ms, call) {
  const latencies = newSpread();
  const begin = performance.now();
  let made = 0;
  let now = begin;
  const caller = async () => {
    do {
      const from = performance.now();
      await call();
      now = performance.now();
      count(latencies, (now - from) * 1000);
      made += 1;
    } while (now < begin + ms);
  };
  await Promise.all(Array.from({ length: width }, caller));
  return { calls: made, tookMs: now - begin, latencies };
}
