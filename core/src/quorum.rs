//! Quorum: a threshold trips a fleet's circuit only if enough of its instances failed, so that one sick node does not take a
//! dependency away from a healthy fleet (DESIGN 5.8). The option belongs to shared circuits alone; the rule is here for the
//! Lua scripts to be held to, and for the engine to say what they need.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};

use crate::config::{Config, Naming, TripOn, Value};
use crate::error::ConfigError;
use crate::permit::Permit;
use crate::window::Window;

/// Of how many instances failures must stand in the window before a threshold trips.
///
/// What trips is then the threshold *and* the quorum: `failureThreshold` failures (`rolling`, `consecutive`) or the rate, and
/// among those that count the failures of this many instances. A failed probe trips by itself, and so does an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum(u64);

impl Quorum {
    /// One, the default: it makes no difference whose failures those are.
    pub const ONE: Self = Self(1);
    /// The option's name, in every spelling.
    pub const NAME: &'static str = "quorum";

    /// Takes the option's value beside this configuration: an integer from 1 to `failureThreshold` (`rolling`,
    /// `consecutive`) or to `minimumCalls` (`rate`). As many instances have failed at least as often, so a larger one would
    /// leave a threshold that means nothing.
    ///
    /// ```
    /// use switchgear_core::{Config, Naming, Quorum};
    ///
    /// let config = Config::from_fields(&[("failure_threshold", 4.into())])?;
    /// assert_eq!(Quorum::new(Naming::Snake, 2.into(), &config)?.get(), 2);
    /// let error = Quorum::new(Naming::Snake, 5.into(), &config).unwrap_err();
    /// assert_eq!(error.to_string(), "`quorum` must be an integer from 1 to 4 (`failure_threshold`), got `5`");
    /// # Ok::<(), switchgear_core::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// [`ConfigError`] names the option, the value and what is valid.
    pub fn new(naming: Naming, value: Value<'_>, config: &Config) -> Result<Self, ConfigError> {
        let (limit, field) = match config.trip_on {
            TripOn::Rolling | TripOn::Consecutive => (config.failure_threshold, "failureThreshold"),
            TripOn::Rate => (config.minimum_calls, "minimumCalls"),
        };
        let (Value::Number(n) | Value::Shown(n, _)) = value else {
            return Err(out_of_range(naming, value, limit, field));
        };
        // The range comes first: it also turns NaN away, and only then is the cast exact.
        if (1.0..=limit as f64).contains(&n) && (n as u64) as f64 == n {
            Ok(Self(n as u64))
        } else {
            Err(out_of_range(naming, value, limit, field))
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether a failure's id in the store is the [slot](Ring) of its instance instead of a call id.
    #[must_use]
    pub fn has_rings(self, config: &Config) -> bool {
        self != Self::ONE && config.trip_on == TripOn::Rolling
    }

    /// Whether the circuit has the key `{PN}:i`, which says when which instance failed last.
    #[must_use]
    pub fn has_instances_key(self, config: &Config) -> bool {
        self != Self::ONE && config.trip_on != TripOn::Rolling
    }

    /// The slots of an instance's [ring](Ring): `ceil(failureThreshold / quorum)`. As many as fill the window together with
    /// the other instances of a quorum, and so few that none fills it alone.
    #[must_use]
    pub const fn ring_size(self, config: &Config) -> u64 {
        config.failure_threshold.div_ceil(self.0)
    }
}

impl Default for Quorum {
    fn default() -> Self {
        Self::ONE
    }
}

fn out_of_range(naming: Naming, value: Value<'_>, limit: u64, field: &'static str) -> ConfigError {
    let valid = format!("an integer from 1 to {limit} (`{}`)", naming.spell(field));
    ConfigError::out_of_range(Quorum::NAME, &valid, value.to_string())
}

/// Names the failures of one process under `rolling`: `instance:slot`, the slots taken in turn. So an instance never has more
/// failures in the window than its ring has slots, and a newer failure takes the place of its oldest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    size: u64,
    told: u64,
}

impl Ring {
    /// The ring of a process that has told no failure yet.
    #[must_use]
    pub const fn new(quorum: Quorum, config: &Config) -> Self {
        Self { size: quorum.ring_size(config), told: 0 }
    }

    /// The name of the next failure that this process tells, whether or not it will count. For failures alone that are
    /// settled with the permit of a closed circuit or without one: a probe has its name already.
    pub fn next_member(&mut self, instance: &str) -> String {
        format!("{instance}:{}", self.next_slot())
    }

    const fn next_slot(&mut self) -> u64 {
        // Never 0: a threshold is at least 1, and so is a quorum.
        let slot = self.told % self.size;
        self.told += 1;
        slot
    }
}

/// Whose failures a circuit has counted: what [`CircuitBreaker::record_failure_of`](crate::CircuitBreaker::record_failure_of)
/// decides the quorum by.
///
/// The scripts of a shared circuit keep the same in the store, and are held to it by tests. One of these belongs to one
/// breaker for good.
///
/// ```
/// use switchgear_core::{CircuitBreaker, Config, Instances, Millis, Naming, Quorum, State};
///
/// let config = Config::from_fields(&[("failure_threshold", 3.into())])?;
/// let mut failed = Instances::new(Quorum::new(Naming::Snake, 2.into(), &config)?);
/// let mut breaker = CircuitBreaker::new(config);
/// let now = Millis::new(1_000)?;
/// for _ in 0..100 {
///     breaker.record_failure_of(now, None, "pod-1", &mut failed);
/// }
/// assert_eq!(breaker.state(), State::Closed);
/// breaker.record_failure_of(now, None, "pod-2", &mut failed);
/// assert_eq!(breaker.state(), State::Open);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Instances {
    quorum: Quorum,
    /// What each instance has told (rolling).
    rings: BTreeMap<String, Ring>,
    /// The period that `failed` belongs to.
    epoch: u64,
    /// When: by instance, and by the slot of its ring (rolling; else 0).
    failed: BTreeMap<(String, u64), u64>,
}

impl Instances {
    /// No instance has failed.
    #[must_use]
    pub const fn new(quorum: Quorum) -> Self {
        Self { quorum, rings: BTreeMap::new(), epoch: 0, failed: BTreeMap::new() }
    }

    /// The slot of a failure that this instance tells.
    pub(crate) fn slot(&mut self, config: &Config, permit: Option<Permit>, instance: &str) -> u64 {
        let is_named_already = matches!(permit, Some(Permit::Probe { .. } | Permit::Bypass));
        if is_named_already || !self.quorum.has_rings(config) {
            return 0;
        }
        let quorum = self.quorum;
        self.rings.entry(instance.into()).or_insert_with(|| Ring::new(quorum, config)).next_slot()
    }

    /// Counts a failure in the window of a closed circuit. Some(failures) when that trips.
    pub(crate) fn count(
        &mut self,
        window: &mut Window,
        config: &Config,
        now: u64,
        epoch: u64,
        who: (&str, u64),
    ) -> Option<u64> {
        if self.quorum == Quorum::ONE {
            return window.failure(config, now);
        }
        if core::mem::replace(&mut self.epoch, epoch) != epoch || matches!(window, Window::Consecutive(0)) {
            self.failed.clear();
        }
        let who = (String::from(who.0), who.1);
        window.make_room(config, self.failed.get(&who).copied());
        let failures = window.failure(config, now);
        self.failed.retain(|_, time| window.holds(config, *time, now));
        self.failed.insert(who, now);
        failures.filter(|_| self.distinct() >= self.quorum.0)
    }

    fn distinct(&self) -> u64 {
        let mut last = None;
        self.failed.keys().filter(|(instance, _)| last.replace(instance) != Some(instance)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(fields: &[(&str, Value<'_>)]) -> Config {
        Config::build(Naming::Camel, &[fields]).unwrap()
    }

    fn text(value: Value<'_>, config: &Config) -> String {
        Quorum::new(Naming::Camel, value, config).unwrap_err().to_string()
    }

    #[test]
    fn a_quorum_is_at_most_what_trips() {
        let rolling = config(&[]);
        let row = config(&[("tripOn", "consecutive".into()), ("failureThreshold", 3.into())]);
        let rate = config(&[("tripOn", "rate".into())]);
        for (config, limit, field) in
            [(&rolling, 5, "failureThreshold"), (&row, 3, "failureThreshold"), (&rate, 20, "minimumCalls")]
        {
            for good in [1, 2, limit] {
                let quorum = Quorum::new(Naming::Camel, good.into(), config).unwrap();
                assert_eq!(quorum.get(), u64::from(good.unsigned_abs()));
            }
            let valid = format!("`quorum` must be an integer from 1 to {limit} (`{field}`), got ");
            assert_eq!(text((limit + 1).into(), config), format!("{valid}`{}`", limit + 1));
            for bad in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY, 1e300] {
                assert!(text(bad.into(), config).starts_with(&valid));
            }
            for bad in [Value::Text("2"), Value::Other("null"), Value::Shown(0.0, "0")] {
                assert!(text(bad, config).starts_with(&valid));
            }
        }
        let shown = Quorum::new(Naming::Snake, Value::Shown(2.0, "2"), &rolling);
        assert_eq!(shown.unwrap().get(), 2);
    }

    #[test]
    fn a_ring_is_a_share_of_the_threshold() {
        for (threshold, quorum, size) in [(5, 1, 5), (5, 2, 3), (5, 3, 2), (5, 4, 2), (5, 5, 1), (6, 3, 2), (1, 1, 1)] {
            let config = config(&[("failureThreshold", threshold.into())]);
            let quorum = Quorum::new(Naming::Camel, quorum.into(), &config).unwrap();
            assert_eq!(quorum.ring_size(&config), size, "{threshold} {quorum:?}");
            let mut ring = Ring::new(quorum, &config);
            let members: alloc::vec::Vec<String> = (0..=size).map(|_| ring.next_member("a:b")).collect();
            assert_eq!(members[0], "a:b:0");
            assert_eq!(members.last(), members.first(), "after {size} it begins again");
        }
    }

    #[test]
    fn what_the_store_needs_depends_on_what_trips() {
        for (fields, rings, key) in [
            (&[("failureThreshold", 5.into())], true, false),
            (&[("tripOn", "consecutive".into())], false, true),
            (&[("tripOn", "rate".into())], false, true),
        ] {
            let config = config(fields);
            let two = Quorum::new(Naming::Camel, 2.into(), &config).unwrap();
            assert_eq!((two.has_rings(&config), two.has_instances_key(&config)), (rings, key));
            assert!(!Quorum::ONE.has_rings(&config) && !Quorum::default().has_instances_key(&config));
        }
    }
}
