//! Circuits on a real server, brought by the scripts themselves into every situation that a call can meet.

use std::cell::Cell;

use redis::{Connection, RedisResult};
use switchgear_core::{Config, Millis, Naming, Outcome, Quorum, Snapshot, TripOn, Value};

use crate::lua::{Call, Fields, LuaPermit, PermitKind, Reading, Reply, Rest, Wire, call_id, read_snapshot};
use crate::servers::{Failure, Server, ask};

/// When every situation begins.
pub const START: u64 = 1_700_000_000_000;
/// How long its openings last.
pub const OPEN_MS: u64 = 1_000;
/// How long a probe has.
pub const PROBE_TIMEOUT_MS: u64 = 5_000;
/// How many probes may be in flight.
pub const MAX_CALLS: u64 = 2;
/// How many failures trip.
pub const THRESHOLD: u64 = 3;

/// Where what is announced goes to.
pub const CHANNEL: &str = "cb:events";
/// Who announces.
pub const ORIGIN: &str = "5317c49ea7000000 a circuit\npod 1: of a text, any text";
/// The instances: the first of them makes the calls.
pub const INSTANCES: [&str; 2] = ["pod:1", "pod:2"];

/// Every way to count with a quorum of one.
pub const TRIP_ON: [TripOn; 3] = [TripOn::Rolling, TripOn::Consecutive, TripOn::Rate];

/// How a circuit is called and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// What trips.
    pub trip_on: TripOn,
    /// Of how many instances.
    pub quorum: u64,
    /// Whether the calls have all their arguments and announce; otherwise they leave out what may be left out.
    pub announces: bool,
}

impl Counting {
    /// Every way to count, each with a quorum of one, called by hand and as engines do, and with a quorum of two.
    pub const ALL: [Self; 9] = [
        Self::by_hand(TripOn::Rolling),
        Self::by_hand(TripOn::Consecutive),
        Self::by_hand(TripOn::Rate),
        Self::announced(TripOn::Rolling, 1),
        Self::announced(TripOn::Consecutive, 1),
        Self::announced(TripOn::Rate, 1),
        Self::announced(TripOn::Rolling, 2),
        Self::announced(TripOn::Consecutive, 2),
        Self::announced(TripOn::Rate, 2),
    ];

    /// With a quorum of one and without what may be left out.
    pub const fn by_hand(trip_on: TripOn) -> Self {
        Self { trip_on, quorum: 1, announces: false }
    }

    /// With all arguments.
    pub const fn announced(trip_on: TripOn, quorum: u64) -> Self {
        Self { trip_on, quorum, announces: true }
    }

    /// Whether failures are named by the slots of rings.
    pub fn has_rings(self) -> bool {
        self.quorum > 1 && self.trip_on == TripOn::Rolling
    }

    fn wire(self, name: &str) -> Wire {
        let config = config(self.trip_on);
        let wire = Wire::with_quorum(name, &config, quorum(self.quorum, &config));
        if !self.announces {
            return wire;
        }
        wire.saying(Rest { channel: CHANNEL.into(), origin: ORIGIN.into(), instance: INSTANCES[0].into() })
    }
}

impl From<TripOn> for Counting {
    fn from(trip_on: TripOn) -> Self {
        Self::by_hand(trip_on)
    }
}

/// A quorum of that many.
///
/// # Panics
/// It is none beside this configuration.
pub fn quorum(number: u64, config: &Config) -> Quorum {
    match Quorum::new(Naming::Camel, Value::Number(number as f64), config) {
        Ok(quorum) => quorum,
        #[expect(clippy::panic, reason = "a test that writes down a wrong quorum is to be mended, not handled")]
        Err(error) => panic!("{error}"),
    }
}

/// The configuration of the situations.
pub fn config(trip_on: TripOn) -> Config {
    let mut fields = vec![
        ("tripOn", Value::Text(trip_on.as_str())),
        ("openDurationMs", Value::Number(OPEN_MS as f64)),
        ("openBackoff", Value::Number(2.0)),
        ("halfOpenMaxCalls", Value::Number(MAX_CALLS as f64)),
        ("successThreshold", Value::Number(3.0)),
        ("probeTimeoutMs", Value::Number(PROBE_TIMEOUT_MS as f64)),
    ];
    match trip_on {
        TripOn::Rolling => fields.push(("failureThreshold", Value::Number(THRESHOLD as f64))),
        TripOn::Consecutive => fields.push(("failureThreshold", Value::Number(THRESHOLD as f64))),
        TripOn::Rate => fields.push(("minimumCalls", Value::Number(THRESHOLD as f64))),
    }
    build(&fields)
}

/// A configuration of these fields.
///
/// # Panics
/// The fields make none.
pub fn build(fields: &[(&str, Value<'_>)]) -> Config {
    match Config::build(Naming::Camel, &[fields]) {
        Ok(config) => config,
        #[expect(clippy::panic, reason = "a test that writes down a wrong configuration is to be mended, not handled")]
        Err(error) => panic!("{error}"),
    }
}

/// What a call can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Situation {
    /// No key exists.
    Fresh,
    /// CLOSED, two failures counted; one more trips.
    Counted,
    /// OPEN, for a while.
    Open,
    /// OPEN, started further ahead of now than is believed.
    OpenAhead,
    /// OPEN, and the next request is a probe.
    Elapsed,
    /// HALF_OPEN: a success counted, one probe in flight, one slot free.
    HalfOpen,
    /// HALF_OPEN: no slot free.
    HalfOpenFull,
    /// Forced open while two failures were counted.
    ForcedOverClosed,
    /// Forced open while HALF_OPEN.
    ForcedOverHalfOpen,
    /// Disabled while OPEN.
    DisabledOverOpen,
    /// Disabled while HALF_OPEN.
    DisabledOverHalfOpen,
}

impl Situation {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Fresh,
        Self::Counted,
        Self::Open,
        Self::OpenAhead,
        Self::Elapsed,
        Self::HalfOpen,
        Self::HalfOpenFull,
        Self::ForcedOverClosed,
        Self::ForcedOverHalfOpen,
        Self::DisabledOverOpen,
        Self::DisabledOverHalfOpen,
    ];

    /// Whether an operator has decided.
    pub fn is_manual(self) -> bool {
        matches!(
            self,
            Self::ForcedOverClosed | Self::ForcedOverHalfOpen | Self::DisabledOverOpen | Self::DisabledOverHalfOpen
        )
    }
}

/// A server, and circuits on it.
pub struct Bench {
    /// The server.
    pub server: Server,
    /// A connection to it.
    pub connection: Connection,
    circuits: u64,
}

/// One circuit in its situation.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The circuit.
    pub wire: Wire,
    /// The time of the next call.
    pub now: u64,
    /// The permit that fits the situation best: a probe's if there is one in flight, else one from before any trip.
    pub permit: LuaPermit,
    counting: Counting,
    last_id: Cell<u64>,
}

impl Bench {
    /// A fresh server.
    ///
    /// # Errors
    /// It does not start.
    pub fn start() -> Result<Self, Failure> {
        Self::on(Server::start()?)
    }

    /// A bench on this server.
    ///
    /// # Errors
    /// It does not answer.
    pub fn on(server: Server) -> Result<Self, Failure> {
        let connection = server.connect()?;
        Ok(Self { server, connection, circuits: 0 })
    }

    /// Sends a call.
    ///
    /// # Errors
    /// An error reply, or none.
    pub fn send(&mut self, call: &Call) -> RedisResult<Vec<i64>> {
        call.send(&mut self.connection)
    }

    /// Sends a call and reads its reply.
    ///
    /// # Errors
    /// An error reply, none, or one that the contract does not know.
    pub fn reply(&mut self, call: &Call) -> Result<Reply, Failure> {
        Ok(Reply::read(&self.send(call)?)?)
    }

    /// What the engine makes of a plain read at `now`.
    ///
    /// # Errors
    /// An error reply, none, or fields that the engine makes nothing of.
    pub fn reading(&mut self, wire: &Wire, now: u64) -> Result<Reading, Failure> {
        let fields: Fields = wire.reading().query(&mut self.connection)?;
        Ok(Reading::decide(Millis::new(now)?, &fields)?)
    }

    /// The circuit as it is at `now`.
    ///
    /// # Errors
    /// An error reply, none, or one that the contract does not know.
    pub fn snapshot(&mut self, wire: &Wire, now: u64) -> Result<Snapshot, Failure> {
        Ok(read_snapshot(&self.send(&wire.get_state(now))?)?)
    }

    /// A fresh circuit in this situation.
    ///
    /// # Errors
    /// The server does not answer as it should.
    pub fn prepare(&mut self, situation: Situation, counting: impl Into<Counting>) -> Result<Prepared, Failure> {
        self.circuits += 1;
        let name = format!("circuit {}", self.circuits);
        self.prepare_named(&name, situation, counting.into())
    }

    /// A circuit of this name in this situation.
    ///
    /// # Errors
    /// The server does not answer as it should.
    pub fn prepare_named(
        &mut self,
        name: &str,
        situation: Situation,
        counting: impl Into<Counting>,
    ) -> Result<Prepared, Failure> {
        let counting = counting.into();
        let permit = LuaPermit { id: call_id(1), epoch: 0, kind: PermitKind::Closed };
        let wire = counting.wire(name);
        let mut circuit = Prepared { wire, now: START, permit, counting, last_id: Cell::new(1) };
        match situation {
            Situation::Fresh => {}
            Situation::Counted | Situation::ForcedOverClosed => self.fail(&circuit, THRESHOLD - 1)?,
            Situation::Open | Situation::DisabledOverOpen => {
                self.fail(&circuit, THRESHOLD)?;
                circuit.now += OPEN_MS / 2;
            }
            Situation::OpenAhead => {
                self.fail(&circuit, THRESHOLD)?;
                circuit.now -= 60_001;
            }
            Situation::Elapsed => {
                self.fail(&circuit, THRESHOLD)?;
                circuit.now += OPEN_MS;
            }
            Situation::HalfOpen | Situation::ForcedOverHalfOpen | Situation::DisabledOverHalfOpen => {
                self.half_open(&mut circuit)?;
            }
            Situation::HalfOpenFull => {
                self.half_open(&mut circuit)?;
                self.probe(&mut circuit)?;
            }
        }
        match situation {
            Situation::ForcedOverClosed | Situation::ForcedOverHalfOpen => {
                self.reply(&circuit.wire.control(circuit.now, "force-open", None))?;
            }
            Situation::DisabledOverOpen | Situation::DisabledOverHalfOpen => {
                self.reply(&circuit.wire.control(circuit.now, "disable", None))?;
            }
            _ => {}
        }
        Ok(circuit)
    }

    /// The stored value and the moment of expiry (-1 none, -2 no key) of each of the circuit's keys.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn stored(&mut self, wire: &Wire) -> RedisResult<Vec<(Option<Vec<u8>>, i64)>> {
        let mut stored = Vec::new();
        for key in &wire.keys {
            stored
                .push((ask(&mut self.connection, &["DUMP", key])?, ask(&mut self.connection, &["PEXPIRETIME", key])?));
        }
        Ok(stored)
    }

    /// Only the values of [`stored`](Self::stored), and whether they expire: what can be compared across servers.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn values(&mut self, wire: &Wire) -> RedisResult<Vec<(Option<Vec<u8>>, bool)>> {
        let mut values = Vec::new();
        for (key, lifetime) in wire.keys.iter().zip(self.lifetimes(wire)?) {
            values.push((ask(&mut self.connection, &["DUMP", key])?, lifetime >= 0));
        }
        Ok(values)
    }

    /// Milliseconds that each of the circuit's keys has left: -1 no end, -2 no key.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn lifetimes(&mut self, wire: &Wire) -> RedisResult<Vec<i64>> {
        wire.keys.iter().map(|key| ask(&mut self.connection, &["PTTL", key])).collect()
    }

    /// How many commands that can write the server has run, whether or not they changed anything.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn writing_commands(&mut self) -> RedisResult<u64> {
        const WRITING: [&str; 12] = [
            "del",
            "hdel",
            "hincrby",
            "hset",
            "persist",
            "pexpire",
            "publish",
            "set",
            "zadd",
            "zrem",
            "zremrangebyrank",
            "zremrangebyscore",
        ];
        let stats: String = ask(&mut self.connection, &["INFO", "commandstats"])?;
        let calls = stats.lines().filter_map(|line| {
            let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            WRITING.contains(&command).then_some(())?;
            rest.split(',').next()?.parse::<u64>().ok()
        });
        Ok(calls.sum())
    }

    fn fail(&mut self, circuit: &Prepared, times: u64) -> Result<(), Failure> {
        for (time, instance) in (0..times).zip(INSTANCES.iter().cycle()) {
            // In turn, so that each of them has used half of its slots.
            let id = circuit.failure_id(instance, time / INSTANCES.len() as u64);
            let wire =
                if circuit.counting.announces { circuit.wire.of_instance(instance) } else { circuit.wire.clone() };
            self.reply(&wire.settle_without(Outcome::Failure, circuit.now, &id))?;
        }
        Ok(())
    }

    fn half_open(&mut self, circuit: &mut Prepared) -> Result<(), Failure> {
        self.fail(circuit, THRESHOLD)?;
        circuit.now += OPEN_MS;
        let first = self.probe(circuit)?;
        circuit.permit = self.probe(circuit)?;
        self.reply(&circuit.wire.settle(Outcome::Success, circuit.now, &first))?;
        Ok(())
    }

    fn probe(&mut self, circuit: &mut Prepared) -> Result<LuaPermit, Failure> {
        circuit.now += 1;
        let id = circuit.draw_id();
        let reply = self.reply(&circuit.wire.can_request(circuit.now, &id))?;
        let kind = reply.granted().ok_or_else(|| format!("no slot for a probe: {reply:?}"))?;
        Ok(LuaPermit { id, epoch: reply.epoch, kind })
    }
}

impl Prepared {
    /// A call id that this circuit has not seen.
    pub fn draw_id(&self) -> String {
        self.last_id.set(self.last_id.get() + 1);
        call_id(self.last_id.get())
    }

    /// The id of a failure of a call that was admitted while closed: a new call id, or this slot of the instance's ring.
    pub fn failure_id(&self, instance: &str, slot: u64) -> String {
        if self.counting.has_rings() { format!("{instance}:{slot}") } else { self.draw_id() }
    }

    /// Every call with a configuration that an instance can make now, by name; the others are readings.
    pub fn every_call(&self) -> Vec<(&'static str, Call)> {
        let fresh = call_id(self.last_id.get() + 1);
        // The slot that is still free when two failures were counted: one more trips.
        let failing = if self.counting.has_rings() { format!("{}:1", INSTANCES[0]) } else { fresh.clone() };
        let mut calls = vec![
            ("can_request", self.wire.can_request(self.now, &fresh)),
            ("get_state", self.wire.get_state(self.now)),
            ("give back a slot", self.wire.give_back(self.now, &self.permit.id)),
            ("give back no slot", self.wire.give_back(self.now, &fresh)),
            ("reset", self.wire.control(self.now, "reset", None)),
            ("trip", self.wire.control(self.now, "trip", None)),
            ("trip for a while", self.wire.control(self.now, "trip", Some(50))),
            ("force-open", self.wire.control(self.now, "force-open", None)),
            ("disable", self.wire.control(self.now, "disable", None)),
        ];
        let settlements = [
            (Outcome::Success, "success", "success without permit", "stale success"),
            (Outcome::Failure, "failure", "failure without permit", "stale failure"),
            (Outcome::Release, "release", "release without permit", "stale release"),
        ];
        for (outcome, with, without, late) in settlements {
            let id = if outcome == Outcome::Failure { &failing } else { &fresh };
            let permit = self.settling(outcome);
            let stale = LuaPermit { epoch: permit.epoch + 1, ..permit.clone() };
            calls.push((with, self.wire.settle(outcome, self.now, &permit)));
            calls.push((without, self.wire.settle_without(outcome, self.now, id)));
            calls.push((late, self.wire.settle(outcome, self.now, &stale)));
        }
        let many = |outcome| self.wire.settle_many(outcome, self.now, &self.settling(outcome), Some(2));
        calls.push(("two successes", many(Outcome::Success)));
        calls.push(("failure after two successes", many(Outcome::Failure)));
        calls
    }

    /// The permit to settle with so: under rings a failure of a closed circuit has no call id.
    fn settling(&self, outcome: Outcome) -> LuaPermit {
        let mut permit = self.permit.clone();
        if outcome == Outcome::Failure && permit.kind == PermitKind::Closed && self.counting.has_rings() {
            permit.id = format!("{}:1", INSTANCES[0]);
        }
        permit
    }
}
