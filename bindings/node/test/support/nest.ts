/** Applications of NestJS as the tests make them: real ones, on whichever version of Nest is installed. */
import "reflect-metadata";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { INestApplication, ModuleMetadata, Type } from "@nestjs/common";
import { Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter, type NestFastifyApplication } from "@nestjs/platform-fastify";
import { CircuitBreakerModule, type CircuitBreakerModuleOptions } from "switchgear/nestjs";
import { afterEach } from "vitest";
import { ManualClock } from "./time";

/** What ends after each test, the latest first. */
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** Has something closed after the test. */
export function closing<C extends { close(): Promise<unknown> }>(what: C): C {
  open.push(() => what.close());
  return what;
}

/** The class of a module. */
export function moduleOf(metadata: ModuleMetadata): Type {
  @Module(metadata)
  class AppModule {}
  return AppModule;
}

/** A booted application without a server: its module imports ours, with the options. */
export async function booted(metadata: ModuleMetadata, options?: CircuitBreakerModuleOptions) {
  const imports = [CircuitBreakerModule.forRoot(options), ...(metadata.imports ?? [])];
  return start({ ...metadata, imports });
}

/** A booted application without a server, of just this module. */
export async function start(metadata: ModuleMetadata) {
  return closing(await NestFactory.createApplicationContext(moduleOf(metadata), QUIET));
}

/** The HTTP adapters. */
export const ADAPTERS: Readonly<Record<string, () => ExpressAdapter | FastifyAdapter>> = {
  Express: () => new ExpressAdapter(),
  Fastify: () => new FastifyAdapter(),
};

/** An application that listens, and its address. */
export async function serve(
  adapter: keyof typeof ADAPTERS,
  metadata: ModuleMetadata,
  prepare?: (app: INestApplication) => void,
): Promise<{ app: INestApplication; url: string }> {
  const made = (ADAPTERS[adapter] as () => ExpressAdapter)();
  const app: INestApplication = closing(
    await NestFactory.create<NestFastifyApplication>(moduleOf(metadata), made as never, QUIET),
  );
  prepare?.(app);
  await app.listen(0, "127.0.0.1");
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  return { app, url: `http://127.0.0.1:${port}` };
}

/** Errors at boot are the test's, and nothing is written to the terminal. */
export const QUIET = { logger: false, abortOnError: false } as const;

/** A policy that one failure trips, on a clock; by default one that stands still, so that nothing ends by itself. */
export function once(clock = new ManualClock()) {
  return { failureThreshold: 1, openDurationMs: 1000, clock: clock.read } as const;
}
