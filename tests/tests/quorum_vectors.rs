//! The vectors of a quorum, on the core's model and on the scripts in a real Redis.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use boon::{Compiler, Schemas};
use serde_json::{Value, json};
use switchgear_tests::lua::LuaCircuit;
use switchgear_tests::quorum_vectors::{self, Model, QuorumVector};
use switchgear_tests::servers::Server;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn all() -> Vec<QuorumVector> {
    quorum_vectors::load(&here("quorum")).unwrap()
}

#[test]
fn the_model_answers_every_vector() {
    let report = quorum_vectors::run("core", &all(), |config, quorum| Ok(Model::new(config, quorum)));
    assert_eq!(report.failures, [""; 0]);
    assert!(report.vectors > 20 && report.steps > 100, "{report:?}");
}

#[test]
fn the_scripts_answer_every_vector() {
    let server = Server::start().unwrap();
    let mut circuits = 0;
    let report = quorum_vectors::run("lua", &all(), |config, quorum| {
        circuits += 1;
        let connection = server.connect().map_err(|error| error.to_string())?;
        Ok(LuaCircuit::with_quorum(&format!("quorum {circuits}"), config, quorum, connection))
    });
    assert_eq!(report.failures, [""; 0]);
}

/// A quorum that is dropped on the way is noticed: most vectors are about what it holds back.
#[test]
fn with_a_quorum_of_one_most_vectors_fail() {
    let mut all = all();
    for vector in &mut all {
        vector.quorum = switchgear_core::Quorum::ONE;
    }
    let report = quorum_vectors::run("core", &all, |config, quorum| Ok(Model::new(config, quorum)));
    let failed = all.iter().filter(|vector| {
        let name = &vector.loaded.vector.name;
        report.failures.iter().any(|failure| failure.contains(name.as_str()))
    });
    assert!(failed.count() > all.len() / 2, "{:#?}", report.failures);
}

#[test]
fn every_file_keeps_to_the_schema() {
    let read = |path: &Path| serde_json::from_str::<Value>(&fs::read_to_string(path).unwrap()).unwrap();
    let mut compiler = Compiler::new();
    for schema in ["vector.schema.json", "quorum.schema.json"] {
        compiler.add_resource(&format!("file:///{schema}"), read(&here(schema))).unwrap();
    }
    let mut schemas = Schemas::new();
    let index = compiler.compile("file:///quorum.schema.json", &mut schemas).unwrap();
    let files: BTreeSet<PathBuf> = all().into_iter().map(|vector| vector.loaded.file).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    for file in &files {
        if let Err(error) = schemas.validate(&read(file), index) {
            panic!("{}: {error}", file.display());
        }
    }
    for (pointer, value) in [
        ("/vectors/0/quorum", Value::Null),
        ("/vectors/0/quorum", json!(0)),
        ("/vectors/0/steps/0/instance", json!(1)),
        ("/vectors/0/steps/0/extra", json!(1)),
        ("/vectors/0/steps/0/do", json!("guess")),
        ("/vectors/0/extra", json!(1)),
    ] {
        let mut document = read(files.first().unwrap());
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        document.pointer_mut(parent).and_then(Value::as_object_mut).unwrap().insert(key.to_owned(), value.clone());
        assert!(schemas.validate(&document, index).is_err(), "the schema takes {pointer} {value}");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("wrong.json"), document.to_string()).unwrap();
        let error = quorum_vectors::load(folder.path()).unwrap_err();
        assert!(error.contains("wrong.json: "), "{error}");
    }
}

#[test]
fn every_vector_has_a_name_of_its_own() {
    let names: Vec<String> = all().into_iter().map(|vector| vector.loaded.vector.name).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}
