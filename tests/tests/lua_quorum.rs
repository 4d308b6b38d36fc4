//! What a quorum leaves in the store, and what instances of other configurations make of it. (The rule itself is in the
//! vectors of `tests/quorum/` and in the differential test.)
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use redis::Connection;
use switchgear_core::{Config, Outcome, Ring, Settlement, State, Value};
use switchgear_tests::lua::{IDLE_TTL_MS, LuaPermit, Reply, Wire, call_id};
use switchgear_tests::servers::ask;
use switchgear_tests::situations::{Bench, Counting, INSTANCES, START, Situation, build, quorum};

const THRESHOLD: f64 = 4.0;

fn consecutive() -> Config {
    build(&[("tripOn", Value::Text("consecutive")), ("failureThreshold", Value::Number(THRESHOLD))])
}

fn rate() -> Config {
    build(&[
        ("tripOn", Value::Text("rate")),
        ("windowMs", Value::Number(1_000.0)),
        ("minimumCalls", Value::Number(4.0)),
    ])
}

fn of_two(name: &str, config: &Config) -> Wire {
    Wire::with_quorum(name, config, quorum(2, config)).of_instance(INSTANCES[0])
}

fn members(connection: &mut Connection, key: &str) -> Vec<String> {
    ask(connection, &["ZRANGE", key, "0", "-1", "WITHSCORES"]).unwrap()
}

fn fails(bench: &mut Bench, wire: &Wire, now: u64, id: &str) -> Reply {
    let reply = bench.reply(&wire.settle_without(Outcome::Failure, now, id)).unwrap();
    assert_eq!(reply.settlement(), Settlement::Applied);
    reply
}

#[test]
fn with_a_quorum_of_one_what_may_be_left_out_changes_nothing() {
    let mut bench = Bench::start().unwrap();
    let mut compared = 0;
    for by_hand in Counting::ALL.into_iter().filter(|counting| !counting.announces) {
        let whole = Counting::announced(by_hand.trip_on, 1);
        for situation in Situation::ALL {
            let calls = bench.prepare(situation, by_hand).unwrap().every_call();
            for (number, (name, _)) in calls.into_iter().enumerate() {
                let left_out = bench.prepare(situation, by_hand).unwrap();
                let given = bench.prepare(situation, whole).unwrap();
                let place = format!("{name} in {situation:?} by {by_hand:?}");
                let answer = bench.send(&left_out.every_call().swap_remove(number).1).unwrap();
                assert_eq!(bench.send(&given.every_call().swap_remove(number).1).unwrap(), answer, "{place}");
                assert_eq!(bench.values(&given.wire).unwrap(), bench.values(&left_out.wire).unwrap(), "{place}");
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn a_configuration_of_twelve_words_has_a_quorum_of_one() {
    let mut bench = Bench::start().unwrap();
    let config = build(&[("failureThreshold", Value::Number(2.0))]);
    let mut wire = Wire::new("old", &config);
    assert_eq!(wire.config.split(' ').count(), 13);
    wire.config = wire.config.strip_suffix(" 1").unwrap().to_owned();
    fails(&mut bench, &wire, START, &call_id(1));
    assert_eq!(fails(&mut bench, &wire, START, &call_id(2)).state, State::Open);
}

#[test]
fn rolling_a_ring_is_all_that_an_instance_leaves() {
    let mut bench = Bench::start().unwrap();
    let config = build(&[("failureThreshold", Value::Number(THRESHOLD))]);
    let wire = of_two("ring", &config);
    assert_eq!(wire.keys.len(), 3);
    let mut ring = Ring::new(quorum(2, &config), &config);
    for now in START..START + 100 {
        let reply = fails(&mut bench, &wire, now, &ring.next_member(INSTANCES[0]));
        assert_eq!(reply.state, State::Closed);
    }
    let left = members(&mut bench.connection, &wire.keys[1]);
    assert_eq!(left, ["pod:1:0", &(START + 98).to_string(), "pod:1:1", &(START + 99).to_string()]);

    // The other's two make four; a slot that is taken over at the same moment is one command delivered twice.
    for _ in 0..3 {
        assert_eq!(fails(&mut bench, &wire, START + 100, "pod:2:0").state, State::Closed);
    }
    let tripped = fails(&mut bench, &wire, START + 100, "pod:2:1");
    assert_eq!((tripped.state, tripped.failures), (State::Open, 4));
}

#[test]
fn consecutive_a_row_that_waits_for_another_instance_grows_no_further() {
    let mut bench = Bench::start().unwrap();
    let wire = of_two("row", &consecutive());
    for call in 0..100 {
        assert_eq!(fails(&mut bench, &wire, START + call, &call_id(call)).state, State::Closed);
    }
    assert_eq!(members(&mut bench.connection, &wire.keys[1]).len(), 2 * 4);
    assert_eq!(members(&mut bench.connection, &wire.keys[3]), [INSTANCES[0], &(START + 99).to_string()]);
    assert_eq!(bench.snapshot(&wire, START + 100).unwrap().consecutive_failures, 4);
    let lifetimes = bench.lifetimes(&wire).unwrap();
    assert!(lifetimes[1..].iter().filter(|&&ms| ms > 0).all(|&ms| ms <= IDLE_TTL_MS.cast_signed()), "{lifetimes:?}");

    let tripped = fails(&mut bench, &wire.of_instance(INSTANCES[1]), START + 100, &call_id(100));
    assert_eq!((tripped.state, tripped.failures), (State::Open, 4));
    assert_eq!(bench.lifetimes(&wire).unwrap()[1..], [-2, -2, -2], "a trip forgets who failed");
}

#[test]
fn rate_instances_go_with_the_buckets_of_their_last_failures() {
    let mut bench = Bench::start().unwrap();
    let wire = of_two("rate", &rate());
    for (number, instance) in (0..).zip(["a", "b", "c", "d"]) {
        // A bucket each, and of successes so many that no rate is reached.
        let failure = wire.of_instance(instance).settle_many_without(
            Outcome::Failure,
            START + 100 * number,
            &call_id(number),
            Some(50),
        );
        assert_eq!(bench.reply(&failure).unwrap().state, State::Closed);
    }
    assert_eq!(members(&mut bench.connection, &wire.keys[4]).len(), 2 * 4);
    let now = START + 1_100;
    fails(&mut bench, &wire.of_instance("e"), now, &call_id(9));
    let left = members(&mut bench.connection, &wire.keys[4]);
    assert_eq!(left.iter().step_by(2).collect::<Vec<_>>(), ["c", "d", "e"]);
}

#[test]
fn who_gives_no_name_is_one_instance() {
    let mut bench = Bench::start().unwrap();
    for config in [consecutive(), rate()] {
        let wire = Wire { rest: None, ..of_two(config.trip_on().as_str(), &config) };
        for call in 0..10 {
            assert_eq!(fails(&mut bench, &wire, START, &call_id(call)).state, State::Closed);
        }
        let named = wire.of_instance(INSTANCES[0]);
        assert_eq!(fails(&mut bench, &named, START, &call_id(10)).state, State::Open, "{:?}", config.trip_on());
    }
}

/// While a fleet is given a quorum, instance by instance: who has none yet counts and trips as before, and who has one
/// misses nobody and trips by nobody of a row that is over.
#[test]
fn instances_with_and_without_a_quorum_share_a_circuit() {
    let mut bench = Bench::start().unwrap();
    let config = consecutive();
    let (new, old) = (of_two("mixed", &config), Wire::new("mixed", &config));
    for call in 0..3 {
        fails(&mut bench, &new, START, &call_id(call));
    }
    assert_eq!(fails(&mut bench, &old, START, &call_id(3)).state, State::Open, "four, and no quorum here");

    bench.reply(&old.control(START, "reset", None)).unwrap();
    for call in 10..20 {
        fails(&mut bench, &new, START, &call_id(call));
    }
    bench.reply(&old.settle_without(Outcome::Success, START, &call_id(20))).unwrap();
    assert_eq!(members(&mut bench.connection, &new.keys[3]).len(), 2, "it does not know that key");
    let other = new.of_instance(INSTANCES[1]);
    for call in 30..40 {
        assert_eq!(fails(&mut bench, &other, START, &call_id(call)).state, State::Closed, "a row of its own");
    }
    assert_eq!(fails(&mut bench, &new, START, &call_id(40)).state, State::Open);
}

#[test]
fn a_call_without_the_key_that_its_quorum_needs_writes_nothing() {
    let mut bench = Bench::start().unwrap();
    for config in [consecutive(), rate()] {
        let wire = of_two(&format!("short {}", config.trip_on().as_str()), &config);
        fails(&mut bench, &wire, START, &call_id(1));
        let before = bench.stored(&wire).unwrap();
        let mut failure = wire.settle_without(Outcome::Failure, START, &call_id(2));
        failure.keys.pop();
        assert!(bench.send(&failure).is_err());
        assert_eq!(bench.stored(&wire).unwrap(), before, "{:?}", config.trip_on());
    }
}

#[test]
fn summed_successes_are_calls_of_the_bucket_they_are_told_in() {
    let mut bench = Bench::start().unwrap();
    for number in [1, 2] {
        let config = rate();
        let wire = Wire::with_quorum(&format!("sum {number}"), &config, quorum(number, &config));
        let calls = |bench: &mut Bench, now| {
            let snapshot = bench.snapshot(&wire, now).unwrap();
            (snapshot.calls_in_window, snapshot.failures_in_window)
        };
        bench.reply(&wire.settle_many_without(Outcome::Success, START, &call_id(1), Some(100_000))).unwrap();
        assert_eq!(calls(&mut bench, START), (100_000, 0));
        let failure = wire.settle_many_without(Outcome::Failure, START + 100, &call_id(2), Some(7));
        assert_eq!(bench.reply(&failure).unwrap().state, State::Closed);
        assert_eq!(calls(&mut bench, START + 100), (100_008, 1));
        assert_eq!(calls(&mut bench, START + 1_000), (8, 1), "each in the bucket of its own command");
        assert_eq!(calls(&mut bench, START + 1_100), (0, 0));
    }
}

#[test]
fn successes_before_a_failure_end_the_row_that_stood() {
    let mut bench = Bench::start().unwrap();
    let wire = Wire::new("row", &consecutive());
    for call in 1..=3 {
        fails(&mut bench, &wire, START, &call_id(call));
    }
    let failure = wire.settle_many_without(Outcome::Failure, START, &call_id(4), Some(1));
    for delivery in ["first", "second"] {
        let reply = bench.reply(&failure).unwrap();
        assert_eq!((reply.settlement(), reply.state), (Settlement::Applied, State::Closed), "{delivery}");
        assert_eq!(bench.snapshot(&wire, START).unwrap().consecutive_failures, 1, "{delivery}");
    }
    // Three more: were the row not ended, the first of them would have tripped.
    let states = [5, 6, 7].map(|call| fails(&mut bench, &wire, START, &call_id(call)).state);
    assert_eq!(states, [State::Closed, State::Closed, State::Open]);
}

#[test]
fn stale_successes_and_their_failure_change_nothing_together() {
    let mut bench = Bench::start().unwrap();
    for counting in Counting::ALL {
        let circuit = bench.prepare(Situation::Counted, counting).unwrap();
        let before = bench.stored(&circuit.wire).unwrap();
        let stale = LuaPermit { epoch: circuit.permit.epoch + 1, ..circuit.permit.clone() };
        for outcome in [Outcome::Success, Outcome::Failure] {
            let reply = bench.reply(&circuit.wire.settle_many(outcome, START, &stale, Some(5))).unwrap();
            assert_eq!(reply.settlement(), Settlement::Stale);
        }
        assert_eq!(bench.stored(&circuit.wire).unwrap(), before, "{counting:?}");
    }
}

#[test]
fn while_half_open_a_success_is_one_however_many_it_tells() {
    let mut bench = Bench::start().unwrap();
    for counting in Counting::ALL {
        let circuit = bench.prepare(Situation::HalfOpen, counting).unwrap();
        let success = circuit.wire.settle_many(Outcome::Success, circuit.now, &circuit.permit, Some(50));
        assert_eq!(bench.reply(&success).unwrap().state, State::HalfOpen, "one success more is needed: {counting:?}");
        let snapshot = bench.snapshot(&circuit.wire, circuit.now).unwrap();
        assert_eq!(snapshot.half_open_successes, 2);
    }
}

#[test]
fn what_is_no_number_of_successes_is_as_good_as_none_given() {
    let mut bench = Bench::start().unwrap();
    let wire = Wire::new("strange", &rate());
    for (number, strange) in (1..).zip(["", "x", "-1", "nan", "1e400"]) {
        let mut success = wire.settle_many_without(Outcome::Success, START, &call_id(number), Some(1));
        success.args.truncate(7);
        success.args.push(strange.to_owned());
        bench.reply(&success).unwrap();
        assert_eq!(bench.snapshot(&wire, START).unwrap().calls_in_window, number, "`{strange}`");
    }
}
