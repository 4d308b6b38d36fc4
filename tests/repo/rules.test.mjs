// Rules of the repository itself. A failure says where, and what to do.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { textIn } from "../../site/png.mjs";
import { digestOfSources } from "../../site/sources.mjs";
import { ROOT } from "../support/consumer.mjs";

/** The files git knows, but for those a working tree has deleted. */
const files = execFileSync("git", ["ls-files", "-z"], { cwd: ROOT, encoding: "utf8" }).split("\0").filter(Boolean);

const read = (file) => {
  try {
    return readFileSync(join(ROOT, file), "utf8");
  } catch (error) {
    if (error.code === "ENOENT" || error.code === "EISDIR") return "";
    throw error;
  }
};

/** `file:line: text` for each line of the files that matches. */
const grep = (pattern, among = files) =>
  among.flatMap((file) =>
    read(file)
      .split("\n")
      .flatMap((line, i) => (pattern.test(line) ? [`${file}:${i + 1}: ${line.trim().slice(0, 120)}`] : [])),
  );

const none = (found, advice) => assert.deepEqual(found, [], `${advice}:\n${found.join("\n")}`);

test("one version everywhere: the one in the root Cargo.toml", () => {
  const root = read("Cargo.toml");
  const version = /\[workspace\.package\][^[]*?\nversion = "([^"]+)"/.exec(root)[1];
  const stated = new Map([
    ["package.json", JSON.parse(read("package.json")).version],
    ["package-lock.json", JSON.parse(read("package-lock.json")).version],
    ["package-lock.json, root package", JSON.parse(read("package-lock.json")).packages[""].version],
    ["CHANGELOG.md, newest heading", /^## (?!Unreleased)\[?v?([\d.]+)/m.exec(read("CHANGELOG.md"))?.[1]],
  ]);
  for (const [, name, requirement] of root.matchAll(/^(switchgear-\w+) = \{ path = .*version = "([^"]+)"/gm)) {
    stated.set(`Cargo.toml, workspace dependency ${name}`, requirement);
  }
  const lock = read("Cargo.lock");
  const manifests = files.filter((file) => file.endsWith("Cargo.toml") && file !== "Cargo.toml");
  assert.ok(manifests.length > 0);
  for (const manifest of manifests) {
    const text = read(manifest);
    assert.match(text, /^version\.workspace = true$/m, `${manifest}: write \`version.workspace = true\``);
    const name = /^name = "([^"]+)"/m.exec(text)[1];
    stated.set(`Cargo.lock, ${name}`, new RegExp(`name = "${name}"\nversion = "([^"]+)"`).exec(lock)?.[1]);
  }
  // The world of the component is named with it, wherever it is named.
  const named = files.flatMap((file) =>
    [...read(file).matchAll(/\bswitchgear:breaker(?:\/[\w-]+)?@(\d[\w.+-]*\w)/g)].map(([name, found]) => [
      name,
      file,
      found,
    ]),
  );
  assert.ok(named.some(([name, file]) => file === "bindings/component/wit/world.wit" && !name.includes("/")));
  for (const [name, file, found] of named) stated.set(`${file}, ${name}`, found);
  const different = [...stated].filter(([, found]) => found !== version).map(([where, found]) => `${where}: ${found}`);
  const project = /^\[project\]\n([\s\S]*?)^\[/m.exec(read("pyproject.toml"))[1];
  assert.match(project, /^dynamic = \["version"\]$/m, "pyproject.toml: maturin takes the version from Cargo");
  assert.doesNotMatch(project, /^version\b/m, "pyproject.toml: maturin takes the version from Cargo");
  none(different, `the version is ${version} (Cargo.toml, [workspace.package]); bring these in step`);
});

test("no path of one machine", () => {
  // Put together here, so that this file does not match itself.
  const folders = ["work", "root", "home", "Users", "farm"].join("|");
  none(grep(new RegExp(`(?<![\\w.}*-])/(?:${folders})/|/tmp/contrac[t]`)), "make these relative");
});

test("no registry host", () => {
  const hosts = [
    ["registry", "npmjs", "org"],
    ["index", "crates", "io"],
    ["static", "crates", "io"],
    ["pypi", "org"],
    ["files", "pythonhosted", "org"],
    ["deb", "debian", "org"],
  ].map((parts) => parts.join("\\."));
  none(grep(new RegExp(`//(?:[\\w-]+\\.)*(?:${hosts.join("|")})`)), "name packages, not the host they come from");
});

test("nothing generated is committed", () => {
  const generated = files.filter(
    (file) =>
      /(?:^|\/)(?:node_modules|target|dist|\.cache|__pycache__)\//.test(file) ||
      /\.(?:node|tgz|so|pyd|pyc|whl|wasm|rdb|log)$/.test(file),
  );
  none(generated, "git rm --cached these");
});

test("no skipped test, no unfinished mark", () => {
  const code = files.filter(
    (file) => /\.(?:rs|ts|mts|mjs|js|lua|sh|py)$/.test(file) && !file.startsWith("tests/repo/"),
  );
  none(
    grep(
      /\b(?:TODO|FIXME|XXX)\b|\btodo!|\bunimplemented!|#\[ignore|\b(?:it|test|describe)\.(?:skip|todo|only)\b|@ts-ignore|@ts-nocheck|\bpytest\.(?:mark\.)?(?:skip|skipif|xfail|importorskip)\b|# type: ignore(?!\[)|# (?:ruff|mypy): /,
      code,
    ),
    "finish these, or take them out",
  );
});

test("each lint exception carries its reason", () => {
  const rust = files.filter((file) => file.endsWith(".rs"));
  const bare = rust.flatMap((file) =>
    [...read(file).matchAll(/#!?\[(?:allow|expect)\(([^\]]*)\)\]/g)]
      .filter(([, inside]) => !/reason\s*=/.test(inside))
      .map(([whole]) => `${file}: ${whole}`),
  );
  none(bare, 'write `#[expect(lint, reason = "...")]`');
  const biome = grep(
    /biome-ignore(?!.*: \S)/,
    files.filter((file) => /\.(?:ts|mts|mjs|js)$/.test(file) && !file.startsWith("tests/repo/")),
  );
  none(biome, "write `// biome-ignore group/rule: reason`");
  const python = files.filter((file) => /\.pyi?$/.test(file));
  none(grep(/# noqa(?!: [A-Z]+\d+(?:, ?[A-Z]+\d+)* - \S)/, python), "write `# noqa: CODE - reason`");
  none(grep(/# type: ignore\[[\w, -]+\](?! {2}# \S)/, python), "write `# type: ignore[code]  # reason`");
  none(
    grep(/\bmark\.(?:thread_unsafe|once)\b(?!\(reason=.|\($)/, python),
    'write `@pytest.mark.thread_unsafe(reason="...")`',
  );
});

test("core and lua forbid unsafe code and link no std", () => {
  for (const file of ["core/src/lib.rs", "lua/lib.rs"]) {
    assert.match(read(file), /^#!\[forbid\(unsafe_code\)\]$/m, file);
    assert.match(read(file), /^#!\[no_std\]$/m, file);
  }
});

test("the licences and the authors are named alike", () => {
  assert.match(read("LICENSE-MIT"), /Copyright \(c\) \d{4} The Switchgear authors/);
  assert.match(read("LICENSE-APACHE"), /Copyright \d{4} The Switchgear authors/);
  assert.equal(JSON.parse(read("package.json")).license, "MIT OR Apache-2.0");
  assert.match(read("pyproject.toml"), /^license = "MIT OR Apache-2.0"$/m);
  assert.match(read("Cargo.toml"), /^license = "MIT OR Apache-2.0"$/m);
});

test("each link and picture of the documents leads somewhere, and each of their headings that is linked is there", () => {
  const dead = documents().flatMap((file) => deadOf(file, read(file)));
  none(dead, "these lead nowhere");
});

test("the picture of the playground is of the page as it is", async () => {
  const made = textIn(readFileSync(join(ROOT, "docs/playground.png")), "Source");
  const advice = "the page has changed since: `npm run site:screenshot`, look at it, and commit docs/playground.png";
  assert.equal(made, await digestOfSources(), advice);
});

test("another look of the playground is found, and another comment in its sources is none", async () => {
  const site = join(ROOT, "site");
  const folder = mkdtempSync(join(tmpdir(), "switchgear-site-"));
  try {
    cpSync(join(site, "src"), join(folder, "src"), { recursive: true });
    for (const file of ["index.html", "style.css", "icon.svg", "frame.mjs"])
      cpSync(join(site, file), join(folder, file));
    const digest = await digestOfSources(site);
    const changed = async (file, text) => {
      const before = readFileSync(join(folder, file), "utf8");
      writeFileSync(join(folder, file), before + text);
      const after = await digestOfSources(folder);
      writeFileSync(join(folder, file), before);
      return after !== digest;
    };
    assert.equal(await changed("src/ui/text.ts", "\n// why\n"), false);
    assert.equal(await changed("style.css", "\n/* why */\n"), false);
    assert.equal(await changed("src/ui/text.ts", "document.title = '';\n"), true);
    assert.equal(await changed("style.css", "\np { color: red }\n"), true);
    assert.equal(await changed("index.html", "<p>more</p>"), true);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a link that leads nowhere is found, in every way in which one is written", () => {
  const ways = [
    "[a](no.md)",
    "[a](docs/node.md#no)",
    "[a](#no)",
    "![a](docs/no.png)",
    `![a](${RAW}docs/no.png)`,
    `[a]: ${BLOB}docs/no.md`,
    `[a]: ${BLOB}docs/node.md#no`,
    `[a](${PROJECT}wiki)`,
    '<img src="docs/no.png" alt="">',
    "see [a][no]",
  ];
  for (const way of ways) assert.equal(deadOf("README.md", `# Here\n\n${way}\n`).length, 1, way);
  const alive = ["[a](docs/node.md)", "[a](#here)", "![a](docs/playground.png)", "see [a][b]\n\n[b]: #here", PROJECT];
  for (const way of alive) assert.deepEqual(deadOf("README.md", `# Here\n\n${way}\n`), [], way);
});

test("README.md links by address: it is shown where there is no repository around it", () => {
  const relative = linksIn(read("README.md")).filter((link) => !/^(#|https:)/.test(link));
  none(relative, `begin these with ${BLOB}, and pictures with ${RAW}`);
});

/** The project from outside: itself, its documents, its pictures. */
const PROJECT = "https://github.com/switchgear/switchgear/";
const BLOB = `${PROJECT}blob/main/`;
const RAW = `${PROJECT}raw/main/`;

function documents() {
  return files.filter((file) => file.endsWith(".md"));
}

/** What a document leads to in vain: files and headings, by address or by path, and references that it does not have. */
function deadOf(document, text) {
  const links = linksIn(text).filter((link) => link.startsWith(PROJECT) || !/^\w+:/.test(link));
  const dead = links.filter((link) => {
    const from = [BLOB, RAW].find((address) => link.startsWith(address));
    if (from === undefined && link.startsWith(PROJECT)) return link !== PROJECT;
    const [path, heading] = link.slice(from?.length ?? 0).split("#");
    const target = path === "" ? document : join(from === undefined ? `${document}/..` : ".", path).replace(/\/$/, "");
    if (!files.some((file) => file === target || file.startsWith(`${target}/`))) return true;
    return heading !== undefined && !headingsIn(target === document ? text : read(target)).includes(heading);
  });
  const shown = withoutCode(text);
  const given = [...shown.matchAll(/^\[([^\]]+)\]: /gm)].map(([, name]) => name);
  const used = [...shown.matchAll(/\]\[([^\]]+)\]/g)].map(([, name]) => name);
  return [...dead, ...used.filter((name) => !given.includes(name))].map((link) => `${document}: ${link}`);
}

/** Where a document leads: inline, by a reference, or in HTML. */
function linksIn(text) {
  const ways = /(?:\]\(|^\[[^\]]+\]: |<(?:img|a)\s[^>]*?(?:src|href)=")([^)"\s]+)/gm;
  return [...withoutCode(text).matchAll(ways)].map(([, link]) => link);
}

/** The headings of a document, as links name them. */
function headingsIn(text) {
  return [...withoutCode(text).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}

function withoutCode(text) {
  return text.replaceAll(/^```.*?^```/gms, "").replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[`[\]<(]/g, ""));
}
