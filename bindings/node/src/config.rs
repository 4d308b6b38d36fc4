//! Configurations and names, checked by the core.

use napi::bindgen_prelude::{Env, Result, Utf16String};
use napi_derive::napi;
use switchgear_core::config::{FIELDS, FieldDefault, HostOption};
use switchgear_core::shared::{DEFAULT_TIMEOUT_MS, Keys};
use switchgear_core::{CircuitBreakerGroup, Naming, Value, name_from_utf16};

use crate::convert::{FieldValue, double, thrown};

/// A checked configuration: made once per policy, taken by every breaker that runs by it.
#[napi]
pub struct Config {
    pub(crate) inner: switchgear_core::Config,
}

#[napi]
impl Config {
    /// From layers of options, the outermost first. Throws `config_invalid`.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: Env, layers: Vec<Vec<FieldValue>>) -> Result<Self> {
        let layers: Vec<Vec<(&str, Value<'_>)>> = layers
            .iter()
            .map(|layer| layer.iter().map(|field| (field.name.as_str(), field.value())).collect())
            .collect();
        let layers: Vec<&[(&str, Value<'_>)]> = layers.iter().map(Vec::as_slice).collect();
        let inner = switchgear_core::Config::build(Naming::Camel, &layers).map_err(|error| thrown(&env, error))?;
        Ok(Self { inner })
    }
}

/// A row of the core's table of fields.
#[napi(object, object_from_js = false)]
pub struct FieldRow {
    /// The name.
    pub name: String,
    /// Another name that is accepted.
    pub synonym: Option<String>,
    /// The default in words: a word, a number, or how many times another field.
    pub default: String,
}

/// The core's table of fields.
#[napi(catch_unwind)]
pub fn field_table() -> Vec<FieldRow> {
    let row = |field: &switchgear_core::config::Field| FieldRow {
        name: field.name.into(),
        synonym: field.synonym.map(Into::into),
        default: match field.default {
            FieldDefault::Word(word) => format!("'{word}'"),
            FieldDefault::Number(number) => number.to_string(),
            FieldDefault::Times(1.0, of) => of.into(),
            FieldDefault::Times(times, of) => format!("{times} x {of}"),
        },
    };
    FIELDS.iter().map(row).collect()
}

/// How many breakers a group holds by default.
#[napi(catch_unwind)]
pub const fn max_keys_default() -> f64 {
    double(CircuitBreakerGroup::DEFAULT_MAX_KEYS as u64)
}

/// The defaults of what a store reads itself.
#[napi(object, object_from_js = false)]
pub struct Defaults {
    /// What the keys of a store begin with.
    pub prefix: &'static str,
    /// How long one admission, outcome or question waits for the store, in milliseconds.
    pub store_timeout_ms: f64,
}

/// The defaults of what a store reads itself.
#[napi(catch_unwind)]
pub const fn defaults() -> Defaults {
    Defaults { prefix: Keys::DEFAULT_PREFIX, store_timeout_ms: double(DEFAULT_TIMEOUT_MS) }
}

/// Checks an option of the host by the core's rules. Throws `config_invalid`.
#[napi(catch_unwind)]
pub fn check_option(env: Env, value: FieldValue) -> Result<f64> {
    let Some(option) = HostOption::ALL.into_iter().find(|option| option.name() == value.name) else {
        return Err(napi::Error::from_reason(format!("`{}` is no option of a host", value.name)));
    };
    option.check(Naming::Camel, value.value()).map(double).map_err(|error| thrown(&env, error))
}

/// Checks a circuit's name. UTF-16, for that is where a lone surrogate can be seen. Throws `name_invalid`.
#[napi(catch_unwind)]
pub fn check_name(env: Env, name: Utf16String) -> Result<()> {
    name_from_utf16(&name).map(drop).map_err(|error| thrown(&env, error))
}

/// Whether an HTTP status says that the server failed.
#[napi(catch_unwind)]
pub fn status_counts(status: u32) -> bool {
    u16::try_from(status).is_ok_and(switchgear_core::http::status_counts)
}

/// A text as an error shows it: in quotes, shortened, without the user and password of a URL.
#[napi(catch_unwind)]
pub fn show_text(text: String) -> String {
    Value::Text(&text).to_string()
}

/// A text with the user and password of each URL in it replaced.
#[napi(catch_unwind)]
pub fn without_credentials(text: String) -> String {
    switchgear_core::without_credentials(&text).into_owned()
}
