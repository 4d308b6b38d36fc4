//! The conversions that several of the other files share. Every match is exhaustive: a new variant in the core does not
//! compile before it has found its way out.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use switchgear_core::config::HostOption;
use switchgear_core::{ConfigError, Millis, Mode, NameError, Naming, Reason, State, TimeError, Value};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

/// What stands for "unknown" or "none" where a number is wanted.
pub const NONE: f64 = -1.0;

/// What is wrong with input, as the facade turns it into the error class of its code.
pub struct Problem {
    code: &'static str,
    message: String,
    field: Option<String>,
    value: Option<String>,
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        Self {
            code: error.code(),
            message: error.to_string(),
            field: Some(error.field().into()),
            value: error.value().map(Into::into),
        }
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        Self { code: error.code(), message: error.to_string(), field: None, value: None }
    }
}

impl From<TimeError> for Problem {
    fn from(error: TimeError) -> Self {
        Self { code: error.code(), message: error.to_string(), field: None, value: None }
    }
}

#[wasm_bindgen(module = "/src/problem.js")]
extern "C" {
    fn problem(code: &str, message: &str, field: Option<&str>, value: Option<&str>) -> JsValue;
}

#[wasm_bindgen]
extern "C" {
    /// A number as JavaScript shows it: what writes fractions is several kilobytes, and it has them already.
    #[wasm_bindgen(js_name = String)]
    fn show(n: f64) -> String;
}

/// A problem as the object that is thrown.
pub fn thrown(thrown: impl Into<Problem>) -> JsValue {
    let Problem { code, message, field, value } = thrown.into();
    problem(code, &message, field.as_deref(), value.as_deref())
}

/// What is thrown at whoever wrote the facade, not at its user.
pub fn fault(message: &str) -> JsValue {
    message.into()
}

/// A moment, from the double that JavaScript has.
pub fn moment(now: f64) -> Result<Millis, JsValue> {
    Millis::from_f64(now).map_err(|_| thrown(TimeError::of(&show(now))))
}

/// A value of an option from the three things that cross for it: its kind, the number, and how an error should show it, which
/// of a text is the text. None if none was given.
pub fn value(kind: u8, number: f64, text: &str) -> Option<Value<'_>> {
    match kind {
        NUMBER => Some(Value::Shown(number, text)),
        TEXT => Some(Value::Text(text)),
        OTHER => Some(Value::Other(text)),
        _ => None,
    }
}

const NUMBER: u8 = 1;
const TEXT: u8 = 2;
const OTHER: u8 = 3;

/// How long an opening was asked to last. Throws `config_invalid`.
pub fn for_ms(given: Option<Value<'_>>) -> Result<Option<u64>, JsValue> {
    given.map(|value| HostOption::ForMs.check(Naming::Camel, value)).transpose().map_err(thrown)
}

/// A policy on its way in: layers of options, the outermost first.
#[derive(Default)]
pub struct Layers(Vec<Vec<Field>>);

/// The name, and what crosses for a value.
type Field = (String, u8, f64, String);

impl Layers {
    /// Begins a layer.
    pub fn begin(&mut self) {
        self.0.push(Vec::new());
    }

    /// Adds an option to the layer that was begun last.
    pub fn add(&mut self, field: Field) {
        if let Some(layer) = self.0.last_mut() {
            layer.push(field);
        }
    }

    /// Builds a configuration of them.
    pub fn build<C>(
        &self,
        build: impl FnOnce(Naming, &[&[(&str, Value<'_>)]]) -> Result<C, ConfigError>,
    ) -> Result<C, JsValue> {
        let layers: Vec<Vec<(&str, Value<'_>)>> =
            self.0.iter().map(|layer| layer.iter().filter_map(named).collect()).collect();
        let layers: Vec<&[(&str, Value<'_>)]> = layers.iter().map(Vec::as_slice).collect();
        build(Naming::Camel, &layers).map_err(thrown)
    }
}

fn named((name, kind, number, text): &Field) -> Option<(&str, Value<'_>)> {
    Some((name, value(*kind, *number, text)?))
}

/// The words that cross as numbers: each is its place here. Undefined past the last.
#[wasm_bindgen]
#[must_use]
pub fn word(place: u8) -> JsValue {
    let words = [
        State::Closed.as_str(),
        State::Open.as_str(),
        State::HalfOpen.as_str(),
        Mode::Auto.as_str(),
        Mode::ForcedOpen.as_str(),
        Mode::Disabled.as_str(),
        Reason::Threshold.as_str(),
        Reason::Cooldown.as_str(),
        Reason::ProbeFailed.as_str(),
        Reason::ProbesSucceeded.as_str(),
        Reason::Manual.as_str(),
    ];
    words.get(usize::from(place)).map_or(JsValue::UNDEFINED, |&word| word.into())
}

/// The place of a state in [`word`].
pub const fn state(state: State) -> u8 {
    match state {
        State::Closed => 0,
        State::Open => 1,
        State::HalfOpen => 2,
    }
}

/// The place of a mode in [`word`].
pub const fn mode(mode: Mode) -> u8 {
    match mode {
        Mode::Auto => 3,
        Mode::ForcedOpen => 4,
        Mode::Disabled => 5,
    }
}

/// The place of a reason in [`word`].
pub const fn reason(reason: Reason) -> u8 {
    match reason {
        Reason::Threshold => 6,
        Reason::Cooldown => 7,
        Reason::ProbeFailed => 8,
        Reason::ProbesSucceeded => 9,
        Reason::Manual => 10,
    }
}

/// A transition number by number: from, to, at, reason, failures, openMs.
pub fn transition(transition: &switchgear_core::Transition, place: u8) -> f64 {
    match place {
        0 => state(transition.from).into(),
        1 => state(transition.to).into(),
        2 => double(transition.at.get()),
        3 => reason(transition.reason).into(),
        4 => double(transition.failures),
        _ => or_none(transition.open_ms),
    }
}

/// A snapshot number by number, in the order of its fields.
pub fn snapshot(snapshot: &switchgear_core::Snapshot, place: u8) -> f64 {
    match place {
        0 => state(snapshot.state).into(),
        1 => mode(snapshot.mode).into(),
        2 => double(snapshot.failures_in_window),
        3 => double(snapshot.calls_in_window),
        4 => double(snapshot.consecutive_failures),
        5 => double(snapshot.half_open_successes),
        6 => double(snapshot.half_open_in_flight),
        7 => or_none(snapshot.opened_at),
        8 => double(snapshot.remaining_open_ms),
        9 => double(snapshot.trips),
        _ => double(snapshot.epoch),
    }
}

/// Integers of the core as doubles: all are below 2^53, or are wanted only to be compared with each other.
#[allow(clippy::cast_precision_loss, reason = "the core keeps moments, durations and epochs below 2^53")]
pub const fn double(n: u64) -> f64 {
    n as f64
}

/// A number that may not be there.
pub fn or_none(n: Option<u64>) -> f64 {
    n.map_or(NONE, double)
}

/// A ticket, an epoch or a counter from the double it went out as.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates; a foreign number names nothing"
)]
pub const fn whole(n: f64) -> u64 {
    n as u64
}

/// An outcome from the number that stands for it.
pub fn outcome(outcome: u32) -> Result<switchgear_core::Outcome, JsValue> {
    match outcome {
        0 => Ok(switchgear_core::Outcome::Success),
        1 => Ok(switchgear_core::Outcome::Failure),
        2 => Ok(switchgear_core::Outcome::Release),
        _ => Err(fault("no such outcome")),
    }
}
