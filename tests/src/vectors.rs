//! The vectors of `tests/vectors/`: reading them, and the one comparison that every Rust runner shares.
//!
//! The format (the schema is `tests/vector.schema.json`, and every runner keeps to the same rules):
//! - A file holds one vector, or `{"about", "vectors": [...]}`. A folder is walked, every `*.json` in it, in the order of
//!   the paths. A folder without a vector is an error, and so is an unknown key on any level.
//! - `as` belongs to `canRequest` and keeps the permit under a label; a label given again names the newer permit.
//!   `permit` belongs to a settlement and needs a label that an earlier step gave. If that admission was refused there is
//!   no permit: the step fails, it is not settled as if it had named none.
//!   A permit is settled once: the scripts take an outcome that comes twice for one command sent twice (DESIGN 4), the core
//!   has no such case.
//! - `forMs` belongs to `trip`. `allowed` and `retryAfterMs` may be expected of `canRequest`, `status` of a settlement, the
//!   fields of the snapshot (taken at the step's own `at`, after it) of every step. What is not named is not compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;
use switchgear_core::config::{HostOption, Naming, Value};
use switchgear_core::{Config, Millis, Mode, Outcome, Settlement, Snapshot, State};

/// Failures listed of one vector: what follows a first difference is mostly its echo.
const LISTED_PER_VECTOR: usize = 5;
/// Failures listed of one run.
const LISTED_PER_RUN: usize = 500;

/// One timeline: a configuration, and what happens to a fresh circuit that has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// Names the vector in failures.
    pub name: String,
    /// Which rule it pins down.
    #[serde(default, deserialize_with = "given")]
    pub about: Option<String>,
    /// Configuration fields as given; what is absent has its default.
    #[serde(default)]
    pub config: Config,
    /// What happens, in this order (`at` may repeat and step back).
    pub steps: Vec<Step>,
}

/// One operation, and what must be so after it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Step {
    /// The injected time, in milliseconds.
    pub at: u64,
    /// What to do.
    #[serde(rename = "do")]
    pub op: Op,
    /// The label under which the permit is kept (`canRequest`).
    #[serde(default, rename = "as", deserialize_with = "given")]
    pub label: Option<String>,
    /// The label of the permit to settle with (settlements); absent: without a permit.
    #[serde(default, deserialize_with = "given")]
    pub permit: Option<String>,
    /// The length of the opening (`trip`), in milliseconds.
    #[serde(default, deserialize_with = "given")]
    pub for_ms: Option<u64>,
    /// What to compare.
    #[serde(default)]
    pub expect: Expect,
}

/// The operations of a timeline.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "they are called what DESIGN section 7 calls them, and there is no more to say")]
pub enum Op {
    CanRequest,
    RecordSuccess,
    RecordFailure,
    Release,
    Reset,
    Trip,
    ForceOpen,
    Disable,
    Snapshot,
}

impl Op {
    /// The operation's name in a vector.
    pub fn as_str(self) -> &'static str {
        match self {
            Op::CanRequest => "canRequest",
            Op::RecordSuccess => "recordSuccess",
            Op::RecordFailure => "recordFailure",
            Op::Release => "release",
            Op::Reset => "reset",
            Op::Trip => "trip",
            Op::ForceOpen => "forceOpen",
            Op::Disable => "disable",
            Op::Snapshot => "snapshot",
        }
    }

    fn settles(self) -> bool {
        matches!(self, Op::RecordSuccess | Op::RecordFailure | Op::Release)
    }
}

/// What a step expects: the answer, and the snapshot's fields. Absent fields are not compared; `null` is a value.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the answer and of the snapshot, documented in the core")]
pub struct Expect {
    #[serde(deserialize_with = "given")]
    pub allowed: Option<bool>,
    #[serde(deserialize_with = "given")]
    pub retry_after_ms: Option<Option<u64>>,
    #[serde(deserialize_with = "given")]
    pub status: Option<Settlement>,
    #[serde(deserialize_with = "given")]
    pub state: Option<State>,
    #[serde(deserialize_with = "given")]
    pub mode: Option<Mode>,
    #[serde(deserialize_with = "given")]
    pub failures_in_window: Option<u64>,
    #[serde(deserialize_with = "given")]
    pub calls_in_window: Option<u64>,
    #[serde(deserialize_with = "given")]
    pub consecutive_failures: Option<u64>,
    #[serde(deserialize_with = "given")]
    pub half_open_successes: Option<u64>,
    #[serde(deserialize_with = "given")]
    pub half_open_in_flight: Option<u64>,
    #[serde(deserialize_with = "given")]
    pub opened_at: Option<Option<u64>>,
    #[serde(deserialize_with = "given")]
    pub remaining_open_ms: Option<u64>,
    #[serde(deserialize_with = "given")]
    pub trips: Option<u64>,
    #[serde(deserialize_with = "given")]
    pub epoch: Option<u64>,
}

/// A key that is given has a value of its type: without this, `null` would read like an absent key, and compare nothing.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// One operation as a machine gets it: labels resolved, times checked.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a, P> {
    /// Ask for admission.
    CanRequest,
    /// Settle a call, with its permit or without.
    Settle(Outcome, Option<&'a P>),
    /// Back to closed.
    Reset,
    /// Open now, for this many milliseconds if given.
    Trip(Option<u64>),
    /// Refuse until reset or trip.
    ForceOpen,
    /// Admit everything until reset or trip.
    Disable,
}

/// What a machine says to an [`Operation`].
#[derive(Debug)]
pub enum Answer<P> {
    /// Admitted, with the permit to settle with.
    Allowed(P),
    /// Refused; milliseconds until it may be worth asking again, if known.
    Refused(Option<u64>),
    /// How an outcome was taken.
    Settled(Settlement),
    /// Manual control has nothing to say.
    Done,
}

/// One fresh circuit under test, whatever it is made of.
pub trait Machine {
    /// What an admission returns and a settlement takes.
    type Permit;

    /// Does one operation at `at`. An error is one of the runner (a store that is gone), and fails the vector.
    ///
    /// # Errors
    /// What went wrong, in words.
    fn step(&mut self, at: Millis, operation: Operation<'_, Self::Permit>) -> Result<Answer<Self::Permit>, String>;

    /// The circuit as it reads at `at`.
    ///
    /// # Errors
    /// What went wrong, in words.
    fn snapshot(&mut self, at: Millis) -> Result<Snapshot, String>;
}

/// A loaded vector and the file it came from.
#[derive(Debug)]
pub struct Loaded {
    /// The file, as the walk found it.
    pub file: PathBuf,
    /// The vector.
    pub vector: Vector,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Many {
    #[serde(default, rename = "about", deserialize_with = "given")]
    _about: Option<String>,
    vectors: Vec<Vector>,
}

/// Reads a file, or every `*.json` of a folder and of the folders in it.
///
/// # Errors
/// A path that is not there, a file that is no vector file (with the file, and the vector and step where there is one), or
/// nothing to run.
pub fn load(path: &Path) -> Result<Vec<Loaded>, String> {
    let mut files = Vec::new();
    let about = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if about.is_dir() {
        walk(path, &mut files)?;
        files.sort();
    } else {
        files.push(path.to_path_buf());
    }
    let mut loaded = Vec::new();
    for file in files {
        load_file(&file, &mut loaded)?;
    }
    if loaded.is_empty() {
        return Err(format!("{}: no vector in it", path.display()));
    }
    Ok(loaded)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}

fn load_file(file: &Path, loaded: &mut Vec<Loaded>) -> Result<(), String> {
    let failed = |error: String| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    // Parsed twice, so that an error carries its line and column: an untagged enum would swallow both.
    let shape: Json = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    only_objects(&shape).map_err(failed)?;
    let vectors = if shape.get("vectors").is_some() {
        serde_json::from_str::<Many>(&text).map(|many| many.vectors)
    } else {
        serde_json::from_str::<Vector>(&text).map(|vector| vec![vector])
    };
    for vector in vectors.map_err(|error| failed(error.to_string()))? {
        check(&vector).map_err(|error| failed(format!("{}: {error}", vector.name)))?;
        loaded.push(Loaded { file: file.to_path_buf(), vector });
    }
    Ok(())
}

/// Reads one vector that has been parsed.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(shape: Json) -> Result<Vector, String> {
    only_objects(&shape)?;
    let vector: Vector = serde_json::from_value(shape).map_err(|error| error.to_string())?;
    check(&vector).map_err(|error| format!("{}: {error}", vector.name))?;
    Ok(vector)
}

/// Serde takes an array of a struct's fields for the struct; in a vector that is a mistake.
fn only_objects(shape: &Json) -> Result<(), String> {
    let object = |value: &Json, what: &str| {
        if value.is_object() { Ok(()) } else { Err(format!("{what} must be an object, got `{value}`")) }
    };
    let items = |value: &Json, key: &str| value.get(key).and_then(Json::as_array).cloned().unwrap_or_default();
    object(shape, "a file")?;
    let vectors = if shape.get("vectors").is_some() { items(shape, "vectors") } else { vec![shape.clone()] };
    for vector in &vectors {
        object(vector, "a vector")?;
        for step in items(vector, "steps") {
            object(&step, "a step")?;
            step.get("expect").map_or(Ok(()), |expect| object(expect, "`expect`"))?;
        }
    }
    Ok(())
}

/// What the types alone do not say of a step.
fn check(vector: &Vector) -> Result<(), String> {
    if vector.steps.is_empty() {
        return Err("steps: none, so nothing to compare".to_string());
    }
    let mut labels = BTreeSet::new();
    for (index, step) in vector.steps.iter().enumerate() {
        let op = step.op.as_str();
        let misplaced =
            |key: &str, owner: &str| Err(format!("steps[{index}]: `{key}` belongs to {owner}, not to {op}"));
        Millis::new(step.at).map_err(|error| format!("steps[{index}]: at: {error}"))?;
        if step.label.is_some() && step.op != Op::CanRequest {
            return misplaced("as", "canRequest");
        }
        if step.permit.is_some() && !step.op.settles() {
            return misplaced("permit", "a settlement");
        }
        if let Some(for_ms) = step.for_ms {
            if step.op != Op::Trip {
                return misplaced("forMs", "trip");
            }
            // As a double, as every host hands it over; a wrong one is far out of range either way.
            let value = Value::Number(for_ms as f64);
            HostOption::ForMs.check(Naming::Camel, value).map_err(|error| format!("steps[{index}]: {error}"))?;
        }
        if step.expect.allowed.is_some() && step.op != Op::CanRequest {
            return misplaced("expect.allowed", "canRequest");
        }
        if step.expect.retry_after_ms.is_some() && step.op != Op::CanRequest {
            return misplaced("expect.retryAfterMs", "canRequest");
        }
        if step.expect.status.is_some() && !step.op.settles() {
            return misplaced("expect.status", "a settlement");
        }
        if let Some(label) = &step.permit
            && !labels.contains(label)
        {
            return Err(format!("steps[{index}]: permit: no earlier step has `as`: \"{label}\""));
        }
        labels.extend(step.label.clone());
    }
    Ok(())
}

/// What a run found.
#[derive(Debug)]
pub struct Report {
    /// The runner's name.
    pub runner: &'static str,
    /// How many vectors ran.
    pub vectors: usize,
    /// How many steps they have.
    pub steps: usize,
    /// Each difference: `<runner>: <vector> steps[<index>] (<op> at <time>): <field>: got <got>, expected <expected>`.
    pub failures: Vec<String>,
}

impl Report {
    /// The counts on stdout, the failures on stderr; whether there were none.
    pub fn print(&self) -> bool {
        println!("{}: {} vectors, {} steps", self.runner, self.vectors, self.steps);
        for failure in self.failures.iter().take(LISTED_PER_RUN) {
            eprintln!("{failure}");
        }
        if self.failures.len() > LISTED_PER_RUN {
            eprintln!("{}: {} more", self.runner, self.failures.len() - LISTED_PER_RUN);
        }
        self.failures.is_empty()
    }
}

/// Runs all vectors, each on a machine of its own, which `start` makes.
pub fn run<M: Machine>(
    runner: &'static str,
    vectors: &[Loaded],
    mut start: impl FnMut(&Config) -> Result<M, String>,
) -> Report {
    let mut report = Report { runner, vectors: vectors.len(), steps: 0, failures: Vec::new() };
    for loaded in vectors {
        report.steps += loaded.vector.steps.len();
        let name = &loaded.vector.name;
        let failures = match start(&loaded.vector.config) {
            Ok(mut machine) => run_one(&loaded.vector, &mut machine, |_, _| ()),
            Err(error) => vec![format!("cannot start: {error}")],
        };
        let more = failures.len().saturating_sub(LISTED_PER_VECTOR);
        let listed = failures.into_iter().take(LISTED_PER_VECTOR);
        report.failures.extend(listed.map(|failure| format!("{runner}: {name} {failure}")));
        if more > 0 {
            report.failures.push(format!("{runner}: {name}: {more} more differences in this vector"));
        }
    }
    report
}

/// Runs one vector, with `ahead` of each step, which is given by its number.
pub(crate) fn run_one<M: Machine>(
    vector: &Vector,
    machine: &mut M,
    mut ahead: impl FnMut(&mut M, usize),
) -> Vec<String> {
    let mut kept: BTreeMap<&str, Option<M::Permit>> = BTreeMap::new();
    let mut failures = Vec::new();
    for (index, step) in vector.steps.iter().enumerate() {
        let place = format!("steps[{index}] ({} at {})", step.op.as_str(), step.at);
        ahead(machine, index);
        match run_step(step, machine, &mut kept) {
            Ok(differences) => {
                failures.extend(differences.into_iter().map(|difference| format!("{place}: {difference}")));
            }
            Err(error) => failures.push(format!("{place}: {error}")),
        }
    }
    failures
}

fn run_step<'v, M: Machine>(
    step: &'v Step,
    machine: &mut M,
    kept: &mut BTreeMap<&'v str, Option<M::Permit>>,
) -> Result<Vec<String>, String> {
    let at = Millis::new(step.at).map_err(|error| format!("at: {error}"))?;
    let permit = match &step.permit {
        None => None,
        Some(label) => match kept.get(label.as_str()) {
            Some(Some(permit)) => Some(permit),
            Some(None) => return Err(format!("permit: the admission of \"{label}\" was refused, there is none")),
            None => return Err(format!("permit: no earlier step has `as`: \"{label}\"")),
        },
    };
    let operation = match step.op {
        Op::CanRequest => Some(Operation::CanRequest),
        Op::RecordSuccess => Some(Operation::Settle(Outcome::Success, permit)),
        Op::RecordFailure => Some(Operation::Settle(Outcome::Failure, permit)),
        Op::Release => Some(Operation::Settle(Outcome::Release, permit)),
        Op::Reset => Some(Operation::Reset),
        Op::Trip => Some(Operation::Trip(step.for_ms)),
        Op::ForceOpen => Some(Operation::ForceOpen),
        Op::Disable => Some(Operation::Disable),
        Op::Snapshot => None,
    };
    let mut comparison = Comparison::default();
    let answer = operation.map(|operation| machine.step(at, operation)).transpose()?;
    comparison.answer(&step.expect, answer.as_ref());
    comparison.snapshot(&step.expect, &machine.snapshot(at)?);
    if let Some(label) = &step.label {
        let permit = match answer {
            Some(Answer::Allowed(permit)) => Some(permit),
            _ => None,
        };
        kept.insert(label, permit);
    }
    Ok(comparison.differences)
}

#[derive(Default)]
struct Comparison {
    differences: Vec<String>,
}

impl Comparison {
    fn field(&mut self, field: &str, got: impl Into<Json>, expected: Option<impl Into<Json>>) {
        let Some(expected) = expected.map(Into::into) else { return };
        let got = got.into();
        if got != expected {
            self.differences.push(format!("{field}: got {got}, expected {expected}"));
        }
    }

    fn answer<P>(&mut self, expect: &Expect, answer: Option<&Answer<P>>) {
        let (allowed, retry_after, status) = match answer {
            Some(Answer::Allowed(_)) => (Json::from(true), Json::from(0), Json::Null),
            Some(Answer::Refused(wait)) => (Json::from(false), Json::from(*wait), Json::Null),
            Some(Answer::Settled(status)) => (Json::Null, Json::Null, Json::from(status.as_str())),
            Some(Answer::Done) | None => (Json::Null, Json::Null, Json::Null),
        };
        self.field("allowed", allowed, expect.allowed);
        self.field("retryAfterMs", retry_after, expect.retry_after_ms);
        self.field("status", status, expect.status.map(Settlement::as_str));
    }

    fn snapshot(&mut self, expect: &Expect, snapshot: &Snapshot) {
        self.field("state", snapshot.state.as_str(), expect.state.map(State::as_str));
        self.field("mode", snapshot.mode.as_str(), expect.mode.map(Mode::as_str));
        self.field("failuresInWindow", snapshot.failures_in_window, expect.failures_in_window);
        self.field("callsInWindow", snapshot.calls_in_window, expect.calls_in_window);
        self.field("consecutiveFailures", snapshot.consecutive_failures, expect.consecutive_failures);
        self.field("halfOpenSuccesses", snapshot.half_open_successes, expect.half_open_successes);
        self.field("halfOpenInFlight", snapshot.half_open_in_flight, expect.half_open_in_flight);
        self.field("openedAt", snapshot.opened_at, expect.opened_at);
        self.field("remainingOpenMs", snapshot.remaining_open_ms, expect.remaining_open_ms);
        self.field("trips", snapshot.trips, expect.trips);
        self.field("epoch", snapshot.epoch, expect.epoch);
    }
}
