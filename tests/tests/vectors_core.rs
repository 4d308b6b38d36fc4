//! The vectors on the core, both ways; and that its hints save it work.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::json;
use switchgear_core::{Config, Millis, Permit, Snapshot};
use switchgear_tests::core_runners::{Asked, Hinted};
use switchgear_tests::vectors::{self, Answer, Loaded, Machine, Op, Operation, Report};

fn all() -> Vec<Loaded> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    vectors::load(&folder).unwrap()
}

fn one(document: &serde_json::Value) -> Vec<Loaded> {
    vec![Loaded { file: PathBuf::from("made-up.json"), vector: serde_json::from_value(document.clone()).unwrap() }]
}

/// A hinted machine that says how often it was asked.
struct Counted {
    inner: Hinted,
    asked: Rc<Cell<usize>>,
}

impl Machine for Counted {
    type Permit = Permit;

    fn step(&mut self, at: Millis, operation: Operation<'_, Permit>) -> Result<Answer<Permit>, String> {
        let before = self.inner.asked();
        let answer = self.inner.step(at, operation);
        self.asked.set(self.asked.get() + self.inner.asked() - before);
        answer
    }

    fn snapshot(&mut self, at: Millis) -> Result<Snapshot, String> {
        self.inner.snapshot(at)
    }
}

fn run_counted(vectors: &[Loaded]) -> (Report, usize) {
    let asked = Rc::new(Cell::new(0));
    let start = |config: &Config| Ok(Counted { inner: Hinted::new(config), asked: Rc::clone(&asked) });
    let report = vectors::run("core-hints", vectors, start);
    (report, asked.get())
}

#[test]
fn the_core_answers_every_vector() {
    let report = vectors::run("core", &all(), |config| Ok(Asked::new(config)));
    assert_eq!(report.failures, [""; 0]);
}

#[test]
fn by_its_hints_it_answers_the_same_and_is_asked_less() {
    let vectors = all();
    let (report, asked) = run_counted(&vectors);
    assert_eq!(report.failures, [""; 0]);
    let operations = vectors.iter().flat_map(|loaded| &loaded.vector.steps).filter(|step| step.op != Op::Snapshot);
    let operations = operations.count();
    assert!(asked < operations * 9 / 10, "asked {asked} of {operations} times");
}

#[test]
fn a_healthy_circuit_and_an_open_one_are_never_asked() {
    let healthy = json!({"at": 5, "do": "canRequest", "as": "a", "expect": {"allowed": true, "retryAfterMs": 0}});
    let success = json!({"at": 5, "do": "recordSuccess", "permit": "a", "expect": {"status": "applied"}});
    let refused = json!({"at": 9, "do": "canRequest", "expect": {"allowed": false, "retryAfterMs": 29_996}});
    let trip = json!({"at": 5, "do": "trip"});
    for (trip_on, asked) in [("rolling", 1), ("consecutive", 1), ("rate", 3)] {
        let steps = [&healthy, &success, &healthy, &success, &trip, &refused, &refused];
        let (report, asked_in_fact) =
            run_counted(&one(&json!({"name": trip_on, "config": {"tripOn": trip_on}, "steps": steps})));
        assert_eq!(report.failures, [""; 0]);
        assert_eq!(asked_in_fact, asked, "{trip_on}");
    }
}

#[test]
fn a_difference_names_vector_step_field_got_and_expected() {
    let vectors = one(&json!({"name": "wrong", "steps": [
        {"at": 3, "do": "trip"},
        {"at": 4, "do": "canRequest", "expect": {"allowed": true, "retryAfterMs": null, "state": "closed", "trips": 1}},
    ]}));
    let report = vectors::run("core", &vectors, |config| Ok(Asked::new(config)));
    assert_eq!(
        report.failures,
        [
            "core: wrong steps[1] (canRequest at 4): allowed: got false, expected true",
            "core: wrong steps[1] (canRequest at 4): retryAfterMs: got 29999, expected null",
            "core: wrong steps[1] (canRequest at 4): state: got \"open\", expected \"closed\"",
        ]
    );
}

#[test]
fn of_one_vector_only_the_first_differences_are_listed() {
    let step = json!({"at": 3, "do": "snapshot", "expect": {"trips": 1}});
    let vectors = one(&json!({"name": "wrong", "steps": vec![step; 9]}));
    let report = vectors::run("core", &vectors, |config| Ok(Asked::new(config)));
    assert_eq!(report.failures.len(), 6);
    assert_eq!(report.failures[5], "core: wrong: 4 more differences in this vector");
}

#[test]
fn a_runner_that_cannot_start_fails_every_vector() {
    let vectors = one(&json!({"name": "unheard", "steps": [{"at": 0, "do": "snapshot"}]}));
    let report = vectors::run("gone", &vectors, |_| Err::<Asked, _>("the store is gone".to_string()));
    assert_eq!(report.failures, ["gone: unheard cannot start: the store is gone"]);
}
