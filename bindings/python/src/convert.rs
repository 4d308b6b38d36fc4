//! The conversions that several of the other files share. Every match is exhaustive: a new variant in the core does not
//! compile before it has found its way out.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyMapping, PyString};
use switchgear_core::{ConfigError, Millis, NameError, Naming, Outcome, Snapshot, TimeError, Value};

/// A call that succeeded.
pub const SUCCESS: u32 = 0;
/// A call that failed.
pub const FAILURE: u32 = 1;
/// A call that says nothing about the dependency.
pub const RELEASE: u32 = 2;

/// The outcome of its number.
pub fn outcome_of(outcome: u32) -> PyResult<Outcome> {
    match outcome {
        SUCCESS => Ok(Outcome::Success),
        FAILURE => Ok(Outcome::Failure),
        RELEASE => Ok(Outcome::Release),
        other => Err(pyo3::exceptions::PyValueError::new_err(format!("{other} is no outcome"))),
    }
}

/// Takes a lock. A panic inside one would be a bug of ours; what it guards is still a state of the machine.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the core says is wrong with input, as the facade's own class for it.
pub trait Raise {
    /// The exception to raise.
    fn raise(self, py: Python<'_>) -> PyErr;
}

impl Raise for ConfigError {
    fn raise(self, py: Python<'_>) -> PyErr {
        static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let arguments = (self.to_string(), self.field(), self.value());
        error_class(py, &CLASS, "ConfigError")
            .and_then(|class| class.call1(arguments))
            .map_or_else(|e| e, PyErr::from_value)
    }
}

impl Raise for NameError {
    fn raise(self, py: Python<'_>) -> PyErr {
        invalid_name(py, self.to_string())
    }
}

impl Raise for TimeError {
    fn raise(self, py: Python<'_>) -> PyErr {
        invalid_time(py, self.to_string())
    }
}

/// The exception for something that cannot name a circuit.
pub fn invalid_name(py: Python<'_>, message: String) -> PyErr {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    error_class(py, &CLASS, "InvalidNameError")
        .and_then(|class| class.call1((message,)))
        .map_or_else(|e| e, PyErr::from_value)
}

/// The exception for something that is no moment.
fn invalid_time(py: Python<'_>, message: String) -> PyErr {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    error_class(py, &CLASS, "InvalidTimeError")
        .and_then(|class| class.call1((message,)))
        .map_or_else(|e| e, PyErr::from_value)
}

fn error_class<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    cell.get_or_try_init(py, || Ok(py.import("switchgear._error")?.getattr(name)?.unbind())).map(|class| class.bind(py))
}

/// A moment as the user's clock gave it: an integer, or a float that is one.
pub struct Moment(pub Millis);

impl<'a, 'py> FromPyObject<'a, 'py> for Moment {
    type Error = PyErr;

    fn extract(now: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = now.py();
        // The usual case first: what the facade's own clock gives.
        if let Ok(whole) = now.cast_exact::<PyInt>() {
            if let Ok(ms) = whole.extract::<u64>() {
                return Millis::new(ms).map(Self).map_err(|error| error.raise(py));
            }
        } else if let Given::Number(ms) = Given::of(&now) {
            return Millis::from_f64(ms).map(Self).map_err(|error| error.raise(py));
        }
        Err(invalid_time(py, TimeError::of(&Given::of(&now).to_string()).to_string()))
    }
}

/// An option's value as Python has it.
pub enum Given {
    /// A number that a double holds exactly, or a float.
    Number(f64),
    /// A text.
    Text(String),
    /// Anything else, as an error should show it.
    Other(String),
}

impl Given {
    /// Takes a value. Nothing of what is inside an object is looked at, for that may be secret.
    pub fn of(value: &Bound<'_, PyAny>) -> Self {
        if value.is_none() {
            return Self::Other("None".into());
        }
        if let Ok(truth) = value.cast::<PyBool>() {
            return Self::Other(if truth.is_true() { "True" } else { "False" }.into());
        }
        if let Ok(text) = value.cast::<PyString>() {
            return Self::Text(text.to_string_lossy().into_owned());
        }
        if let Ok(number) = value.cast::<PyFloat>() {
            return Self::Number(number.value());
        }
        // Also what only says that it is an integer, as numpy's do.
        match value.extract::<i64>() {
            Ok(n) if n.unsigned_abs() <= MAX_EXACT => Self::Number(n as f64),
            Ok(n) => Self::Other(n.to_string()),
            Err(_) if value.is_instance_of::<PyInt>() => Self::Other("an integer of more than 64 bits".into()),
            Err(_) => Self::Other(described(value)),
        }
    }

    /// The value as the core takes it.
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Number(number) => Value::Number(*number),
            Self::Text(text) => Value::Text(text),
            Self::Other(other) => Value::Other(other),
        }
    }
}

impl std::fmt::Display for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value().fmt(f)
    }
}

/// The largest integer up to which doubles are exact.
const MAX_EXACT: u64 = (1 << 53) - 1;

fn described(value: &Bound<'_, PyAny>) -> String {
    let name = |ty: &Bound<'_, PyAny>| ty.getattr("__name__").and_then(|name| name.extract::<String>());
    if value.is_callable() {
        return name(value).map_or_else(|_| "a callable".into(), |name| format!("callable {name}"));
    }
    value.get_type().name().map_or_else(|_| "an object".into(), |name| format!("{name} object"))
}

/// One of the core's: takes layers of name and value pairs.
type Builder<T> = fn(Naming, &[&[(&str, Value<'_>)]]) -> Result<T, ConfigError>;

/// Layers of options, taken apart once.
pub struct Layers(Vec<Vec<(String, Given)>>);

impl Layers {
    /// Takes a sequence of mappings.
    pub fn of(layers: &[Bound<'_, PyMapping>]) -> PyResult<Self> {
        let pairs = |layer: &Bound<'_, PyMapping>| -> PyResult<Vec<(String, Given)>> {
            let items = layer.items()?;
            items
                .iter()
                .map(|item| {
                    let (name, value) = item.extract::<(Bound<'_, PyString>, Bound<'_, PyAny>)>()?;
                    Ok((name.to_string_lossy().into_owned(), Given::of(&value)))
                })
                .collect()
        };
        Ok(Self(layers.iter().map(pairs).collect::<PyResult<_>>()?))
    }

    /// Hands them to one of the core's builders.
    pub fn build<T>(&self, py: Python<'_>, builder: Builder<T>) -> PyResult<T> {
        let layers: Vec<Vec<(&str, Value<'_>)>> = self
            .0
            .iter()
            .map(|layer| layer.iter().map(|(name, given)| (name.as_str(), given.value())).collect())
            .collect();
        let layers: Vec<&[(&str, Value<'_>)]> = layers.iter().map(Vec::as_slice).collect();
        builder(Naming::Snake, &layers).map_err(|error| error.raise(py))
    }
}

/// A text, or the UTF-16 of one that is no valid Unicode.
pub fn utf16_of(text: &Bound<'_, PyString>) -> PyResult<Vec<u16>> {
    if let Ok(text) = text.to_cow() {
        return Ok(text.encode_utf16().collect());
    }
    let bytes: Vec<u8> = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?.extract()?;
    Ok(bytes.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect())
}

/// A snapshot as a tuple, in the order of the facade's class.
pub type SnapshotSeen = (&'static str, &'static str, u64, u64, u64, u64, u64, Option<u64>, u64, u64, u64);

/// A snapshot as a tuple.
pub fn snapshot_seen(snapshot: Snapshot) -> SnapshotSeen {
    let Snapshot {
        state,
        mode,
        failures_in_window,
        calls_in_window,
        consecutive_failures,
        half_open_successes,
        half_open_in_flight,
        opened_at,
        remaining_open_ms,
        trips,
        epoch,
    } = snapshot;
    let counts = (failures_in_window, calls_in_window, consecutive_failures, half_open_successes, half_open_in_flight);
    let (window, calls, row, successes, in_flight) = counts;
    (
        state.as_str(),
        mode.as_str(),
        window,
        calls,
        row,
        successes,
        in_flight,
        opened_at,
        remaining_open_ms,
        trips,
        epoch,
    )
}
