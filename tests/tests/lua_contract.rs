//! The table of scripts, and that both sides of the wire speak of the same things.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use redis::PubSub;
use switchgear_core::shared::{
    Answer, Ask, Begun, Command, Control, Node, Script as EngineScript, SharedCircuit, SharedOptions, SharedPermit,
    Step, Times,
};
use switchgear_core::{Millis, Outcome, TripOn};
use switchgear_lua::SCRIPTS;
use switchgear_tests::lua::{Call, Fields, LuaPermit, PermitKind, Wire, shipped};
use switchgear_tests::servers::{Server, ask, run};
use switchgear_tests::situations::{Bench, CHANNEL, Counting, START, Situation, TRIP_ON, config, quorum};

const NONCE: u64 = 0x5317_c49e_a700_0000;
/// What a request reads that finds an opening which is over.
const OVER: [Option<&str>; 5] = [Some("open"), None, Some("7"), Some("0"), Some("1000")];

#[test]
fn the_table_is_in_the_engines_order() {
    let table: Vec<&str> = SCRIPTS.iter().map(|script| script.name).collect();
    let engine: Vec<&str> = EngineScript::ALL.iter().map(|script| script.as_str()).collect();
    assert_eq!(table, engine);
}

#[test]
fn the_digests_are_those_that_a_server_knows_the_scripts_by() {
    let server = Server::start().unwrap();
    let mut connection = server.connect().unwrap();
    for script in &SCRIPTS {
        let loaded: String = ask(&mut connection, &["SCRIPT", "LOAD", script.text]).unwrap();
        assert_eq!(loaded, script.sha1, "{}", script.name);
    }
}

#[test]
fn no_script_reads_a_clock_or_draws_a_number() {
    const FORBIDDEN: [&str; 6] = ["'TIME'", "math.random", "RANDOMKEY", "SRANDMEMBER", "os.", "#!"];
    for script in &SCRIPTS {
        for word in FORBIDDEN {
            assert!(!script.text.contains(word), "{} contains {word}", script.name);
        }
    }
}

#[test]
fn every_script_opens_with_its_purpose_keys_arguments_and_reply() {
    for script in &SCRIPTS {
        let file = std::fs::read_to_string(format!("{}/../lua/{}.lua", env!("CARGO_MANIFEST_DIR"), script.name));
        let file = file.unwrap();
        assert!(script.text.ends_with(&file), "{}: the table ships another text", script.name);
        let head: Vec<&str> = file.lines().take_while(|line| line.starts_with("--")).collect();
        for part in ["-- KEYS: ", "-- ARGV: ", "-- Reply: "] {
            assert!(head.iter().any(|line| line.starts_with(part)), "{} lacks `{part}`", script.name);
        }
    }
}

/// The words of a command as MONITOR shows them; these commands hold no quotes.
fn words(command: &str) -> Vec<&str> {
    let command = command.trim();
    let inner = command.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(command);
    inner.split("\" \"").collect()
}

#[test]
fn scripts_touch_no_key_that_they_were_not_given() {
    let mut bench = Bench::start().unwrap();
    for script in &SCRIPTS {
        run(&mut bench.connection, &["SCRIPT", "LOAD", script.text]).unwrap();
    }
    let mut monitor = BufReader::new(TcpStream::connect(("127.0.0.1", bench.server.port())).unwrap());
    monitor.get_mut().write_all(b"MONITOR\r\n").unwrap();
    let mut line = String::new();
    monitor.read_line(&mut line).unwrap();
    assert_eq!(line, "+OK\r\n");

    let mut calls_made = 0;
    for counting in Counting::ALL {
        for situation in Situation::ALL {
            let calls = bench.prepare(situation, counting).unwrap().every_call().len();
            for number in 0..calls {
                let circuit = bench.prepare(situation, counting).unwrap();
                bench.send(&circuit.every_call().swap_remove(number).1).unwrap();
                calls_made += 1;
            }
        }
    }
    run(&mut bench.connection, &["ECHO", "no more calls"]).unwrap();

    let (mut given, mut commands, mut announced) = (BTreeSet::new(), 0, 0);
    let mut is_over = false;
    for line in monitor.lines().map(Result::unwrap).take_while(|line| !line.contains("no more calls")) {
        let (from, command) = line.split_once("] ").unwrap();
        let words = words(command);
        if words[0] == "EVALSHA" {
            is_over = false;
            let keys: usize = words[2].parse().unwrap();
            given = words[3..3 + keys].iter().map(|key| (*key).to_owned()).collect();
        } else if from.ends_with("lua") && words[0].eq_ignore_ascii_case("PUBLISH") {
            assert_eq!(words[1], CHANNEL);
            announced += 1;
            is_over = true;
        } else if from.ends_with("lua") {
            let is_of_many = words[0].eq_ignore_ascii_case("DEL");
            let keys = if is_of_many { &words[1..] } else { &words[1..2] };
            assert!(keys.iter().all(|key| given.contains(*key)), "{command} by a script given {given:?}");
            assert!(!is_over, "{command} after the announcement, which comes last");
            commands += 1;
        }
    }
    assert!(commands > calls_made, "{commands} commands in {calls_made} calls");
    assert!(announced > 100, "{announced} announcements");
}

#[test]
fn admit_is_the_plain_read_as_a_script() {
    let mut bench = Bench::start().unwrap();
    for situation in Situation::ALL {
        let circuit = bench.prepare(situation, TripOn::Rolling).unwrap();
        let read: Fields = circuit.wire.reading().query(&mut bench.connection).unwrap();
        let before = bench.writing_commands().unwrap();
        let admit: Fields = circuit.wire.admit().by_text().query(&mut bench.connection).unwrap();
        assert_eq!(admit, read, "{situation:?}");
        assert_eq!(bench.writing_commands().unwrap(), before, "{situation:?}");
    }
}

/// An engine and what it was heard to ask.
struct Engine {
    circuit: SharedCircuit,
    node: Node,
    trip_on: TripOn,
}

/// All calls take place at the same time.
fn now() -> Times {
    Times::one(Millis::new(START).unwrap_or_default())
}

impl Engine {
    fn new(trip_on: TripOn) -> Self {
        let config = config(trip_on);
        // It remembers nothing: each of these calls is to be asked.
        let options = SharedOptions { open_cache_ms: 0, ..SharedOptions::for_config(&config) };
        let circuit = SharedCircuit::new("a{b}c", "cb:", NONCE, "host", config, options).unwrap();
        Self { circuit, node: Node::new(), trip_on }
    }

    /// The one thing to send for this.
    fn asked(&mut self, begun: &Begun) -> Ask {
        let Begun::Wait(ticket) = *begun else { panic!("asks, not {begun:?}") };
        let ask = self.next();
        assert_eq!(ask.ticket, ticket);
        ask
    }

    fn next(&mut self) -> Ask {
        let ask = self.circuit.next_ask().expect("something to send");
        assert_eq!(self.circuit.next_ask(), None);
        ask
    }

    fn admit(&mut self) -> Ask {
        let begun = self.circuit.admit(&mut self.node, now());
        self.asked(&begun)
    }

    fn reads(&mut self, ask: &Ask, fields: [Option<&str>; 5]) -> Step {
        self.circuit.on_reading(&mut self.node, now(), ask.ticket, fields)
    }

    fn replies(&mut self, ask: &Ask, reply: &[i64]) -> Step {
        self.circuit.on_reply(&mut self.node, now(), ask.ticket, reply)
    }

    /// An admission that a reading does not decide.
    fn asks_on(&mut self) -> Ask {
        let read = self.admit();
        assert_eq!(self.reads(&read, OVER).answer, None);
        self.next()
    }

    /// That it says what the contract says, and behind that whose it is.
    fn assert_same(&self, asked: &Ask, call: &Call) {
        let Command::Run(script) = asked.command else { panic!("a script, not {asked:?}") };
        assert_eq!(script.as_str(), shipped(call.id).name);
        assert_eq!(self.circuit.keys().of(script), call.keys, "{script:?}");
        let (given, rest) = asked.args.split_at(call.args.len());
        for (word, same) in given.iter().zip(&call.args) {
            // The configuration ends with a word that may be missing: a quorum of one.
            let is_config = word.starts_with(self.trip_on.as_str());
            let word = if is_config { word.trim_end_matches(" 1") } else { word.as_str() };
            assert_eq!(word, same.trim_end_matches(" 1"), "{script:?}");
        }
        let whose = ["cb:events".to_owned(), format!("{NONCE:016x} a{{b}}c\nhost")];
        let mut expected = match script {
            EngineScript::Admit | EngineScript::GetState | EngineScript::Release => vec![],
            _ => whose.to_vec(),
        };
        if script == EngineScript::RecordFailure {
            expected.extend(["0".to_owned(), "host".to_owned()]);
        }
        assert_eq!(rest, expected, "{script:?}");
    }

    fn tells(&mut self, permit: Option<SharedPermit>, outcome: Outcome, call: &Call) {
        let begun = self.circuit.settle(&mut self.node, now(), permit, outcome);
        let asked = self.asked(&begun);
        self.assert_same(&asked, call);
    }
}

fn granted(step: &Step) -> SharedPermit {
    let Some(Answer::Granted(permit)) = step.answer else { panic!("granted, not {step:?}") };
    permit
}

#[test]
fn the_engine_asks_in_the_words_of_the_contract() {
    for trip_on in TRIP_ON {
        let wire = Wire::new("a{b}c", &config(trip_on));
        let mut engine = Engine::new(trip_on);
        let id = |counter: u64| format!("{NONCE:016x}{counter:013x}");

        // A request that meets an opening which is over is asked again, in full.
        let asked = engine.admit();
        engine.assert_same(&asked, &wire.admit());
        assert_eq!(engine.reads(&asked, OVER).answer, None);
        let again = engine.next();
        engine.assert_same(&again, &wire.can_request(START, &id(1)));
        let probe = granted(&engine.replies(&again, &[2, 2, 0, 9, 0, 1, 1, 0, -1, 0]));

        let asked = engine.admit();
        let closed = granted(&engine.reads(&asked, [None, None, Some("5"), None, None]));
        for outcome in [Outcome::Success, Outcome::Failure, Outcome::Release] {
            let twin = LuaPermit { id: id(1), epoch: 9, kind: PermitKind::Probe };
            engine.tells(Some(probe), outcome, &wire.settle(outcome, START, &twin));
            // A call admitted while closed has no name until there is something to tell of it.
            if outcome == Outcome::Failure {
                let twin = LuaPermit { id: id(3), epoch: 5, kind: PermitKind::Closed };
                engine.tells(Some(closed), outcome, &wire.settle(outcome, START, &twin));
            }
        }
        engine.tells(None, Outcome::Success, &wire.settle_without(Outcome::Success, START, &id(4)));
        engine.tells(None, Outcome::Failure, &wire.settle_without(Outcome::Failure, START, &id(5)));
        engine.tells(None, Outcome::Release, &wire.settle_without(Outcome::Release, START, ""));

        let begun = engine.circuit.get_state(&mut engine.node, now());
        let asked = engine.asked(&begun);
        engine.assert_same(&asked, &wire.get_state(START));
        let controls = [
            (Control::Reset, wire.control(START, "reset", None)),
            (Control::Trip { for_ms: None }, wire.control(START, "trip", None)),
            (Control::Trip { for_ms: Some(50) }, wire.control(START, "trip", Some(50))),
            (Control::ForceOpen, wire.control(START, "force-open", None)),
            (Control::Disable, wire.control(START, "disable", None)),
        ];
        for (control, call) in controls {
            let begun = engine.circuit.control(&mut engine.node, now(), control).unwrap();
            let asked = engine.asked(&begun);
            engine.assert_same(&asked, &call);
        }

        // A grant that comes too late is given back by its id, whatever the period is by then.
        let asked = engine.admit();
        engine.circuit.on_deadline(&mut engine.node, now(), asked.ticket);
        assert_eq!(engine.reads(&asked, OVER).answer, None, "nobody waits for it any more");
        assert_eq!(engine.circuit.next_ask(), None);
        let asked = engine.asks_on();
        engine.circuit.on_deadline(&mut engine.node, now(), asked.ticket);
        assert_eq!(engine.replies(&asked, &[2, 2, 0, 9, 0, 1, 1, 0, -1, 0]).answer, None);
        let given_back = engine.next();
        let call = wire.give_back(START, &id(7));
        assert_eq!(given_back.command, Command::Run(call.id));
        // The kind says nothing there.
        assert_eq!(given_back.args[..3], call.args[..3]);
        assert_eq!(given_back.args[4], call.args[4]);
    }
}

#[test]
fn a_circuit_has_a_key_for_rates_or_instances_only_if_it_counts_them() {
    for (trip_on, number, more) in [
        (TripOn::Rolling, 1, &[][..]),
        (TripOn::Consecutive, 1, &[]),
        (TripOn::Rate, 1, &["{cb:x}:r"]),
        (TripOn::Rolling, 2, &[]),
        (TripOn::Consecutive, 2, &["{cb:x}:i"]),
        (TripOn::Rate, 2, &["{cb:x}:r", "{cb:x}:i"]),
    ] {
        let config = config(trip_on);
        let quorum = quorum(number, &config);
        let wire = Wire::with_quorum("x", &config, quorum);
        assert_eq!(wire.keys, [&["{cb:x}", "{cb:x}:f", "{cb:x}:p"], more].concat());
        assert_eq!(quorum.has_instances_key(&config), more.contains(&"{cb:x}:i"));
        assert_eq!(wire.can_request(1, "id").keys, wire.keys);
        assert_eq!(wire.admit().keys, wire.keys[..1]);
    }
}

/// A worked example: definitions (`C = ...`), then calls and what they answer, and what was announced.
fn work_through(bench: &mut Bench, events: &mut PubSub<'_>, example: &str) -> usize {
    run(&mut bench.connection, &["FLUSHALL"]).unwrap();
    let is_definition = |line: &&str| line.split_once(" = ").is_some_and(|(name, _)| name.len() == 1);
    let definitions: Vec<(&str, &str)> =
        example.lines().take_while(is_definition).filter_map(|line| line.split_once(" = ")).collect();
    // A word may stand for a text that has spaces, and a line feed.
    let meant = |word: &str| {
        let defined = definitions.iter().find(|(name, _)| *name == word);
        defined.map_or(word.to_owned(), |(_, text)| text.replace("\\n", "\n"))
    };
    let config = meant("C");
    let mut keys = vec!["{cb:billing}".to_owned(), "{cb:billing}:f".to_owned(), "{cb:billing}:p".to_owned()];
    if config.starts_with("rate") {
        keys.push("{cb:billing}:r".to_owned());
    }
    if !config.starts_with("rolling") && !config.ends_with(" 1") {
        keys.push("{cb:billing}:i".to_owned());
    }
    let mut worked = 0;
    for line in example.lines().skip(definitions.len()) {
        let (call, reply) = line.split_once("->").map(|(call, reply)| (call.trim(), reply.trim())).unwrap();
        let words: Vec<String> = call.split_whitespace().map(meant).collect();
        let reply: Vec<String> = reply.split(' ').map(meant).collect();
        let answered = if words[0] == CHANNEL {
            events.get_message().unwrap().get_payload::<String>().unwrap()
        } else {
            let mut command = redis::Cmd::new();
            if let Some(script) = SCRIPTS.iter().find(|script| script.name == words[0]) {
                let keys = if script.name == "admit" { &keys[..1] } else { &keys[..] };
                command.arg("EVAL").arg(script.text).arg(keys.len()).arg(keys).arg(&words[1..]);
            } else {
                command.arg(&words);
            }
            let answered: Vec<Option<String>> = command.query(&mut bench.connection).unwrap();
            answered.into_iter().map(|field| field.unwrap_or("nil".to_owned())).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(answered, reply.join(" "), "{line}");
        worked += 1;
    }
    worked
}

#[test]
fn the_readmes_examples_are_what_the_scripts_answer() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../lua/README.md")).unwrap();
    let blocks = readme.split("```text\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0));
    let mut bench = Bench::start().unwrap();
    let mut listening = bench.server.connect().unwrap();
    let mut events = listening.as_pubsub();
    events.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    events.subscribe(CHANNEL).unwrap();
    let worked: Vec<usize> = blocks
        .filter(|block| block.starts_with("C = "))
        .map(|block| work_through(&mut bench, &mut events, block))
        .collect();
    assert_eq!(worked, [8, 7, 6]);
}
