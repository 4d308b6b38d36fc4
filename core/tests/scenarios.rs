//! How breakers fail their users: a timeline for each public bug report that the machine alone can answer to.
//!
//! `K` failureThreshold, `H` halfOpenMaxCalls, `S` successThreshold, `open` openDurationMs, `ptmo` probeTimeoutMs. What
//! needs a host (events, errors, cancellation by a signal) or a Redis is told by their tests under the same numbers.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::{Barrier, Mutex};
use std::thread;

use switchgear_core::config::{FIELDS, Naming, Value};
use switchgear_core::{
    CircuitBreaker, CircuitBreakerGroup, Config, Decision, Millis, Outcome, Permit, Reason, Settlement, State,
};

/// A circuit on an injected clock, in words short enough to read a timeline.
struct Circuit(CircuitBreaker);

impl Circuit {
    fn new(fields: &[(&str, Value<'_>)]) -> Self {
        Self(CircuitBreaker::new(Config::from_fields(fields).unwrap()))
    }

    /// K=1, open=1000, so that one failure at `now` trips it until `now + 1000`.
    fn quick(more: &[(&str, Value<'_>)]) -> Self {
        let quick = [("failure_threshold", 1.into()), ("open_duration_ms", 1000.into())];
        Self::new(&[&quick, more].concat())
    }

    fn decision(&mut self, now: u64) -> Result<Permit, Option<u64>> {
        match self.0.can_request(at(now)).decision {
            Decision::Allowed(permit) => Ok(permit),
            Decision::Refused { retry_after, .. } => Err(retry_after),
        }
    }

    #[track_caller]
    fn admitted(&mut self, now: u64) -> Permit {
        self.decision(now).expect("this request is admitted")
    }

    #[track_caller]
    fn refused(&mut self, now: u64) -> u64 {
        let wait = self.decision(now).expect_err("this request is refused");
        wait.expect("the wait is known")
    }

    fn settle(&mut self, now: u64, outcome: Outcome, permit: impl Into<Option<Permit>>) -> Settlement {
        self.0.settle(at(now), permit.into(), outcome).status
    }

    fn succeeds(&mut self, now: u64, permit: impl Into<Option<Permit>>) -> Settlement {
        self.settle(now, Outcome::Success, permit)
    }

    fn fails(&mut self, now: u64, permit: impl Into<Option<Permit>>) -> Settlement {
        self.settle(now, Outcome::Failure, permit)
    }

    fn releases(&mut self, now: u64, permit: impl Into<Option<Permit>>) -> Settlement {
        self.settle(now, Outcome::Release, permit)
    }

    fn state(&self) -> State {
        self.0.state()
    }

    fn in_flight(&self, now: u64) -> u64 {
        self.0.snapshot(at(now)).half_open_in_flight
    }

    fn opened_at(&self, now: u64) -> Option<u64> {
        self.0.snapshot(at(now)).opened_at
    }

    fn open_ms(&self, now: u64) -> u64 {
        self.0.snapshot(at(now)).remaining_open_ms
    }
}

fn at(now: u64) -> Millis {
    Millis::new(now).expect("a time of a timeline")
}

#[test]
fn scenario_01_a_failing_probe_reopens_however_few_calls_there_were() {
    let rate = [("trip_on", Value::Text("rate")), ("minimum_calls", 20.into()), ("open_duration_ms", 1000.into())];
    for single in [false, true] {
        let mut circuit = Circuit::new(&rate);
        if single {
            circuit = Circuit::new(&[("trip_on", Value::Text("rate")), ("minimum_calls", 1.into())]);
            circuit.fails(0, None);
        } else {
            for now in 0..20 {
                circuit.fails(now, None);
            }
        }
        assert_eq!(circuit.state(), State::Open);
        let idle = 1_000_000_000;
        let probe = circuit.admitted(idle);
        assert_eq!(circuit.fails(idle + 1, probe), Settlement::Applied);
        assert_eq!(circuit.state(), State::Open);
        assert_eq!(circuit.opened_at(idle + 1), Some(idle + 1));
    }
}

#[test]
fn scenario_02_a_failure_after_the_trip_changes_nothing() {
    let mut circuit = Circuit::new(&[("failure_threshold", 5.into()), ("open_duration_ms", 1000.into())]);
    let permits: Vec<Permit> = (0..6).map(|_| circuit.admitted(0)).collect();
    for (now, permit) in (10..=14).zip(&permits) {
        assert_eq!(circuit.fails(now, *permit), Settlement::Applied);
        assert_eq!(circuit.state() == State::Open, now == 14, "one trip, at the fifth failure");
    }
    let tripped = circuit.0.snapshot(at(15));
    assert_eq!(circuit.fails(15, permits[5]), Settlement::Stale);
    assert_eq!(circuit.0.snapshot(at(15)), tripped);
    assert_eq!(circuit.refused(1013), 1);
    circuit.admitted(1014);
    assert_eq!(circuit.state(), State::HalfOpen);
}

#[test]
fn scenario_03_failing_and_succeeding_probes_alternate_a_hundred_times_over() {
    let mut circuit = Circuit::quick(&[]);
    for round in 0..100 {
        let mut now = round * 10_000;
        circuit.fails(now, None);
        for outcome in [Outcome::Failure, Outcome::Failure, Outcome::Success] {
            assert_eq!(circuit.state(), State::Open);
            now += 1000;
            let probe = circuit.admitted(now);
            assert_eq!(circuit.state(), State::HalfOpen);
            assert_eq!(circuit.settle(now, outcome, probe), Settlement::Applied);
        }
        assert_eq!(circuit.state(), State::Closed);
    }
}

#[test]
fn scenario_04_ignored_probes_free_their_slots() {
    let mut circuit = Circuit::quick(&[("half_open_max_calls", 2.into()), ("success_threshold", 2.into())]);
    circuit.fails(0, None);
    let ignored = [circuit.admitted(1000), circuit.admitted(1000)];
    for probe in ignored {
        assert_eq!(circuit.releases(1001, probe), Settlement::Applied);
    }
    assert_eq!((circuit.state(), circuit.in_flight(1001)), (State::HalfOpen, 0));
    let probes = [circuit.admitted(1002), circuit.admitted(1002)];
    for probe in probes {
        assert_eq!(circuit.succeeds(1003, probe), Settlement::Applied);
    }
    assert_eq!(circuit.state(), State::Closed);
}

#[test]
fn scenario_05_a_probe_that_never_reports_loses_its_slot() {
    let mut circuit = Circuit::quick(&[("probe_timeout_ms", 5000.into())]);
    circuit.fails(0, None);
    circuit.admitted(1000);
    assert_eq!(circuit.refused(1000 + 4999), 1);
    circuit.admitted(1000 + 5000);
    assert_eq!(circuit.in_flight(6000), 1);
}

#[test]
fn scenario_06_peeking_eats_no_slot() {
    let mut circuit = Circuit::quick(&[("half_open_max_calls", 2.into())]);
    circuit.fails(0, None);
    circuit.admitted(1000);
    let before = circuit.0.clone();
    for _ in 0..1000 {
        assert_eq!(circuit.state(), State::HalfOpen);
        assert_eq!(circuit.in_flight(1001), 1);
        assert_eq!(circuit.0.retry_after(at(1001)), Some(0));
    }
    assert_eq!(circuit.0, before);
    circuit.admitted(1001);
    assert_eq!(circuit.refused(1001), 999);
}

#[test]
fn scenario_07_of_64_requests_at_the_reopening_exactly_half_open_max_calls_are_admitted() {
    let mut circuit = Circuit::quick(&[("half_open_max_calls", 3.into())]);
    circuit.fails(0, None);
    let (circuit, start) = (Mutex::new(circuit), Barrier::new(64));
    let admitted = thread::scope(|scope| {
        let ask = || {
            start.wait();
            circuit.lock().unwrap().decision(1000).is_ok()
        };
        let threads: Vec<_> = (0..64).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|&admitted| admitted).count()
    });
    assert_eq!(admitted, 3);
    assert_eq!(circuit.into_inner().unwrap().in_flight(1000), 3);
}

#[test]
fn scenario_08_a_call_from_before_the_trip_decides_nothing() {
    for late in [Outcome::Success, Outcome::Failure, Outcome::Release] {
        for probe_outcome in [Outcome::Success, Outcome::Failure] {
            let mut circuit = Circuit::quick(&[]);
            let before = circuit.admitted(0);
            circuit.fails(0, None);
            let probe = circuit.admitted(1000);
            assert_eq!(circuit.settle(1001, late, before), Settlement::Stale);
            assert_eq!((circuit.state(), circuit.in_flight(1001)), (State::HalfOpen, 1));
            assert_eq!(circuit.settle(1002, probe_outcome, probe), Settlement::Applied);
            let decided = if probe_outcome == Outcome::Success { State::Closed } else { State::Open };
            assert_eq!(circuit.state(), decided);
        }
    }
}

#[test]
fn scenario_09_ten_in_flight_make_one_transition() {
    let mut circuit = Circuit::new(&[("failure_threshold", 5.into())]);
    let permits: Vec<Permit> = (0..10).map(|_| circuit.admitted(0)).collect();
    let transitions: Vec<_> = (1..)
        .zip(permits)
        .filter_map(|(now, permit)| circuit.0.record_failure(at(now), Some(permit)).transition)
        .collect();
    let [trip] = transitions[..] else { panic!("one transition, got {transitions:?}") };
    assert_eq!((trip.from, trip.to, trip.at.get()), (State::Closed, State::Open, 5));
    assert_eq!((trip.reason, trip.failures, trip.open_ms), (Reason::Threshold, 5, Some(30_000)));
    assert_eq!(circuit.opened_at(10), Some(5));
}

#[test]
fn scenario_10_the_caller_is_told_when_its_outcome_did_not_count() {
    let mut circuit = Circuit::quick(&[]);
    let [counted, late] = [circuit.admitted(0), circuit.admitted(0)];
    assert_eq!(circuit.fails(1, counted), Settlement::Applied);
    assert_eq!(circuit.succeeds(2, late), Settlement::Stale);
}

#[test]
fn scenario_11_the_first_of_a_hundred_probes_that_fails_reopens() {
    let mut circuit = Circuit::quick(&[("half_open_max_calls", 100.into()), ("success_threshold", 100.into())]);
    circuit.fails(0, None);
    let probes: Vec<Permit> = (0..100).map(|_| circuit.admitted(1000)).collect();
    for probe in &probes[..99] {
        assert_eq!(circuit.succeeds(1001, *probe), Settlement::Applied);
    }
    assert_eq!(circuit.state(), State::HalfOpen);
    assert_eq!(circuit.fails(1002, probes[99]), Settlement::Applied);
    assert_eq!((circuit.state(), circuit.opened_at(1002)), (State::Open, Some(1002)));
}

#[test]
fn scenario_12_without_permits_the_same_limits_hold() {
    let mut circuit = Circuit::quick(&[("half_open_max_calls", 2.into()), ("success_threshold", 3.into())]);
    circuit.fails(0, None);
    assert_eq!(circuit.refused(999), 1);
    for _ in 0..2 {
        circuit.admitted(1000);
        circuit.admitted(1000);
        assert_eq!(circuit.refused(1000), 1000);
        assert_eq!(circuit.releases(1000, None), Settlement::Applied);
        assert_eq!(circuit.releases(1000, None), Settlement::Applied);
    }
    for now in [1001, 1002, 1003] {
        assert_eq!(circuit.state(), State::HalfOpen);
        circuit.admitted(now);
        assert_eq!(circuit.succeeds(now, None), Settlement::Applied);
    }
    assert_eq!(circuit.state(), State::Closed);
}

#[test]
fn scenario_13_an_outcome_means_the_same_closed_and_half_open() {
    let mut circuit = Circuit::quick(&[]);
    let neutral = circuit.admitted(0);
    assert_eq!(circuit.releases(0, neutral), Settlement::Applied);
    assert_eq!(circuit.state(), State::Closed, "neutral while closed");
    let counted = circuit.admitted(0);
    assert_eq!(circuit.fails(0, counted), Settlement::Applied);
    assert_eq!(circuit.state(), State::Open, "counted while closed");
    let neutral = circuit.admitted(1000);
    assert_eq!(circuit.releases(1000, neutral), Settlement::Applied);
    assert_eq!(circuit.state(), State::HalfOpen, "neutral while half-open");
    let counted = circuit.admitted(1000);
    assert_eq!(circuit.fails(1000, counted), Settlement::Applied);
    assert_eq!(circuit.state(), State::Open, "counted while half-open");
}

#[test]
fn scenario_14_after_a_cancelled_probe_the_next_call_is_admitted_at_once() {
    let mut circuit = Circuit::quick(&[]);
    circuit.fails(0, None);
    let cancelled = circuit.admitted(1000);
    assert_eq!(circuit.refused(1500), 500);
    assert_eq!(circuit.releases(1500, cancelled), Settlement::Applied);
    let snapshot = circuit.0.snapshot(at(1500));
    assert_eq!((snapshot.state, snapshot.half_open_successes, snapshot.trips), (State::HalfOpen, 0, 1));
    circuit.admitted(1500);
}

#[test]
fn scenario_15_a_late_success_while_open_changes_no_deadline() {
    let mut circuit = Circuit::quick(&[]);
    let late = circuit.admitted(0);
    circuit.fails(10, None);
    assert_eq!(circuit.succeeds(500, late), Settlement::Stale);
    assert_eq!(circuit.succeeds(501, None), Settlement::Stale);
    assert_eq!(circuit.opened_at(502), Some(10));
    assert_eq!(circuit.refused(1009), 1);
    circuit.admitted(1010);
}

#[test]
fn scenario_16_the_call_that_half_opens_is_one_of_the_probes() {
    let mut circuit = Circuit::quick(&[("half_open_max_calls", 3.into())]);
    circuit.fails(0, None);
    for taken in 1..=3 {
        circuit.admitted(1000);
        assert_eq!(circuit.in_flight(1000), taken);
    }
    assert_eq!(circuit.refused(1000), 1000);
}

#[test]
fn scenario_17_a_probe_frees_its_own_slot() {
    let more =
        [("half_open_max_calls", 2.into()), ("success_threshold", 9.into()), ("probe_timeout_ms", 10_000.into())];
    let mut circuit = Circuit::quick(&more);
    circuit.fails(0, None);
    let start = 1000;
    let first = circuit.admitted(start);
    circuit.admitted(start + 9000);
    assert_eq!(circuit.succeeds(start + 9500, first), Settlement::Applied);
    assert_eq!(circuit.in_flight(start + 10_001), 1, "the second still holds its slot");
    circuit.admitted(start + 10_001);
    assert_eq!(circuit.refused(start + 10_001), 8999);
}

#[test]
fn scenario_18_reading_an_elapsed_open_circuit_changes_nothing() {
    let mut circuit = Circuit::new(&[("failure_threshold", 1.into()), ("open_duration_ms", 10_000.into())]);
    circuit.fails(0, None);
    let before = circuit.0.clone();
    let snapshot = circuit.0.snapshot(at(10_000));
    assert_eq!((snapshot.state, snapshot.remaining_open_ms), (State::Open, 0));
    assert_eq!(circuit.0.retry_after(at(10_000)), Some(0));
    assert_eq!(circuit.0, before);
    assert!(matches!(circuit.admitted(10_000), Permit::Probe { .. }));
}

#[test]
fn scenario_19_a_clock_that_steps_back_by_more_than_a_minute_does_not_lengthen_the_wait() {
    let mut circuit = Circuit::quick(&[]);
    circuit.fails(1_000_000, None);
    assert_eq!(circuit.refused(1_000_000 - 60_001), 1000);
    assert_eq!(circuit.refused(1_000_000 - 60_001 + 999), 1);
    circuit.admitted(1_000_000 - 60_001 + 1000);
}

#[test]
fn scenario_20_the_window_slides() {
    let fields = [("failure_threshold", 10.into()), ("window_ms", 10_000.into())];
    let mut circuit = Circuit::new(&fields);
    for now in [9_900; 5].into_iter().chain([10_100; 5]) {
        assert_eq!(circuit.state(), State::Closed);
        circuit.fails(now, None);
    }
    assert_eq!(circuit.state(), State::Open);

    let mut circuit = Circuit::new(&fields);
    circuit.fails(100, None);
    for _ in 0..9 {
        circuit.fails(10_100, None);
    }
    assert_eq!(circuit.state(), State::Closed, "an event at exactly now - window is out");
    circuit.fails(10_100, None);
    assert_eq!(circuit.state(), State::Open);
}

#[test]
fn scenario_21_failures_in_a_row_trip_however_far_apart() {
    let mut circuit = Circuit::new(&[("trip_on", Value::Text("consecutive")), ("failure_threshold", 5.into())]);
    for failure in 0..5 {
        assert_eq!(circuit.state(), State::Closed);
        circuit.fails(failure * 30_000, None);
    }
    assert_eq!(circuit.state(), State::Open);
}

#[test]
fn scenario_22_backoff_doubles_up_to_its_cap_and_starts_over_after_a_close() {
    let mut circuit = Circuit::quick(&[("open_backoff", 2.into()), ("open_duration_max_ms", 8000.into())]);
    let mut now = 0;
    circuit.fails(now, None);
    let waits = [1000, 2000, 4000].into_iter().chain([8000; 10_000]);
    for wait in waits {
        assert_eq!(circuit.open_ms(now), wait);
        assert_eq!(circuit.refused(now + wait - 1), 1);
        now += wait;
        let probe = circuit.admitted(now);
        circuit.fails(now, probe);
    }
    assert_eq!(circuit.open_ms(now), 8000);
    now += 8000;
    let probe = circuit.admitted(now);
    circuit.succeeds(now, probe);
    circuit.fails(now, None);
    assert_eq!(circuit.open_ms(now), 1000);
}

#[test]
fn scenario_23_a_given_zero_is_refused_and_never_a_default() {
    for field in FIELDS {
        for name in [Some(field.name), field.synonym].into_iter().flatten() {
            // The tripOn that uses the field, so that the zero is all that is wrong.
            let trip_on = ("tripOn", Value::Text(field.used_by[0].as_str()));
            let error = Config::build(Naming::Camel, &[&[trip_on], &[(name, Value::Number(0.0))]]).unwrap_err();
            assert_eq!(error.field(), name);
            assert!(error.to_string().ends_with("got `0`"), "{error}");
        }
    }
    let smallest = ["failure_threshold", "window_ms", "open_duration_ms", "half_open_max_calls", "success_threshold"];
    let config = Config::from_fields(&smallest.map(|name| (name, 1.into()))).unwrap();
    assert_eq!((config.failure_threshold(), config.window_ms(), config.open_duration_ms()), (1, 1, 1));
    assert_eq!((config.half_open_max_calls(), config.success_threshold(), config.probe_timeout_ms()), (1, 1, 1));
}

#[test]
fn scenario_24_opening_times_keep_their_milliseconds() {
    let mut circuit = Circuit::quick(&[]);
    circuit.fails(10_900, None);
    assert_eq!(circuit.refused(11_000), 900);
    assert_eq!(circuit.refused(11_899), 1);
    circuit.admitted(11_900);
}

#[test]
fn scenario_25_cancelled_calls_count_nowhere() {
    for trip_on in ["rolling", "consecutive", "rate"] {
        let mut circuit = Circuit::new(&[("trip_on", Value::Text(trip_on))]);
        let before = circuit.0.clone();
        for now in 0..32 {
            let cancelled = circuit.admitted(now);
            assert_eq!(circuit.releases(now + 100, cancelled), Settlement::Applied);
        }
        assert_eq!(circuit.0, before);
    }
}

#[test]
fn scenario_40_a_million_keys_in_a_group_of_ten_thousand() {
    let config = Config::from_fields(&[("failure_threshold", 1.into())]).unwrap();
    let mut group = CircuitBreakerGroup::new(config, 10_000);
    group.for_key("down").record_failure(at(0), None);
    for key in 0..1_000_000 {
        group.for_key(&key.to_string());
    }
    assert_eq!(group.len(), 10_000);
    assert_eq!(group.for_key("down").state(), State::Open, "an open one goes after the closed ones");
    assert_eq!(group.len(), 10_000);
}

#[test]
fn scenario_58_two_failures_with_the_same_time_both_count() {
    let mut circuit = Circuit::new(&[("failure_threshold", 2.into())]);
    let [one, two] = [circuit.admitted(500), circuit.admitted(500)];
    assert_eq!(circuit.fails(500, one), Settlement::Applied);
    assert_eq!(circuit.state(), State::Closed);
    assert_eq!(circuit.fails(500, two), Settlement::Applied);
    assert_eq!(circuit.state(), State::Open);
}
