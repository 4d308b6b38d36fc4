//! The vectors of `tests/quorum/`: timelines of a circuit that trips by a quorum, on the core's model and on the scripts.
//!
//! A file is `{"about", "vectors": [...]}`; a vector and a step are those of [`crate::vectors`], but that a vector
//! says its `quorum` and a step which `instance` does it. `tests/quorum.schema.json` is the format.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value as Json;
use switchgear_core::{CircuitBreaker, Config, Instances, Millis, Naming, Outcome, Permit, Quorum, Snapshot, Value};

use crate::core_runners::ask;
use crate::lua::LuaCircuit;
use crate::vectors::{self, Answer, Loaded, Machine, Operation, Report};

/// A circuit that knows which of its instances does what.
pub trait Fleet: Machine {
    /// What is done from here on is done by this instance.
    fn speak_for(&mut self, instance: &str);
}

/// A vector, and what it says beyond the ordinary.
#[derive(Debug)]
pub struct QuorumVector {
    /// The timeline.
    pub loaded: Loaded,
    /// Of how many instances failures must stand in the window.
    pub quorum: Quorum,
    /// The instance of each step.
    pub instances: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    vectors: Vec<Json>,
}

/// Reads every `*.json` of a folder.
///
/// # Errors
/// A file that is none of these vectors, with its name; or nothing to run.
pub fn load(folder: &Path) -> Result<Vec<QuorumVector>, String> {
    let failed = |path: &Path, error: &str| format!("{}: {error}", path.display());
    let entries = fs::read_dir(folder).map_err(|error| failed(folder, &error.to_string()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut loaded = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).map_err(|error| failed(&path, &error.to_string()))?;
        let file: File = serde_json::from_str(&text).map_err(|error| failed(&path, &error.to_string()))?;
        if file.about.is_empty() {
            return Err(failed(&path, "about: says nothing"));
        }
        for vector in file.vectors {
            loaded.push(read(&path, vector).map_err(|error| failed(&path, &error))?);
        }
    }
    if loaded.is_empty() { Err(failed(folder, "no vector in it")) } else { Ok(loaded) }
}

fn read(file: &Path, mut vector: Json) -> Result<QuorumVector, String> {
    let object = vector.as_object_mut().ok_or("a vector must be an object")?;
    let quorum = object.remove("quorum").and_then(|quorum| quorum.as_f64()).ok_or("`quorum` must be a number")?;
    let steps = object.get_mut("steps").and_then(Json::as_array_mut).ok_or("`steps` must be an array")?;
    let instances = steps.iter_mut().map(|step| {
        let instance = step.as_object_mut().and_then(|step| step.remove("instance"));
        instance.as_ref().and_then(Json::as_str).map(str::to_owned).ok_or("every step has an `instance`")
    });
    let instances = instances.collect::<Result<_, _>>()?;
    let vector = vectors::read(vector)?;
    let quorum = Quorum::new(Naming::Camel, Value::Number(quorum), &vector.config)
        .map_err(|error| format!("{}: {error}", vector.name))?;
    Ok(QuorumVector { loaded: Loaded { file: file.into(), vector }, quorum, instances })
}

/// Runs all vectors, each on a circuit of its own, which `start` makes.
pub fn run<F: Fleet>(
    runner: &'static str,
    all: &[QuorumVector],
    mut start: impl FnMut(&Config, Quorum) -> Result<F, String>,
) -> Report {
    let mut report = Report { runner, vectors: all.len(), steps: 0, failures: Vec::new() };
    for QuorumVector { loaded, quorum, instances } in all {
        let vector = &loaded.vector;
        report.steps += vector.steps.len();
        match start(&vector.config, *quorum) {
            Ok(mut fleet) => {
                let failures = vectors::run_one(vector, &mut fleet, |fleet, step| {
                    if let Some(instance) = instances.get(step) {
                        fleet.speak_for(instance);
                    }
                });
                report
                    .failures
                    .extend(failures.into_iter().map(|failure| format!("{runner}: {} {failure}", vector.name)));
            }
            Err(error) => report.failures.push(format!("{runner}: {}: cannot start: {error}", vector.name)),
        }
    }
    report
}

/// The core's model.
#[derive(Debug)]
pub struct Model {
    breaker: CircuitBreaker,
    failed: Instances,
    instance: String,
}

impl Model {
    /// A fresh circuit.
    pub fn new(config: &Config, quorum: Quorum) -> Self {
        Self { breaker: CircuitBreaker::new(config.clone()), failed: Instances::new(quorum), instance: String::new() }
    }
}

impl Machine for Model {
    type Permit = Permit;

    fn step(&mut self, at: Millis, operation: Operation<'_, Permit>) -> Result<Answer<Permit>, String> {
        if let Operation::Settle(Outcome::Failure, permit) = operation {
            let settled = self.breaker.record_failure_of(at, permit.copied(), &self.instance, &mut self.failed);
            return Ok(Answer::Settled(settled.status));
        }
        ask(&mut self.breaker, at, operation)
    }

    fn snapshot(&mut self, at: Millis) -> Result<Snapshot, String> {
        Ok(self.breaker.snapshot(at))
    }
}

impl Fleet for Model {
    fn speak_for(&mut self, instance: &str) {
        instance.clone_into(&mut self.instance);
    }
}

impl Fleet for LuaCircuit {
    fn speak_for(&mut self, instance: &str) {
        LuaCircuit::speak_for(self, instance);
    }
}
