//! The paths that must write nothing run no writing command, leave every key as it was, and so work on a read-only replica.

use std::collections::BTreeSet;

use switchgear_core::TripOn;
use switchgear_tests::servers::{Server, run};
use switchgear_tests::situations::{Bench, Counting, Situation};

/// The calls that write nothing, wherever they come.
const ALWAYS: [&str; 5] = ["get_state", "give back no slot", "stale success", "stale failure", "stale release"];
/// Everything an instance does of its own accord.
const SETTLING: [&str; 8] = [
    "success",
    "two successes",
    "failure",
    "failure after two successes",
    "release",
    "success without permit",
    "failure without permit",
    "release without permit",
];

/// The calls that write nothing in this situation.
fn silent(situation: Situation, counting: Counting) -> BTreeSet<&'static str> {
    let mut silent = BTreeSet::from(ALWAYS);
    match situation {
        Situation::Fresh | Situation::Counted => {
            // A closed admission, and outcomes that change nothing.
            silent.extend(["can_request", "give back a slot", "release", "release without permit"]);
            let row_to_end = counting.trip_on == TripOn::Consecutive && situation == Situation::Counted;
            if counting.trip_on != TripOn::Rate && !row_to_end {
                silent.extend(["success", "two successes", "success without permit"]);
            }
        }
        Situation::Open => {
            silent.extend(SETTLING);
            silent.extend(["can_request", "give back a slot"]);
        }
        // Only the request is different: it moves the start of the opening to now, or begins the half-open period.
        Situation::OpenAhead | Situation::Elapsed => {
            silent.extend(SETTLING);
            silent.insert("give back a slot");
        }
        Situation::HalfOpen => {}
        Situation::HalfOpenFull => {
            silent.insert("can_request");
        }
        Situation::ForcedOverClosed | Situation::DisabledOverOpen => {
            silent.extend(SETTLING);
            silent.extend(["can_request", "give back a slot"]);
        }
        // The probes are still there, and what was granted too late is given back.
        Situation::ForcedOverHalfOpen | Situation::DisabledOverHalfOpen => {
            silent.extend(SETTLING);
            silent.insert("can_request");
        }
    }
    silent
}

#[test]
fn what_must_write_nothing_runs_no_writing_command() {
    let mut bench = Bench::start().unwrap();
    for counting in Counting::ALL {
        for situation in Situation::ALL {
            let names: Vec<&str> =
                bench.prepare(situation, counting).unwrap().every_call().into_iter().map(|(name, _)| name).collect();
            let mut found = BTreeSet::new();
            for name in names {
                let circuit = bench.prepare(situation, counting).unwrap();
                let (_, call) = circuit.every_call().into_iter().find(|(other, _)| *other == name).unwrap();
                let before = (bench.writing_commands().unwrap(), bench.stored(&circuit.wire).unwrap());
                bench.send(&call).unwrap();
                let after = (bench.writing_commands().unwrap(), bench.stored(&circuit.wire).unwrap());
                if before.0 == after.0 {
                    assert_eq!(before.1, after.1, "{name} in {situation:?} by {counting:?}");
                    found.insert(name);
                }
            }
            assert_eq!(found, silent(situation, counting), "{situation:?} by {counting:?}");
        }
    }
}

#[test]
fn what_writes_nothing_is_answered_by_a_read_only_replica_and_the_rest_is_refused_whole() {
    let primary = Server::start().unwrap();
    let replica = Server::replica_of(&primary).unwrap();
    let (mut primary, mut replica) = (Bench::on(primary).unwrap(), Bench::on(replica).unwrap());
    for counting in Counting::ALL {
        for situation in Situation::ALL {
            let circuit = primary.prepare(situation, counting).unwrap();
            // Until the replica has everything.
            run(&mut primary.connection, &["WAIT", "1", "0"]).unwrap();
            let before = replica.values(&circuit.wire).unwrap();
            let reading = replica.reading(&circuit.wire, circuit.now).unwrap();
            assert_eq!(reading, primary.reading(&circuit.wire, circuit.now).unwrap(), "{situation:?}");
            for (name, call) in circuit.every_call() {
                let place = format!("{name} in {situation:?} by {counting:?}");
                let answer = replica.send(&call);
                if silent(situation, counting).contains(name) {
                    assert_eq!(answer.unwrap(), primary.send(&call).unwrap(), "{place}");
                } else {
                    assert_eq!(answer.unwrap_err().code(), Some("READONLY"), "{place}");
                }
                assert_eq!(replica.values(&circuit.wire).unwrap(), before, "{place}");
            }
        }
    }
}
