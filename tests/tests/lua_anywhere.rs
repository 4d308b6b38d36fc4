//! Any node, at any time: nodes that have forgotten the scripts, the masters of a cluster, a replica that takes over.

use std::collections::BTreeSet;
use std::path::Path;

use redis::Connection;
use switchgear_core::{Millis, Outcome, Snapshot, State, TripOn};
use switchgear_lua::SCRIPTS;
use switchgear_tests::lua::{LuaCircuit, LuaPermit, Reading, Reply, Wire};
use switchgear_tests::servers::{Cluster, Server, ask, run};
use switchgear_tests::situations::{Bench, START, Situation, THRESHOLD, TRIP_ON, config};
use switchgear_tests::vectors::{self, Answer, Loaded, Machine, Operation};

/// Names that could be taken for hash tags, or are hard to spell; `{cb:` + name + `}` is the circuit's key.
const NAMES: [&str; 9] =
    ["billing", "a{b}c", "GET /users/{id}", "{", "}", "}x", "{}", "\u{1f9ef} f\u{fc}r {alle}", "cb:billing"];

fn given_vectors() -> Vec<Loaded> {
    vectors::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/vectors"))).unwrap_or_default()
}

/// A circuit whose server forgets every script before each thing that it is asked.
struct Forgetful {
    circuit: LuaCircuit,
    server: Connection,
}

impl Machine for Forgetful {
    type Permit = LuaPermit;

    fn step(&mut self, at: Millis, operation: Operation<'_, LuaPermit>) -> Result<Answer<LuaPermit>, String> {
        run(&mut self.server, &["SCRIPT", "FLUSH"]).map_err(|error| error.to_string())?;
        self.circuit.step(at, operation)
    }

    fn snapshot(&mut self, at: Millis) -> Result<Snapshot, String> {
        run(&mut self.server, &["SCRIPT", "FLUSH"]).map_err(|error| error.to_string())?;
        self.circuit.snapshot(at)
    }
}

#[test]
fn scenario_52_a_server_may_forget_the_scripts_between_any_two_calls() {
    let server = Server::start().unwrap();
    let loaded = given_vectors();
    let mut circuits = 0;
    let report = vectors::run("lua, forgetful", &loaded, |config| {
        circuits += 1;
        let connect = || server.connect().map_err(|error| error.to_string());
        let circuit = LuaCircuit::new(&format!("vector {circuits}"), config, connect()?);
        Ok(Forgetful { circuit, server: connect()? })
    });
    assert!(report.print(), "the answers are others than those of a server that remembers");
    assert!(report.steps > 4000, "{} steps", report.steps);
}

#[test]
fn scenario_52_an_outcome_counts_once_though_the_script_was_forgotten_since_the_admission() {
    let mut bench = Bench::start().unwrap();
    for trip_on in TRIP_ON {
        let circuit = bench.prepare(Situation::Counted, trip_on).unwrap();
        assert_eq!(bench.reading(&circuit.wire, START).unwrap(), Reading::Closed(circuit.permit.epoch));
        let permit = LuaPermit { id: circuit.draw_id(), ..circuit.permit.clone() };
        run(&mut bench.connection, &["SCRIPT", "FLUSH"]).unwrap();

        let failure = circuit.wire.settle(Outcome::Failure, START, &permit);
        let forgotten = failure.by_sha().query::<Vec<i64>>(&mut bench.connection).unwrap_err();
        assert_eq!(forgotten.code(), Some("NOSCRIPT"));
        let reply: Vec<i64> = failure.by_text().query(&mut bench.connection).unwrap();
        assert_eq!(Reply::read(&reply).unwrap().failures, THRESHOLD, "{trip_on:?}");
        // By its text it is known again.
        failure.by_sha().query::<Vec<i64>>(&mut bench.connection).unwrap();
    }
}

#[test]
fn scenario_52_a_replica_that_takes_over_knows_the_circuit_and_not_the_scripts() {
    let primary = Server::start().unwrap();
    let replica = Server::replica_of(&primary).unwrap();
    let mut bench = Bench::on(primary).unwrap();
    let circuit = bench.prepare(Situation::HalfOpen, TripOn::Rolling).unwrap();
    run(&mut bench.connection, &["WAIT", "1", "0"]).unwrap();
    drop(bench);

    let mut promoted = Bench::on(replica).unwrap();
    run(&mut promoted.connection, &["REPLICAOF", "NO", "ONE"]).unwrap();
    let success = circuit.wire.settle(Outcome::Success, circuit.now, &circuit.permit);
    let unknown = success.by_sha().query::<Vec<i64>>(&mut promoted.connection).unwrap_err();
    assert_eq!(unknown.code(), Some("NOSCRIPT"));
    for _ in 0..2 {
        promoted.reply(&success).unwrap();
        let snapshot = promoted.snapshot(&circuit.wire, circuit.now).unwrap();
        assert_eq!(
            (snapshot.state, snapshot.half_open_successes, snapshot.half_open_in_flight),
            (State::HalfOpen, 2, 0),
            "the first success before, the second now, and once"
        );
    }
}

#[test]
fn scenario_53_a_circuit_of_any_name_is_in_one_slot() {
    let cluster = Cluster::start().unwrap();
    let mut connection = cluster.nodes()[0].connect().unwrap();
    let longest = "n".repeat(512);
    for name in NAMES.into_iter().chain([longest.as_str()]) {
        let wire = Wire::new(name, &config(TripOn::Rate));
        let slots: BTreeSet<u16> =
            wire.keys.iter().map(|key| ask(&mut connection, &["CLUSTER", "KEYSLOT", key]).unwrap()).collect();
        assert_eq!((wire.keys.len(), slots.len()), (4, 1), "`{name}`");
    }
}

#[test]
fn three_masters_answer_as_one_server() {
    let cluster = Cluster::start().unwrap();
    let loaded = given_vectors();
    let mut owners = [0_usize; Cluster::NODES as usize];
    let mut circuits = 0;
    let report = vectors::run("lua, cluster", &loaded, |config| {
        circuits += 1;
        let name = format!("{} {circuits}", NAMES[circuits % NAMES.len()]);
        let owner = cluster.owner_of(&Wire::new(&name, config).keys[0]).map_err(|error| error.to_string())?;
        owners[owner] += 1;
        let connection = cluster.nodes()[owner].connect().map_err(|error| error.to_string())?;
        Ok(LuaCircuit::new(&name, config, connection))
    });
    assert!(report.print(), "the answers are others than those of one server");
    assert!(owners.iter().all(|&circuits| circuits > 10), "every master has some: {owners:?}");
}

#[test]
fn another_master_says_who_has_the_circuit_and_does_nothing() {
    let cluster = Cluster::start().unwrap();
    for name in NAMES {
        let wire = Wire::new(name, &config(TripOn::Rate));
        let owner = cluster.owner_of(&wire.keys[0]).unwrap();
        for (number, node) in cluster.nodes().iter().enumerate() {
            let mut connection = node.connect().unwrap();
            // Known there, so that it is the key that decides.
            for script in &SCRIPTS {
                run(&mut connection, &["SCRIPT", "LOAD", script.text]).unwrap();
            }
            let answer = wire.control(START, "trip", None).by_sha().query::<Vec<i64>>(&mut connection);
            if number == owner {
                assert_eq!(Reply::read(&answer.unwrap()).unwrap().state, State::Open);
            } else {
                assert_eq!(answer.unwrap_err().code(), Some("MOVED"), "`{name}`");
            }
        }
    }
}
