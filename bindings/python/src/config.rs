//! Configurations, names and single options, checked by the core.

use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};
use switchgear_core::config::{FIELDS, FieldDefault, HostOption};
use switchgear_core::shared::{DEFAULT_TIMEOUT_MS, Keys};
use switchgear_core::{CircuitBreakerGroup, ErrorCode, NameError, Naming, http, name_from_utf16, prefix_from_utf16};

use crate::convert::{Given, Layers, Moment, Raise, invalid_name, utf16_of};

/// A checked configuration.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Config {
    pub(crate) inner: switchgear_core::Config,
}

#[pymethods]
impl Config {
    #[new]
    fn new(py: Python<'_>, layers: Vec<Bound<'_, PyMapping>>) -> PyResult<Self> {
        Ok(Self { inner: Layers::of(&layers)?.build(py, switchgear_core::Config::build)? })
    }
}

/// The core's table: name, synonym, default in words.
#[pyfunction]
pub fn fields() -> Vec<(String, Option<String>, String)> {
    let spell = |name: &'static str| Naming::Snake.spell(name).into_owned();
    let default = |default: &FieldDefault| match *default {
        FieldDefault::Word(word) => format!("'{word}'"),
        FieldDefault::Number(number) => number.to_string(),
        FieldDefault::Times(1.0, of) => spell(of),
        FieldDefault::Times(times, of) => format!("{times} x {}", spell(of)),
    };
    FIELDS.iter().map(|field| (spell(field.name), field.synonym.map(spell), default(&field.default))).collect()
}

/// The defaults of what the facade reads itself: `max_keys`, `prefix`, `timeout_ms` of a store.
#[pyfunction]
pub const fn defaults() -> (usize, &'static str, u64) {
    (CircuitBreakerGroup::DEFAULT_MAX_KEYS, Keys::DEFAULT_PREFIX, DEFAULT_TIMEOUT_MS)
}

/// Checks one of the options that hosts add.
#[pyfunction]
pub fn check_option(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    let Some(option) = HostOption::ALL.into_iter().find(|option| Naming::Snake.spell(option.name()) == name) else {
        return Err(pyo3::exceptions::PyValueError::new_err(format!("`{name}` is no option of a host")));
    };
    option.check(Naming::Snake, Given::of(value).value()).map_err(|error| error.raise(value.py()))
}

/// Checks a circuit's name.
#[pyfunction]
pub fn check_name(name: &Bound<'_, PyAny>) -> PyResult<()> {
    checked(name, "name", name_from_utf16).map(drop)
}

/// Checks the prefix of a store's keys.
#[pyfunction]
pub fn check_prefix(prefix: &Bound<'_, PyAny>) -> PyResult<()> {
    checked(prefix, "prefix", prefix_from_utf16).map(drop)
}

/// A text that one of the core's checks has let through.
pub fn checked(
    text: &Bound<'_, PyAny>,
    what: &'static str,
    check: fn(&[u16]) -> Result<String, NameError>,
) -> PyResult<String> {
    let Ok(text) = text.cast::<PyString>() else {
        let shown = Given::of(text).to_string();
        return Err(invalid_name(text.py(), format!("`{what}` must be a str, got `{shown}`")));
    };
    check(&utf16_of(text)?).map_err(|error| error.raise(text.py()))
}

/// A value as an error shows it.
#[pyfunction]
pub fn describe(value: &Bound<'_, PyAny>) -> String {
    Given::of(value).to_string()
}

/// A text with the user and password of each URL in it replaced.
#[pyfunction]
pub fn without_credentials(text: &Bound<'_, PyString>) -> String {
    switchgear_core::without_credentials(&text.to_string_lossy()).into_owned()
}

/// Whether a value is a moment.
#[pyfunction]
pub fn is_moment(now: &Bound<'_, PyAny>) -> bool {
    now.extract::<Moment>().is_ok()
}

/// The stable codes of all errors.
#[pyfunction]
pub fn error_codes() -> Vec<&'static str> {
    ErrorCode::ALL.map(ErrorCode::as_str).to_vec()
}

/// Whether an HTTP status says that the server failed.
#[pyfunction]
pub fn http_status_counts(status: i64) -> bool {
    u16::try_from(status).is_ok_and(http::status_counts)
}
