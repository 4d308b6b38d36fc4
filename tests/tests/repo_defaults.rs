//! The defaults live in the core; what the documents of the hosts say about them is held to that table.
#![allow(clippy::panic, reason = "a test fails by panicking")]

use std::{fs, path::Path};

use switchgear_core::config::{FIELDS, Field, FieldDefault};

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

#[test]
fn the_typescript_docs_name_each_default() {
    let types = read("bindings/node/ts/types.ts");
    for field in FIELDS {
        let declared = types
            .find(&format!("\n  {}?:", field.name))
            .unwrap_or_else(|| panic!("`{}` is not in types.ts: declare it in CircuitBreakerPolicy", field.name));
        let comment = &types[types[..declared].rfind("/**").expect("each option is documented")..declared];
        let expected = format!("@defaultValue {}\n", in_typescript(field));
        assert!(
            comment.contains(&expected),
            "types.ts, `{}`: write `{}`, not:\n{comment}",
            field.name,
            expected.trim()
        );
    }
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
