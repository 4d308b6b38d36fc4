//! Every key of a circuit always has an end, and all of them the same; only an operator's word lasts for ever.

use switchgear_core::{Outcome, Quorum, TripOn, Value};
use switchgear_tests::lua::{IDLE_TTL_MS, ScriptId, Wire, call_id, config_argument};
use switchgear_tests::servers::run;
use switchgear_tests::situations::{Bench, Counting, START, Situation, build};

const NO_END: i64 = -1;
const NO_KEY: i64 = -2;
/// Where the keys that not every instance knows begin among a circuit's keys: rate buckets, instances.
const OPTIONAL: usize = 3;
/// What a key may have lost of its lifetime since the script gave it: as long as any test may take.
const ELAPSED_MS: i64 = 600_000;

fn is_fresh(lifetime: i64, ttl: u64) -> bool {
    let ttl = ttl.cast_signed();
    (ttl - ELAPSED_MS..=ttl).contains(&lifetime)
}

#[test]
fn scenario_51_every_key_has_an_end_after_every_script_on_the_first_write_too() {
    let mut bench = Bench::start().unwrap();
    let mut lifetimes_seen = 0;
    for counting in Counting::ALL {
        for situation in Situation::ALL {
            let calls = bench.prepare(situation, counting).unwrap().every_call().len();
            for number in 0..calls {
                let circuit = bench.prepare(situation, counting).unwrap();
                let (name, call) = circuit.every_call().swap_remove(number);
                let reply = bench.send(&call).unwrap();
                let lifetimes = bench.lifetimes(&circuit.wire).unwrap();
                let place = format!("{name} in {situation:?} by {counting:?}: {lifetimes:?}");

                let mode = if call.id == ScriptId::GetState { reply[1] } else { reply[2] };
                let keys = lifetimes.into_iter().enumerate().filter(|&(_, lifetime)| lifetime != NO_KEY);
                for (key, lifetime) in keys {
                    lifetimes_seen += 1;
                    if mode == 0 || key >= OPTIONAL {
                        assert!(is_fresh(lifetime, IDLE_TTL_MS), "{place}");
                    } else {
                        assert_eq!(lifetime, NO_END, "{place}");
                    }
                }
            }
        }
    }
    assert!(lifetimes_seen > 500, "{lifetimes_seen}");
}

#[test]
fn a_write_refreshes_every_key_the_circuit_has() {
    let mut bench = Bench::start().unwrap();
    for counting in Counting::ALL {
        for situation in Situation::ALL.into_iter().filter(|situation| !situation.is_manual()) {
            let calls = bench.prepare(situation, counting).unwrap().every_call().len();
            for number in 0..calls {
                let circuit = bench.prepare(situation, counting).unwrap();
                let (name, call) = circuit.every_call().swap_remove(number);
                for key in &circuit.wire.keys {
                    run(&mut bench.connection, &["PEXPIRE", key, "700000"]).unwrap();
                }
                let before = (bench.writing_commands().unwrap(), bench.stored(&circuit.wire).unwrap());
                bench.send(&call).unwrap();
                let wrote = bench.writing_commands().unwrap() > before.0;
                let after = bench.stored(&circuit.wire).unwrap();
                let lifetimes = bench.lifetimes(&circuit.wire).unwrap();

                let place = format!("{name} in {situation:?} by {counting:?}: {lifetimes:?}");
                let changed = before.1.iter().zip(&after).any(|((old, _), (new, _))| old != new);
                for lifetime in lifetimes.into_iter().filter(|&lifetime| lifetime != NO_KEY && changed) {
                    assert!(lifetime == NO_END || is_fresh(lifetime, IDLE_TTL_MS), "{place}");
                }
                if !wrote {
                    assert_eq!(before.1, after, "{place}");
                }
            }
        }
    }
}

#[test]
fn a_refusal_extends_nothing() {
    let mut bench = Bench::start().unwrap();
    for counting in Counting::ALL {
        for situation in [Situation::Open, Situation::HalfOpenFull, Situation::ForcedOverHalfOpen] {
            let circuit = bench.prepare(situation, counting).unwrap();
            for key in &circuit.wire.keys {
                run(&mut bench.connection, &["PEXPIRE", key, "700000"]).unwrap();
            }
            let before = bench.stored(&circuit.wire).unwrap();
            for _ in 0..3 {
                let id = circuit.draw_id();
                let refused = bench.reply(&circuit.wire.can_request(circuit.now, &id)).unwrap();
                assert_eq!(refused.granted(), None, "{situation:?}");
                bench.reading(&circuit.wire, circuit.now).unwrap();
            }
            assert_eq!(bench.stored(&circuit.wire).unwrap(), before, "{situation:?} by {counting:?}");
        }
    }
}

#[test]
fn an_operators_word_has_no_end_until_it_is_taken_back() {
    let mut bench = Bench::start().unwrap();
    for counting in Counting::ALL {
        for situation in [Situation::Fresh, Situation::Counted, Situation::HalfOpen] {
            for forced in ["force-open", "disable"] {
                for back in ["reset", "trip"] {
                    let circuit = bench.prepare(situation, counting).unwrap();
                    bench.reply(&circuit.wire.control(circuit.now, forced, None)).unwrap();
                    let lifetimes = bench.lifetimes(&circuit.wire).unwrap();
                    assert_eq!(lifetimes[0], NO_END);
                    let lasts = |(key, &ms): (usize, &i64)| {
                        ms == NO_KEY || if key >= OPTIONAL { is_fresh(ms, IDLE_TTL_MS) } else { ms == NO_END }
                    };
                    assert!(lifetimes.iter().enumerate().all(lasts), "{forced}: {lifetimes:?}");
                    bench.reply(&circuit.wire.control(circuit.now, back, None)).unwrap();
                    let lifetimes = bench.lifetimes(&circuit.wire).unwrap();
                    assert!(is_fresh(lifetimes[0], IDLE_TTL_MS), "{forced}, {back}: {lifetimes:?}");
                    assert!(lifetimes[1..].iter().all(|&ms| ms == NO_KEY), "{forced}, {back}: {lifetimes:?}");
                }
            }
        }
    }
}

#[test]
fn giving_a_slot_back_to_a_forced_circuit_gives_it_no_end() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::ForcedOverHalfOpen, TripOn::Rolling).unwrap();
    let given_back = bench.reply(&circuit.wire.give_back(circuit.now, &circuit.permit.id)).unwrap();
    assert_eq!(given_back.status, 1);
    let lifetimes = bench.lifetimes(&circuit.wire).unwrap();
    assert!(lifetimes.iter().all(|&ms| ms == NO_END || ms == NO_KEY), "{lifetimes:?}");
}

/// A circuit that must be remembered for longer than it may idle is.
#[test]
fn a_long_opening_and_a_slow_probe_outlast_the_idle_time() {
    const DAY_MS: u64 = 86_400_000;
    let mut bench = Bench::start().unwrap();
    let number = |ms: u64| Value::Number(ms as f64);
    let config = build(&[
        ("failureThreshold", number(1)),
        ("openDurationMs", number(DAY_MS)),
        ("probeTimeoutMs", number(2 * DAY_MS)),
        ("halfOpenMaxCalls", number(2)),
    ]);
    // An idle time far too short, as only another instance with another configuration can bring about.
    let wire = Wire { config: config_argument(&config, 1_000, Quorum::ONE), ..Wire::new("slow", &config) };

    bench.reply(&wire.control(START, "trip", Some(10 * DAY_MS))).unwrap();
    assert!(is_fresh(bench.lifetimes(&wire).unwrap()[0], 20 * DAY_MS + 60_000));
    bench.reply(&wire.control(START, "reset", None)).unwrap();
    assert!(is_fresh(bench.lifetimes(&wire).unwrap()[0], 4 * DAY_MS + 60_000));

    bench.reply(&wire.settle_without(Outcome::Failure, START, &call_id(1))).unwrap();
    let probe = bench.reply(&wire.can_request(START + DAY_MS, &call_id(2))).unwrap();
    assert!(probe.granted().is_some());
    // The half-open period goes by the probe timeout of the instance that began it, also for those that come later.
    let quick = build(&[("failureThreshold", number(1)), ("halfOpenMaxCalls", number(2))]);
    let later = Wire { config: config_argument(&quick, 1_000, Quorum::ONE), ..Wire::new("slow", &quick) };
    bench.reply(&later.can_request(START + DAY_MS, &call_id(3))).unwrap();
    for lifetime in bench.lifetimes(&wire).unwrap().into_iter().filter(|&ms| ms != NO_KEY) {
        assert!(is_fresh(lifetime, 4 * DAY_MS + 60_000), "{lifetime}");
    }
}

/// One instance forces, and one that runs by another `tripOn` or quorum, and so does not know a key, takes it back.
#[test]
fn what_another_configuration_does_not_know_of_ends_by_itself() {
    let mut bench = Bench::start().unwrap();
    for counting in Counting::ALL.into_iter().filter(|counting| counting.trip_on == TripOn::Rate || counting.quorum > 1)
    {
        for forced in ["force-open", "disable"] {
            let circuit = bench.prepare(Situation::Counted, counting).unwrap();
            bench.reply(&circuit.wire.control(circuit.now, forced, None)).unwrap();
            let keys = circuit.wire.keys[..OPTIONAL].to_vec();
            let rolling = Wire { keys, ..Wire::new("other", &build(&[])) };
            bench.reply(&rolling.control(circuit.now, "reset", None)).unwrap();
            let lifetimes = bench.lifetimes(&circuit.wire).unwrap();
            for &lifetime in &lifetimes[OPTIONAL..] {
                assert!(is_fresh(lifetime, IDLE_TTL_MS), "{forced} by {counting:?}: {lifetimes:?}");
            }
        }
    }
}
