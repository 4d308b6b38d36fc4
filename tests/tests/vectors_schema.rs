//! The schema of the vectors: it takes every vector there is, refuses what the loader refuses, and knows the core's options.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};
use switchgear_core::config::FIELDS;
use switchgear_tests::vectors;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Schema {
    fn new() -> Self {
        let mut compiler = Compiler::new();
        compiler.add_resource("file:///vector.schema.json", read(&here("vector.schema.json"))).unwrap();
        let mut schemas = Schemas::new();
        let index = compiler.compile("file:///vector.schema.json", &mut schemas).unwrap();
        Self { schemas, index }
    }

    fn check(&self, document: &Value) -> Result<(), String> {
        self.schemas.validate(document, self.index).map_err(|error| error.to_string())
    }
}

fn load(document: &Value) -> Result<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("vector.json"), document.to_string()).unwrap();
    vectors::load(folder.path()).map(|loaded| loaded.len())
}

/// A vector that has one of everything.
fn whole() -> Value {
    json!({
        "name": "whole",
        "about": "one of everything",
        "config": {"tripOn": "rolling", "failureThreshold": 2},
        "steps": [
            {"at": 0, "do": "canRequest", "as": "a", "expect": {"allowed": true, "retryAfterMs": 0, "openedAt": null}},
            {"at": 1, "do": "recordFailure", "permit": "a", "expect": {"status": "applied", "state": "closed", "mode": "auto",
                "failuresInWindow": 1, "callsInWindow": 0, "consecutiveFailures": 0, "halfOpenSuccesses": 0,
                "halfOpenInFlight": 0, "openedAt": null, "remainingOpenMs": 0, "trips": 0, "epoch": 0}},
            {"at": 2, "do": "trip", "forMs": 50, "expect": {}},
            {"at": 3, "do": "forceOpen"},
            {"at": 3, "do": "canRequest", "expect": {"allowed": false, "retryAfterMs": null}},
            {"at": 4, "do": "disable"},
            {"at": 5, "do": "reset"},
            {"at": 6, "do": "recordSuccess"},
            {"at": 7, "do": "release"},
            {"at": 8, "do": "snapshot", "expect": {"trips": 0}}
        ]
    })
}

/// `whole()` with what `pointer` points at replaced, or added.
fn with(pointer: &str, value: Value) -> Value {
    let mut document = whole();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Object(object) => drop(object.insert(key.to_string(), value)),
        Value::Array(array) => array[key.parse::<usize>().unwrap()] = value,
        _ => unreachable!("only objects and arrays have parts"),
    }
    document
}

#[test]
fn every_vector_file_keeps_to_the_schema() {
    let schema = Schema::new();
    let mut files = BTreeSet::new();
    for vector in vectors::load(&here("vectors")).unwrap() {
        files.insert(vector.file);
    }
    assert!(files.len() > 2, "only the given files were found: {files:?}");
    for file in files {
        if let Err(error) = schema.check(&read(&file)) {
            panic!("{}: {error}", file.display());
        }
    }
}

#[test]
fn every_vector_has_a_name_of_its_own() {
    let mut names = BTreeSet::new();
    for loaded in vectors::load(&here("vectors")).unwrap() {
        let name = loaded.vector.name;
        assert!(!name.is_empty(), "{}: a vector without a name", loaded.file.display());
        assert!(names.insert(name.clone()), "{}: `{name}` is the name of two vectors", loaded.file.display());
    }
}

#[test]
fn schema_and_loader_take_one_vector_and_many() {
    let schema = Schema::new();
    for (document, count) in [
        (whole(), 1),
        (json!({"vectors": [whole(), whole()]}), 2),
        (json!({"about": "two", "vectors": [whole(), whole()]}), 2),
        (json!({"name": "defaults", "steps": [{"at": 0, "do": "snapshot"}]}), 1),
    ] {
        assert_eq!(schema.check(&document), Ok(()), "{document}");
        assert_eq!(load(&document), Ok(count), "{document}");
    }
}

#[test]
fn schema_and_loader_refuse_unknown_keys_on_every_level() {
    let schema = Schema::new();
    let many = json!({"about": "many", "vectors": [whole()], "extra": 1});
    let documents = [
        many,
        with("/extra", json!(1)),
        with("/config/extra", json!(1)),
        with("/steps/0/extra", json!(1)),
        with("/steps/0/expect/extra", json!(1)),
        with("/steps/9/expect/extra", json!(null)),
    ];
    for document in documents {
        assert!(schema.check(&document).is_err(), "the schema takes {document}");
        let Err(error) = load(&document) else { panic!("the loader takes {document}") };
        assert!(error.contains("vector.json") && error.contains("extra"), "names neither file nor key: {error}");
    }
}

#[test]
fn schema_and_loader_refuse_what_is_malformed() {
    let schema = Schema::new();
    let latest = 1_u64 << 52;
    let documents = [
        json!([]),
        json!(1),
        json!({}),
        json!({"vectors": {}}),
        json!({"vectors": [1]}),
        json!({"name": "no steps"}),
        json!({"steps": [{"at": 0, "do": "snapshot"}]}),
        with("/name", json!(1)),
        with("/about", json!(1)),
        with("/config", json!([])),
        with("/config/tripOn", json!("sometimes")),
        with("/config/failureThreshold", json!(0)),
        with("/config/failureThreshold", json!(1.5)),
        with("/config/failureThreshold", json!("2")),
        with("/config/failureThreshold", json!(null)),
        with("/config/openBackoff", json!(0.5)),
        with("/config/openDurationMs", json!(3_155_760_000_001_u64)),
        json!({"vectors": [["as an array", "about", {}, []]]}),
        with("/steps", json!([])),
        with("/steps/0", json!(0)),
        with("/steps/0", json!([0, "reset"])),
        with("/steps/0/at", json!(-1)),
        with("/steps/0/at", json!(0.5)),
        with("/steps/0/at", json!("0")),
        with("/steps/0/at", json!(latest + 1)),
        with("/steps/0/do", json!("guess")),
        with("/steps/0/as", json!(1)),
        with("/steps/0/as", json!(null)),
        with("/steps/1/permit", json!(null)),
        with("/steps/2/forMs", json!(null)),
        with("/steps/0/expect", json!(null)),
        with("/about", json!(null)),
        with("/steps/0/permit", json!("a")),
        with("/steps/0/forMs", json!(1)),
        with("/steps/0/expect", json!([])),
        with("/steps/0/expect/status", json!("applied")),
        with("/steps/0/expect/allowed", json!(1)),
        with("/steps/0/expect/retryAfterMs", json!(-1)),
        with("/steps/1/as", json!("b")),
        with("/steps/1/expect/allowed", json!(true)),
        with("/steps/1/expect/retryAfterMs", json!(0)),
        with("/steps/1/expect/status", json!("duplicate")),
        with("/steps/1/expect/state", json!("forced-open")),
        with("/steps/1/expect/mode", json!("open")),
        with("/steps/1/expect/trips", json!(null)),
        with("/steps/1/expect/trips", json!(0.5)),
        with("/steps/1/expect/epoch", json!("0")),
        with("/steps/2/forMs", json!(0)),
        with("/steps/2/forMs", json!(1.5)),
        with("/steps/3/forMs", json!(50)),
        with("/steps/9/expect/allowed", json!(true)),
        with("/steps/9/expect/status", json!("stale")),
    ];
    for document in documents {
        assert!(schema.check(&document).is_err(), "the schema takes {document}");
        let Err(error) = load(&document) else { panic!("the loader takes {document}") };
        assert!(error.contains("vector.json: "), "does not name the file: {error}");
    }
}

#[test]
fn the_loader_refuses_what_no_schema_can_say() {
    for (document, words) in [
        (with("/steps/1/permit", json!("b")), "whole: steps[1]: permit: no earlier step has `as`: \"b\""),
        (with("/config/failureRate", json!(0.5)), "failureRate"),
        (with("/config/openDurationMaxMs", json!(1)), "openDurationMaxMs"),
    ] {
        let Err(error) = load(&document) else { panic!("the loader takes {document}") };
        assert!(error.contains(words), "{error}");
    }
    for text in
        ["", "{", "\u{feff}{}", "{\"name\": \"a\", \"name\": \"b\", \"steps\": [{\"at\": 0, \"do\": \"reset\"}]}"]
    {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("broken.json"), text).unwrap();
        assert!(vectors::load(folder.path()).unwrap_err().contains("broken.json: "));
    }
}

#[test]
fn nothing_to_run_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    assert!(vectors::load(folder.path()).unwrap_err().contains("no vector in it"));
    fs::write(folder.path().join("notes.txt"), "no vector").unwrap();
    fs::write(folder.path().join("empty.json"), "{\"vectors\": []}").unwrap();
    assert!(vectors::load(folder.path()).unwrap_err().contains("no vector in it"));
    let missing = folder.path().join("missing.json");
    assert!(vectors::load(&missing).unwrap_err().contains("missing.json: "));
}

#[test]
fn folders_are_walked_to_the_bottom_in_the_order_of_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("b/deep");
    fs::create_dir_all(&deep).unwrap();
    for (file, name) in [("c.json", "third"), ("b/deep/x.json", "second"), ("a.json", "first")] {
        let document = json!({"name": name, "steps": [{"at": 0, "do": "snapshot"}]});
        fs::write(folder.path().join(file), document.to_string()).unwrap();
    }
    let names: Vec<String> =
        vectors::load(folder.path()).unwrap().into_iter().map(|loaded| loaded.vector.name).collect();
    assert_eq!(names, ["first", "second", "third"]);
}

#[test]
fn the_schema_knows_exactly_the_options_of_the_core() {
    let schema = read(&here("vector.schema.json"));
    let listed = schema.pointer("/$defs/config/properties").and_then(Value::as_object).unwrap();
    let listed: BTreeSet<&str> = listed.keys().map(String::as_str).collect();
    let known: BTreeSet<&str> = FIELDS.iter().flat_map(|field| [Some(field.name), field.synonym]).flatten().collect();
    assert_eq!(listed, known);
}
