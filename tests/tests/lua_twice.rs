//! A command may be delivered twice: a client that lost its connection sends again what may have arrived. It counts once.

use switchgear_core::{Outcome, Settlement, State, TripOn};
use switchgear_tests::lua::{LuaPermit, PermitKind, ScriptId};
use switchgear_tests::servers::run;
use switchgear_tests::situations::{Bench, Counting, START, Situation, THRESHOLD, TRIP_ON};

/// Where the second delivery of a command changes something, as the README of the scripts says.
fn is_exempt(name: &str, situation: Situation, counting: Counting) -> bool {
    let is_closed = matches!(situation, Situation::Fresh | Situation::Counted);
    match name {
        // It keeps no ids: each command that comes twice is one call too many.
        "success"
        | "success without permit"
        | "two successes"
        | "failure"
        | "failure without permit"
        | "failure after two successes" => counting.trip_on == TripOn::Rate && is_closed,
        // It names no call, so the second frees another slot.
        "release without permit" => matches!(situation, Situation::HalfOpen | Situation::HalfOpenFull),
        // Manual control is done again: the same state, another epoch.
        "reset" | "trip" | "trip for a while" | "force-open" | "disable" => true,
        _ => false,
    }
}

#[test]
fn the_second_delivery_of_every_command_changes_nothing() {
    let mut bench = Bench::start().unwrap();
    let mut compared = 0;
    for counting in Counting::ALL {
        for situation in Situation::ALL {
            let names: Vec<&str> =
                bench.prepare(situation, counting).unwrap().every_call().into_iter().map(|(name, _)| name).collect();
            for name in names.into_iter().filter(|name| !is_exempt(name, situation, counting)) {
                let circuit = bench.prepare(situation, counting).unwrap();
                let (_, call) = circuit.every_call().into_iter().find(|(other, _)| *other == name).unwrap();
                let place = format!("{name} in {situation:?} by {counting:?}");

                let first = bench.send(&call).unwrap();
                let after_first = bench.values(&circuit.wire).unwrap();
                let second = bench.send(&call).unwrap();
                assert_eq!(bench.values(&circuit.wire).unwrap(), after_first, "{place}");

                if call.id == ScriptId::GetState {
                    assert_eq!(first, second, "{place}");
                    continue;
                }
                // The circuit is where it was; a transition is reported once, and what it belonged to is over then.
                assert_eq!(first[1..4], second[1..4], "{place}");
                assert_eq!(second[5..7], [-1, -1], "{place}");
                compared += 1;
            }
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn the_request_that_began_the_half_open_period_is_admitted_again_with_its_permit() {
    let mut bench = Bench::start().unwrap();
    for trip_on in TRIP_ON {
        let circuit = bench.prepare(Situation::Elapsed, trip_on).unwrap();
        let request = circuit.wire.can_request(circuit.now, &circuit.draw_id());
        let first = bench.reply(&request).unwrap();
        let second = bench.reply(&request).unwrap();
        assert_eq!((first.granted(), first.from), (Some(PermitKind::Probe), Some(State::Open)));
        assert_eq!((second.granted(), second.epoch, second.from), (Some(PermitKind::Probe), first.epoch, None));
        assert_eq!(bench.snapshot(&circuit.wire, circuit.now).unwrap().half_open_in_flight, 1);
    }
}

#[test]
fn a_probe_is_admitted_again_with_its_permit_also_when_no_slot_is_left() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::HalfOpen, TripOn::Rolling).unwrap();
    let request = circuit.wire.can_request(circuit.now, &circuit.draw_id());
    let first = bench.reply(&request).unwrap();
    assert_eq!(first.granted(), Some(PermitKind::Probe));
    let other = circuit.wire.can_request(circuit.now, &circuit.draw_id());
    assert_eq!(bench.reply(&other).unwrap().granted(), None, "every slot is taken");
    assert_eq!(bench.reply(&request).unwrap(), first);
    assert_eq!(bench.snapshot(&circuit.wire, circuit.now).unwrap().half_open_in_flight, 2);
}

#[test]
fn scenario_58_two_failures_at_the_same_time_both_count_and_one_sent_twice_counts_once() {
    let mut bench = Bench::start().unwrap();
    for trip_on in [TripOn::Rolling, TripOn::Consecutive] {
        let circuit = bench.prepare(Situation::Fresh, trip_on).unwrap();
        let mut replies = Vec::new();
        for _ in 0..THRESHOLD {
            let failure = circuit.wire.settle_without(Outcome::Failure, START, &circuit.draw_id());
            // Twice each: were the second to count, the circuit would trip at the second failure.
            replies.push(bench.reply(&failure).unwrap());
            let again = bench.reply(&failure).unwrap();
            assert_eq!(again.from, None, "{trip_on:?}");
        }
        let tripped: Vec<bool> = replies.iter().map(|reply| reply.from.is_some()).collect();
        assert_eq!(tripped, [false, false, true], "{trip_on:?}");
        assert_eq!(replies[2].failures, THRESHOLD);
        let trips = bench.snapshot(&circuit.wire, START).unwrap().trips;
        assert_eq!(trips, 1, "{trip_on:?}");
    }
}

#[test]
fn with_rate_the_error_is_the_number_of_commands_that_came_twice() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::Fresh, TripOn::Rate).unwrap();
    let permit = LuaPermit { epoch: 0, ..circuit.permit.clone() };
    let success = circuit.wire.settle(Outcome::Success, START, &permit);
    for calls in 1..=2 {
        assert_eq!(bench.reply(&success).unwrap().settlement(), Settlement::Applied);
        let snapshot = bench.snapshot(&circuit.wire, START).unwrap();
        assert_eq!(snapshot.calls_in_window, calls);
    }
}

#[test]
fn a_release_that_comes_twice_extends_no_life_the_second_time() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::HalfOpen, TripOn::Rolling).unwrap();
    let release = circuit.wire.settle(Outcome::Release, circuit.now, &circuit.permit);
    bench.reply(&release).unwrap();
    for key in &circuit.wire.keys {
        run(&mut bench.connection, &["PEXPIRE", key, "700000"]).unwrap();
    }
    let before = bench.stored(&circuit.wire).unwrap();
    assert_eq!(bench.reply(&release).unwrap().settlement(), Settlement::Applied);
    assert_eq!(bench.stored(&circuit.wire).unwrap(), before);
}

#[test]
fn a_release_without_a_permit_that_comes_twice_frees_two_slots_at_most() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::HalfOpenFull, TripOn::Rolling).unwrap();
    let release = circuit.wire.settle_without(Outcome::Release, circuit.now, "");
    for left in [1, 0, 0] {
        assert_eq!(bench.reply(&release).unwrap().settlement(), Settlement::Applied);
        assert_eq!(bench.snapshot(&circuit.wire, circuit.now).unwrap().half_open_in_flight, left);
    }
}

#[test]
fn manual_control_that_comes_twice_is_done_twice() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::Counted, TripOn::Rolling).unwrap();
    let trip = circuit.wire.control(START, "trip", Some(50));
    let (first, second) = (bench.reply(&trip).unwrap(), bench.reply(&trip).unwrap());
    assert_eq!((first.state, first.from, first.epoch), (State::Open, Some(State::Closed), START));
    assert_eq!((second.state, second.from, second.epoch), (State::Open, None, START + 1));
    assert_eq!((first.open_ms, second.open_ms), (Some(50), Some(50)));
}
