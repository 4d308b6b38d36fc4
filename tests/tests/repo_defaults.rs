//! The defaults live in the core; what the documents of the hosts say about them is held to that table.
#![allow(clippy::panic, reason = "a test fails by panicking")]

use std::{fs, path::Path};

use switchgear_core::config::{FIELDS, Field, FieldDefault};
use switchgear_core::shared::{DEFAULT_TIMEOUT_MS, Keys, SharedOptions};
use switchgear_core::{CircuitBreakerGroup, Naming};

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The default as the TypeScript docs write it.
fn in_typescript(field: &Field) -> String {
    match field.default {
        FieldDefault::Word(word) => format!("`'{word}'`"),
        FieldDefault::Number(number) => format!("`{number}`"),
        FieldDefault::Times(1.0, other) => format!("{{@link {other}}}"),
        FieldDefault::Times(factor, other) => format!("{factor} x {{@link {other}}}"),
    }
}

/// The default as the Python docs write it.
fn in_python(field: &Field) -> String {
    match field.default {
        FieldDefault::Word(word) => format!("`\"{word}\"`"),
        FieldDefault::Number(number) if number >= 1000.0 => {
            format!("{} {:03}", (number / 1000.0).trunc(), number % 1000.0)
        }
        FieldDefault::Number(number) => format!("{number}"),
        FieldDefault::Times(1.0, other) => format!("`{}`", snake(other)),
        FieldDefault::Times(10.0, other) => format!("ten times `{}`", snake(other)),
        FieldDefault::Times(factor, other) => format!("{factor} times `{}`", snake(other)),
    }
}

/// An option as Python spells it.
fn snake(name: &str) -> String {
    name.chars().fold(String::new(), |mut spelled, c| {
        if c.is_ascii_uppercase() {
            spelled.push('_');
        }
        spelled.push(c.to_ascii_lowercase());
        spelled
    })
}

/// The default as the README writes it.
fn in_readme(field: &Field) -> String {
    match field.default {
        FieldDefault::Word(word) => format!("'{word}'"),
        FieldDefault::Number(number) if number >= 10_000.0 => {
            format!("{}_{:03}", (number / 1000.0).trunc(), number % 1000.0)
        }
        FieldDefault::Number(number) => format!("{number}"),
        FieldDefault::Times(1.0, other) => other.to_owned(),
        FieldDefault::Times(factor, other) => format!("{factor} x {other}"),
    }
}

/// Checks the `@defaultValue` of an option that is declared in one of the files of bindings/node/ts.
fn documents(file: &str, option: &str, default: &str) {
    let types = read(&format!("bindings/node/ts/{file}"));
    let declared = types
        .match_indices(&format!(" {option}?:"))
        .find_map(|(at, _)| types[..at].trim_end().ends_with("*/").then_some(at))
        .unwrap_or_else(|| panic!("`{option}` is not documented in {file}"));
    let comment = &types[types[..declared].rfind("/**").unwrap_or(0)..declared];
    let expected = format!("@defaultValue {default}");
    assert!(
        comment.lines().any(|line| line.trim_start_matches([' ', '*']).starts_with(&expected)),
        "{file}, `{option}`: write `{expected}`, not:\n{comment}"
    );
}

/// Checks that what a file of the Python package says of an option, in each place where it says a default, is this one.
fn documents_in_python(file: &str, option: &str, default: &str) {
    let source = read(&format!("bindings/python/switchgear/{file}"));
    let said: Vec<_> = python_docs(&source, option).into_iter().filter(|doc| doc.contains("by default ")).collect();
    assert!(!said.is_empty(), "{file} says no default of `{option}`");
    let expected = format!("by default {default}");
    for doc in said {
        let after = doc.split_once(&expected).map(|(_, after)| after.chars().next());
        assert!(
            matches!(after, Some(None | Some('.' | ',' | ':' | ';' | ' '))),
            "{file}, `{option}`: write `{expected}`, not:\n{doc}"
        );
    }
}

/// What is said of an option: the docstring after its declaration, or its entry in a list of arguments.
fn python_docs(source: &str, option: &str) -> Vec<String> {
    let lines: Vec<_> = source.lines().collect();
    let declared = (0..lines.len()).filter(|&at| lines[at].trim_start().starts_with(&format!("{option}: ")));
    declared.map(|at| python_doc(lines[at], &lines[at + 1..])).collect()
}

/// What is said by a declaration and the lines after it.
fn python_doc(declaration: &str, after: &[&str]) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let begins = after.first().and_then(|line| line.trim_start().strip_prefix("\"\"\""));
    let said: Vec<_> = if begins.is_some() {
        let docstring = after.iter().scan(0, |quotes, line| {
            let is_over = *quotes == 2;
            *quotes += line.matches("\"\"\"").count();
            (!is_over).then_some(*line)
        });
        docstring.collect()
    } else {
        let deeper = after.iter().take_while(|line| indent(line) > indent(declaration));
        [declaration].into_iter().chain(deeper.copied()).collect()
    };
    said.join(" ").replace("\"\"\"", "").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_python_docs_name_each_default() {
    for field in FIELDS {
        documents_in_python("_types.py", &snake(field.name), &in_python(field));
    }
    let max_keys = CircuitBreakerGroup::DEFAULT_MAX_KEYS.to_string();
    for file in ["_types.py", "_group.py", "redis/_group.py", "redis/_async_group.py"] {
        documents_in_python(file, "max_keys", &max_keys);
    }
    for file in ["httpx.py", "requests.py"] {
        let said = format!("`max_keys` (default {max_keys} hosts)");
        assert!(read(&format!("bindings/python/switchgear/{file}")).contains(&said), "{file} does not say {said}");
    }
    for file in ["redis/_store.py", "redis/_async_store.py"] {
        documents_in_python(file, "prefix", &format!("`\"{}\"`", Keys::DEFAULT_PREFIX));
        documents_in_python(file, "timeout_ms", &DEFAULT_TIMEOUT_MS.to_string());
    }
    documents_in_python(
        "redis/_shared.py",
        "on_store_failure",
        &format!("`\"{}\"`", shared().on_store_failure.as_str()),
    );
    let idle = format!("{} ({} hours)", grouped(shared().idle_ttl_ms, " "), hours());
    documents_in_python("redis/_shared.py", "idle_ttl_ms", &idle);
}

#[test]
fn python_docs_are_found() {
    let source = "class A:\n    size: int\n    \"\"\"One\n\n    two.\n    \"\"\"\n    more: int\n\n        size: three\n            four\n        b: c\n    size: int\n    \"\"\"Five.\"\"\"\n";
    assert_eq!(python_docs(source, "size"), ["One two.", "size: three four", "Five."]);
}

#[test]
fn the_typescript_docs_name_each_default() {
    for field in FIELDS {
        documents("types.ts", field.name, &in_typescript(field));
    }
    let max_keys = format!("`{}`", CircuitBreakerGroup::DEFAULT_MAX_KEYS);
    documents("group.ts", "maxKeys", &max_keys);
    documents("distributed-group.ts", "maxKeys", &max_keys);
    documents("store.ts", "prefix", &format!("`'{}'`", Keys::DEFAULT_PREFIX));
    documents("store.ts", "timeoutMs", &format!("`{DEFAULT_TIMEOUT_MS}`"));
    documents("distributed.ts", "onStoreFailure", &format!("`'{}'`", shared().on_store_failure.as_str()));
    documents("distributed.ts", "idleTtlMs", &format!("{} ({} hours)", grouped(shared().idle_ttl_ms, " "), hours()));
}

#[test]
fn the_world_of_the_component_names_each_default() {
    let wit = |file: &str| read(&format!("bindings/component/wit/{file}.wit"));
    let says = |file: &str, said: &str| assert!(wit(file).contains(said), "{file}.wit does not say {said}");
    for field in FIELDS {
        says("types", &format!("/// | {} | {} |", field.name, in_wit(field)));
        if let Some(synonym) = field.synonym {
            says("types", &format!("`{synonym}` is {}", field.name));
        }
    }
    let rows = wit("types").matches("  /// | ").count();
    assert_eq!(rows, FIELDS.len() + 2, "types.wit: a row of each option, below the two of the head");
    says("shared", &format!("/// | onStoreFailure | '{}' |", shared().on_store_failure.as_str()));
    says("shared", &format!("/// | idleTtlMs | {} |", grouped(shared().idle_ttl_ms, " ")));
    for name in SharedOptions::NAMES {
        says("shared", &format!("/// | {name} | "));
    }
    says("shared", &format!("when nobody says: `{}`.", Keys::DEFAULT_PREFIX));
    says("shared", &format!("when nobody says: {DEFAULT_TIMEOUT_MS}."));
    says("local", &format!("a group holds {} unless told otherwise", CircuitBreakerGroup::DEFAULT_MAX_KEYS));
}

/// The default as the WIT writes it.
fn in_wit(field: &Field) -> String {
    match field.default {
        FieldDefault::Word(word) => format!("'{word}'"),
        FieldDefault::Number(number) if number >= 1000.0 => {
            format!("{} {:03}", (number / 1000.0).trunc(), number % 1000.0)
        }
        FieldDefault::Number(number) => format!("{number}"),
        FieldDefault::Times(1.0, other) => other.to_owned(),
        FieldDefault::Times(factor, other) => format!("{factor} x {other}"),
    }
}

/// What a shared circuit runs by when nobody says anything.
fn shared() -> SharedOptions {
    SharedOptions::build(Naming::Camel, &[]).unwrap_or_else(|error| panic!("{error}")).1
}

fn hours() -> u64 {
    let ms = shared().idle_ttl_ms;
    assert_eq!(ms % 3_600_000, 0, "the documents give `idleTtlMs` in hours");
    ms / 3_600_000
}

/// A number with something after the thousands.
fn grouped(n: u64, mark: &str) -> String {
    if n < 1000 { n.to_string() } else { format!("{}{mark}{:03}", grouped(n / 1000, mark), n % 1000) }
}

#[test]
fn the_readme_names_the_defaults_of_groups_stores_and_shared_circuits() {
    let readme = read("README.md");
    for row in [
        format!("| `maxKeys` | groups | `{}` |", CircuitBreakerGroup::DEFAULT_MAX_KEYS),
        format!("| `prefix` | `RedisStore` | `'{}'` |", Keys::DEFAULT_PREFIX),
        format!("| `timeoutMs` | `RedisStore` | `{DEFAULT_TIMEOUT_MS}` |"),
        format!("| `onStoreFailure` | shared | `'{}'` |", shared().on_store_failure.as_str()),
        format!("| `idleTtlMs` | shared | `{}` |", grouped(shared().idle_ttl_ms, "_")),
    ] {
        assert!(readme.contains(&row), "README.md, tables of options: begin a row with {row}");
    }
    let waits = format!("`timeoutMs` ({DEFAULT_TIMEOUT_MS} ms)");
    assert!(readme.contains(&waits), "README.md does not say {waits}");
}

#[test]
fn the_readme_names_each_default() {
    let readme = read("README.md");
    let summary = readme.lines().skip_while(|line| !line.starts_with("**Defaults**"));
    let summary = summary.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    for field in FIELDS {
        let (name, default) = (field.name, in_readme(field));
        let row = format!("| `{name}` | `{default}` |");
        assert!(readme.contains(&row), "README.md, table of options: begin the row of `{name}` with {row}");

        let first = summary.split('`').find(|code| code.starts_with(&format!("{name}: ")));
        if let Some(said) = first {
            assert_eq!(said, format!("{name}: {default}"), "README.md, the line of defaults");
        }
    }
    assert!(summary.contains("`failureThreshold: "), "README.md has no line of defaults");
}
