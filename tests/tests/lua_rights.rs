//! The rights that the contract says a user needs: with them everything runs, and each of them is needed; and those that only
//! announcements need.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use redis::Connection;
use switchgear_core::shared::{Keys, Listing};
use switchgear_core::{Outcome, State, TripOn};
use switchgear_tests::lua::Reply;
use switchgear_tests::servers::{Server, ask, run};
use switchgear_tests::situations::{Bench, CHANNEL, Counting, START, Situation, THRESHOLD, TRIP_ON};

/// The line of rights in the README of the scripts that begins so, one by one.
fn documented(first: &str) -> Vec<String> {
    let readme = include_str!("../../lua/README.md");
    let line = readme.lines().find(|line| line.starts_with(first)).unwrap();
    line.split(' ').map(String::from).collect()
}

/// The rights that everything needs.
fn required() -> Vec<String> {
    documented("+hmget ")
}

/// The rights that only announcements need.
fn optional() -> Vec<String> {
    documented("+publish ")
}

/// A bench whose circuits an administrator prepares, and the connection of a user who may do what `rights` say.
fn limited(rights: &[String]) -> (Bench, Connection) {
    let server = Server::start().unwrap();
    let mut admin = server.connect().unwrap();
    let fixed = ["ACL", "SETUSER", "breaker", "on", "nopass", "~{cb:*", "resetchannels", "-@all", "+auth"];
    let words: Vec<&str> = fixed.into_iter().chain(rights.iter().map(String::as_str)).collect();
    run(&mut admin, &words).unwrap();
    let mut user = server.connect().unwrap();
    run(&mut user, &["AUTH", "breaker", "no password"]).unwrap();
    (Bench::on(server).unwrap(), user)
}

/// How many of all calls in all situations were not allowed.
fn denied(rights: &[String], all: &[Counting]) -> usize {
    let (mut bench, mut user) = limited(rights);
    let mut denied = 0;
    for &counting in all {
        for situation in Situation::ALL {
            let calls = bench.prepare(situation, counting).unwrap().every_call().len();
            for number in 0..calls {
                let circuit = bench.prepare(situation, counting).unwrap();
                let (name, call) = circuit.every_call().swap_remove(number);
                if let Err(error) = call.send(&mut user) {
                    let text = error.to_string();
                    let is_denial = ["NOPERM", "No permissions", "no permissions", "can't run"]
                        .iter()
                        .any(|words| text.contains(words));
                    assert!(is_denial, "{name} in {situation:?} by {counting:?}: {text}");
                    denied += 1;
                }
            }
            let circuit = bench.prepare(situation, counting).unwrap();
            let read = ["HMGET", &circuit.wire.keys[0], "state", "mode", "epoch", "opened_at", "open_ms"];
            denied += usize::from(run(&mut user, &read).is_err());
        }
    }
    denied
}

#[test]
fn the_required_rights_are_enough() {
    assert_eq!(denied(&required(), &Counting::ALL), 0);
    assert_eq!(denied(&[required(), optional()].concat(), &Counting::ALL), 0);
}

#[test]
fn each_required_right_is_needed() {
    let all = required();
    assert!(all.len() > 15, "{all:?}");
    // EVAL is sent only where the script is unknown: the next test.
    for right in all.iter().filter(|right| *right != "+eval") {
        let others: Vec<String> = all.iter().filter(|other| other != &right).cloned().collect();
        assert!(denied(&others, &TRIP_ON.map(Counting::by_hand)) > 0, "nothing needs {right}");
    }
}

/// Whether a user with these rights answers to a trip as one with all rights, and whether anybody hears of it.
fn is_heard(rights: &[String]) -> bool {
    let (mut bench, mut user) = limited(rights);
    let mut listening = bench.server.connect().unwrap();
    let mut events = listening.as_pubsub();
    events.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    events.subscribe(CHANNEL).unwrap();
    let circuit = bench.prepare(Situation::Counted, Counting::announced(TripOn::Consecutive, 2)).unwrap();
    let failure = circuit.wire.settle_without(Outcome::Failure, START, &circuit.draw_id());
    let reply = Reply::read(&failure.send(&mut user).unwrap()).unwrap();
    assert_eq!((reply.state, reply.failures), (State::Open, THRESHOLD), "{rights:?}");
    run(&mut bench.connection, &["PUBLISH", CHANNEL, "the end"]).unwrap();
    let first: String = events.get_message().unwrap().get_payload().unwrap();
    first != "the end"
}

#[test]
fn the_optional_rights_are_both_needed_to_be_heard_and_for_nothing_else() {
    let (required, optional) = (required(), optional());
    assert_eq!(optional, ["+publish".to_owned(), format!("&{CHANNEL}")]);
    assert!(is_heard(&[required.clone(), optional.clone()].concat()));
    for one in optional {
        assert!(!is_heard(&[required.clone(), vec![one.clone()]].concat()), "{one} alone");
    }
    assert!(!is_heard(&required));
}

#[test]
fn whoever_lists_circuits_needs_two_more_and_finds_and_reads_them_by_those() {
    let scanning = documented("+scan ");
    assert_eq!(scanning, ["+scan", "+cluster|nodes"]);
    for (rights, may_scan) in [([required(), scanning].concat(), true), (required(), false)] {
        let (mut bench, mut user) = limited(&rights);
        let circuit = bench.prepare(Situation::Counted, TRIP_ON[0]).unwrap();
        let listing = Listing::new(Keys::DEFAULT_PREFIX, "").unwrap();
        let scanned: Result<(String, Vec<String>), _> =
            ask(&mut user, &["SCAN", "0", "MATCH", listing.pattern(), "COUNT", "1000"]);
        assert_eq!(scanned.is_ok(), may_scan, "{scanned:?}");
        // Not a cluster: that is said to whoever may ask.
        let asked = run(&mut user, &["CLUSTER", "NODES"]).unwrap_err().to_string();
        assert_eq!(asked.contains("cluster support disabled"), may_scan, "{asked}");
        let Ok((_, keys)) = scanned else { continue };
        let names: BTreeSet<&str> = keys.iter().filter_map(|key| listing.name_of(key)).collect();
        assert_eq!(names.len(), 1, "{names:?}");
        circuit.wire.get_state(START).send(&mut user).unwrap();
    }
}

#[test]
fn a_script_that_the_node_has_lost_needs_eval() {
    let rights = required();
    let without: Vec<String> = rights.iter().filter(|right| *right != "+eval").cloned().collect();
    for (rights, is_allowed) in [(rights.as_slice(), true), (&without, false)] {
        let (mut bench, mut user) = limited(rights);
        let circuit = bench.prepare(Situation::Counted, TRIP_ON[0]).unwrap();
        run(&mut bench.connection, &["SCRIPT", "FLUSH"]).unwrap();
        let (_, call) = circuit.every_call().swap_remove(0);
        assert_eq!(call.send(&mut user).is_ok(), is_allowed);
    }
}
