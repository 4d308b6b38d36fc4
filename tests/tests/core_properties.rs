//! What holds for the core on any input: the wildest configurations, times that jump over the whole scale, permits used in
//! any order, more than once, or never.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use switchgear_core::config::{FIELDS, Naming, Value};
use switchgear_core::{
    CircuitBreaker, Config, Decision, Millis, Mode, Outcome, Permit, Settlement, Snapshot, State, Transition, TripOn,
    check_name, check_prefix, name_from_utf16,
};

const LATEST: u64 = 1 << 52;
const LONGEST: u64 = 3_155_760_000_000;
const BELIEF_MS: u64 = 60_000;

#[derive(Clone, Copy, Debug)]
enum Op {
    CanRequest,
    /// With one of the permits given so far, used or not, or without one.
    Settle(Outcome, Option<prop::sample::Index>),
    Reset,
    Trip(Option<u64>),
    ForceOpen,
    Disable,
}

/// How the clock moves before a step.
#[derive(Clone, Copy, Debug)]
enum Tick {
    By(i64),
    /// To where the circuit's opening ends, give or take.
    ToReopening(i64),
    /// To any time at all.
    To(u64),
}

fn durations() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 1..50_u64, 2 => BELIEF_MS - 1..=BELIEF_MS + 1, 1 => 1..=LONGEST, 1 => Just(LONGEST)]
}

fn counts() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1..5_u64, 1 => 1..=1_000_000_u64, 1 => Just(1_000_000)]
}

fn counting() -> impl Strategy<Value = Vec<(&'static str, Value<'static>)>> {
    let number = |n: u64| Value::Number(n as f64);
    prop_oneof![
        (counts(), durations()).prop_map(move |(k, w)| vec![("failureThreshold", number(k)), ("windowMs", number(w))]),
        counts().prop_map(move |k| vec![("tripOn", Value::Text("consecutive")), ("failureThreshold", number(k))]),
        (counts(), durations(), f64::MIN_POSITIVE..=1.0).prop_map(move |(n, w, rate)| vec![
            ("tripOn", Value::Text("rate")),
            ("minimumCalls", number(n)),
            ("windowMs", number(w)),
            ("failureRate", Value::Number(rate)),
        ]),
    ]
}

fn configs() -> impl Strategy<Value = Config> {
    let opening = (durations(), 1.0..=100.0_f64, prop::option::of(0..=LONGEST));
    (counting(), opening, counts(), counts(), prop::option::of(durations())).prop_map(
        |(mut fields, (open, backoff, more), calls, successes, timeout)| {
            let mut set = |name, n: u64| fields.push((name, Value::Number(n as f64)));
            set("openDurationMs", open);
            set("halfOpenMaxCalls", calls);
            set("successThreshold", successes);
            more.into_iter().for_each(|more| set("openDurationMaxMs", (open + more).min(LONGEST)));
            timeout.into_iter().for_each(|timeout| set("probeTimeoutMs", timeout));
            fields.push(("openBackoff", Value::Number(backoff)));
            Config::build(Naming::Camel, &[&fields]).unwrap()
        },
    )
}

fn ticks() -> impl Strategy<Value = Tick> {
    prop_oneof![
        6 => (-2..20_i64).prop_map(Tick::By),
        5 => (-1..=1_i64).prop_map(Tick::ToReopening),
        2 => (-60_002..=-59_998_i64).prop_map(Tick::By),
        1 => (59_998..=60_002_i64).prop_map(Tick::By),
        1 => (0..=LATEST).prop_map(Tick::To),
        1 => prop::sample::select(vec![0, 1, BELIEF_MS, LATEST - BELIEF_MS, LATEST - 1, LATEST]).prop_map(Tick::To),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let outcomes = || prop_oneof![Just(Outcome::Success), Just(Outcome::Failure), Just(Outcome::Release)];
    prop_oneof![
        12 => Just(Op::CanRequest),
        8 => (outcomes(), any::<prop::sample::Index>()).prop_map(|(outcome, which)| Op::Settle(outcome, Some(which))),
        4 => outcomes().prop_map(|outcome| Op::Settle(outcome, None)),
        1 => Just(Op::Reset),
        1 => prop::option::of(durations()).prop_map(Op::Trip),
        1 => prop_oneof![Just(Op::ForceOpen), Just(Op::Disable)],
    ]
}

/// A circuit, its clock, and the permits it gave.
struct Run {
    breaker: CircuitBreaker,
    now: u64,
    permits: Vec<Permit>,
}

impl Run {
    fn new(config: Config) -> Self {
        Self { breaker: CircuitBreaker::new(config), now: 1_000_000, permits: Vec::new() }
    }

    fn tick(&mut self, tick: Tick) {
        let now = self.now;
        self.now = match tick {
            Tick::By(ms) => now.saturating_add_signed(ms),
            Tick::ToReopening(ms) => (now + self.snapshot().remaining_open_ms).saturating_add_signed(ms),
            Tick::To(then) => then,
        }
        .min(LATEST);
    }

    fn now(&self) -> Millis {
        millis(self.now)
    }

    fn snapshot(&self) -> Snapshot {
        self.breaker.snapshot(self.now())
    }

    fn step(&mut self, tick: Tick, op: Op) -> TestCaseResult {
        self.tick(tick);
        let (now, before, seen) = (self.now(), self.breaker.clone(), self.snapshot());
        check_hints(&before, now)?;
        let transition = match op {
            Op::CanRequest => self.ask(&before)?,
            Op::Settle(outcome, which) => {
                let permit = which.filter(|_| !self.permits.is_empty()).map(|which| *which.get(&self.permits));
                self.settle(&before, permit, outcome)?
            }
            Op::Reset => self.breaker.reset(now),
            Op::Trip(for_ms) => self.breaker.trip(now, for_ms).unwrap(),
            Op::ForceOpen => self.breaker.force_open(now),
            Op::Disable => self.breaker.disable(now),
        };
        let by_hand = !matches!(op, Op::CanRequest | Op::Settle(..));
        let after = self.snapshot();
        let epoch = if by_hand || transition.is_some() { self.now.max(seen.epoch + 1) } else { seen.epoch };
        prop_assert_eq!(after.epoch, epoch);
        if let Some(transition) = transition {
            prop_assert_eq!((transition.from, transition.to), (seen.state, after.state));
            prop_assert_eq!((transition.at, transition.epoch), (now, after.epoch));
        }
        check_snapshot(&self.breaker, after)
    }

    fn ask(&mut self, before: &CircuitBreaker) -> Result<Option<Transition>, TestCaseError> {
        let now = self.now();
        let admission = self.breaker.can_request(now);
        match admission.decision {
            Decision::Allowed(permit) => {
                prop_assert_eq!(before.retry_after(now), Some(0));
                self.permits.push(permit);
            }
            Decision::Refused { state, retry_after } => {
                prop_assert_eq!(before.retry_after(now), retry_after);
                prop_assert_eq!(state, before.state());
                prop_assert!(admission.transition.is_none());
                // 3.8 is the one thing that a refusal may write: an `openedAt` that nobody believes.
                let opened_at = before.snapshot(Millis::MAX).opened_at;
                if opened_at.is_none_or(|opened_at| opened_at <= self.now + BELIEF_MS) {
                    prop_assert_eq!(&self.breaker, before, "a refusal wrote something");
                }
                retry_after.map_or(Ok(()), |wait| self.check_wait(wait))?;
            }
        }
        Ok(admission.transition)
    }

    /// Whoever waits as long as a refusal says is admitted, and nobody earlier.
    fn check_wait(&self, wait: u64) -> TestCaseResult {
        let config = self.breaker.config();
        let longest = self.snapshot().remaining_open_ms.max(config.probe_timeout_ms() + BELIEF_MS);
        prop_assert!((1..=longest).contains(&wait), "a wait of {wait}");
        let ask = |ms| self.breaker.clone().can_request(millis(ms)).decision;
        if self.now + wait <= LATEST {
            let then = ask(self.now + wait);
            prop_assert!(matches!(then, Decision::Allowed(Permit::Probe { .. })), "{then:?}");
            let earlier = ask(self.now + wait - 1);
            prop_assert!(matches!(earlier, Decision::Refused { retry_after: Some(1), .. }), "{earlier:?}");
        }
        Ok(())
    }

    fn settle(
        &mut self,
        before: &CircuitBreaker,
        permit: Option<Permit>,
        outcome: Outcome,
    ) -> Result<Option<Transition>, TestCaseError> {
        let settled = self.breaker.settle(self.now(), permit, outcome);
        prop_assert_eq!(settled.status == Settlement::Stale, is_stale(permit, before.snapshot(self.now())));
        if settled.status == Settlement::Stale {
            prop_assert_eq!(&self.breaker, before, "a stale outcome changed something");
        }
        if outcome == Outcome::Release {
            prop_assert!(settled.transition.is_none(), "a release moved the circuit");
        }
        Ok(settled.transition)
    }
}

fn millis(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

/// DESIGN 3.4, in one expression.
fn is_stale(permit: Option<Permit>, seen: Snapshot) -> bool {
    seen.mode != Mode::Auto
        || match permit {
            None => seen.state == State::Open,
            Some(Permit::Bypass) => true,
            Some(Permit::Closed { epoch }) => epoch != seen.epoch || seen.state != State::Closed,
            Some(Permit::Probe { epoch, .. }) => epoch != seen.epoch || seen.state != State::HalfOpen,
        }
}

/// What the hints promise is what happens, and it changes nothing.
fn check_hints(breaker: &CircuitBreaker, now: Millis) -> TestCaseResult {
    let hints = breaker.hints();
    let mut asked = breaker.clone();
    let decision = asked.can_request(now).decision;
    if let Some(permit) = hints.admit_free {
        prop_assert_eq!(decision, Decision::Allowed(permit));
        prop_assert_eq!(&asked, breaker, "a free admission changed something");
        if hints.success_free {
            let settled = asked.record_success(now, Some(permit));
            prop_assert_eq!((settled.status, settled.transition), (Settlement::Applied, None));
            prop_assert_eq!(&asked, breaker, "a free success changed something");
        }
    }
    if let Some(wait) = hints.refused_for(now) {
        prop_assert_eq!(decision, Decision::Refused { state: State::Open, retry_after: Some(wait) });
        prop_assert_eq!(&asked, breaker, "a foretold refusal changed something");
    }
    Ok(())
}

fn check_snapshot(breaker: &CircuitBreaker, snapshot: Snapshot) -> TestCaseResult {
    let (config, before) = (breaker.config(), breaker.clone());
    for ms in [0, LATEST / 2, LATEST] {
        let elsewhere = breaker.snapshot(millis(ms));
        prop_assert!(elsewhere.half_open_in_flight <= config.half_open_max_calls());
        prop_assert_eq!((elsewhere.epoch, elsewhere.trips), (snapshot.epoch, snapshot.trips));
    }
    prop_assert_eq!(breaker, &before, "reading changed something");
    prop_assert!(snapshot.half_open_in_flight <= config.half_open_max_calls());
    prop_assert!(snapshot.half_open_successes < config.success_threshold());
    prop_assert!(snapshot.failures_in_window <= snapshot.calls_in_window || config.trip_on() != TripOn::Rate);
    if config.trip_on() != TripOn::Rate {
        prop_assert!(snapshot.failures_in_window < config.failure_threshold());
        prop_assert!(snapshot.consecutive_failures < config.failure_threshold());
    }
    prop_assert_eq!(snapshot.opened_at.is_some(), snapshot.trips > 0);
    if snapshot.mode == Mode::Auto {
        prop_assert_eq!(snapshot.state == State::Closed, snapshot.trips == 0);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_hold_on_any_timeline(
        config in configs(),
        steps in prop::collection::vec((ticks(), ops()), 1..80),
    ) {
        let mut run = Run::new(config);
        for (tick, op) in steps {
            run.step(tick, op)?;
        }
    }

    #[test]
    fn a_time_is_a_whole_number_of_milliseconds_up_to_2_pow_52(ms in any::<f64>(), whole in any::<u64>()) {
        let valid = (0.0..=LATEST as f64).contains(&ms) && ms.fract() == 0.0;
        prop_assert_eq!(Millis::from_f64(ms).is_ok(), valid);
        prop_assert_eq!(Millis::new(whole).is_ok(), whole <= LATEST);
        let small = whole % (LATEST + 1);
        prop_assert_eq!(Millis::from_f64(small as f64).map(Millis::get), Ok(small));
    }

    #[test]
    fn a_configuration_is_taken_or_its_error_names_the_field(
        fields in prop::collection::vec((field_names(), field_values()), 0..4),
    ) {
        let pairs: Vec<(&str, Value<'_>)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_value())).collect();
        match Config::build(Naming::Camel, &[&pairs]) {
            Ok(config) => {
                prop_assert!((1..=1_000_000).contains(&config.failure_threshold()));
                prop_assert!(config.failure_rate() > 0.0 && config.failure_rate() <= 1.0);
                prop_assert!((1.0..=100.0).contains(&config.open_backoff()));
                for ms in [config.window_ms(), config.open_duration_ms(), config.probe_timeout_ms()] {
                    prop_assert!((1..=LONGEST).contains(&ms));
                }
                prop_assert!((config.open_duration_ms()..=LONGEST).contains(&config.open_duration_max_ms()));
            }
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.contains(error.field()), "{message}");
                // An unknown name may be shown shortened; a known one is shown as it is, or as the option it is a name of.
                let unknown = fields.iter().any(|(name, _)| canonical(name).is_none());
                let named = fields.iter().any(|(name, _)| canonical(name) == canonical(error.field()));
                prop_assert!(named || (unknown && message.contains("is not an option")), "{message}");
            }
        }
    }

    #[test]
    fn a_name_is_taken_or_refused(text in any::<String>(), units in prop::collection::vec(any::<u16>(), 0..600)) {
        let valid = !text.is_empty() && text.len() <= 512 && !text.chars().any(char::is_control);
        prop_assert_eq!(check_name(&text).is_ok(), valid);
        if text.is_empty() || text.starts_with('}') {
            prop_assert!(check_prefix(&text).is_err());
        }
        let whole = String::from_utf16(&units);
        prop_assert_eq!(
            name_from_utf16(&units).ok(),
            whole.ok().filter(|text| check_name(text).is_ok()),
        );
    }
}

fn field_names() -> impl Strategy<Value = String> {
    let names: Vec<&str> = FIELDS.iter().flat_map(|field| [Some(field.name), field.synonym]).flatten().collect();
    prop_oneof![9 => prop::sample::select(names).prop_map(String::from), 1 => any::<String>()]
}

/// The option that a name stands for.
fn canonical(name: &str) -> Option<&'static str> {
    FIELDS.iter().find(|field| field.name == name || field.synonym == Some(name)).map(|field| field.name)
}

#[derive(Clone, Debug)]
enum Given {
    Number(f64),
    Text(String),
    Other(String),
}

impl Given {
    fn as_value(&self) -> Value<'_> {
        match self {
            Self::Number(number) => Value::Number(*number),
            Self::Text(text) => Value::Text(text),
            Self::Other(text) => Value::Other(text),
        }
    }
}

fn field_values() -> impl Strategy<Value = Given> {
    prop_oneof![
        (1..200_u32).prop_map(|n| Given::Number(f64::from(n))),
        any::<f64>().prop_map(Given::Number),
        prop::sample::select(vec!["rolling", "consecutive", "rate", "1"]).prop_map(|word| Given::Text(word.into())),
        any::<String>().prop_map(Given::Text),
        any::<String>().prop_map(Given::Other),
    ]
}
