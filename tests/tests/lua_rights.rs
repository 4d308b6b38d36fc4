//! The rights that the contract says a user needs: with them everything runs, and each of them is needed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use redis::Connection;
use switchgear_tests::servers::{Server, run};
use switchgear_tests::situations::{Bench, Situation, TRIP_ON};

/// The rights as the README of the scripts names them, one by one.
fn documented() -> Vec<String> {
    let readme = include_str!("../../lua/README.md");
    let line = readme.lines().find(|line| line.starts_with("+hmget ")).unwrap();
    line.split(' ').map(String::from).collect()
}

/// A bench whose circuits an administrator prepares, and the connection of a user who may do what `rights` say.
fn limited(rights: &[String]) -> (Bench, Connection) {
    let server = Server::start().unwrap();
    let mut admin = server.connect().unwrap();
    let fixed = ["ACL", "SETUSER", "breaker", "on", "nopass", "~{cb:*", "-@all", "+auth"];
    let words: Vec<&str> = fixed.into_iter().chain(rights.iter().map(String::as_str)).collect();
    run(&mut admin, &words).unwrap();
    let mut user = server.connect().unwrap();
    run(&mut user, &["AUTH", "breaker", "no password"]).unwrap();
    (Bench::on(server).unwrap(), user)
}

/// How many of all calls in all situations were not allowed.
fn denied(rights: &[String]) -> usize {
    let (mut bench, mut user) = limited(rights);
    let mut denied = 0;
    for trip_on in TRIP_ON {
        for situation in Situation::ALL {
            let calls = bench.prepare(situation, trip_on).unwrap().every_call().len();
            for number in 0..calls {
                let circuit = bench.prepare(situation, trip_on).unwrap();
                let (name, call) = circuit.every_call().swap_remove(number);
                if let Err(error) = call.send(&mut user) {
                    let text = error.to_string();
                    let is_denial = ["NOPERM", "No permissions", "no permissions", "can't run"]
                        .iter()
                        .any(|words| text.contains(words));
                    assert!(is_denial, "{name} in {situation:?} by {trip_on:?}: {text}");
                    denied += 1;
                }
            }
            let circuit = bench.prepare(situation, trip_on).unwrap();
            let read = ["HMGET", &circuit.wire.keys[0], "state", "mode", "epoch", "opened_at", "open_ms"];
            denied += usize::from(run(&mut user, &read).is_err());
        }
    }
    denied
}

#[test]
fn the_documented_rights_are_enough() {
    assert_eq!(denied(&documented()), 0);
}

#[test]
fn each_documented_right_is_needed() {
    let all = documented();
    assert!(all.len() > 15, "{all:?}");
    // EVAL is sent only where the script is unknown: the next test.
    for right in all.iter().filter(|right| *right != "+eval") {
        let others: Vec<String> = all.iter().filter(|other| other != &right).cloned().collect();
        assert!(denied(&others) > 0, "nothing needs {right}");
    }
}

#[test]
fn a_script_that_the_node_has_lost_needs_eval() {
    let rights = documented();
    let without: Vec<String> = rights.iter().filter(|right| *right != "+eval").cloned().collect();
    for (rights, is_allowed) in [(rights.as_slice(), true), (&without, false)] {
        let (mut bench, mut user) = limited(rights);
        let circuit = bench.prepare(Situation::Counted, TRIP_ON[0]).unwrap();
        run(&mut bench.connection, &["SCRIPT", "FLUSH"]).unwrap();
        let (_, call) = circuit.every_call().swap_remove(0);
        assert_eq!(call.send(&mut user).is_ok(), is_allowed);
    }
}
