//! What a shared circuit adds to the configuration of a breaker.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use crate::config::{Config, HostOption, Naming, TripOn, Value};
use crate::error::ConfigError;

/// What an admission answers while the store does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnStoreFailure {
    /// What this process has seen for itself: a breaker of the same configuration, fed with every outcome, decides.
    #[default]
    Local,
    /// It is refused: a payment that is not made can be made later.
    FailClosed,
    /// It is admitted, unguarded.
    FailOpen,
}

impl OnStoreFailure {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Local, Self::FailOpen, Self::FailClosed];

    /// The words for them.
    pub const VALID: &'static str = "'local', 'fail-open' or 'fail-closed'";

    /// The word for it, in every host.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::FailClosed => "fail-closed",
            Self::FailOpen => "fail-open",
        }
    }
}

/// What a shared circuit adds to the configuration of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedOptions {
    /// What an admission answers while the store does not. Default: local.
    pub on_store_failure: OnStoreFailure,
    /// How long an idle circuit is remembered, in milliseconds. Default: 24 hours; never less than twice the longest
    /// duration of the configuration plus 60 s, so that an idle OPEN circuit comes back through a probe.
    pub idle_ttl_ms: u64,
    /// How long a circuit that is known to be open refuses without asking, in milliseconds from the question on; never past
    /// the reopening. Default: 1000.
    pub open_cache_ms: u64,
    /// How long a circuit that is known to be closed admits without asking, in milliseconds from the question on. Default: 0.
    pub closed_cache_ms: u64,
    /// How many instances must have seen failures before the fleet trips. Default: 1.
    pub quorum: u64,
}

/// A day: traffic that comes once a night still meets what the circuit knew.
const DEFAULT_IDLE_TTL_MS: u64 = 24 * 60 * 60 * 1000;

/// A second: an operator's reset takes effect before he wonders, and an outage costs each process one question a second.
const DEFAULT_OPEN_CACHE_MS: u64 = 1000;

/// How long an admission waits for the store when nobody says, in milliseconds: many round trips in a data centre, and
/// less than a caller notices.
pub const DEFAULT_TIMEOUT_MS: u64 = 100;

impl SharedOptions {
    /// Names of the options in JavaScript's spelling.
    pub const NAMES: [&'static str; 5] = ["onStoreFailure", "idleTtlMs", "openCacheMs", "closedCacheMs", "quorum"];

    /// The defaults beside this configuration.
    #[must_use]
    pub fn for_config(config: &Config) -> Self {
        Self {
            on_store_failure: OnStoreFailure::default(),
            idle_ttl_ms: DEFAULT_IDLE_TTL_MS.max(shortest_ttl(config)),
            open_cache_ms: DEFAULT_OPEN_CACHE_MS,
            // None: an answer that is never old is what people expect who have not asked for less.
            closed_cache_ms: 0,
            // One: a failure is a failure, whoever saw it.
            quorum: 1,
        }
    }

    /// Builds the configuration and the options of a shared circuit from one set of layers of name and value pairs, the
    /// outermost first: see [`Config::build`].
    ///
    /// # Errors
    /// [`ConfigError`] names the field, the value and what is valid.
    pub fn build(naming: Naming, layers: &[&[(&str, Value<'_>)]]) -> Result<(Config, Self), ConfigError> {
        let names = Self::NAMES.map(|name| naming.spell(name));
        let names = names.each_ref().map(AsRef::<str>::as_ref);
        let rest: Vec<Vec<(&str, Value<'_>)>> = layers
            .iter()
            .map(|layer| layer.iter().copied().filter(|(name, _)| !names.contains(name)).collect())
            .collect();
        let rest: Vec<&[(&str, Value<'_>)]> = rest.iter().map(Vec::as_slice).collect();
        let config = Config::build(naming, &rest)?;
        let mut options = Self::for_config(&config);
        let [failure, ttl, open_cache, closed_cache, quorum] = names;
        for &(name, value) in layers.iter().copied().flatten() {
            if name == failure {
                options.on_store_failure = on_store_failure(name, value)?;
            } else if name == ttl {
                options.idle_ttl_ms = idle_ttl_ms(naming, name, value, &config)?;
            } else if name == open_cache {
                options.open_cache_ms = HostOption::OpenCacheMs.check(naming, value)?;
            } else if name == closed_cache {
                options.closed_cache_ms = HostOption::ClosedCacheMs.check(naming, value)?;
            } else if name == quorum {
                options.quorum = self::quorum(naming, name, value, &config)?;
            }
        }
        Ok((config, options))
    }
}

fn shortest_ttl(config: &Config) -> u64 {
    2 * config.longest_ms() + 60_000
}

fn on_store_failure(name: &str, value: Value<'_>) -> Result<OnStoreFailure, ConfigError> {
    OnStoreFailure::ALL
        .into_iter()
        .find(|word| value == Value::Text(word.as_str()))
        .ok_or_else(|| ConfigError::out_of_range(name, OnStoreFailure::VALID, value.to_string()))
}

fn idle_ttl_ms(naming: Naming, name: &str, value: Value<'_>, config: &Config) -> Result<u64, ConfigError> {
    let ms = HostOption::IdleTtlMs.check(naming, value)?;
    let shortest = shortest_ttl(config);
    if ms < shortest {
        let valid = format!("at least {shortest} (twice the longest duration of this breaker plus 60000)");
        return Err(ConfigError::out_of_range(name, &valid, value.to_string()));
    }
    Ok(ms)
}

/// Where fewer failures trip than instances must have seen one, nothing would ever trip.
fn quorum(naming: Naming, name: &str, value: Value<'_>, config: &Config) -> Result<u64, ConfigError> {
    let instances = HostOption::Quorum.check(naming, value)?;
    let (most, of) = match config.trip_on() {
        TripOn::Rolling | TripOn::Consecutive => (config.failure_threshold(), "failureThreshold"),
        TripOn::Rate => (config.minimum_calls(), "minimumCalls"),
    };
    if instances > most {
        let valid = format!("an integer from 1 to {} ({most})", naming.spell(of));
        return Err(ConfigError::out_of_range(name, &valid, value.to_string()));
    }
    Ok(instances)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(fields: &[(&str, Value<'_>)]) -> Result<(Config, SharedOptions), ConfigError> {
        SharedOptions::build(Naming::Camel, &[fields])
    }

    #[test]
    fn an_idle_circuit_is_remembered_for_a_day_or_as_long_as_it_must_be() {
        let (_, options) = build(&[]).unwrap();
        assert_eq!(options.idle_ttl_ms, 86_400_000);
        let (config, options) = build(&[("openDurationMs", 86_400_000.into())]).unwrap();
        assert_eq!(options.idle_ttl_ms, 2 * 86_400_000 + 60_000);
        assert_eq!(config.open_duration_ms(), 86_400_000);
    }

    #[test]
    fn a_lifetime_that_would_forget_an_open_circuit_is_refused() {
        let with = |ms: i32| build(&[("openDurationMs", 40_000.into()), ("idleTtlMs", ms.into())]);
        assert_eq!(with(140_000).unwrap().1.idle_ttl_ms, 140_000);
        assert_eq!(
            with(139_999).unwrap_err().to_string(),
            "`idleTtlMs` must be at least 140000 (twice the longest duration of this breaker plus 60000), got `139999`"
        );
        assert!(build(&[("idleTtlMs", 0.into())]).is_err());
    }

    #[test]
    fn the_backoff_counts_by_its_cap() {
        let fields =
            [("openDurationMs", 1000.into()), ("openBackoff", 2.into()), ("openDurationMaxMs", 90_000_000.into())];
        assert_eq!(build(&fields).unwrap().1.idle_ttl_ms, 180_060_000);
    }

    #[test]
    fn what_to_do_without_a_store_is_one_of_the_words() {
        assert_eq!(
            build(&[("onStoreFailure", "fail-open".into())]).unwrap().1.on_store_failure,
            OnStoreFailure::FailOpen
        );
        assert_eq!(
            build(&[("onStoreFailure", "ignore".into())]).unwrap_err().to_string(),
            "`onStoreFailure` must be 'local', 'fail-open' or 'fail-closed', got `'ignore'`"
        );
        assert!(build(&[("cacheMs", 5.into())]).unwrap_err().to_string().starts_with("`cacheMs` is not an option"));
    }

    #[test]
    fn an_inner_layer_overrides_an_outer_one() {
        let layers: [&[(&str, Value<'_>)]; 2] =
            [&[("onStoreFailure", "fail-open".into())], &[("onStoreFailure", "fail-closed".into())]];
        assert_eq!(
            SharedOptions::build(Naming::Camel, &layers).unwrap().1.on_store_failure,
            OnStoreFailure::FailClosed
        );
    }

    #[test]
    fn answers_may_be_as_old_as_is_said() {
        let (_, options) = build(&[]).unwrap();
        assert_eq!((options.open_cache_ms, options.closed_cache_ms), (1_000, 0));
        let (_, options) = build(&[("openCacheMs", 0.into()), ("closedCacheMs", 250.into())]).unwrap();
        assert_eq!((options.open_cache_ms, options.closed_cache_ms), (0, 250));
        assert_eq!(
            build(&[("closedCacheMs", (-1).into())]).unwrap_err().to_string(),
            "`closedCacheMs` must be an integer from 0 to 3155760000000 (milliseconds), got `-1`"
        );
    }

    #[test]
    fn a_quorum_that_could_never_be_reached_is_refused() {
        assert_eq!(build(&[("quorum", 5.into())]).unwrap().1.quorum, 5);
        assert_eq!(
            build(&[("quorum", 6.into())]).unwrap_err().to_string(),
            "`quorum` must be an integer from 1 to failureThreshold (5), got `6`"
        );
        assert!(build(&[("tripOn", "rate".into()), ("quorum", 20.into())]).is_ok());
        assert!(build(&[("tripOn", "rate".into()), ("quorum", 21.into())]).is_err());
        assert!(build(&[("quorum", 0.into())]).is_err());
    }
}
