//! A store that cannot do what it is asked: a key of another type, no memory, no replica to write to. A script is done
//! whole or not at all.

use redis::ErrorKind;
use switchgear_core::TripOn;
use switchgear_tests::lua::{read_snapshot, shipped};
use switchgear_tests::servers::{ask, run};
use switchgear_tests::situations::{Bench, Counting, Situation};

#[test]
fn a_key_of_another_type_is_an_error_and_nothing_is_written() {
    let mut bench = Bench::start().unwrap();
    let (mut refused, mut mended) = (0, 0);
    for counting in Counting::ALL {
        for situation in Situation::ALL {
            let circuit = bench.prepare(situation, counting).unwrap();
            for (key, calls) in circuit.wire.keys.iter().zip(std::iter::repeat(circuit.every_call().len())) {
                let place = circuit.wire.keys.iter().position(|other| other == key).unwrap();
                for number in 0..calls {
                    let circuit = bench.prepare(situation, counting).unwrap();
                    let (name, call) = circuit.every_call().swap_remove(number);
                    let wrong = &circuit.wire.keys[place];
                    run(&mut bench.connection, &["SET", wrong, "another program's"]).unwrap();
                    let before = bench.stored(&circuit.wire).unwrap();
                    let what = format!("{name} in {situation:?} by {counting:?} with {wrong} a string");
                    match bench.send(&call) {
                        Err(error) => {
                            assert!(error.to_string().contains("WRONGTYPE"), "{what}: {error}");
                            assert_eq!(bench.stored(&circuit.wire).unwrap(), before, "{what}");
                            refused += 1;
                        }
                        // What clears the key mends it; what does not need it leaves it alone.
                        Ok(_) => {
                            let is_alone = bench.stored(&circuit.wire).unwrap()[place].0 == before[place].0;
                            let kind: String = ask(&mut bench.connection, &["TYPE", wrong]).unwrap();
                            assert_eq!(is_alone, kind == "string", "{what}: {kind}");
                            mended += u32::from(!is_alone);
                        }
                    }
                }
            }
        }
    }
    assert!(refused > 300 && mended > 50, "{refused} refused, {mended} mended");
}

/// Why removing commands come first: Redis asks for memory only before the first writing command of a script. One that
/// began by removing goes on to its end, so a full server keeps its circuits; one that would begin by adding is refused.
#[test]
fn a_full_server_does_every_script_whole() {
    let (mut roomy, mut full) = (Bench::start().unwrap(), Bench::start().unwrap());
    let mut written = 0;
    for counting in Counting::ALL {
        for situation in Situation::ALL {
            let calls = roomy.prepare(situation, counting).unwrap().every_call().len();
            full.prepare(situation, counting).unwrap();
            for number in 0..calls {
                let (here, there) =
                    (roomy.prepare(situation, counting).unwrap(), full.prepare(situation, counting).unwrap());
                let (name, call) = here.every_call().swap_remove(number);
                let place = format!("{name} in {situation:?} by {counting:?}");
                let before = full.values(&there.wire).unwrap();
                assert_eq!(before, roomy.values(&here.wire).unwrap(), "{place}");

                full.server.fill_up().unwrap();
                let refused = run(&mut full.connection, &["SET", "more", "x"]).unwrap_err();
                assert_eq!(refused.code(), Some("OOM"), "the server is full");
                let answer = full.send(&there.every_call().swap_remove(number).1);
                let after = full.values(&there.wire).unwrap();
                full.server.make_room().unwrap();

                assert_eq!(answer.unwrap(), roomy.send(&call).unwrap(), "{place}");
                assert_eq!(after, roomy.values(&here.wire).unwrap(), "{place}");
                written += u32::from(after != before);
            }
        }
    }
    assert!(written > 100, "{written}");
}

#[test]
fn a_primary_without_its_replicas_refuses_whole_what_writes() {
    let mut bench = Bench::start().unwrap();
    let mut refused = 0;
    for counting in Counting::ALL {
        for situation in Situation::ALL {
            let calls = bench.prepare(situation, counting).unwrap().every_call().len();
            for number in 0..calls {
                let circuit = bench.prepare(situation, counting).unwrap();
                let (name, call) = circuit.every_call().swap_remove(number);
                let before = bench.stored(&circuit.wire).unwrap();
                let place = format!("{name} in {situation:?} by {counting:?}");
                // Known to the server, so that what follows is the script's own answer.
                run(&mut bench.connection, &["SCRIPT", "LOAD", shipped(call.id).text]).unwrap();
                run(&mut bench.connection, &["CONFIG", "SET", "min-replicas-to-write", "1"]).unwrap();
                let answer = bench.send(&call);
                let after = bench.stored(&circuit.wire).unwrap();
                run(&mut bench.connection, &["CONFIG", "SET", "min-replicas-to-write", "0"]).unwrap();
                assert_eq!(after, before, "{place}");
                if let Err(error) = answer {
                    assert_eq!(error.code(), Some("NOREPLICAS"), "{place}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn strange_values_are_taken_for_missing_ones() {
    let mut bench = Bench::start().unwrap();
    let mut answered = 0;
    for counting in Counting::ALL {
        for situation in Situation::ALL {
            for value in ["", "0", "nan", "inf", "-1", "1e400", "abc", "12abc", "9007199254740993", "0x10"] {
                let calls = bench.prepare(situation, counting).unwrap().every_call().len();
                for number in 0..calls {
                    let circuit = bench.prepare(situation, counting).unwrap();
                    let (name, call) = circuit.every_call().swap_remove(number);
                    let key = &circuit.wire.keys[0];
                    for field in ["epoch", "opened_at", "open_ms", "trips", "ho_succ", "ptmo", "ho_max", "ho_need"] {
                        run(&mut bench.connection, &["HSET", key, field, value]).unwrap();
                    }
                    let place = format!("{name} in {situation:?} by {counting:?} with `{value}`");
                    let reply = bench.send(&call).unwrap_or_else(|error| panic!("{place}: {error}"));
                    assert!(reply.iter().all(|&n| n >= -1), "{place}: {reply:?}");
                    let snapshot = bench.send(&circuit.wire.get_state(circuit.now)).unwrap();
                    read_snapshot(&snapshot).unwrap_or_else(|error| panic!("{place}: {error}"));
                    answered += 1;
                }
            }
        }
    }
    assert!(answered > 1000, "{answered}");
}

#[test]
fn an_unknown_operation_is_an_error_that_names_the_valid_ones() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::Counted, TripOn::Rolling).unwrap();
    let before = bench.stored(&circuit.wire).unwrap();
    let error = bench.send(&circuit.wire.control(circuit.now, "explode", None)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension), "{error}");
    assert!(error.to_string().contains("unknown operation `explode`: reset, trip, force-open or disable"), "{error}");
    assert_eq!(bench.stored(&circuit.wire).unwrap(), before);
}
