// Groups: one breaker per key, bounded.
import { CircuitBreaker, CircuitBreakerGroup } from "switchgear";
import { describe, expect, test } from "vitest";
import { fail, ManualClock, succeed } from "./support/time";

function names(group: CircuitBreakerGroup): string[] {
  return [...group].map(({ name }) => name).sort();
}

describe("a group", () => {
  test("a key keeps its breaker, and keys do not disturb each other", async () => {
    const group = new CircuitBreakerGroup({ failureThreshold: 1 });
    expect(group.for("a")).toBe(group.for("a"));
    expect(group.for("a")).toBeInstanceOf(CircuitBreaker);
    await group
      .for("a")
      .execute(fail)
      .catch(() => undefined);
    expect(group.for("a").getState()).toBe("open");
    expect(group.for("b").getState()).toBe("closed");
    expect(group.size).toBe(2);
  });

  test("its name comes before the key", () => {
    expect(new CircuitBreakerGroup({ name: "hosts" }).for("a").name).toBe("hosts:a");
    expect(new CircuitBreakerGroup().for("a").name).toBe("a");
    const group = new CircuitBreakerGroup({ name: "n".repeat(511) });
    expect(() => group.for("a")).toThrow(expect.objectContaining({ code: "name_invalid" }));
    expect(group.size).toBe(0);
  });

  test("the least recently used goes first", () => {
    const group = new CircuitBreakerGroup({ maxKeys: 3 });
    for (const key of ["a", "b", "c"]) group.for(key);
    group.for("a");
    group.for("d");
    expect(names(group)).toEqual(["a", "c", "d"]);
    group.for("c");
    group.for("c");
    group.for("e");
    expect(names(group)).toEqual(["c", "d", "e"]);
  });

  test("a change of state is a use, and the next use counts again", () => {
    const group = new CircuitBreakerGroup({ maxKeys: 2, failureThreshold: 1 });
    const changing = group.for("changing");
    group.for("used");
    changing.trip();
    changing.reset();
    group.for("used");
    group.for("new");
    expect(names(group)).toEqual(["new", "used"]);
  });

  test("closed ones go before others, and a breaker that closed again is one of them", () => {
    const group = new CircuitBreakerGroup({ maxKeys: 3, failureThreshold: 1 });
    for (const key of ["open", "b", "c"]) group.for(key);
    group.for("open").recordFailure();
    for (const key of ["d", "e", "f", "g"]) group.for(key);
    expect(names(group)).toEqual(["f", "g", "open"]);
    [...group].find(({ name }) => name === "open")?.reset();
    for (const key of ["h", "i", "j"]) group.for(key);
    expect(names(group)).toEqual(["h", "i", "j"]);
  });

  test("if none is closed the least recently used goes", () => {
    const group = new CircuitBreakerGroup({ maxKeys: 2, failureThreshold: 1 });
    for (const key of ["a", "b", "c"]) group.for(key).recordFailure();
    expect(names(group)).toEqual(["b", "c"]);
  });

  test("one that was evicted goes on, on its own, and no longer has a say", () => {
    const group = new CircuitBreakerGroup({ maxKeys: 2, failureThreshold: 1 });
    const evicted = group.for("evicted");
    group.for("closed");
    // Takes the place of the evicted one.
    const open = group.for("open");
    open.recordFailure();
    evicted.recordFailure();
    expect(evicted.getState()).toBe("open");
    evicted.reset();
    expect(evicted.getState()).toBe("closed");
    group.for("closed");
    group.for("new");
    expect(names(group)).toEqual(["new", "open"]);
    expect(group.for("open")).toBe(open);
    expect(group.for("evicted")).not.toBe(evicted);
  });

  test("deleting a key makes room, and its next use starts afresh", async () => {
    const group = new CircuitBreakerGroup({ maxKeys: 2, failureThreshold: 1 });
    group.for("a").recordFailure();
    group.for("b");
    expect([group.delete("a"), group.delete("a"), group.delete("never")]).toEqual([true, false, false]);
    expect(group.size).toBe(1);
    group.for("c");
    expect(names(group)).toEqual(["b", "c"]);
    expect(group.for("a").getState()).toBe("closed");
    await expect(group.for("a").execute(succeed)).resolves.toBe("ok");
  });

  test("keys named like the properties of objects are keys like any other", () => {
    const group = new CircuitBreakerGroup({ maxKeys: 10 });
    const keys = ["__proto__", "constructor", "toString", "hasOwnProperty"];
    for (const key of keys) expect(group.for(key).name).toBe(key);
    expect(names(group)).toEqual([...keys].sort());
  });

  test("iterating while it changes ends", () => {
    const group = new CircuitBreakerGroup({ maxKeys: 2 });
    group.for("a");
    group.for("b");
    const seen: string[] = [];
    for (const breaker of group) {
      seen.push(breaker.name);
      if (seen.length < 10) group.delete(breaker.name);
    }
    expect(seen).toEqual(["a", "b"]);
    expect(group.size).toBe(0);
  });

  test("a key that is no text is refused, to forget as to find", () => {
    const group = new CircuitBreakerGroup();
    const refusal = { code: "name_invalid", message: "`key` must be a string, got `a symbol`" };
    const key = Symbol("k") as unknown as string;
    expect(() => group.for(key)).toThrow(expect.objectContaining(refusal));
    expect(() => group.delete(key)).toThrow(expect.objectContaining(refusal));
  });

  test.each(["evicted", "deleted"])(
    "who listens to a member that was %s keeps no clock running for the others",
    async (how) => {
      const clock = new ManualClock();
      const group = new CircuitBreakerGroup({ maxKeys: 2, clock: clock.read });
      const gone = group.for("a");
      const heard: string[] = [];
      const unsubscribe = gone.on("success", ({ circuit }) => heard.push(circuit));
      if (how === "deleted") group.delete("a");
      else for (const key of ["b", "c", "d"]) group.for(key);
      const reads = clock.reads;
      await group.for("d").execute(succeed);
      expect(clock.reads).toBe(reads);
      await gone.execute(succeed);
      expect(heard).toEqual(["a"]);
      // The group hears it still, as before, and its own listener counts for nobody else when it goes.
      const all = group.on("success", ({ circuit }) => heard.push(`group: ${circuit}`));
      await gone.execute(succeed);
      unsubscribe();
      await gone.execute(succeed);
      await group.for("d").execute(succeed);
      expect(heard).toEqual(["a", "a", "group: a", "group: a", "group: d"]);
      all();
      const quiet = clock.reads;
      await gone.execute(succeed);
      await group.for("d").execute(succeed);
      expect(clock.reads).toBe(quiet);
    },
  );
});
