//! The scenarios that only a store can have (see also lua_lifetimes, lua_twice and lua_anywhere).

use std::sync::Barrier;
use std::thread;

use switchgear_core::{Outcome, Settlement, State, TripOn, Value};
use switchgear_tests::lua::{PermitKind, Reading, Reply, Wire, call_id};
use switchgear_tests::servers::run;
use switchgear_tests::situations::{Bench, OPEN_MS, PROBE_TIMEOUT_MS, START, Situation, TRIP_ON, build, config};

#[test]
fn scenario_07_of_requests_at_the_same_moment_exactly_as_many_are_probes_as_may_be() {
    const WORKERS: u64 = 8;
    const EACH: u64 = 8;
    let mut bench = Bench::start().unwrap();
    for max_calls in [1, 3] {
        let config = build(&[
            ("failureThreshold", Value::Number(1.0)),
            ("openDurationMs", Value::Number(1000.0)),
            ("halfOpenMaxCalls", Value::Number(f64::from(max_calls))),
        ]);
        let wire = Wire::new(&format!("rush {max_calls}"), &config);
        bench.reply(&wire.control(START, "trip", None)).unwrap();
        let start = Barrier::new(usize::try_from(WORKERS).unwrap());
        let granted: usize = thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| {
                    let (mut connection, wire, start) = (bench.server.connect().unwrap(), &wire, &start);
                    scope.spawn(move || {
                        start.wait();
                        let request = |call| wire.can_request(START + OPEN_MS, &call_id(worker * EACH + call));
                        let mut replies =
                            (0..EACH).map(|call| Reply::read(&request(call).send(&mut connection).unwrap()).unwrap());
                        replies.by_ref().filter(|reply| reply.granted() == Some(PermitKind::Probe)).count()
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!(granted, usize::try_from(max_calls).unwrap());
    }
}

#[test]
fn scenario_45_watchers_of_an_open_circuit_do_not_move_its_start() {
    let mut bench = Bench::start().unwrap();
    for trip_on in TRIP_ON {
        let circuit = bench.prepare(Situation::Elapsed, trip_on).unwrap();
        let opened = bench.stored(&circuit.wire).unwrap();
        // Thirty-two workers look, and one more comes at each step of the way.
        for worker in 0..32 {
            let now = START + OPEN_MS * worker / 32;
            for _ in 0..=worker {
                let wait = Some(START + OPEN_MS - now);
                assert_eq!(bench.reading(&circuit.wire, now).unwrap(), Reading::Refused(wait));
                let asked = bench.reply(&circuit.wire.can_request(now, &circuit.draw_id())).unwrap();
                assert_eq!((asked.status, asked.wait), (0, wait));
                let late =
                    bench.reply(&circuit.wire.settle_without(Outcome::Failure, now, &circuit.draw_id())).unwrap();
                assert_eq!(late.settlement(), Settlement::Stale);
            }
        }
        assert_eq!(bench.stored(&circuit.wire).unwrap(), opened);
        let first = bench.reply(&circuit.wire.can_request(START + OPEN_MS, &circuit.draw_id())).unwrap();
        assert_eq!(first.granted(), Some(PermitKind::Probe), "{trip_on:?}");
    }
}

#[test]
fn scenario_47_a_store_that_lost_everything_has_a_fresh_closed_circuit() {
    let mut bench = Bench::start().unwrap();
    for trip_on in TRIP_ON {
        for situation in Situation::ALL {
            let circuit = bench.prepare(situation, trip_on).unwrap();
            run(&mut bench.connection, &["FLUSHALL"]).unwrap();
            let settled = bench.reply(&circuit.wire.settle(Outcome::Success, circuit.now, &circuit.permit)).unwrap();
            assert_eq!((settled.state, settled.epoch), (State::Closed, 0), "{situation:?} by {trip_on:?}");
            let reading = bench.reading(&circuit.wire, circuit.now).unwrap();
            assert_eq!(reading, Reading::Closed(0), "{situation:?} by {trip_on:?}");
        }
    }
}

#[test]
fn scenario_57_an_opening_lasts_as_long_as_the_instance_that_tripped_it_says() {
    let mut bench = Bench::start().unwrap();
    let of = |open_ms: f64| {
        Wire::new(
            "shared",
            &build(&[("failureThreshold", Value::Number(1.0)), ("openDurationMs", Value::Number(open_ms))]),
        )
    };
    let (short, long) = (of(1_000.0), of(60_000.0));
    bench.reply(&long.settle_without(Outcome::Failure, START, &call_id(1))).unwrap();

    for wire in [&short, &long] {
        for now in [START, START + 1_000, START + 59_999] {
            let wait = Some(START + 60_000 - now);
            assert_eq!(bench.reading(wire, now).unwrap(), Reading::Refused(wait));
            let refused = bench.reply(&wire.can_request(now, &call_id(2))).unwrap();
            assert_eq!((refused.wait, refused.open_ms), (wait, Some(60_000)));
            assert_eq!(bench.snapshot(wire, now).unwrap().remaining_open_ms, START + 60_000 - now);
        }
    }
    assert!(bench.reply(&short.can_request(START + 60_000, &call_id(3))).unwrap().granted().is_some());
}

#[test]
fn scenario_57_a_half_open_period_runs_by_the_instance_that_began_it_and_others_are_told() {
    let mut bench = Bench::start().unwrap();
    let of = |max_calls: f64, successes: f64, timeout: f64| {
        let fields = [
            ("failureThreshold", 1.0),
            ("openDurationMs", 1_000.0),
            ("halfOpenMaxCalls", max_calls),
            ("successThreshold", successes),
            ("probeTimeoutMs", timeout),
        ];
        Wire::new("shared", &build(&fields.map(|(name, value)| (name, Value::Number(value)))))
    };
    let (one, other) = (of(1.0, 2.0, 5_000.0), of(3.0, 1.0, 50.0));
    bench.reply(&one.control(START, "trip", None)).unwrap();
    let now = START + 1_000;
    let began = bench.reply(&one.can_request(now, &call_id(1))).unwrap();
    assert!(!began.mismatch);

    // One slot, for five seconds, and two successes to close: whoever asks.
    let refused = bench.reply(&other.can_request(now + 4_999, &call_id(2))).unwrap();
    assert_eq!((refused.granted(), refused.wait, refused.mismatch), (None, Some(1), true));
    assert_eq!(bench.snapshot(&other, now + 4_999).unwrap().half_open_in_flight, 1);
    let settled = bench.reply(&other.settle_without(Outcome::Success, now + 1, &call_id(3))).unwrap();
    assert_eq!((settled.state, settled.mismatch), (State::HalfOpen, true));
    let closed = bench.reply(&one.settle_without(Outcome::Success, now + 1, &call_id(4))).unwrap();
    assert_eq!((closed.state, closed.mismatch), (State::Closed, false));
    // The next period is the other's.
    bench.reply(&other.control(START, "trip", None)).unwrap();
    assert!(!bench.reply(&other.can_request(now, &call_id(5))).unwrap().mismatch);
    assert!(bench.reply(&one.settle_without(Outcome::Release, now, "")).unwrap().mismatch);
}

#[test]
fn counts_of_another_width_or_epoch_are_none() {
    let mut bench = Bench::start().unwrap();
    let of = |window_ms: f64| {
        let fields = [("windowMs", Value::Number(window_ms)), ("minimumCalls", Value::Number(100.0))];
        let fields = [&fields[..], &[("tripOn", Value::Text("rate"))]].concat();
        Wire::new("shared", &build(&fields))
    };
    let (narrow, wide) = (of(1_000.0), of(100_000.0));
    bench.reply(&narrow.settle_without(Outcome::Failure, START, &call_id(1))).unwrap();
    assert_eq!(bench.snapshot(&narrow, START).unwrap().calls_in_window, 1);
    assert_eq!(bench.snapshot(&wide, START).unwrap().calls_in_window, 0);
    bench.reply(&wide.settle_without(Outcome::Failure, START, &call_id(2))).unwrap();
    assert_eq!(bench.snapshot(&wide, START).unwrap().calls_in_window, 1);
    assert_eq!(bench.snapshot(&narrow, START).unwrap().calls_in_window, 0);

    // An instance that counts in another way knows nothing of the buckets; the epoch it begins makes them old.
    let rolling = Wire::new("shared", &config(TripOn::Rolling));
    bench.reply(&rolling.control(START, "reset", None)).unwrap();
    assert_eq!(bench.snapshot(&wide, START).unwrap().calls_in_window, 0);
    bench.reply(&wide.settle_without(Outcome::Success, START, &call_id(3))).unwrap();
    let snapshot = bench.snapshot(&wide, START).unwrap();
    assert_eq!((snapshot.calls_in_window, snapshot.failures_in_window), (1, 0));
}

#[test]
fn a_grant_that_comes_too_late_is_given_back_in_any_period_and_nothing_else_is() {
    let mut bench = Bench::start().unwrap();
    let wire = Wire::new("late", &config(TripOn::Rolling));
    bench.reply(&wire.control(START, "trip", None)).unwrap();
    let now = START + OPEN_MS;
    for call in 1..=2 {
        assert!(bench.reply(&wire.can_request(now, &call_id(call))).unwrap().granted().is_some());
    }
    let before = bench.snapshot(&wire, now).unwrap();
    let given_back = bench.reply(&wire.give_back(now, &call_id(2))).unwrap();
    assert_eq!((given_back.settlement(), given_back.from), (Settlement::Applied, None));
    let after = bench.snapshot(&wire, now).unwrap();
    assert_eq!((after.half_open_in_flight, after.epoch), (before.half_open_in_flight - 1, before.epoch));
    // The first one's slot is still its own.
    let held = bench.reply(&wire.can_request(now, &call_id(1))).unwrap();
    assert_eq!(held.granted(), Some(PermitKind::Probe));
    assert_eq!(bench.snapshot(&wire, now).unwrap(), after);
    assert_eq!(bench.reply(&wire.give_back(now, &call_id(2))).unwrap().settlement(), Settlement::Stale);
}

#[test]
fn an_idle_open_circuit_comes_back_through_a_probe() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::Elapsed, TripOn::Rolling).unwrap();
    // Nobody asked for hours: as long as the keys live, the first request is a probe.
    let hours = START + 20 * 3_600_000;
    assert_eq!(bench.reading(&circuit.wire, hours).unwrap(), Reading::AskOn);
    let probe = bench.reply(&circuit.wire.can_request(hours, &circuit.draw_id())).unwrap();
    assert_eq!(probe.granted(), Some(PermitKind::Probe));
}

#[test]
fn a_request_that_comes_again_after_its_slot_was_lost_is_a_new_probe() {
    let mut bench = Bench::start().unwrap();
    // Timed out, and started further ahead than is believed.
    for (forward, back) in [(PROBE_TIMEOUT_MS, 0), (0, 60_001)] {
        let circuit = bench.prepare(Situation::HalfOpen, TripOn::Rolling).unwrap();
        let then = circuit.now + forward - back;
        assert_eq!(bench.snapshot(&circuit.wire, then).unwrap().half_open_in_flight, 0);
        let again = bench.reply(&circuit.wire.can_request(then, &circuit.permit.id)).unwrap();
        assert_eq!(again.granted(), Some(PermitKind::Probe));
        assert_eq!(bench.snapshot(&circuit.wire, then).unwrap().half_open_in_flight, 1);
    }
}
