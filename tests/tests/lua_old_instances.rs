//! A fleet moved over from NestJS RedisX 1.x instance by instance: what an old instance writes (`state`, `opened_at`,
//! `ho_succ`, failures and probes; nothing else), this one understands, and the other way round.

use redis::Connection;
use switchgear_core::{Outcome, Reason, Settlement, State, TripOn};
use switchgear_tests::lua::{PermitKind, Reading};
use switchgear_tests::servers::{ask, run};
use switchgear_tests::situations::{Bench, MAX_CALLS, OPEN_MS, Prepared, START, Situation};

/// What an old instance does, in the commands that reach the store.
struct Old<'a> {
    circuit: &'a Prepared,
    store: &'a mut Connection,
}

impl Old<'_> {
    fn write(&mut self, commands: &[&[&str]]) {
        for words in commands {
            assert!(run(self.store, words).is_ok(), "{words:?}");
        }
    }

    /// Fails in CLOSED at the threshold, or in HALF_OPEN.
    fn trips(&mut self, at: u64) {
        let [hash, failures, probes] = self.keys();
        let at = at.to_string();
        self.write(&[
            &["HSET", hash, "state", "open", "opened_at", &at, "ho_succ", "0"],
            &["DEL", failures],
            &["DEL", probes],
            &["PEXPIRE", hash, "80000"],
        ]);
    }

    /// Finds an opening that is over.
    fn begins_half_open(&mut self, at: u64) {
        let [hash, _, probes] = self.keys();
        let at = at.to_string();
        self.write(&[
            &["HSET", hash, "state", "half-open", "ho_succ", "0"],
            &["DEL", probes],
            &["ZADD", probes, &at, &format!("{at}-k3j9x")],
            &["PEXPIRE", probes, "80000"],
            &["PEXPIRE", hash, "80000"],
        ]);
    }

    /// Has the last success it needs.
    fn closes(&mut self) {
        let [hash, failures, probes] = self.keys();
        self.write(&[&["DEL", hash], &["DEL", failures], &["DEL", probes]]);
    }

    /// Fails in CLOSED.
    fn fails(&mut self, at: u64, member: &str) {
        let [_, failures, _] = self.keys();
        self.write(&[&["ZADD", failures, &at.to_string(), member], &["PEXPIRE", failures, "80000"]]);
    }

    fn keys<'k>(&self) -> [&'k str; 3]
    where
        Self: 'k,
    {
        let keys: [&str; 3] = [&self.circuit.wire.keys[0], &self.circuit.wire.keys[1], &self.circuit.wire.keys[2]];
        keys
    }
}

#[test]
fn an_opening_that_says_no_length_lasts_as_long_as_ours() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::Fresh, TripOn::Rolling).unwrap();
    Old { circuit: &circuit, store: &mut bench.connection }.trips(START);

    // The reading does not say how long that is; can_request has the configuration.
    assert_eq!(bench.reading(&circuit.wire, START).unwrap(), Reading::AskOn);
    let id = circuit.draw_id();
    let refused = bench.reply(&circuit.wire.can_request(START + OPEN_MS - 1, &id)).unwrap();
    assert_eq!((refused.status, refused.wait, refused.open_ms), (0, Some(1), Some(OPEN_MS)));
    let snapshot = bench.snapshot(&circuit.wire, START + 1).unwrap();
    assert_eq!((snapshot.state, snapshot.opened_at), (State::Open, Some(START)));
    assert_eq!((snapshot.remaining_open_ms, snapshot.epoch), (OPEN_MS - 1, 0));

    let probe = bench.reply(&circuit.wire.can_request(START + OPEN_MS, &id)).unwrap();
    assert_eq!(
        (probe.granted(), probe.reason, probe.epoch),
        (Some(PermitKind::Probe), Some(Reason::Cooldown), START + OPEN_MS)
    );
}

#[test]
fn a_half_open_period_that_says_nothing_of_itself_runs_by_our_configuration() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::Fresh, TripOn::Rolling).unwrap();
    let mut old = Old { circuit: &circuit, store: &mut bench.connection };
    old.trips(START);
    old.begins_half_open(START + OPEN_MS);

    let now = START + OPEN_MS + 1;
    let grants: Vec<_> = (0..MAX_CALLS)
        .map(|_| bench.reply(&circuit.wire.can_request(now, &circuit.draw_id())).unwrap())
        .map(|reply| (reply.granted(), reply.mismatch))
        .collect();
    assert_eq!(grants, [(Some(PermitKind::Probe), false), (None, false)], "the old one's probe has a slot as well");

    let failure = circuit.wire.settle_without(Outcome::Failure, now, &circuit.draw_id());
    let tripped = bench.reply(&failure).unwrap();
    assert_eq!((tripped.from, tripped.reason), (Some(State::HalfOpen), Some(Reason::ProbeFailed)));
}

/// Old transitions begin no epoch, so it is the kind that tells a call admitted before from a probe.
#[test]
fn a_call_from_before_an_old_instances_trip_decides_nothing_in_its_half_open_period() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::Fresh, TripOn::Rolling).unwrap();
    assert_eq!((circuit.permit.kind, circuit.permit.epoch), (PermitKind::Closed, 0));
    let mut old = Old { circuit: &circuit, store: &mut bench.connection };
    old.trips(START);
    old.begins_half_open(START + OPEN_MS);
    for outcome in [Outcome::Success, Outcome::Failure, Outcome::Release] {
        let late = bench.reply(&circuit.wire.settle(outcome, START + OPEN_MS, &circuit.permit)).unwrap();
        assert_eq!((late.settlement(), late.state, late.epoch), (Settlement::Stale, State::HalfOpen, 0));
    }
    assert_eq!(bench.snapshot(&circuit.wire, START + OPEN_MS).unwrap().half_open_in_flight, 1);
}

#[test]
fn old_and_new_failures_count_together() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::Fresh, TripOn::Rolling).unwrap();
    let mut old = Old { circuit: &circuit, store: &mut bench.connection };
    old.fails(START, "1700000000000-x7f2");
    old.fails(START, "1700000000000-b81a");
    let failure = circuit.wire.settle_without(Outcome::Failure, START, &circuit.draw_id());
    let tripped = bench.reply(&failure).unwrap();
    assert_eq!((tripped.reason, tripped.failures), (Some(Reason::Threshold), 3));
}

#[test]
fn an_old_instance_that_closes_forgets_the_epoch_and_later_ones_are_still_later() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::HalfOpen, TripOn::Rolling).unwrap();
    Old { circuit: &circuit, store: &mut bench.connection }.closes();

    let late = bench.reply(&circuit.wire.settle(Outcome::Failure, circuit.now, &circuit.permit)).unwrap();
    assert_eq!((late.settlement(), late.state, late.epoch), (Settlement::Stale, State::Closed, 0));
    let again = bench.reply(&circuit.wire.control(circuit.now, "trip", None)).unwrap();
    assert!(again.epoch > circuit.permit.epoch, "{} after {}", again.epoch, circuit.permit.epoch);
}

#[test]
fn what_an_old_instance_reads_is_where_it_expects_it() {
    let mut bench = Bench::start().unwrap();
    let circuit = bench.prepare(Situation::Elapsed, TripOn::Rolling).unwrap();
    let [hash, failures, probes] = [&circuit.wire.keys[0], &circuit.wire.keys[1], &circuit.wire.keys[2]];
    let read: Vec<String> = ask(&mut bench.connection, &["HMGET", hash, "state", "opened_at"]).unwrap();
    assert_eq!(read, ["open", &START.to_string()]);

    let id = circuit.draw_id();
    bench.reply(&circuit.wire.can_request(circuit.now, &id)).unwrap();
    let read: Vec<String> = ask(&mut bench.connection, &["HMGET", hash, "state", "ho_succ"]).unwrap();
    assert_eq!(read, ["half-open", "0"]);
    let read: Vec<String> = ask(&mut bench.connection, &["ZRANGE", probes, "0", "-1", "WITHSCORES"]).unwrap();
    assert_eq!(read, [id, circuit.now.to_string()]);

    bench.reply(&circuit.wire.control(circuit.now, "reset", None)).unwrap();
    let state: Option<String> = ask(&mut bench.connection, &["HGET", hash, "state"]).unwrap();
    assert_eq!(state, None, "closed is the absence of a state");
    let id = circuit.draw_id();
    bench.reply(&circuit.wire.settle_without(Outcome::Failure, circuit.now, &id)).unwrap();
    let read: Vec<String> = ask(&mut bench.connection, &["ZRANGE", failures, "0", "-1", "WITHSCORES"]).unwrap();
    assert_eq!(read, [id, circuit.now.to_string()]);
}
