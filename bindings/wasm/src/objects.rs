//! Policies and snapshots as objects, for who writes in JavaScript without the facade, as the playground does. The core's own
//! `Deserialize` checks each key and each value, in the words of its own table.

use alloc::vec::Vec;

use serde::{Deserialize as _, Serialize};
use serde_wasm_bindgen::{Deserializer, Serializer};
use switchgear_core::config::{FIELDS, Field, FieldDefault, Kind};
use switchgear_core::{Admission, CircuitBreaker, Config, Decision, Outcome, Permit, State, Transition, TripOn};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert::{double, fault, for_ms, moment, or_none, thrown, value};

/// The core's table of options, row by row as an object: `name`, `synonym`, `kind` (`word`, `count`, `duration`, `timer`, `share`,
/// `factor`), the `words` it may be, what is `valid` in the words of its error, its `default`, the other field `of` which that is so
/// many times, and the `usedBy` words of `tripOn`.
#[wasm_bindgen]
pub fn fields() -> Result<JsValue, JsValue> {
    object(&FIELDS.iter().map(Row::from).collect::<Vec<_>>())
}

/// One circuit, asked with objects.
#[wasm_bindgen]
pub struct Circuit {
    machine: CircuitBreaker,
    /// What the last operation did to the state.
    transition: Option<Transition>,
    /// The permits that were given, each by its number: an object of JavaScript would let itself be changed.
    permits: Vec<Permit>,
}

#[wasm_bindgen]
impl Circuit {
    /// Of a policy: `{ failureThreshold: 5, ... }`. Throws a text that names the field, the value and what is valid.
    #[wasm_bindgen(constructor)]
    pub fn new(policy: JsValue) -> Result<Self, JsValue> {
        let config = Config::deserialize(Deserializer::from(policy)).map_err(JsValue::from)?;
        Ok(Self { machine: CircuitBreaker::new(config), transition: None, permits: Vec::new() })
    }

    /// Asks for one call: the number of its permit, or -1 where it is refused; then [`Circuit::wait`] says how long.
    #[wasm_bindgen(js_name = canRequest)]
    pub fn can_request(&mut self, now: f64) -> Result<f64, JsValue> {
        let Admission { decision, transition } = self.machine.can_request(moment(now)?);
        self.transition = transition;
        match decision {
            Decision::Allowed(permit) => {
                self.permits.push(permit);
                Ok(double(self.permits.len() as u64 - 1))
            }
            Decision::Refused { .. } => Ok(-1.0),
        }
    }

    /// How long a request would have to wait, in milliseconds; -1 if that is unknown.
    pub fn wait(&self, now: f64) -> Result<f64, JsValue> {
        Ok(or_none(self.machine.retry_after(moment(now)?)))
    }

    /// Settles a call by the number of its permit, or without one: `applied` or `stale`.
    #[wasm_bindgen(js_name = settle)]
    pub fn settle(&mut self, now: f64, outcome: &str, permit: Option<usize>) -> Result<String, JsValue> {
        let outcome = match outcome {
            "recordSuccess" => Outcome::Success,
            "recordFailure" => Outcome::Failure,
            "release" => Outcome::Release,
            _ => return Err(fault("no such outcome")),
        };
        let permit = match permit {
            Some(number) => Some(*self.permits.get(number).ok_or_else(|| fault("no such permit"))?),
            None => None,
        };
        let settled = self.machine.settle(moment(now)?, permit, outcome);
        self.transition = settled.transition;
        Ok(settled.status.as_str().into())
    }

    /// Manual control: `reset`, `trip` (for as long as given), `forceOpen`, `disable`.
    pub fn control(&mut self, now: f64, operation: &str, for_how_long: Option<f64>) -> Result<(), JsValue> {
        let now = moment(now)?;
        self.transition = match operation {
            "reset" => self.machine.reset(now),
            "trip" => {
                let given = for_how_long.map(|ms| (ms, ms.to_string()));
                let given = given.as_ref().and_then(|(ms, text)| value(1, *ms, text));
                self.machine.trip(now, for_ms(given)?).map_err(thrown)?
            }
            "forceOpen" => self.machine.force_open(now),
            "disable" => self.machine.disable(now),
            _ => return Err(fault("no such operation")),
        };
        Ok(())
    }

    /// Everything the circuit knows, as an object.
    pub fn snapshot(&self, now: f64) -> Result<JsValue, JsValue> {
        object(&self.machine.snapshot(moment(now)?))
    }

    /// The options in force, as an object: what was given, and the defaults for the rest.
    pub fn policy(&self) -> Result<JsValue, JsValue> {
        object(self.machine.config())
    }

    /// What kind of permit that number names: `closed`, `probe` or `bypass`; undefined if none.
    #[wasm_bindgen(js_name = permitKind)]
    #[must_use]
    pub fn permit_kind(&self, number: usize) -> Option<String> {
        let kind = match self.permits.get(number)? {
            Permit::Closed { .. } => "closed",
            Permit::Probe { .. } => "probe",
            Permit::Bypass => "bypass",
        };
        Some(kind.into())
    }

    /// What the last operation did to the state, as an object: `from`, `to`, `at`, `reason`, `failures`, `openMs`; null if nothing.
    pub fn transition(&self) -> Result<JsValue, JsValue> {
        object(&self.transition.as_ref().map(Made::from))
    }
}

/// A value as an object: integers as numbers, and null where there is none, as everywhere else.
fn object(value: &impl Serialize) -> Result<JsValue, JsValue> {
    let serializer = Serializer::new().serialize_missing_as_null(true).serialize_maps_as_objects(true);
    value.serialize(&serializer).map_err(JsValue::from)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: &'static str,
    synonym: Option<&'static str>,
    kind: &'static str,
    words: Vec<&'static str>,
    valid: &'static str,
    default: Standard,
    of: Option<&'static str>,
    used_by: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Standard {
    Word(&'static str),
    Number(f64),
}

impl From<&Field> for Row {
    fn from(field: &Field) -> Self {
        let (kind, words) = match field.kind {
            Kind::TripOn => ("word", field.used_by),
            Kind::Count => ("count", NONE),
            Kind::Duration => ("duration", NONE),
            Kind::Timer => ("timer", NONE),
            Kind::Share => ("share", NONE),
            Kind::Age => ("age", NONE),
            Kind::Factor => ("factor", NONE),
        };
        let (default, of) = match field.default {
            FieldDefault::Word(word) => (Standard::Word(word), None),
            FieldDefault::Number(number) => (Standard::Number(number), None),
            FieldDefault::Times(number, of) => (Standard::Number(number), Some(of)),
        };
        let spelled = |words: &[TripOn]| words.iter().map(|word| word.as_str()).collect();
        Self {
            name: field.name,
            synonym: field.synonym,
            kind,
            words: spelled(words),
            valid: field.kind.valid(),
            default,
            of,
            used_by: spelled(field.used_by),
        }
    }
}

const NONE: &[TripOn] = &[];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Made {
    from: State,
    to: State,
    at: u64,
    reason: &'static str,
    failures: u64,
    open_ms: Option<u64>,
}

impl From<&Transition> for Made {
    fn from(made: &Transition) -> Self {
        let Transition { from, to, at, reason, failures, open_ms, .. } = *made;
        Self { from, to, at: at.get(), reason: reason.as_str(), failures, open_ms }
    }
}
