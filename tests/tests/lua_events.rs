//! Transitions are announced: each that callers see, once, to whoever listens on any node; and where nothing may be published
//! nothing else is different.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use redis::{Connection, PubSub};
use switchgear_core::{Outcome, TripOn};
use switchgear_tests::lua::{Call, Rest, Wire, call_id};
use switchgear_tests::servers::{Cluster, Server, run};
use switchgear_tests::situations::{Bench, CHANNEL, Counting, ORIGIN, Prepared, START, Situation, config};

/// What ends a listening: published where the scripts publish, it arrives after all that they did.
const END: &str = "no more";

/// Subscribes to everything: what goes to another channel is to be noticed too.
fn listen(connection: &mut Connection) -> PubSub<'_> {
    let mut events = connection.as_pubsub();
    // What never comes is an error instead of a wait without end.
    events.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    events.psubscribe("*").unwrap();
    events
}

fn heard(events: &mut PubSub<'_>) -> Vec<String> {
    let mut heard = Vec::new();
    loop {
        let message = events.get_message().unwrap();
        let text: String = message.get_payload().unwrap();
        if text == END {
            return heard;
        }
        assert_eq!(message.get_channel_name(), CHANNEL);
        heard.push(text);
    }
}

/// The announcement that belongs to a reply, from its integers alone.
fn announcement(reply: &[i64], now: u64) -> Option<String> {
    let &[_, state, mode, epoch, _, from, reason, failures, open_ms, _] = reply else { return None };
    let seen = match mode {
        1 => 1,
        2 => 0,
        _ => state,
    };
    (from >= 0).then(|| format!("1 {from} {seen} {reason} {epoch} {now} {failures} {open_ms} {ORIGIN}"))
}

/// The same circuit by calls that announce, whatever its own do.
fn announcing(wire: &Wire) -> Wire {
    wire.saying(Rest { channel: CHANNEL.into(), origin: ORIGIN.into(), ..wire.rest.clone().unwrap_or_default() })
}

#[test]
fn each_transition_that_callers_see_is_announced_once_and_nothing_else_is() {
    let mut bench = Bench::start().unwrap();
    let mut listening = bench.server.connect().unwrap();
    let mut events = listen(&mut listening);
    let (mut announced, mut silent) = (0, 0);
    for counting in Counting::ALL {
        for situation in Situation::ALL {
            let calls = bench.prepare(situation, counting).unwrap().every_call().len();
            for number in 0..calls {
                let circuit = bench.prepare(situation, counting).unwrap();
                let (name, call) = circuit.every_call().swap_remove(number);
                run(&mut bench.connection, &["PUBLISH", CHANNEL, END]).unwrap();
                heard(&mut events);

                let reply = bench.send(&call).unwrap();
                run(&mut bench.connection, &["PUBLISH", CHANNEL, END]).unwrap();
                let expected = announcement(&reply, circuit.now).filter(|_| counting.announces);
                announced += u32::from(expected.is_some());
                silent += u32::from(expected.is_none());
                let place = format!("{name} in {situation:?} by {counting:?}");
                assert_eq!(heard(&mut events), Vec::from_iter(expected), "{place}");
            }
        }
    }
    assert!(announced > 100 && silent > 500, "{announced} announced, {silent} not");
}

#[test]
fn an_empty_channel_is_none() {
    let mut bench = Bench::start().unwrap();
    let mut listening = bench.server.connect().unwrap();
    let mut events = listen(&mut listening);
    let wire = Wire::new("quiet", &config(TripOn::Rolling)).saying(Rest::default());
    for operation in ["trip", "reset", "force-open", "disable"] {
        assert!(bench.reply(&wire.control(START, operation, None)).unwrap().from.is_some(), "{operation}");
    }
    run(&mut bench.connection, &["PUBLISH", CHANNEL, END]).unwrap();
    assert_eq!(heard(&mut events), [""; 0]);
}

/// What `limited` answers and stores, call by call, is what a server that publishes does.
fn assert_publishing_changes_nothing(limited: &mut Bench, user: &mut Connection) {
    let mut free = Bench::start().unwrap();
    let mut transitions = 0;
    for counting in Counting::ALL.into_iter().filter(|counting| counting.announces) {
        for situation in Situation::ALL {
            let calls = free.prepare(situation, counting).unwrap().every_call().len();
            limited.prepare(situation, counting).unwrap();
            for number in 0..calls {
                let (here, there) =
                    (free.prepare(situation, counting).unwrap(), limited.prepare(situation, counting).unwrap());
                let call = |circuit: &Prepared| -> Call { circuit.every_call().swap_remove(number).1 };
                let place = format!("{} in {situation:?} by {counting:?}", here.every_call()[number].0);
                let answer = free.send(&call(&here)).unwrap();
                assert_eq!(call(&there).send(user).unwrap(), answer, "{place}");
                assert_eq!(limited.values(&there.wire).unwrap(), free.values(&here.wire).unwrap(), "{place}");
                transitions += u32::from(announcement(&answer, here.now).is_some());
            }
        }
    }
    assert!(transitions > 100, "{transitions}");
}

#[test]
fn a_server_that_does_not_know_publish_does_all_the_rest() {
    let server = Server::start_with(&["--rename-command", "PUBLISH", ""]).unwrap();
    let mut limited = Bench::on(server).unwrap();
    let refused = run(&mut limited.connection, &["PUBLISH", CHANNEL, END]).unwrap_err();
    assert!(refused.to_string().contains("unknown command"), "{refused}");
    let mut user = limited.server.connect().unwrap();
    assert_publishing_changes_nothing(&mut limited, &mut user);
}

#[test]
fn a_user_who_may_not_publish_or_not_there_does_all_the_rest() {
    for rights in [&["+@all", "-publish", "allchannels"], &["+@all", "resetchannels", "&cb:others"]] {
        let mut limited = Bench::start().unwrap();
        let words = ["ACL", "SETUSER", "breaker", "on", "nopass", "allkeys"];
        run(&mut limited.connection, &[&words[..], rights].concat()).unwrap();
        let mut user = limited.server.connect().unwrap();
        run(&mut user, &["AUTH", "breaker", "no password"]).unwrap();
        let refused = run(&mut user, &["PUBLISH", CHANNEL, END]).unwrap_err();
        assert_eq!(refused.code(), Some("NOPERM"), "{rights:?}");
        assert_publishing_changes_nothing(&mut limited, &mut user);
    }
}

#[test]
fn a_full_server_announces() {
    let mut bench = Bench::start().unwrap();
    let mut listening = bench.server.connect().unwrap();
    let mut events = listen(&mut listening);
    let circuit = bench.prepare(Situation::Counted, TripOn::Rolling).unwrap();
    let failure = announcing(&circuit.wire).settle_without(Outcome::Failure, START, &circuit.draw_id());
    bench.server.fill_up().unwrap();
    let reply = bench.send(&failure).unwrap();
    bench.server.make_room().unwrap();
    run(&mut bench.connection, &["PUBLISH", CHANNEL, END]).unwrap();
    assert_eq!(heard(&mut events), Vec::from_iter(announcement(&reply, START)));
}

#[test]
fn whoever_listens_on_a_replica_hears_it() {
    let primary = Server::start().unwrap();
    let replica = Server::replica_of(&primary).unwrap();
    let mut listening = replica.connect().unwrap();
    let mut events = listen(&mut listening);
    let mut bench = Bench::on(primary).unwrap();
    let wire = announcing(&Wire::new("replicated", &config(TripOn::Rolling)));
    let reply = bench.send(&wire.control(START, "trip", None)).unwrap();
    run(&mut bench.connection, &["PUBLISH", CHANNEL, END]).unwrap();
    assert_eq!(heard(&mut events), Vec::from_iter(announcement(&reply, START)));
}

#[test]
fn whoever_listens_on_any_node_of_a_cluster_hears_it() {
    let cluster = Cluster::start().unwrap();
    let mut connections: Vec<Connection> = cluster.nodes().iter().map(|node| node.connect().unwrap()).collect();
    let mut events: Vec<PubSub<'_>> = connections.iter_mut().map(listen).collect();
    for circuit in ["one", "two", "three", "four", "five"] {
        let wire = announcing(&Wire::new(circuit, &config(TripOn::Rate)));
        let owner = cluster.owner_of(&wire.keys[0]).unwrap();
        let mut connection = cluster.nodes()[owner].connect().unwrap();
        wire.control(START, "trip", None).send(&mut connection).unwrap();
        let half_open = wire.can_request(START + 1_000, &call_id(1)).send(&mut connection).unwrap();
        run(&mut connection, &["PUBLISH", CHANNEL, END]).unwrap();
        for events in &mut events {
            let heard = heard(events);
            assert_eq!(heard.len(), 2, "{circuit}: {heard:?}");
            assert_eq!(heard.last().cloned(), announcement(&half_open, START + 1_000), "{circuit}");
        }
    }
}
