// Every example a reader sees is executed: TypeScript is checked strictly and run on the packed package with a real Redis
// and a real HTTP server; of a shell line it is made sure that it says something this repository can do.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { installPackage, ROOT } from "../support/consumer.mjs";
import { startServer } from "../support/servers.mjs";
import { examplesIn, promisedOutput, shapeOf } from "./examples.mjs";

const documents = execFileSync("git", ["ls-files", "*.md"], { cwd: ROOT, encoding: "utf8" })
  .split("\n")
  .filter(Boolean);

let project;
let redis;
let http;
before(async () => {
  [project, redis] = await Promise.all([
    installPackage({ tools: ["ioredis", "redis", "iovalkey", "@types"], build: false }),
    startServer(),
  ]);
  http = createServer((request, response) => response.end(JSON.stringify({ path: request.url }))).listen(
    0,
    "127.0.0.1",
  );
  await once(http, "listening");
});
after(async () => {
  http?.close();
  await Promise.all([project?.remove(), redis?.stop()]);
});

/** How an example of each language is put to the test. */
const RUN = {
  ts: (example, name) => runTypeScript(example, name),
  bash: (example) => example.code.split("\n").filter(Boolean).forEach(checkCommand),
  // Compiled and run by `cargo test --doc`, for the documents that a crate includes.
  rust: (_, name) => assert.match(name, /^(?:core|lua)\//, "only core/README.md and lua/README.md are run by rustdoc"),
  // Output and data: not code. The demo's timeline is held to the demo by demo/demo.test.mjs.
  text: () => {},
  // A vector is run by every runner.
  json: async (example) => {
    if (!("steps" in JSON.parse(example.code))) return;
    await project.write("example.json", example.code);
    execFileSync("scripts/vectors.sh", [join(project.folder, "example.json")], { cwd: ROOT, stdio: "pipe" });
  },
};

for (const document of documents) {
  const text = readFileSync(join(ROOT, document), "utf8");
  for (const example of examplesIn(text)) {
    test(`${document}:${example.line} (${example.language || "no language"})`, () => {
      const run = RUN[example.language];
      assert.ok(run, `an example in \`${example.language}\` is not run; use one of ${Object.keys(RUN).join(", ")}`);
      return run(example, `${document}:${example.line}`);
    });
  }
}

test("the README has the examples it is read for", () => {
  const languages = examplesIn(readFileSync(join(ROOT, "README.md"), "utf8")).map(({ language }) => language);
  assert.ok(languages.filter((language) => language === "ts").length >= 3, languages.join());
});

test("an example that throws, does not type-check or prints something else fails", async () => {
  const failing = [
    { setup: "", code: "throw new Error('no');" },
    { setup: "", code: "const n: number = 'text';" },
    { setup: "", code: "console.log(1); // prints 2" },
  ];
  for (const example of failing) await assert.rejects(runTypeScript(example, "made-up"), JSON.stringify(example));
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

let counter = 0;
async function runTypeScript({ setup, code }, name) {
  const file = `example${counter++}`;
  await project.write(`${file}.mts`, `${setup}\n${code}\nexport {};\n`);
  await project.tsc(["--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", `${file}.mts`]);
  const env = {
    ...process.env,
    REDIS_URL: redis.url,
    BILLING_URL: `http://127.0.0.1:${http.address().port}`,
  };
  const { stdout } = await project.node([`${file}.mjs`], { env, timeout: 60_000 });
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
      if (verb === "install") return; // the pack test installs the tarball
      assert.ok(verb === "test" || packageScripts().includes(words[2]), `${line}: no such npm script`);
      return;
    case "cargo": {
      const crate = words[words.indexOf("-p") + 1];
      if (words.includes("-p"))
        assert.match(readFileSync(join(ROOT, "Cargo.lock"), "utf8"), new RegExp(`name = "${crate}"`));
      assert.match(verb, /^(?:add|build|clippy|doc|fmt|nextest|package|test)$/, line);
      return;
    }
    case "node":
      readFileSync(join(ROOT, words.find((word) => /\.(?:mjs|js)$/.test(word)) ?? "?"));
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

function packageScripts() {
  return Object.keys(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).scripts);
}
