//! From name and value pairs to a [`Config`], or to the error that says what is wrong with them.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::table::{Checked, FIELDS, Field, FieldDefault, HostOption, Kind};
use super::{Config, TripOn};
use crate::error::ConfigError;
use crate::redact::without_credentials;

/// The longest duration: 100 years. It keeps every sum with a moment below 2^53, where doubles are exact.
const MAX_DURATION_MS: u64 = 3_155_760_000_000;
const MAX_COUNT: u64 = 1_000_000;
/// The longest timer: JavaScript's hold 31 bits, and fire at once beyond.
const MAX_TIMER_MS: u64 = (1 << 31) - 1;

/// How the host spells the names of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `failureThreshold`: JavaScript, JSON.
    Camel,
    /// `failure_threshold`: Python, Rust.
    Snake,
}

impl Naming {
    /// A table name in this spelling.
    #[cfg(switchgear_small)]
    #[must_use]
    pub const fn spell(self, name: &'static str) -> &'static str {
        // A build that is sent to pages is spelled as JavaScript is.
        name
    }

    /// A table name in this spelling.
    #[cfg(not(switchgear_small))]
    #[must_use]
    pub fn spell(self, name: &'static str) -> Cow<'static, str> {
        match self {
            Self::Camel => Cow::Borrowed(name),
            Self::Snake => {
                let mut snake = String::with_capacity(name.len() + 4);
                for c in name.chars() {
                    if c.is_ascii_uppercase() {
                        snake.push('_');
                    }
                    snake.push(c.to_ascii_lowercase());
                }
                Cow::Owned(snake)
            }
        }
    }
}

/// A value as the host has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A number of any kind.
    Number(f64),
    /// A number of a host that shows numbers itself, and how it does.
    Shown(f64, &'a str),
    /// A text.
    Text(&'a str),
    /// Something else, described as an error should show it: `null`, `true`, `an object`.
    Other(&'a str),
}

impl From<i32> for Value<'_> {
    fn from(n: i32) -> Self {
        Self::Number(f64::from(n))
    }
}

impl From<f64> for Value<'_> {
    fn from(n: f64) -> Self {
        Self::Number(n)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Value<'_> {
    /// As an error shows it: texts in quotes, shortened, and without the user and password of a URL.
    pub(crate) fn shown(&self) -> String {
        match self {
            // Most readers' languages spell it out.
            Self::Number(n) if n.is_infinite() => if *n > 0.0 { "Infinity" } else { "-Infinity" }.into(),
            Self::Number(n) => shown_number(*n),
            Self::Shown(_, text) => (*text).into(),
            Self::Text(text) => ["'", &shorten(&without_credentials(text)), "'"].concat(),
            Self::Other(description) => shorten(&without_credentials(description)).into(),
        }
    }
}

#[cfg(not(switchgear_small))]
fn shown_number(n: f64) -> String {
    n.to_string()
}

/// In a build that is sent to every page: what writes fractions is several kilobytes, and its host hands them in as
/// [`Value::Shown`].
#[cfg(switchgear_small)]
fn shown_number(n: f64) -> String {
    let whole = n as i64;
    if whole as f64 == n { whole.to_string() } else { "a number that is no integer".into() }
}

impl HostOption {
    /// Checks a value of this option; the answer is a whole number.
    ///
    /// # Errors
    /// [`ConfigError`] names the option, the value and what is valid.
    pub fn check(self, naming: Naming, value: Value<'_>) -> Result<u64, ConfigError> {
        self.kind().check(&naming.spell(self.name()), value).map(Checked::whole)
    }
}

impl Kind {
    /// What is valid, in words.
    #[must_use]
    pub const fn valid(self) -> &'static str {
        match self {
            Self::TripOn => "'rolling', 'consecutive' or 'rate'",
            Self::Count => "an integer from 1 to 1000000",
            Self::Duration => "an integer from 1 to 3155760000000 (milliseconds)",
            Self::Timer => "an integer from 1 to 2147483647 (milliseconds)",
            Self::Age => "an integer from 0 to 3155760000000 (milliseconds)",
            Self::Share => "a number above 0, at most 1",
            Self::Factor => "a number from 1 to 100",
        }
    }

    fn check(self, name: &str, value: Value<'_>) -> Result<Checked, ConfigError> {
        let number = match value {
            Value::Shown(n, _) => Value::Number(n),
            other => other,
        };
        let checked = match (self, number) {
            (Self::TripOn, Value::Text(word)) => [TripOn::Rolling, TripOn::Consecutive, TripOn::Rate]
                .into_iter()
                .find(|t| t.as_str() == word)
                .map(Checked::TripOn),
            (Self::Count, Value::Number(n)) => whole(n, 1, MAX_COUNT),
            (Self::Duration, Value::Number(n)) => whole(n, 1, MAX_DURATION_MS),
            (Self::Timer, Value::Number(n)) => whole(n, 1, MAX_TIMER_MS),
            (Self::Age, Value::Number(n)) => whole(n, 0, MAX_DURATION_MS),
            (Self::Share, Value::Number(n)) if n > 0.0 && n <= 1.0 => Some(Checked::Fraction(n)),
            (Self::Factor, Value::Number(n)) if (1.0..=100.0).contains(&n) => Some(Checked::Fraction(n)),
            _ => None,
        };
        checked.ok_or_else(|| ConfigError::out_of_range(name, self.valid(), value.shown()))
    }
}

pub(super) fn defaults() -> Config {
    let mut config = Config {
        trip_on: TripOn::Rolling,
        failure_threshold: 0,
        window_ms: 0,
        failure_rate: 0.0,
        minimum_calls: 0,
        open_duration_ms: 0,
        open_backoff: 0.0,
        open_duration_max_ms: 0,
        half_open_max_calls: 0,
        success_threshold: 0,
        probe_timeout_ms: 0,
    };
    fill(&mut config, &[]);
    config
}

pub(super) fn build(naming: Naming, layers: &[&[(&str, Value<'_>)]]) -> Result<Config, ConfigError> {
    let mut given: Vec<(&'static Field, Checked)> = Vec::new();
    let mut trip_on = TripOn::default();
    for layer in layers {
        let checked = check_layer(naming, layer)?;
        if let Some((_, Checked::TripOn(word))) = checked.iter().find(|(field, _)| field.kind == Kind::TripOn) {
            trip_on = *word;
        }
        if let Some((field, _)) = checked.iter().find(|(field, _)| !field.used_by.contains(&trip_on)) {
            return Err(unused(naming, field));
        }
        given.retain(|(old, _)| !checked.iter().any(|(new, _)| new.name == old.name));
        given.extend(checked);
    }
    given.retain(|(field, _)| field.used_by.contains(&trip_on));
    let mut config = defaults();
    fill(&mut config, &given);
    if config.open_duration_max_ms < config.open_duration_ms {
        let duration = config.open_duration_ms.to_string();
        let valid = ["at least ", &naming.spell("openDurationMs"), " (", &duration, ")"].concat();
        let value = config.open_duration_max_ms.to_string();
        return Err(ConfigError::out_of_range(&naming.spell("openDurationMaxMs"), &valid, value));
    }
    Ok(config)
}

fn check_layer(naming: Naming, layer: &[(&str, Value<'_>)]) -> Result<Vec<(&'static Field, Checked)>, ConfigError> {
    let mut checked: Vec<(&'static Field, Checked)> = Vec::with_capacity(layer.len());
    for &(name, value) in layer {
        let names = |field: &&Field| {
            naming.spell(field.name) == name || field.synonym.is_some_and(|synonym| naming.spell(synonym) == name)
        };
        let Some(field) = FIELDS.iter().find(names) else { return Err(unknown(naming, name)) };
        if checked.iter().any(|(other, _)| other.name == field.name) {
            return Err(twice(naming, field));
        }
        checked.push((field, field.kind.check(name, value)?));
    }
    Ok(checked)
}

/// Sets what was given, then every default that the rest leaves open; the table lists a field before those that follow it.
fn fill(config: &mut Config, given: &[(&'static Field, Checked)]) {
    for field in FIELDS {
        let value = given
            .iter()
            .find(|(other, _)| other.name == field.name)
            .map_or_else(|| default_of(config, field), |(_, v)| *v);
        (field.set)(config, value);
    }
}

fn default_of(config: &Config, field: &Field) -> Checked {
    match (field.default, field.kind) {
        (FieldDefault::Word(_), _) => Checked::TripOn(TripOn::default()),
        (FieldDefault::Number(n), Kind::Share | Kind::Factor) => Checked::Fraction(n),
        (FieldDefault::Number(n), _) => Checked::Whole(n as u64),
        (FieldDefault::Times(factor, of), _) => {
            let base = FIELDS.iter().find(|other| other.name == of).map(|other| (other.get)(config));
            let Some(Value::Number(ms)) = base else { return Checked::Whole(1) };
            Checked::Whole(((ms * factor) as u64).min(MAX_DURATION_MS))
        }
    }
}

fn whole(n: f64, min: u64, max: u64) -> Option<Checked> {
    let in_range = (min as f64..=max as f64).contains(&n) && (n as u64) as f64 == n;
    in_range.then_some(Checked::Whole(n as u64))
}

fn unknown(naming: Naming, name: &str) -> ConfigError {
    let names: Vec<_> = FIELDS.iter().map(|field| naming.spell(field.name)).collect();
    let shown = shorten(&without_credentials(name)).into_owned();
    ConfigError::misplaced(&shown, ["`", &shown, "` is not an option; valid are ", &names.join(", ")].concat())
}

fn twice(naming: Naming, field: &Field) -> ConfigError {
    let name = naming.spell(field.name);
    let message = match field.synonym {
        Some(synonym) => {
            let synonym = naming.spell(synonym);
            ["`", &synonym, "` and `", &name, "` are two names of one option; give one of them"].concat()
        }
        None => ["`", &name, "` is given twice; give it once"].concat(),
    };
    ConfigError::misplaced(&name, message)
}

fn unused(naming: Naming, field: &Field) -> ConfigError {
    let name = naming.spell(field.name);
    let users: Vec<String> = field.used_by.iter().map(|t| ["'", t.as_str(), "'"].concat()).collect();
    let message = ["`", &name, "` needs ", &naming.spell("tripOn"), ": ", &users.join(" or ")].concat();
    ConfigError::misplaced(&name, message)
}

/// The longest piece of foreign text that an error repeats.
const MAX_SHOWN: usize = 64;

fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => Cow::Owned([&text[..end], "..."].concat()),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests;
