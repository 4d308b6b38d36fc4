//! Circuits on a real server, brought by the scripts themselves into every situation that a call can meet.

use std::cell::Cell;

use redis::{Connection, RedisResult};
use switchgear_core::{Config, Millis, Naming, Outcome, Snapshot, TripOn, Value};

use crate::lua::{Call, Fields, LuaPermit, PermitKind, Reading, Reply, Wire, call_id, read_snapshot};
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

/// Every way to count.
pub const TRIP_ON: [TripOn; 3] = [TripOn::Rolling, TripOn::Consecutive, TripOn::Rate];

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
    pub fn prepare(&mut self, situation: Situation, trip_on: TripOn) -> Result<Prepared, Failure> {
        self.circuits += 1;
        let name = format!("circuit {}", self.circuits);
        self.prepare_named(&name, situation, trip_on)
    }

    /// A circuit of this name in this situation.
    ///
    /// # Errors
    /// The server does not answer as it should.
    pub fn prepare_named(&mut self, name: &str, situation: Situation, trip_on: TripOn) -> Result<Prepared, Failure> {
        let permit = LuaPermit { id: call_id(1), epoch: 0, kind: PermitKind::Closed };
        let wire = Wire::new(name, &config(trip_on));
        let mut circuit = Prepared { wire, now: START, permit, last_id: Cell::new(1) };
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
        for _ in 0..times {
            let id = circuit.draw_id();
            self.reply(&circuit.wire.settle_without(Outcome::Failure, circuit.now, &id))?;
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

    /// Every call with a configuration that an instance can make now, by name; the others are readings.
    pub fn every_call(&self) -> Vec<(&'static str, Call)> {
        let fresh = call_id(self.last_id.get() + 1);
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
        let stale = LuaPermit { epoch: self.permit.epoch + 1, ..self.permit.clone() };
        for (outcome, with, without, late) in settlements {
            calls.push((with, self.wire.settle(outcome, self.now, &self.permit)));
            calls.push((without, self.wire.settle_without(outcome, self.now, &fresh)));
            calls.push((late, self.wire.settle(outcome, self.now, &stale)));
        }
        calls
    }
}
