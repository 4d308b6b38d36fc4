//! Configurations and names, checked by the core.

use alloc::string::{String, ToString as _};

use switchgear_core::config::{FIELDS, FieldDefault, HostOption};
use switchgear_core::shared::{DEFAULT_TIMEOUT_MS, Keys};
use switchgear_core::{CircuitBreakerGroup, ErrorCode, Millis, Naming, Value, name_from_utf16};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert::{Layers, double, fault, thrown, value};

/// The version of this crate, which is that of the package.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}

/// The stable codes of all errors, one by one; undefined past the last.
#[wasm_bindgen(js_name = errorCode)]
#[must_use]
pub fn error_code(place: usize) -> JsValue {
    ErrorCode::ALL.get(place).map_or(JsValue::UNDEFINED, |code| code.as_str().into())
}

/// Whether a number is a moment.
#[wasm_bindgen(js_name = isMoment)]
#[must_use]
pub fn is_moment(now: f64) -> bool {
    Millis::from_f64(now).is_ok()
}

/// Whether an HTTP status says that the server failed.
#[wasm_bindgen(js_name = statusCounts)]
#[must_use]
pub fn status_counts(status: u16) -> bool {
    switchgear_core::http::status_counts(status)
}

/// A checked configuration: made once per policy, taken by every breaker that runs by it.
#[wasm_bindgen]
pub struct Config {
    pub(crate) inner: switchgear_core::Config,
}

#[wasm_bindgen]
impl Config {
    /// From layers of options. Throws `config_invalid`.
    #[wasm_bindgen(constructor)]
    pub fn new(layers: &Layers) -> Result<Self, JsValue> {
        Ok(Self { inner: layers.build(switchgear_core::Config::build)? })
    }
}

/// The core's table of fields, cell by cell: the name; another name that is accepted, if there is one; the default, a word or
/// a number; the field of which it is so many times, if it is. Undefined past the last row.
#[wasm_bindgen(js_name = fieldTable)]
#[must_use]
pub fn field_table(row: usize, column: u8) -> JsValue {
    let Some(field) = FIELDS.get(row) else { return JsValue::UNDEFINED };
    match (column, field.default) {
        (0, _) => field.name.into(),
        (1, _) => field.synonym.map_or(JsValue::UNDEFINED, Into::into),
        (2, FieldDefault::Word(word)) => word.into(),
        (2, FieldDefault::Number(number) | FieldDefault::Times(number, _)) => number.into(),
        (3, FieldDefault::Times(_, of)) => of.into(),
        _ => JsValue::UNDEFINED,
    }
}

/// How many breakers a group holds by default.
#[wasm_bindgen(js_name = defaultMaxKeys)]
#[must_use]
pub fn default_max_keys() -> f64 {
    double(CircuitBreakerGroup::DEFAULT_MAX_KEYS as u64)
}

/// What the keys of a store begin with by default.
#[wasm_bindgen(js_name = defaultPrefix)]
#[must_use]
pub fn default_prefix() -> String {
    Keys::DEFAULT_PREFIX.into()
}

/// How long one admission, outcome or question waits for the store by default, in milliseconds.
#[wasm_bindgen(js_name = defaultStoreTimeoutMs)]
#[must_use]
pub fn default_store_timeout_ms() -> f64 {
    double(DEFAULT_TIMEOUT_MS)
}

/// Checks an option of the host by the core's rules. Throws `config_invalid`.
#[wasm_bindgen(js_name = checkOption)]
pub fn check_option(name: &str, kind: u8, number: f64, text: &str) -> Result<f64, JsValue> {
    let option = HostOption::ALL.into_iter().find(|option| option.name() == name);
    let (Some(option), Some(value)) = (option, value(kind, number, text)) else {
        return Err(fault("no such option"));
    };
    option.check(Naming::Camel, value).map(double).map_err(thrown)
}

/// Checks a circuit's name. UTF-16, for that is where a lone surrogate can be seen. Throws `name_invalid`.
#[wasm_bindgen(js_name = checkName)]
pub fn check_name(name: &[u16]) -> Result<(), JsValue> {
    name_from_utf16(name).map(drop).map_err(thrown)
}

/// A text as an error shows it: in quotes, shortened, without the user and password of a URL.
#[wasm_bindgen(js_name = showText)]
#[must_use]
pub fn show_text(text: &str) -> String {
    Value::Text(text).to_string()
}

/// A text with the user and password of each URL in it replaced.
#[wasm_bindgen(js_name = withoutCredentials)]
#[must_use]
pub fn without_credentials(text: &str) -> String {
    switchgear_core::without_credentials(text).into_owned()
}
