// What docs/migrating/ says of opossum and cockatiel, tried on them as `make bench` installs them. Throws at the first thing that is not so.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import * as cockatiel from "cockatiel";
import Opossum from "opossum";

/** How long circuits are open here, and how long is surely longer, in milliseconds. */
const OPEN = 20;
const LONGER = 200;
/** How long those are that are to be open still, on a machine that is busy, too. */
const HOUR = 3_600_000;

const fail = async () => {
  throw new Error("down");
};
const outcome = (promise) =>
  promise.then(
    (value) => value,
    (error) => error.code ?? error.message,
  );

/** A function whose calls end when they are told to. */
function held() {
  const calls = [];
  return { calls, fn: () => new Promise((resolve, reject) => calls.push({ resolve, reject })) };
}

const CLAIMS = {
  "opossum: 10 s, 50 %, 30 s, a window of 10 s are the defaults": () => {
    const { timeout, errorThresholdPercentage, resetTimeout, rollingCountTimeout, volumeThreshold } = new Opossum(fail)
      .options;
    assert.deepEqual(
      [timeout, errorThresholdPercentage, resetTimeout, rollingCountTimeout, volumeThreshold],
      [10_000, 50, 30_000, 10_000, undefined],
    );
  },
  "opossum: the first failure opens, without volumeThreshold": async () => {
    const breaker = new Opossum(fail);
    assert.deepEqual([await outcome(breaker.fire()), await outcome(breaker.fire())], ["down", "EOPENBREAKER"]);
  },
  "opossum: it takes more than the percentage": async () => {
    const breaker = new Opossum((end) => end());
    await breaker.fire(() => Promise.resolve());
    await outcome(breaker.fire(fail));
    assert.equal(breaker.opened, false);
    await outcome(breaker.fire(fail));
    assert.equal(breaker.opened, true);
  },
  "opossum: an error that errorFilter takes out is a success, and no fallback runs": async () => {
    const breaker = new Opossum(fail, { errorFilter: () => true });
    breaker.fallback(() => "fallback");
    assert.equal(await outcome(breaker.fire()), "down");
    assert.deepEqual([breaker.stats.successes, breaker.stats.failures], [1, 0]);
  },
  "opossum: the fallback runs for failures and refusals, with the arguments first": async () => {
    const breaker = new Opossum(fail);
    breaker.fallback((id, error) => `${id} ${error.message}`);
    assert.equal(await breaker.fire("a"), "a down");
    assert.equal(await breaker.fire("b"), "b Breaker is open");
  },
  "opossum: half-open by a timer, and for one call": async () => {
    const { calls, fn } = held();
    const breaker = new Opossum(fn, { resetTimeout: OPEN, timeout: false });
    breaker.open();
    await sleep(LONGER);
    assert.equal(breaker.halfOpen, true);
    const probe = breaker.fire();
    assert.equal(await outcome(breaker.fire()), "EOPENBREAKER");
    calls[0].resolve("up");
    assert.equal(await probe, "up");
    assert.equal(breaker.closed, true);
  },
  "opossum: a success of before closes it while the probe runs, a failure of before opens it again": async () => {
    for (const [end, state] of [
      ["resolve", "closed"],
      ["reject", "opened"],
    ]) {
      const { calls, fn } = held();
      const breaker = new Opossum(fn, { resetTimeout: OPEN, timeout: false });
      const early = outcome(breaker.fire());
      breaker.open();
      await sleep(LONGER);
      if (end === "resolve") void breaker.fire();
      calls[0][end](new Error("late"));
      await early;
      assert.equal(breaker[state], true);
    }
  },
  "opossum: after its timeout the function goes on": async () => {
    const { calls, fn } = held();
    const breaker = new Opossum(fn, { timeout: 1 });
    assert.equal(await outcome(breaker.fire()), "ETIMEDOUT");
    assert.equal(calls.length, 1);
  },
  "opossum: capacity refuses what is too many at once": async () => {
    const breaker = new Opossum(held().fn, { capacity: 1 });
    void outcome(breaker.fire());
    assert.equal(await outcome(breaker.fire()), "ESEMLOCKED");
  },

  "cockatiel: a refusal says that it is one, and not for how long": async () => {
    const breaker = await broken(1, cockatiel.handleAll, HOUR);
    const error = await breaker.execute(fail).catch((error) => error);
    assert.deepEqual(
      [error instanceof cockatiel.BrokenCircuitError, Object.keys(error)],
      [true, ["isBrokenCircuitError"]],
    );
  },
  "cockatiel: calls of a half-open circuit wait for the probe, then run, or are refused": async () => {
    for (const [end, ran] of [
      ["resolve", 3],
      ["reject", 1],
    ]) {
      const breaker = await broken(1);
      await sleep(LONGER);
      const { calls, fn } = held();
      const ends = [1, 2, 3].map(() => outcome(breaker.execute(fn)));
      assert.equal(calls.length, 1);
      calls[0][end](new Error("down"));
      await ends[0];
      await sleep(1);
      for (const call of calls.slice(1)) call.resolve();
      await Promise.all(ends);
      assert.equal(calls.length, ran);
    }
  },
  "cockatiel: an error that the policy does not handle closes a half-open circuit": async () => {
    const breaker = await broken(1, cockatiel.handleType(RangeError));
    await sleep(LONGER);
    await outcome(breaker.execute(fail));
    assert.equal(breaker.state, cockatiel.CircuitState.Closed);
  },
  "cockatiel: and while closed it ends no row of failures": async () => {
    const breaker = make(2, cockatiel.handleType(RangeError));
    for (const error of [new RangeError(), new Error(), new RangeError()]) {
      await outcome(breaker.execute(() => Promise.reject(error)));
    }
    assert.equal(breaker.state, cockatiel.CircuitState.Open);
  },
  "cockatiel: a failure of before opens it while the probe runs, and the probe's success is lost": async () => {
    const breaker = make(1);
    const { calls, fn } = held();
    const early = outcome(breaker.execute(fn));
    await outcome(breaker.execute(fail));
    await sleep(LONGER);
    const probe = breaker.execute(fn);
    calls[0].reject(new Error("late"));
    await early;
    assert.equal(breaker.state, cockatiel.CircuitState.Open);
    calls[1].resolve();
    await probe;
    assert.equal(breaker.state, cockatiel.CircuitState.Open);
  },
  "cockatiel: a call that its caller aborts counts as a failure": async () => {
    const breaker = make(1);
    const controller = new AbortController();
    const call = breaker.execute(
      ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted")))),
      controller.signal,
    );
    controller.abort();
    await outcome(call);
    assert.equal(breaker.state, cockatiel.CircuitState.Open);
  },
  "cockatiel: a CountBreaker takes more than its threshold": async () => {
    const breaker = make(new cockatiel.CountBreaker({ size: 4, threshold: 0.5 }));
    for (const fn of [() => 1, () => 1, fail, fail]) await outcome(breaker.execute(fn));
    assert.equal(breaker.state, cockatiel.CircuitState.Closed);
  },
  "cockatiel: isolate refuses until it is disposed": async () => {
    const breaker = make(1);
    const hold = breaker.isolate();
    assert.ok((await breaker.execute(fail).catch((error) => error)) instanceof cockatiel.IsolatedCircuitError);
    hold.dispose();
    assert.equal(await breaker.execute(() => "up"), "up");
  },
};

function make(strategy, policy = cockatiel.handleAll, halfOpenAfter = OPEN) {
  const breaker = typeof strategy === "number" ? new cockatiel.ConsecutiveBreaker(strategy) : strategy;
  return cockatiel.circuitBreaker(policy, { halfOpenAfter, breaker });
}

async function broken(strategy, policy, halfOpenAfter) {
  const breaker = make(strategy, policy, halfOpenAfter);
  await outcome(breaker.execute(() => Promise.reject(new RangeError("down"))));
  return breaker;
}

for (const [claim, holds] of Object.entries(CLAIMS)) {
  await holds();
  console.log(`so it is  ${claim}`);
}
process.exit();
