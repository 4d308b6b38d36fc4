//! What a change of state says of itself: DESIGN section 6 lists it, and every host passes it on as it is.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use switchgear_core::{CircuitBreaker, Config, Decision, Millis, Permit, Reason, State, Transition, Value};

fn at(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

fn breaker(fields: &[(&str, Value<'_>)]) -> CircuitBreaker {
    let mut all = vec![("open_duration_ms", Value::Number(100.0))];
    all.extend_from_slice(fields);
    CircuitBreaker::new(Config::from_fields(&all).unwrap())
}

fn probe(breaker: &mut CircuitBreaker, now: u64) -> (Permit, Option<Transition>) {
    let admission = breaker.can_request(at(now));
    let Decision::Allowed(permit) = admission.decision else { panic!("a probe is due at {now}") };
    (permit, admission.transition)
}

#[test]
fn a_trip_says_how_many_failures_and_for_how_long() {
    let mut breaker = breaker(&[("failure_threshold", 3.into())]);
    assert_eq!(breaker.record_failure(at(1), None).transition, None);
    assert_eq!(breaker.record_failure(at(2), None).transition, None);
    let expected = Transition {
        from: State::Closed,
        to: State::Open,
        at: at(3),
        reason: Reason::Threshold,
        failures: 3,
        open_ms: Some(100),
        epoch: 3,
    };
    assert_eq!(breaker.record_failure(at(3), None).transition, Some(expected));
    assert_eq!(breaker.record_failure(at(4), None).transition, None, "one trip, told once");
}

#[test]
fn each_policy_counts_the_failures_that_tripped_it() {
    let mut row = breaker(&[("trip_on", "consecutive".into()), ("failure_threshold", 2.into())]);
    row.record_failure(at(1), None);
    assert_eq!(row.record_failure(at(2), None).transition.unwrap().failures, 2);
    let mut rate = breaker(&[("trip_on", "rate".into()), ("minimum_calls", 4.into())]);
    for _ in 0..2 {
        rate.record_success(at(1), None);
    }
    rate.record_failure(at(1), None);
    assert_eq!(rate.record_failure(at(1), None).transition.unwrap().failures, 2);
}

#[test]
fn a_half_open_period_begins_and_ends_with_one_each() {
    let mut breaker = breaker(&[("failure_threshold", 1.into()), ("open_backoff", 2.into())]);
    breaker.record_failure(at(0), None);
    let (permit, begun) = probe(&mut breaker, 100);
    let begun = begun.unwrap();
    assert_eq!((begun.from, begun.to, begun.reason), (State::Open, State::HalfOpen, Reason::Cooldown));
    assert_eq!((begun.failures, begun.open_ms, begun.epoch), (0, None, 100));
    let failed = breaker.record_failure(at(110), Some(permit)).transition.unwrap();
    assert_eq!((failed.from, failed.to, failed.reason), (State::HalfOpen, State::Open, Reason::ProbeFailed));
    assert_eq!((failed.failures, failed.open_ms), (0, Some(200)));
    let (permit, _) = probe(&mut breaker, 310);
    let closed = breaker.record_success(at(320), Some(permit)).transition.unwrap();
    assert_eq!((closed.from, closed.to, closed.reason), (State::HalfOpen, State::Closed, Reason::ProbesSucceeded));
    assert_eq!(closed.open_ms, None);
}

#[test]
fn manual_control_tells_only_what_callers_see_change() {
    let mut breaker = breaker(&[]);
    assert_eq!(breaker.reset(at(1)), None, "closed before and after");
    let tripped = breaker.trip(at(2), Some(7)).unwrap().unwrap();
    assert_eq!((tripped.reason, tripped.open_ms, tripped.failures), (Reason::Manual, Some(7), 0));
    assert_eq!(breaker.trip(at(3), None).unwrap(), None, "open before and after");
    assert_eq!(breaker.force_open(at(4)), None, "open before and after");
    let disabled = breaker.disable(at(5)).unwrap();
    assert_eq!((disabled.from, disabled.to, disabled.open_ms), (State::Open, State::Closed, None));
    let forced = breaker.force_open(at(6)).unwrap();
    assert_eq!((forced.from, forced.to), (State::Closed, State::Open));
    assert_eq!(forced.open_ms, None, "held open for as long as it pleases");
    assert_eq!(breaker.reset(at(7)).map(|t| (t.from, t.to)), Some((State::Open, State::Closed)));
}

#[test]
fn a_length_that_is_none_changes_nothing() {
    let mut breaker = breaker(&[]);
    let before = breaker.clone();
    assert_eq!(breaker.trip(at(1), Some(0)).unwrap_err().field(), "for_ms");
    assert_eq!(breaker, before);
}
