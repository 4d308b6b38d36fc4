//! The configuration of one breaker: the table of fields, every default once with its reason (DESIGN 3.1).

mod check;
mod table;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

pub use self::check::{Naming, Value};
pub use self::table::{FIELDS, Field, FieldDefault, HostOption, Kind};

use crate::error::ConfigError;
use crate::quorum::Quorum;

/// What makes a closed circuit trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TripOn {
    /// `failureThreshold` failures within `windowMs`; successes do not matter.
    #[default]
    Rolling,
    /// `failureThreshold` failures in a row, however far apart; one success ends the row.
    Consecutive,
    /// A share of `failureRate` of at least `minimumCalls` calls within `windowMs`.
    Rate,
}

impl TripOn {
    /// The word for it, in every host and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rolling => "rolling",
            Self::Consecutive => "consecutive",
            Self::Rate => "rate",
        }
    }

    /// Whether no success ever changes a closed circuit: a host then need not even look at them.
    #[must_use]
    pub const fn ignores_successes(self) -> bool {
        match self {
            Self::Rolling => true,
            Self::Consecutive | Self::Rate => false,
        }
    }
}

/// A checked configuration: whatever holds one may rely on every field being in range and fitting the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub(crate) trip_on: TripOn,
    pub(crate) failure_threshold: u64,
    pub(crate) window_ms: u64,
    pub(crate) failure_rate: f64,
    pub(crate) minimum_calls: u64,
    pub(crate) open_duration_ms: u64,
    pub(crate) open_backoff: f64,
    pub(crate) open_duration_max_ms: u64,
    pub(crate) half_open_max_calls: u64,
    pub(crate) success_threshold: u64,
    pub(crate) probe_timeout_ms: u64,
}

impl Config {
    /// Builds a configuration from layers of name and value pairs, the outermost (module, group) first.
    ///
    /// A later layer overrides an earlier one. Each layer is checked by itself: a field that the `tripOn` in force there
    /// does not use is an error in the layer that gives it; one that only a later layer's `tripOn` does not use is dropped.
    ///
    /// # Errors
    /// [`ConfigError`] names the field, the value and what is valid.
    pub fn build(naming: Naming, layers: &[&[(&str, Value<'_>)]]) -> Result<Self, ConfigError> {
        check::build(naming, layers)
    }

    /// Builds a configuration field by field, in Rust's spelling of the names: the fields left out keep their defaults.
    ///
    /// ```
    /// use switchgear_core::Config;
    ///
    /// let config = Config::from_fields(&[("failure_threshold", 3.into()), ("open_duration_ms", 5_000.into())])?;
    /// assert_eq!(config.failure_threshold(), 3);
    /// assert_eq!(config.probe_timeout_ms(), 5_000);
    ///
    /// let error = Config::from_fields(&[("failure_threshold", 0.into())]).unwrap_err();
    /// assert_eq!(error.to_string(), "`failure_threshold` must be an integer from 1 to 1000000, got `0`");
    /// # Ok::<(), switchgear_core::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// [`ConfigError`] names the field, the value and what is valid.
    pub fn from_fields(fields: &[(&str, Value<'_>)]) -> Result<Self, ConfigError> {
        Self::build(Naming::Snake, &[fields])
    }

    /// What makes a closed circuit trip. Default: rolling.
    #[must_use]
    pub const fn trip_on(&self) -> TripOn {
        self.trip_on
    }

    /// Failures in the window (rolling) or in a row (consecutive) that trip. Default: 5.
    #[must_use]
    pub const fn failure_threshold(&self) -> u64 {
        self.failure_threshold
    }

    /// The window in milliseconds (rolling, rate). Default: 10 000.
    #[must_use]
    pub const fn window_ms(&self) -> u64 {
        self.window_ms
    }

    /// The share of failed calls that trips (rate). Default: 0.5.
    #[must_use]
    pub const fn failure_rate(&self) -> f64 {
        self.failure_rate
    }

    /// The calls in the window before the rate means anything (rate). Default: 20.
    #[must_use]
    pub const fn minimum_calls(&self) -> u64 {
        self.minimum_calls
    }

    /// How long OPEN lasts, in milliseconds. Default: 30 000.
    #[must_use]
    pub const fn open_duration_ms(&self) -> u64 {
        self.open_duration_ms
    }

    /// The factor for each re-opening without a close in between. Default: 1.
    #[must_use]
    pub const fn open_backoff(&self) -> f64 {
        self.open_backoff
    }

    /// The cap of the backoff in milliseconds. Default: ten times the open duration.
    #[must_use]
    pub const fn open_duration_max_ms(&self) -> u64 {
        self.open_duration_max_ms
    }

    /// Probes in flight at once. Default: 1.
    #[must_use]
    pub const fn half_open_max_calls(&self) -> u64 {
        self.half_open_max_calls
    }

    /// Successful probes that close. Default: 1.
    #[must_use]
    pub const fn success_threshold(&self) -> u64 {
        self.success_threshold
    }

    /// After how many milliseconds an unresolved probe loses its slot. Default: the open duration.
    #[must_use]
    pub const fn probe_timeout_ms(&self) -> u64 {
        self.probe_timeout_ms
    }

    /// The length of the `trips`-th opening in a row (DESIGN 3.4, Trip): `floor(min(openDurationMs * openBackoff^(trips-1),
    /// openDurationMaxMs))` by repeated multiplication that stops at the cap, floored once at the end, as Lua does it.
    #[must_use]
    pub fn open_ms(&self, trips: u64) -> u64 {
        if self.open_backoff <= 1.0 {
            return self.open_duration_ms;
        }
        let cap = self.open_duration_max_ms as f64;
        let mut ms = self.open_duration_ms as f64;
        for _ in 1..trips {
            if ms >= cap {
                break;
            }
            ms *= self.open_backoff;
        }
        // Both are below 2^53 and positive: the cast is the floor.
        if ms < cap { ms as u64 } else { self.open_duration_max_ms }
    }

    /// The longest duration in play, in milliseconds: what the lifetime of a shared circuit's keys is measured by.
    #[must_use]
    pub fn longest_ms(&self) -> u64 {
        let open = if self.open_backoff > 1.0 { self.open_duration_max_ms } else { self.open_duration_ms };
        self.window_ms.max(open).max(self.probe_timeout_ms)
    }

    /// The configuration as the one argument that the Lua scripts take (DESIGN section 4): each number in the shortest
    /// text that reads back as the same double.
    pub(crate) fn wire(&self, idle_ttl_ms: u64, quorum: Quorum) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = write!(
            text,
            "{} {} {} {} {} {} {} {} {} {} {} {} {}",
            self.trip_on.as_str(),
            self.failure_threshold,
            self.window_ms,
            self.failure_rate,
            self.minimum_calls,
            self.open_duration_ms,
            self.open_backoff,
            self.open_duration_max_ms,
            self.half_open_max_calls,
            self.success_threshold,
            self.probe_timeout_ms,
            idle_ttl_ms,
            quorum.get(),
        );
        text
    }

    /// Name and value of each field that the `tripOn` in force uses, in the table's order and in JavaScript's spelling.
    /// Building from these pairs gives the same configuration again.
    #[must_use]
    pub fn fields_in_force(&self) -> Vec<(&'static str, Value<'static>)> {
        let in_force = FIELDS.iter().filter(|field| field.used_by.contains(&self.trip_on));
        in_force.map(|field| (field.name, (field.get)(self))).collect()
    }
}

impl Default for Config {
    /// Every field at its default: five failures within ten seconds trip for thirty seconds, then one probe decides.
    fn default() -> Self {
        check::defaults()
    }
}
