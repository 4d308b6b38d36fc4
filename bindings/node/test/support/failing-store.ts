/** What tests of a store that fails have in common: its events, the reason it gives, and deadlines that pass when told to. */
import { StoreError, StoreUnavailableError } from "switchgear";
import type { RedisStore, StoreEvent } from "switchgear/redis";
import { afterEach, expect, vi } from "vitest";
import { place } from "./stores";

/** Long enough for any answer on a slow machine, for tests that want one. */
export const PATIENT = 10_000;

/** How long to look whether something has come to be so: only there to end what hangs. */
export const LIMIT = 60_000;

/** For breakers that say what the store did, instead of deciding themselves. */
export const CLOSED = { onStoreFailure: "fail-closed" } as const;

/** Lets the deadline of whoever is waiting for a store pass, without waiting for it. */
export function passDeadline(): void {
  vi.advanceTimersByTime(PATIENT);
}

/** Stops the clock that deadlines go by, for as long as the test runs; everything else goes on. */
export function holdDeadlines(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
}

/** Stops the clock that is measured by, for as long as the test runs: every answer comes at once, whenever it comes. */
export function holdMeasuring(): void {
  vi.useFakeTimers({ toFake: ["performance"] });
}

export function eventsOf(store: RedisStore): StoreEvent[] {
  const events: StoreEvent[] = [];
  store.on("storeError", (event) => events.push(event));
  return events;
}

/** The text of why the store was not available. */
export async function reason(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (thrown) => thrown,
  );
  expect(error).toBeInstanceOf(StoreUnavailableError);
  expect(error).toMatchObject({ code: "store_unavailable", status: 503, statusCode: 503, retryable: false });
  expect(error.cause).toBeInstanceOf(StoreError);
  return error.cause.message;
}

/** A server and a client for the tests of one `describe`; neither a hung server nor a held clock spoils the next test. */
export function lazily() {
  const here = place();
  afterEach(() => {
    vi.useRealTimers();
    here.server.resume();
  });
  return { server: () => here.server, redis: () => here.redis };
}
