// `npm pack` gives a tarball that installs into an empty project and works there, however it is loaded.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { installPackage } from "../support/consumer.mjs";

let project;
before(async () => {
  project = await installPackage();
});
after(() => project?.remove());

/** Guards one call that fails and one that is refused; says what the refusal is and how the package was loaded. */
const USE = `
const breaker = new CircuitBreaker('billing', { failureThreshold: 1 });
const outcomes = [];
for (let i = 0; i < 2; i++) {
  await breaker.execute(() => Promise.reject(new Error('down'))).catch((error) => outcomes.push(error));
}
const [own, refusal] = outcomes;
if (own.message !== 'down' || !(refusal instanceof CircuitOpenError)) throw new Error('not guarded: ' + outcomes);
const used = [refusal.code, breaker.getState(), typeof RedisStore, typeof DistributedCircuitBreaker].join(' ');
`;
const USED = "circuit_open open function function";

test("the tarball holds the package and nothing else", async () => {
  const folder = join(project.folder, "node_modules/switchgear");
  const entries = (await readdir(folder)).sort();
  assert.deepEqual(entries, ["CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "dist", "package.json"]);
  const inside = await readdir(join(folder, "dist"), { recursive: true });
  assert.deepEqual(
    inside.filter((file) => !["nestjs", "wasm"].includes(file) && !/\.(?:js|mjs|d\.ts|d\.mts|node)$/.test(file)),
    [],
  );
});

test("it brings no other package along", async () => {
  const installed = (await readdir(join(project.folder, "node_modules"))).filter((name) => !name.startsWith("."));
  assert.deepEqual(installed, ["switchgear"]);
  const { dependencies = {} } = JSON.parse(
    await readFile(join(project.folder, "node_modules/switchgear/package.json"), "utf8"),
  );
  assert.deepEqual(dependencies, {});
});

test("it works when imported (ESM)", async () => {
  await project.write(
    "esm.mjs",
    `import { CircuitBreaker, CircuitOpenError } from 'switchgear';
     import { DistributedCircuitBreaker, RedisStore } from 'switchgear/redis';
     ${USE} console.log(used);`,
  );
  assert.equal((await project.node(["esm.mjs"])).stdout.trim(), USED);
});

test("it works when required (CommonJS)", async () => {
  await project.write(
    "cjs.cjs",
    `const { CircuitBreaker, CircuitOpenError } = require('switchgear');
     const { DistributedCircuitBreaker, RedisStore } = require('switchgear/redis');
     (async () => { ${USE} console.log(used); })();`,
  );
  assert.equal((await project.node(["cjs.cjs"])).stdout.trim(), USED);
});

test("imported and required are one: the same classes", async () => {
  await project.write(
    "both.mjs",
    `import { createRequire } from 'node:module';
     import * as esm from 'switchgear';
     import * as redis from 'switchgear/redis';
     const require = createRequire(import.meta.url);
     const pairs = [[esm, require('switchgear')], [redis, require('switchgear/redis')]];
     for (const [a, b] of pairs) for (const name of Object.keys(a)) {
       if (name !== 'default' && a[name] !== b[name]) throw new Error(name + ' differs');
     }
     console.log(Object.keys(esm).includes('CircuitBreaker'));`,
  );
  assert.equal((await project.node(["both.mjs"])).stdout.trim(), "true");
});

test("it works in worker threads, and in the main thread at the same time", async () => {
  await project.write(
    "worker.mjs",
    `import { Worker, isMainThread, parentPort } from 'node:worker_threads';
     import { CircuitBreaker, CircuitOpenError } from 'switchgear';
     import { DistributedCircuitBreaker, RedisStore } from 'switchgear/redis';
     ${USE}
     if (!isMainThread) parentPort.postMessage(used);
     else {
       const workers = [1, 2].map(() => new Worker(new URL(import.meta.url)));
       const said = await Promise.all(workers.map((worker) => new Promise((resolve, reject) => {
         worker.once('message', resolve).once('error', reject);
       })));
       console.log([used, ...said].join('\\n'));
     }`,
  );
  assert.equal((await project.node(["worker.mjs"])).stdout.trim(), [USED, USED, USED].join("\n"));
});

/** What can be thrown by what guards requests. */
const ERRORS = ["CircuitOpenError", "ConfigError", "NameError", "StoreUnavailableError", "TimeError"];

/** What the entries are for that are named after a package: the names that each exports. */
const NAMED = {
  undici: [...ERRORS, "circuitBreaker"],
  axios: [...ERRORS, "circuitBreaker"],
  hono: ["circuitOpenHandler", "circuitOpenResponse"],
  fastify: ["circuitOpenHandler"],
};

test("the entries that are named after a package work imported and required, and on axios alone need it", async () => {
  const text = (load) => `
    const names = {};
    for (const entry of ${JSON.stringify(Object.keys(NAMED))}) {
      try {
        names[entry] = Object.keys(${load}).sort();
      } catch (error) {
        names[entry] = /'axios'/.test(error.message) ? "needs it" : error;
      }
    }
    console.log(JSON.stringify(names));`;
  await project.write("named.mjs", text('await import("switchgear/" + entry)'));
  await project.write("named.cjs", text('require("switchgear/" + entry)'));
  const files = ["named.mjs", "named.cjs"];
  const found = () => Promise.all(files.map(async (file) => JSON.parse((await project.node([file])).stdout)));
  const without = { ...NAMED, axios: "needs it" };
  assert.deepEqual(await found(), [without, without]);
  await project.lend("axios");
  assert.deepEqual(await found(), [NAMED, NAMED]);
});

const TYPED = `
const breaker: Breaker = new CircuitBreaker('billing', { tripOn: 'consecutive', failureThreshold: 3 });
const answer: Promise<number> = breaker.execute(async () => 42, { fallback: () => 0 });
const guarded: (id: string) => Promise<number> =
  new CircuitBreaker('b').guard(async (id: string) => id.length, { fallback: (_error: unknown, id: string) => id.length });
const state = (error: unknown): number | null => (error instanceof CircuitOpenError ? error.retryAfterMs : null);
export { answer, guarded, state };
// @ts-expect-error: no such option
new CircuitBreaker('billing', { failureTreshold: 3 });
// @ts-expect-error: the value is a number
const wrong: Promise<string> = breaker.execute(async () => 42);
export { wrong };
export const store = (client: object): DistributedCircuitBreaker => new DistributedCircuitBreaker('billing', new RedisStore(client));
export const own: CircuitBreaker = intercept({ failureThreshold: 3, origin: 'https://a.example' }).for('https://a.example');
export const shared = (client: object): DistributedCircuitBreaker => {
  const group = new DistributedCircuitBreakerGroup('out', new RedisStore(client));
  return (own.getState() === 'open' ? intercept({ group }) : adapt({ group, adapter: 'http' })).for('https://a.example');
};
// @ts-expect-error: a group has the policy
intercept({ group: new CircuitBreakerGroup(), failureThreshold: 3 });
// @ts-expect-error: no such option
adapt({ origin: 'https://a.example' });
export const answered: number | undefined = circuitOpenResponse(new Error('other'))?.status;
`;
const IMPORTS = `
import { type Breaker, CircuitBreaker, CircuitBreakerGroup, CircuitOpenError } from 'switchgear';
import { circuitBreaker as adapt } from 'switchgear/axios';
import { circuitOpenResponse } from 'switchgear/hono';
import { DistributedCircuitBreaker, DistributedCircuitBreakerGroup, RedisStore } from 'switchgear/redis';
import { circuitBreaker as intercept } from 'switchgear/undici';
`;

for (const [name, file, options] of [
  ["an ES module", "strict.mts", ["--module", "nodenext"]],
  ["a CommonJS module", "strict.cts", ["--module", "node16"]],
  ["a bundler's project", "bundled.ts", ["--module", "esnext", "--moduleResolution", "bundler"]],
]) {
  test(`its types hold under tsc --strict in ${name}`, async () => {
    await project.write(file, IMPORTS + TYPED);
    await project.tsc(["--strict", "--exactOptionalPropertyTypes", "--noEmit", "--target", "es2022", ...options, file]);
  });
}

test("its types are what each package takes that an entry is named after", async () => {
  await project.lend("undici", "undici6", "hono", "fastify", "@types");
  const text = `
    import axios from "axios";
    import { fastify } from "fastify";
    import { Hono } from "hono";
    import { circuitBreaker as adapt } from "switchgear/axios";
    import { circuitOpenHandler as forFastify } from "switchgear/fastify";
    import { circuitOpenHandler as forHono } from "switchgear/hono";
    import { circuitBreaker as intercept } from "switchgear/undici";
    import { Agent } from "undici";
    import { Agent as Agent6, Pool as Pool6 } from "undici6";
    export const agents = [new Agent().compose(intercept()), new Agent6().compose(intercept())];
    export const pool = new Pool6("https://a.example").compose([intercept({ origin: "https://a.example" })]);
    export const client = axios.create({ adapter: adapt({ openJitter: 0 }) });
    new Hono().onError(forHono);
    new Hono<{ Variables: { user: string } }>().basePath("/a").onError(forHono);
    fastify().setErrorHandler(forFastify);
  `;
  await Promise.all([project.write("named.mts", text), project.write("named.cts", text)]);
  const options = [
    "--strict",
    "--noEmit",
    "--skipLibCheck",
    "--target",
    "es2022",
    "--types",
    "node",
    "--module",
    "nodenext",
  ];
  await project.tsc([...options, "named.mts", "named.cts"]);
});

test("switchgear/nestjs says what it needs where that is missing, and works where it is there", async () => {
  const missing = "try { require('switchgear/nestjs') } catch (error) { console.log(error.message.split('\\n')[0]) }";
  await project.write("missing.cjs", missing);
  const { stdout } = await project.node(["missing.cjs"]);
  assert.match(stdout, /^Cannot find module '(?:@nestjs\/common|reflect-metadata|rxjs)'$/m);
  await project.lend("@nestjs", "reflect-metadata", "rxjs", "@types");
  await project.write(
    "nestjs.mjs",
    `import { createRequire } from 'node:module';
     import { Test } from '@nestjs/testing';
     import { CircuitOpenError } from 'switchgear';
     import * as esm from 'switchgear/nestjs';
     const cjs = createRequire(import.meta.url)('switchgear/nestjs');
     for (const name of Object.keys(cjs)) if (esm[name] !== cjs[name]) throw new Error(name + ' differs');
     const { CircuitBreakerModule, CircuitBreakerService, CircuitOpenException } = esm;
     const module = await Test.createTestingModule({ imports: [CircuitBreakerModule.forRoot()] }).compile();
     const breaker = module.get(CircuitBreakerService).get('billing');
     breaker.forceOpen();
     const refusal = await breaker.execute(() => 1).catch((error) => error);
     console.log(refusal instanceof CircuitOpenException, refusal instanceof CircuitOpenError);`,
  );
  assert.equal((await project.node(["nestjs.mjs"])).stdout.trim(), "true true");
});

const NEST = `
import { CircuitBreakerModule, type CircuitBreakerService, CircuitOpenException, Retryable, WithCircuitBreaker } from 'switchgear/nestjs';
import { ServiceUnavailableException } from '@nestjs/common';
import type { Breaker } from 'switchgear';
export class Billing {
  @Retryable({ policy: { maxAttempts: 2 } })
  @WithCircuitBreaker({ key: (args) => args[0], policy: { maxKeys: 5 }, fallback: (error, order: string) => order })
  async charge(order: string): Promise<string> {
    return order;
  }
}
export const module = CircuitBreakerModule.forRoot({ defaults: { failureThreshold: 1 } });
export const breaker = (service: CircuitBreakerService): Breaker => service.get('billing', { windowMs: 5 });
export const wait = (error: CircuitOpenException): number | null => (error satisfies ServiceUnavailableException).retryAfterMs;
// @ts-expect-error: no such option
CircuitBreakerModule.forRoot({ default: {} });
// @ts-expect-error: the value is a number
Retryable({ policy: { maxAttempts: '2' } });
`;

for (const [file, options] of [
  ["nest.mts", ["--module", "nodenext"]],
  ["nest.cts", ["--module", "node16"]],
  ["nest.ts", ["--module", "esnext", "--moduleResolution", "bundler"]],
]) {
  test(`the types of switchgear/nestjs hold under tsc --strict (${file})`, async () => {
    await project.write(file, NEST);
    const strict = [
      "--strict",
      "--exactOptionalPropertyTypes",
      "--skipLibCheck",
      "--experimentalDecorators",
      "--types",
      "node",
    ];
    await project.tsc([...strict, "--noEmit", "--target", "es2022", ...options, file]);
  });
}
