//! Policies and snapshots as objects, for who writes in JavaScript without the facade, as the playground does. The core's own
//! `Deserialize` checks each key and each value, in the words of its own table.

use serde::{Deserialize as _, Serialize as _};
use serde_wasm_bindgen::{Deserializer, Serializer};
use switchgear_core::{CircuitBreaker, Config, Decision, Outcome, Permit};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert::{double, fault, for_ms, moment, or_none, thrown, value};

/// One circuit, asked with objects.
#[wasm_bindgen]
pub struct Circuit {
    machine: CircuitBreaker,
    /// The permits that were given, each by its number: an object of JavaScript would let itself be changed.
    permits: Vec<Permit>,
}

#[wasm_bindgen]
impl Circuit {
    /// Of a policy: `{ failureThreshold: 5, ... }`. Throws a text that names the field, the value and what is valid.
    #[wasm_bindgen(constructor)]
    pub fn new(policy: JsValue) -> Result<Self, JsValue> {
        let config = Config::deserialize(Deserializer::from(policy)).map_err(JsValue::from)?;
        Ok(Self { machine: CircuitBreaker::new(config), permits: Vec::new() })
    }

    /// Asks for one call: the number of its permit, or -1 where it is refused; then [`Circuit::wait`] says how long.
    #[wasm_bindgen(js_name = canRequest)]
    pub fn can_request(&mut self, now: f64) -> Result<f64, JsValue> {
        match self.machine.can_request(moment(now)?).decision {
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
        Ok(self.machine.settle(moment(now)?, permit, outcome).status.as_str().into())
    }

    /// Manual control: `reset`, `trip` (for as long as given), `forceOpen`, `disable`.
    pub fn control(&mut self, now: f64, operation: &str, for_how_long: Option<f64>) -> Result<(), JsValue> {
        let now = moment(now)?;
        match operation {
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
        // Integers as numbers, and null where there is none, as everywhere else.
        let serializer = Serializer::new().serialize_missing_as_null(true);
        self.machine.snapshot(moment(now)?).serialize(&serializer).map_err(JsValue::from)
    }
}
