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

/// Checks that the docstring of an option, declared in a `TypedDict` of the Python package, says `by default` and this.
fn documents_in_python(file: &str, option: &str, default: &str) {
    let types = read(&format!("bindings/python/switchgear/{file}"));
    let (_, declared) = types
        .split_once(&format!("\n    {option}: "))
        .unwrap_or_else(|| panic!("`{option}` is not declared in {file}"));
    let docstring = declared.split("\"\"\"").nth(1).unwrap_or_default();
    let said = format!("by default {default}");
    let after = docstring.split_once(&said).map(|(_, after)| after.chars().next());
    assert!(
        matches!(after, Some(Some('.' | ',' | ':' | ' ' | ';'))),
        "{file}, `{option}`: write `{said}`, not:\n{docstring}"
    );
}

#[test]
fn the_python_docs_name_each_default() {
    for field in FIELDS {
        documents_in_python("_types.py", &snake(field.name), &in_python(field));
    }
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
