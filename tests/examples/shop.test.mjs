// examples/shop, started as its README says: what its programs share, and that each answers as it promises.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Redis } from "ioredis";
import { DistributedCircuitBreaker, RedisStore } from "switchgear/redis";
import { startShop } from "../../examples/shop/start.mjs";
import { PATIENT, startBrowser } from "../support/browser.mjs";

/** As long as no machine is slow: nothing here waits until it is over. */
const OPEN_MS = 600_000;
/** As long: a service that gave Redis up would go by what it has seen itself. */
const STORE_TIMEOUT_MS = 60_000;

let shop;
let redis;
let operator;
let browser;
before(async () => {
  // One after the other: what has started is stopped, whatever does not start.
  browser = await startBrowser();
  shop = await startShop({ openMs: OPEN_MS, storeTimeoutMs: STORE_TIMEOUT_MS });
  redis = new Redis(shop.redis);
  const store = new RedisStore(redis, { prefix: "shop:", timeoutMs: STORE_TIMEOUT_MS });
  operator = new DistributedCircuitBreaker("billing", store, { tripOn: "consecutive" });
});
after(async () => {
  redis?.disconnect();
  await Promise.all([browser?.close(), shop?.stop()]);
});

const count = async () => Number(await (await fetch(`${shop.processor}/count`)).text());
const command = (name) => fetch(`${shop.processor}/${name}`, { method: "POST" });

/** What a service answers to a charge: its status, its `Retry-After` and the type of its body. */
async function charge(service) {
  const { status, headers } = await fetch(`${service}/charge/1`);
  return { status, wait: headers.get("retry-after"), type: headers.get("content-type")?.split(";")[0] };
}

async function task(order) {
  const begun = await fetch(`${shop.api}/charge/${order}/later`, { method: "POST" });
  const { task: id } = await begun.json();
  return async () => (await (await fetch(`${shop.api}/tasks/${id}`)).json()).status;
}

async function until(is, what) {
  const giveUpAt = Date.now() + 60_000;
  while (!(await is())) {
    assert.ok(Date.now() < giveUpAt, `never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test("a failure seen by one service is refused by all, and one probe lets all in again", async () => {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENT);
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  await page.goto(shop.nest);
  const pay = async () => {
    await page.getByRole("button").click();
    const status = page.getByRole("status");
    await until(async () => !/^(?:paying)?$/.test(await status.textContent()), "the page says what became of it");
    return status.textContent();
  };

  // All is well.
  assert.equal((await charge(shop.nest)).status, 200);
  assert.equal((await charge(shop.api)).status, 200);
  const good = await task(1);
  await until(async () => (await good()) === "SUCCESS", "the worker charges");
  assert.equal(await pay(), "charged order 1");

  // It breaks: three failures, of three processes in two languages, trip.
  await command("break");
  const bad = await task(2);
  await until(async () => (await bad()) === "FAILURE", "the worker fails");
  assert.equal((await charge(shop.api)).status, 500);
  assert.equal(await pay(), "the service answered 500");
  assert.equal(await operator.getState(), "open");

  // Nobody asks any more.
  const before = await count();
  const problem = (answer) => ({ status: answer.status, type: answer.type, waits: Number(answer.wait) > 0 });
  const refused = { status: 503, type: "application/problem+json", waits: true };
  assert.deepEqual(problem(await charge(shop.nest)), refused);
  assert.deepEqual(problem(await charge(shop.api)), refused);
  const later = await task(3);
  await until(async () => (await later()) === "RETRY", "the worker puts it off");
  assert.equal(await pay(), "the service answered 503");
  assert.match(await pay(), /^not asked: try again in \d+ s$/);
  assert.equal(await count(), before);

  // It recovers: whoever comes first is the probe, for all.
  await command("recover");
  await operator.trip({ forMs: 1 });
  await until(async () => (await charge(shop.api)).status === 200, "the probe comes through");
  assert.equal(await operator.getState(), "closed");
  await until(async () => (await charge(shop.nest)).status === 200, "the other service has heard of it");
  // A task that comes while the worker has not heard of it yet is put off until long after the test: so each is another.
  let order = 4;
  const again = async () => {
    const status = await task(order++);
    await until(async () => (await status()) !== "PENDING", "the worker takes it");
    return (await status()) === "SUCCESS";
  };
  await until(again, "the worker charges again");
  assert.deepEqual(problems, []);
});
