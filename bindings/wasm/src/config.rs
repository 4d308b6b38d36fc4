//! Configurations and names, checked by the core.

use alloc::string::{String, ToString as _};

use core::mem::take;

use switchgear_core::config::{FIELDS, FieldDefault, HostOption};
use switchgear_core::{CircuitBreakerGroup, Naming, Value, name_from_utf16};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert::{Layers, double, fault, thrown, value};
use crate::held::{hold, let_go, with};

/// Whether an HTTP status says that the server failed.
#[wasm_bindgen(js_name = statusCounts)]
#[must_use]
pub fn status_counts(status: u16) -> bool {
    switchgear_core::http::status_counts(status)
}

/// A configuration: put together once per policy, taken by every breaker that runs by it.
#[derive(Default)]
pub struct Config {
    layers: Layers,
    pub(crate) inner: switchgear_core::Config,
}

/// The defaults, until [`build`] has taken in what was added.
#[wasm_bindgen(js_name = newConfig)]
pub fn new_config() -> *mut Config {
    hold(Config::default())
}

#[wasm_bindgen(js_name = freeConfig)]
pub fn free_config(config: *mut Config) {
    let_go(config);
}

/// Begins a layer of options, the outermost first.
#[wasm_bindgen]
pub fn layer(config: *mut Config) {
    with(config, |config| config.layers.begin());
}

/// Adds an option to the layer that was begun last.
#[wasm_bindgen]
pub fn add(config: *mut Config, name: String, kind: u8, number: f64, text: String) {
    with(config, |config| config.layers.add((name, kind, number, text)));
}

/// Takes in what was added, and forgets it. Throws `config_invalid`.
#[wasm_bindgen]
pub fn build(config: *mut Config) -> Result<(), JsValue> {
    with(config, |config| {
        config.inner = take(&mut config.layers).build(switchgear_core::Config::build)?;
        Ok(())
    })
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
