//! The conversions that several of the other files share. Every match is exhaustive: a new variant in the core does not
//! compile before it has found its way out.

use napi::bindgen_prelude::{Either, Env, Error, Null, Result, Status};
use napi_derive::napi;
use switchgear_core::{ConfigError, Millis, NameError, TimeError, Value};

/// What is wrong with input, as the facade turns it into the error class of its code.
#[napi(object, object_from_js = false)]
pub struct Problem {
    /// The stable code.
    pub code: String,
    /// What is wrong, in words.
    pub message: String,
    /// The option, where it is one.
    pub field: Option<String>,
    /// The value as it may be shown.
    pub value: Option<String>,
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        Self {
            code: error.code().into(),
            message: error.to_string(),
            field: Some(error.field().into()),
            value: error.value().map(Into::into),
        }
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        Self { code: error.code().into(), message: error.to_string(), field: None, value: None }
    }
}

impl From<TimeError> for Problem {
    fn from(error: TimeError) -> Self {
        Self { code: error.code().into(), message: error.to_string(), field: None, value: None }
    }
}

/// Throws a problem as the object it is; an `Error` of napi could not carry its fields.
pub fn thrown(env: &Env, problem: impl Into<Problem>) -> Error {
    match env.throw(problem.into()) {
        Ok(()) => Error::new(Status::PendingException, String::new()),
        Err(error) => error,
    }
}

/// A moment, from the double that JavaScript has.
pub fn moment(env: &Env, now: f64) -> Result<Millis> {
    Millis::from_f64(now).map_err(|error| thrown(env, error))
}

/// An option as it crosses: exactly one of number, text and other.
#[napi(object, object_to_js = false)]
pub struct FieldValue {
    /// The option's name.
    pub name: String,
    /// A number.
    pub number: Option<f64>,
    /// A text.
    pub text: Option<String>,
    /// Anything else, as an error should show it.
    pub other: Option<String>,
}

impl FieldValue {
    /// The value as the core takes it.
    pub fn value(&self) -> Value<'_> {
        match (self.number, &self.text, &self.other) {
            (Some(number), _, _) => Value::Number(number),
            (None, Some(text), _) => Value::Text(text),
            (None, None, Some(other)) => Value::Other(other),
            (None, None, None) => Value::Other("undefined"),
        }
    }
}

/// Integers of the core as doubles: all are below 2^53, or are wanted only to be compared with each other.
#[allow(clippy::cast_precision_loss, reason = "the core keeps moments, durations and epochs below 2^53")]
pub const fn double(n: u64) -> f64 {
    n as f64
}

/// A number that may not be there; a property that is `None` would be left out.
pub fn or_null(n: Option<u64>) -> Either<f64, Null> {
    n.map_or(Either::B(Null), |n| Either::A(double(n)))
}
