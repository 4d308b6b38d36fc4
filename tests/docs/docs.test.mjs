// Every example a reader sees is executed: TypeScript is checked strictly and run on the packed package with a real Redis
// and a real HTTP server; of a shell line it is made sure that it says something this repository can do.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { installPackage, ROOT } from "../support/consumer.mjs";
import { startServer } from "../support/servers.mjs";
import { examplesIn, promisedOutput, shapeOf } from "./examples.mjs";

const tracked = (...patterns) =>
  execFileSync("git", ["ls-files", ...patterns], { cwd: ROOT, encoding: "utf8" })
    .split("\n")
    .filter(Boolean);

/** What examples use beside the package. */
const CLIENTS = ["ioredis", "redis", "iovalkey", "undici", "axios"];
const FRAMEWORKS = ["hono", "fastify", "@nestjs", "reflect-metadata", "rxjs"];

/** What the readers of doc comments, who look at one class, are assumed to have. */
const ASSUMED = `
import { Redis } from "ioredis";
import { CircuitBreaker, CircuitBreakerGroup, guardFetch } from "switchgear";
import { DistributedCircuitBreaker, DistributedCircuitBreakerGroup, RedisStore } from "switchgear/redis";
import { CircuitBreakerHealthIndicator, CircuitBreakerModule, WithCircuitBreaker } from "switchgear/nestjs";
import { HealthCheckService } from "@nestjs/terminus";
declare const health: HealthCheckService;
declare const circuits: CircuitBreakerHealthIndicator;
const redis = new Redis(process.env.REDIS_URL!);
const billing = { charge: async (order: string) => "charged " + order };
const order = "order 42";
const queued = (order: string) => "queued " + order;
const endpoint = "https://hooks.example/new";
const orders = process.env.BILLING_URL!;
const deliver = async (endpoint: string) => endpoint.length;
`;

/** What else the readers of an entry are assumed to have that is named after a package. */
const ASSUMED_IN = {
  "undici.ts": 'import { Agent, request } from "undici"; import { circuitBreaker } from "switchgear/undici";',
  "axios.ts": 'import axios from "axios"; import { circuitBreaker } from "switchgear/axios";',
  "hono.ts": `import { Hono } from "hono"; import { circuitOpenHandler, circuitOpenResponse } from "switchgear/hono";
    const error = new Error("other");`,
  "fastify.ts": 'import { fastify } from "fastify"; import { circuitOpenHandler } from "switchgear/fastify";',
};

/** Each text with examples: the documents, and the doc comments of the facade. */
const texts = [
  ...tracked("*.md").map((document) => ({ document, text: read(document), assumed: "" })),
  ...tracked("bindings/node/ts/*.ts").map((document) => ({
    document,
    text: read(document).replaceAll(/^ *\* ?/gm, ""),
    assumed: ASSUMED + (ASSUMED_IN[basename(document)] ?? ""),
  })),
];

/** Where each example stands, with a file name for those in TypeScript. */
const examples = texts.flatMap(({ document, text, assumed }) =>
  examplesIn(text).map((example, i) => ({
    ...example,
    setup: assumed + example.setup,
    name: `${document}:${example.line} (${example.language || "no language"})`,
    document,
    file: `${document.replaceAll(/\W/g, "-")}-${i}`,
  })),
);

/** Ahead of an example: where it leaves the deadline of its store at its default, a machine that is busy may miss that. */
const PATIENTLY = `
  require("./node_modules/switchgear/dist/load.js");
  const native = require("./node_modules/switchgear/dist/native.js").native();
  const defaults = { ...native.defaults(), storeTimeoutMs: 20_000 };
  native.defaults = () => defaults;
`;

/** Examples that must be found out: they throw, do not type-check, or print something else than they say. */
const broken = ["throw new Error('no');", "const n: number = 'text';", "console.log(1); // prints 2"].map(
  (code, i) => ({
    language: "ts",
    setup: "",
    code,
    name: `broken example ${i}`,
    file: `broken-${i}`,
  }),
);

let project;
let redis;
let http;
let typeErrors;
before(async () => {
  [project, redis] = await Promise.all([
    installPackage({ tools: [...CLIENTS, ...FRAMEWORKS, "@types"], build: false }),
    startServer(),
  ]);
  http = createServer((request, response) => response.end(JSON.stringify({ path: request.url }))).listen(
    0,
    "127.0.0.1",
  );
  await once(http, "listening");
  await project.write("patiently.cjs", PATIENTLY);
  typeErrors = await compile([...examples, ...broken].filter(({ language }) => language === "ts"));
});
after(async () => {
  http?.close();
  await Promise.all([project?.remove(), redis?.stop()]);
});

/** How an example of each language is put to the test. */
const RUN = {
  ts: runTypeScript,
  bash: (example) => example.code.split("\n").filter(Boolean).forEach(checkCommand),
  // Compiled and run by `cargo test --doc`, for the documents that a crate includes.
  rust: ({ document }) =>
    assert.match(document, /^(?:core|lua)\//, "only core/README.md and lua/README.md are run by rustdoc"),
  // Run, and type-checked, by bindings/python/tests/test_docs.py.
  python: () => {},
  // Output and data: not code. The demo's timeline is held to the demo by demo/demo.test.mjs.
  text: () => {},
  // A vector is run by every runner.
  json: async (example) => {
    if (!("steps" in JSON.parse(example.code))) return;
    await project.write("example.json", example.code);
    execFileSync("scripts/vectors.sh", [join(project.folder, "example.json")], { cwd: ROOT, stdio: "pipe" });
  },
};

for (const example of examples) {
  test(example.name, () => {
    const { language } = example;
    const run = RUN[language];
    assert.ok(run, `an example in \`${language}\` is not run; use one of ${Object.keys(RUN).join(", ")}`);
    return run(example);
  });
}

test("README and doc comments have the examples they are read for", () => {
  const typed = (pattern) => examples.filter(({ language, document }) => language === "ts" && pattern.test(document));
  assert.ok(typed(/^README\.md$/).length >= 3);
  assert.ok(typed(/^docs\/node\.md$/).length >= 6);
  assert.ok(typed(/^docs\/nestjs\.md$/).length >= 8);
  assert.ok(typed(/\.ts$/).length >= 3);
});

for (const example of broken) {
  test(`a ${example.name} fails: ${example.code}`, () => assert.rejects(runTypeScript(example)));
}

for (const { document, text } of texts) {
  test(`${document}: nothing is left to fill in`, () => assert.deepEqual(leftToFillIn(text), []));
}

test("what is left to fill in is found, and a text that says something is none", () => {
  const blocks = ["```text\nBENCH\n```\n", "```text\n\n```\n", "```\nTHE NUMBERS\n...\n```\n", "a\nTBD: b\n"];
  for (const text of blocks) assert.notDeepEqual(leftToFillIn(text), [], text);
  assert.deepEqual(leftToFillIn("```text\nGET 1.2 us\n```\n```text\n+hmget\n```\n```bash\nmake test\n```\n"), []);
});

test("a shell line about what is not here fails", () => {
  for (const line of ["make nothing", "npm run nothing", "cargo test -p nothing", "node nothing.mjs", "rm x"]) {
    assert.throws(() => checkCommand(line), line);
  }
});

test("examples, promised output and shapes are read as they are meant", () => {
  const text = "a\n<!-- setup\nconst x = 1;\n-->\n```ts\nf(x); // prints 1\n```\n  ```bash\n  make test\n  ```\n";
  assert.deepEqual(examplesIn(text), [
    { language: "ts", code: "f(x); // prints 1\n", setup: "const x = 1;\n", line: 5 },
    { language: "bash", code: "make test\n", setup: "", line: 8 },
  ]);
  assert.deepEqual(promisedOutput("a // prints b c\n// prints d"), ["b c", "d"]);
  assert.deepEqual(shapeOf(" 1.5 s  x\n2 s x\n\nprocess B 3"), ["N s x", "process X N"]);
});

/** Compiles all examples at once; the errors by file. */
async function compile(all) {
  for (const { file, setup, code } of all) {
    // It exits by itself only if what the reader has (a connected client) is left out of the count.
    await project.write(`${file}.mts`, `${setup}\n${code}\nprocess.exit();\nexport {};\n`);
  }
  const options = [
    "--strict",
    "--exactOptionalPropertyTypes",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--types",
    "node",
    "--skipLibCheck",
    // As every project of NestJS has them.
    "--experimentalDecorators",
    "--emitDecoratorMetadata",
  ];
  const errors = new Map(all.map(({ file }) => [file, []]));
  try {
    await project.tsc([...options, ...all.map(({ file }) => `${file}.mts`)]);
  } catch (error) {
    for (const line of error.message.split("\n")) errors.get(/^(\S+)\.mts\(/.exec(line)?.[1])?.push(line);
    if (![...errors.values()].some((lines) => lines.length > 0)) throw error;
  }
  return errors;
}

/** Words that stand for text to come, and blocks that hold nothing but words in capitals. */
function leftToFillIn(text) {
  // In brackets, or tests/repo would take this line for unfinished.
  const words = text.match(/\b(?:T[O]DO|TBD|F[I]XME|X[X]X|PLACEHOLDER)\b.*/g) ?? [];
  const blocks = examplesIn(text).filter(({ code }) => /^[A-Z_ .\n]*$/.test(code));
  return [...words, ...blocks.map(({ line, code }) => `line ${line}: ${code.trim()}`)];
}

async function runTypeScript({ name, file, code }) {
  assert.deepEqual(typeErrors.get(file), [], name);
  const env = {
    ...process.env,
    REDIS_URL: redis.url,
    BILLING_URL: `http://127.0.0.1:${http.address().port}`,
  };
  const { stdout } = await project.node(["--require", "./patiently.cjs", `${file}.mjs`], { env, timeout: 300_000 });
  const promised = promisedOutput(code);
  if (promised.length > 0) assert.deepEqual(stdout.trim().split("\n"), promised, `${name} prints something else`);
}

/** Throws unless the line is a comment or calls something that exists: a make target, an npm script, a crate, a script. */
function checkCommand(line) {
  const command = line.replace(/\s+#.*$/, "").trim();
  if (command === "" || command.startsWith("#")) return;
  const words = command.split(/\s+/).filter((word) => !/^[A-Z_]+=/.test(word) || word.startsWith("VECTORS="));
  const [program, verb] = words;
  switch (program) {
    case "make":
      execFileSync("make", ["--dry-run", "--silent", ...words.slice(1)], { cwd: ROOT, stdio: "pipe" });
      return;
    case "npm":
      if (verb === "install" || verb === "pack") return; // the pack test packs it and installs the tarball
      assert.ok(verb === "test" || packageScripts().includes(words[2]), `${line}: no such npm script`);
      return;
    case "pip": {
      // tests/pack/test_python_package.py installs the wheel, and has pip make one of the sources.
      const [, name, extra] = /^"?(?:\.\.\/)?([\w-]+)(?:\[(\w+)\])?"?$/.exec(words[2]) ?? [];
      assert.equal(`${verb} ${name}`, "install switchgear", line);
      if (extra !== undefined) assert.match(read("pyproject.toml"), new RegExp(`^${extra} = \\[`, "m"), line);
      return;
    }
    case "cargo": {
      const crate = words[words.indexOf("-p") + 1];
      if (words.includes("-p"))
        assert.match(readFileSync(join(ROOT, "Cargo.lock"), "utf8"), new RegExp(`name = "${crate}"`));
      if (verb === "run") readFileSync(join(ROOT, "tests/src/bin", `${words[words.indexOf("--bin") + 1]}.rs`));
      assert.match(verb, /^(?:add|build|clippy|doc|fmt|nextest|package|run|test)$/, line);
      return;
    }
    case "node":
      readFileSync(join(ROOT, words.find((word) => /\.(?:mjs|js)$/.test(word)) ?? "?"));
      return;
    case ".cache/venv/bin/pytest":
    case ".cache/venv/bin/mypy":
    case ".cache/venv/bin/ruff":
      assert.match(read("pyproject.toml"), new RegExp(`^  "${program.split("/").at(-1)}",$`, "m"), line);
      for (const path of words.slice(1).filter((word) => word.includes("/"))) statSync(join(ROOT, path));
      return;
    default:
      assert.match(
        program,
        /^(?:scripts\/\S+\.sh|\.ci\/run)$/,
        `${line}: say what this is in tests/docs/docs.test.mjs`,
      );
      readFileSync(join(ROOT, program));
  }
}

function read(file) {
  return readFileSync(join(ROOT, file), "utf8");
}

function packageScripts() {
  return Object.keys(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).scripts);
}
