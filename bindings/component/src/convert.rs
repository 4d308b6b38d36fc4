//! The conversions that several of the other files share. Every match is exhaustive: a new variant in the core does not
//! compile before it has found its way out.

use switchgear_core as core;
use switchgear_core::config::HostOption;

use crate::bindings::exports::switchgear::breaker::types::{
    Error, Mode, Naming, Outcome, Reason, Refusal, Setting, Settlement, Snapshot, State, Transition, Value,
};

impl From<core::ConfigError> for Error {
    fn from(error: core::ConfigError) -> Self {
        Self {
            code: error.code().into(),
            message: error.to_string(),
            field: Some(error.field().into()),
            value: error.value().map(Into::into),
        }
    }
}

impl From<core::NameError> for Error {
    fn from(error: core::NameError) -> Self {
        Self { code: error.code().into(), message: error.to_string(), field: None, value: None }
    }
}

impl From<core::TimeError> for Error {
    fn from(error: core::TimeError) -> Self {
        Self { code: error.code().into(), message: error.to_string(), field: None, value: None }
    }
}

/// A moment, checked.
pub fn moment(now: u64) -> Result<core::Millis, Error> {
    Ok(core::Millis::new(now)?)
}

/// How long an opening was asked to last, checked.
pub fn for_ms(naming: core::Naming, given: Option<u64>) -> Result<Option<u64>, Error> {
    let check = |ms| HostOption::ForMs.check(naming, core::Value::Number(double(ms)));
    Ok(given.map(check).transpose()?)
}

/// An integer for a check of its range, which the rounding beyond 2^53 does not change.
#[allow(clippy::cast_precision_loss, reason = "every range ends far below 2^53")]
const fn double(n: u64) -> f64 {
    n as f64
}

/// One of the core's: takes layers of name and value pairs.
type Builder<C> = fn(core::Naming, &[&[(&str, core::Value<'_>)]]) -> Result<C, core::ConfigError>;

/// Hands layers of options to one of the core's builders.
pub fn build<C>(naming: core::Naming, layers: &[Vec<Setting>], builder: Builder<C>) -> Result<C, Error> {
    let layers: Vec<Vec<(&str, core::Value<'_>)>> =
        layers.iter().map(|layer| layer.iter().map(pair).collect()).collect();
    let layers: Vec<&[(&str, core::Value<'_>)]> = layers.iter().map(Vec::as_slice).collect();
    Ok(builder(naming, &layers)?)
}

fn pair(setting: &Setting) -> (&str, core::Value<'_>) {
    (&setting.name, value(&setting.value))
}

/// A value of an option on its way in.
pub fn value(value: &Value) -> core::Value<'_> {
    match value {
        Value::Number(number) => core::Value::Number(*number),
        Value::Text(text) => core::Value::Text(text),
        Value::Other(other) => core::Value::Other(other),
    }
}

/// An option on its way out.
pub fn setting(naming: core::Naming, (name, value): (&'static str, core::Value<'static>)) -> Setting {
    let value = match value {
        core::Value::Number(number) | core::Value::Shown(number, _) => Value::Number(number),
        core::Value::Text(text) => Value::Text(text.into()),
        core::Value::Other(other) => Value::Other(other.into()),
    };
    Setting { name: naming.spell(name).into_owned(), value }
}

impl From<Naming> for core::Naming {
    fn from(naming: Naming) -> Self {
        match naming {
            Naming::Camel => Self::Camel,
            Naming::Snake => Self::Snake,
        }
    }
}

impl From<Outcome> for core::Outcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Success => Self::Success,
            Outcome::Failure => Self::Failure,
            Outcome::Release => Self::Release,
        }
    }
}

impl From<core::State> for State {
    fn from(state: core::State) -> Self {
        match state {
            core::State::Closed => Self::Closed,
            core::State::Open => Self::Open,
            core::State::HalfOpen => Self::HalfOpen,
        }
    }
}

impl From<core::Mode> for Mode {
    fn from(mode: core::Mode) -> Self {
        match mode {
            core::Mode::Auto => Self::Auto,
            core::Mode::ForcedOpen => Self::ForcedOpen,
            core::Mode::Disabled => Self::Disabled,
        }
    }
}

impl From<core::Settlement> for Settlement {
    fn from(settlement: core::Settlement) -> Self {
        match settlement {
            core::Settlement::Applied => Self::Applied,
            core::Settlement::Stale => Self::Stale,
        }
    }
}

impl From<core::Reason> for Reason {
    fn from(reason: core::Reason) -> Self {
        match reason {
            core::Reason::Threshold => Self::Threshold,
            core::Reason::Cooldown => Self::Cooldown,
            core::Reason::ProbeFailed => Self::ProbeFailed,
            core::Reason::ProbesSucceeded => Self::ProbesSucceeded,
            core::Reason::Manual => Self::Manual,
        }
    }
}

impl From<core::Transition> for Transition {
    fn from(transition: core::Transition) -> Self {
        let core::Transition { from, to, at, reason, failures, open_ms, epoch } = transition;
        Self {
            from_state: from.into(),
            to_state: to.into(),
            at: at.get(),
            reason: reason.into(),
            failures,
            open_ms,
            epoch,
        }
    }
}

/// A refusal by its parts.
pub fn refusal(state: core::State, retry_after: Option<u64>) -> Refusal {
    Refusal { state: state.into(), retry_after_ms: retry_after }
}

impl From<core::Snapshot> for Snapshot {
    fn from(snapshot: core::Snapshot) -> Self {
        let core::Snapshot {
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
        Self {
            state: state.into(),
            mode: mode.into(),
            failures_in_window,
            calls_in_window,
            consecutive_failures,
            half_open_successes,
            half_open_in_flight,
            opened_at,
            remaining_open_ms,
            trips,
            epoch,
        }
    }
}
