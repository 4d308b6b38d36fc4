//! The Lua scripts on a real server: what a call looks like on the wire, and a circuit that answers as the core does.

use std::collections::BTreeMap;

use redis::{Connection, ConnectionLike, RedisResult};
pub use switchgear_core::shared::Script as ScriptId;
use switchgear_core::shared::{
    ADMISSION_FIELDS, Answer as EngineAnswer, Begun, Command, Node, PermitKind as EnginePermit, SharedCircuit,
    SharedOptions, Times,
};
use switchgear_core::{Config, Millis, Mode, Outcome, Quorum, Reason, Ring, Settlement, Snapshot, State, TripOn};
use switchgear_lua::{Keys, SCRIPTS, Script};

use crate::vectors::{Answer, Machine, Operation};

/// The lifetime of keys that the suites ask for: a day, as by default.
pub const IDLE_TTL_MS: u64 = 86_400_000;

/// The script as it is shipped.
pub fn shipped(id: ScriptId) -> &'static Script {
    &SCRIPTS[id as usize]
}

/// The script that settles a call which ended so.
fn settling(outcome: Outcome) -> ScriptId {
    match outcome {
        Outcome::Success => ScriptId::RecordSuccess,
        Outcome::Failure => ScriptId::RecordFailure,
        Outcome::Release => ScriptId::Release,
    }
}

/// One script call, ready to send.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which script.
    pub id: ScriptId,
    /// Its keys.
    pub keys: Vec<String>,
    /// Its arguments.
    pub args: Vec<String>,
}

impl Call {
    /// As EVALSHA.
    pub fn by_sha(&self) -> redis::Cmd {
        self.command("EVALSHA", shipped(self.id).sha1)
    }

    /// As EVAL, which also makes the script known to the server.
    pub fn by_text(&self) -> redis::Cmd {
        self.command("EVAL", shipped(self.id).text)
    }

    /// Sends it as hosts do: EVALSHA, and EVAL after NOSCRIPT.
    ///
    /// # Errors
    /// Any other error reply, and whatever keeps a reply from coming.
    pub fn send(&self, connection: &mut impl ConnectionLike) -> RedisResult<Vec<i64>> {
        match self.by_sha().query(connection) {
            Err(error) if error.code() == Some("NOSCRIPT") => self.by_text().query(connection),
            answered => answered,
        }
    }

    fn command(&self, name: &str, script: &str) -> redis::Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.args);
        command
    }
}

/// A circuit as its instances name and configure it: makes the calls of the wire contract.
#[derive(Clone, Debug)]
pub struct Wire {
    /// The keys, the circuit's hash first.
    pub keys: Vec<String>,
    /// The configuration argument.
    pub config: String,
    /// What stands behind the configuration; none leaves out what may be left out, as one does who calls by hand.
    pub rest: Option<Rest>,
}

/// What an instance says behind the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Where transitions are announced; empty: nowhere.
    pub channel: String,
    /// What the announcement says of its origin.
    pub origin: String,
    /// Whose failure this is.
    pub instance: String,
}

impl Wire {
    /// The circuit `name` under the default prefix, with a quorum of one.
    pub fn new(name: &str, config: &Config) -> Self {
        Self::with_quorum(name, config, Quorum::ONE)
    }

    /// The circuit `name` under the default prefix.
    pub fn with_quorum(name: &str, config: &Config, quorum: Quorum) -> Self {
        let base = format!("{{cb:{name}}}");
        let mut keys = vec![base.clone(), format!("{base}:f"), format!("{base}:p")];
        if config.trip_on() == TripOn::Rate {
            keys.push(format!("{base}:r"));
        }
        if quorum.get() > 1 && config.trip_on() != TripOn::Rolling {
            keys.push(format!("{base}:i"));
        }
        Self { keys, config: config_argument(config, IDLE_TTL_MS, quorum), rest: None }
    }

    /// The same circuit by calls that say this behind the configuration.
    #[must_use]
    pub fn saying(&self, rest: Rest) -> Self {
        Self { rest: Some(rest), ..self.clone() }
    }

    /// The same circuit by the calls of another instance.
    #[must_use]
    pub fn of_instance(&self, instance: &str) -> Self {
        self.saying(Rest { instance: instance.to_owned(), ..self.rest.clone().unwrap_or_default() })
    }

    /// `admit`, whose reply is that of [`reading`](Self::reading).
    pub fn admit(&self) -> Call {
        self.call(ScriptId::Admit, Vec::new())
    }

    /// The plain read that an admission begins with.
    pub fn reading(&self) -> redis::Cmd {
        let mut command = redis::cmd("HMGET");
        command.arg(self.keys.first()).arg(&ADMISSION_FIELDS);
        command
    }

    /// `can_request`.
    pub fn can_request(&self, now: u64, id: &str) -> Call {
        let args = vec![now.to_string(), id.to_owned(), self.config.clone()];
        self.call(ScriptId::CanRequest, [args, self.announcement()].concat())
    }

    /// A settlement with a permit.
    pub fn settle(&self, outcome: Outcome, now: u64, permit: &LuaPermit) -> Call {
        self.settle_many(outcome, now, permit, None)
    }

    /// A settlement with a permit that also tells of this many successes: of so many in all, or of so many before the failure.
    pub fn settle_many(&self, outcome: Outcome, now: u64, permit: &LuaPermit, successes: Option<u64>) -> Call {
        let kind = if permit.kind == PermitKind::Probe { "1" } else { "0" };
        self.settling(outcome, now, [&permit.id, &permit.epoch.to_string(), kind], successes)
    }

    /// A settlement without a permit; `id` only tells a command that comes twice from two commands.
    pub fn settle_without(&self, outcome: Outcome, now: u64, id: &str) -> Call {
        self.settle_many_without(outcome, now, id, None)
    }

    /// A settlement without a permit that also tells of this many successes.
    pub fn settle_many_without(&self, outcome: Outcome, now: u64, id: &str, successes: Option<u64>) -> Call {
        let id = if outcome == Outcome::Release { "" } else { id };
        self.settling(outcome, now, [id, "-1", "0"], successes)
    }

    /// Gives back what this id was granted.
    pub fn give_back(&self, now: u64, id: &str) -> Call {
        self.settling(Outcome::Release, now, [id, "-1", "0"], None)
    }

    /// `get_state`.
    pub fn get_state(&self, now: u64) -> Call {
        self.call(ScriptId::GetState, vec![now.to_string(), self.config.clone()])
    }

    /// `control`.
    pub fn control(&self, now: u64, operation: &str, for_ms: Option<u64>) -> Call {
        let for_ms = for_ms.map_or_else(|| "-1".to_owned(), |ms| ms.to_string());
        let args = vec![now.to_string(), operation.to_owned(), for_ms, self.config.clone()];
        self.call(ScriptId::Control, [args, self.announcement()].concat())
    }

    fn settling(&self, outcome: Outcome, now: u64, named: [&str; 3], successes: Option<u64>) -> Call {
        let [id, epoch, kind] = named.map(str::to_owned);
        let mut args = vec![now.to_string(), id, epoch, kind, self.config.clone()];
        let rest = self.rest.clone().or(successes.map(|_| Rest::default()));
        if let Some(Rest { channel, origin, instance }) = rest
            && outcome != Outcome::Release
        {
            let is_failure = outcome == Outcome::Failure;
            args.extend([channel, origin, successes.unwrap_or(u64::from(!is_failure)).to_string()]);
            args.extend(is_failure.then_some(instance));
        }
        self.call(settling(outcome), args)
    }

    fn announcement(&self) -> Vec<String> {
        self.rest.iter().flat_map(|rest| [rest.channel.clone(), rest.origin.clone()]).collect()
    }

    fn call(&self, id: ScriptId, args: Vec<String>) -> Call {
        let keys = match shipped(id).keys {
            Keys::Circuit => self.keys.iter().take(1).cloned().collect(),
            Keys::All => self.keys.clone(),
        };
        Call { id, keys, args }
    }
}

/// The configuration as the one argument of the wire contract.
pub fn config_argument(config: &Config, idle_ttl_ms: u64, quorum: Quorum) -> String {
    format!(
        "{} {} {} {} {} {} {} {} {} {} {} {idle_ttl_ms} {}",
        config.trip_on().as_str(),
        config.failure_threshold(),
        config.window_ms(),
        config.failure_rate(),
        config.minimum_calls(),
        config.open_duration_ms(),
        config.open_backoff(),
        config.open_duration_max_ms(),
        config.half_open_max_calls(),
        config.success_threshold(),
        config.probe_timeout_ms(),
        quorum.get(),
    )
}

/// The id of this process's call number `counter`: of fixed width, so that the order of bytes is that of the calls.
pub fn call_id(counter: u64) -> String {
    format!("{:016x}{counter:013x}", 0x5317_c49e_a700_0000_u64)
}

/// What kind of admission a permit stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "called what DESIGN 3.3 calls them")]
pub enum PermitKind {
    Closed,
    Probe,
    Bypass,
}

/// What an admission by the scripts hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LuaPermit {
    /// The id it was admitted with.
    pub id: String,
    /// The epoch it belongs to.
    pub epoch: u64,
    /// What was granted.
    pub kind: PermitKind,
}

/// What an admission reads: the values of the [`ADMISSION_FIELDS`].
pub type Fields = [Option<String>; 5];

/// What the engine makes of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Granted while closed, with this epoch.
    Closed(u64),
    /// Granted while disabled.
    Bypass,
    /// Refused, with the milliseconds to wait if they are known.
    Refused(Option<u64>),
    /// Only `can_request` can say.
    AskOn,
}

impl Reading {
    /// Has the engine of the core decide a request at `now`.
    ///
    /// # Errors
    /// The engine says what no reading can lead to.
    pub fn decide(now: Millis, fields: &Fields) -> Result<Self, String> {
        let config = Config::default();
        let options = SharedOptions::for_config(&config);
        let mut engine =
            SharedCircuit::new("reader", "cb:", 0, "reader", config, options).map_err(|error| error.to_string())?;
        let (mut node, at) = (Node::new(), Times::one(now));
        let Begun::Wait(ticket) = engine.admit(&mut node, at) else {
            return Err("an engine that knows nothing did not ask".into());
        };
        while engine.next_ask().is_some() {}
        let step = engine.on_reading(&mut node, at, ticket, fields.each_ref().map(Option::as_deref));
        match (step.answer, engine.next_ask()) {
            (None, Some(ask)) if ask.command == Command::Run(ScriptId::CanRequest) => Ok(Self::AskOn),
            (Some(EngineAnswer::Refused { retry_after, .. }), None) => Ok(Self::Refused(retry_after)),
            (Some(EngineAnswer::Granted(permit)), None) => match permit.kind {
                EnginePermit::Closed => Ok(Self::Closed(permit.epoch)),
                EnginePermit::Bypass => Ok(Self::Bypass),
                _ => Err(format!("a reading granted {permit:?}")),
            },
            strange => Err(format!("a reading led to {strange:?}")),
        }
    }
}

/// The reply of the scripts that settle and admit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the wire contract, documented in lua/README.md")]
pub struct Reply {
    pub status: i64,
    pub state: State,
    pub mode: Mode,
    pub epoch: u64,
    pub wait: Option<u64>,
    pub from: Option<State>,
    pub reason: Option<Reason>,
    pub failures: u64,
    pub open_ms: Option<u64>,
    pub mismatch: bool,
}

impl Reply {
    /// Reads a reply.
    ///
    /// # Errors
    /// A reply that the contract does not know, shown.
    pub fn read(integers: &[i64]) -> Result<Self, String> {
        let strange = || format!("no reply of the wire contract: {integers:?}");
        let &[status, state, mode, epoch, wait, from, reason, failures, open_ms, mismatch] = integers else {
            return Err(strange());
        };
        Ok(Self {
            status,
            state: state_of(state).ok_or_else(strange)?,
            mode: mode_of(mode).ok_or_else(strange)?,
            epoch: u64::try_from(epoch).map_err(|_| strange())?,
            wait: u64::try_from(wait).ok(),
            from: state_of(from),
            reason: usize::try_from(reason).ok().and_then(|reason| Reason::ALL.get(reason)).copied(),
            failures: u64::try_from(failures).map_err(|_| strange())?,
            open_ms: u64::try_from(open_ms).ok(),
            mismatch: mismatch == 1,
        })
    }

    /// What was granted, if anything was.
    pub fn granted(&self) -> Option<PermitKind> {
        match self.status {
            1 => Some(PermitKind::Closed),
            2 => Some(PermitKind::Probe),
            3 => Some(PermitKind::Bypass),
            _ => None,
        }
    }

    /// How an outcome was taken.
    pub fn settlement(&self) -> Settlement {
        if self.status == 1 { Settlement::Applied } else { Settlement::Stale }
    }
}

/// Reads the reply of `get_state`.
///
/// # Errors
/// A reply that the contract does not know, shown.
pub fn read_snapshot(integers: &[i64]) -> Result<Snapshot, String> {
    let strange = || format!("no reply of get_state: {integers:?}");
    let count = |n: i64| u64::try_from(n).map_err(|_| strange());
    let &[state, mode, epoch, opened_at, remaining, trips, failures, calls, row, successes, in_flight] = integers
    else {
        return Err(strange());
    };
    Ok(Snapshot {
        state: state_of(state).ok_or_else(strange)?,
        mode: mode_of(mode).ok_or_else(strange)?,
        epoch: count(epoch)?,
        opened_at: u64::try_from(opened_at).ok(),
        remaining_open_ms: count(remaining)?,
        trips: count(trips)?,
        failures_in_window: count(failures)?,
        calls_in_window: count(calls)?,
        consecutive_failures: count(row)?,
        half_open_successes: count(successes)?,
        half_open_in_flight: count(in_flight)?,
    })
}

fn state_of(code: i64) -> Option<State> {
    [State::Closed, State::Open, State::HalfOpen].get(usize::try_from(code).ok()?).copied()
}

fn mode_of(code: i64) -> Option<Mode> {
    [Mode::Auto, Mode::ForcedOpen, Mode::Disabled].get(usize::try_from(code).ok()?).copied()
}

/// A shared circuit without an engine: asks a real server each time, and answers as the core does.
pub struct LuaCircuit {
    wire: Wire,
    connection: Connection,
    calls: u64,
    names: FailureNames,
}

/// How the instances of a circuit name their failures.
#[derive(Clone, Debug)]
pub struct FailureNames {
    quorum: Quorum,
    config: Config,
    rings: BTreeMap<String, Ring>,
}

impl FailureNames {
    /// No instance has told a failure yet.
    pub fn new(quorum: Quorum, config: &Config) -> Self {
        Self { quorum, config: config.clone(), rings: BTreeMap::new() }
    }

    /// The id of a failure that this instance tells of a call admitted while closed, or of one without a permit: this call
    /// id, or the next slot of its ring.
    pub fn failure_id(&mut self, instance: &str, call_id: String) -> String {
        if !self.quorum.has_rings(&self.config) {
            return call_id;
        }
        let fresh = || Ring::new(self.quorum, &self.config);
        self.rings.entry(instance.to_owned()).or_insert_with(fresh).next_member(instance)
    }
}

impl LuaCircuit {
    /// A circuit that nobody has used on this server, under a name that nobody else has.
    pub fn new(name: &str, config: &Config, connection: Connection) -> Self {
        Self::with_quorum(name, config, Quorum::ONE, connection)
    }

    /// The like, with a quorum.
    pub fn with_quorum(name: &str, config: &Config, quorum: Quorum, connection: Connection) -> Self {
        let wire = Wire::with_quorum(name, config, quorum);
        Self { wire, connection, calls: 0, names: FailureNames::new(quorum, config) }
    }

    /// What is done from here on is done by this instance.
    pub fn speak_for(&mut self, instance: &str) {
        self.wire = self.wire.of_instance(instance);
    }

    fn instance(&self) -> &str {
        self.wire.rest.as_ref().map_or("", |rest| &rest.instance)
    }

    fn fresh_id(&mut self) -> String {
        self.calls += 1;
        call_id(self.calls)
    }

    fn ask(&mut self, call: &Call) -> Result<Reply, String> {
        let reply = call.send(&mut self.connection).map_err(|error| error.to_string())?;
        Reply::read(&reply)
    }

    fn admission(&mut self, at: Millis) -> Result<Answer<LuaPermit>, String> {
        let id = self.fresh_id();
        let fields: Fields = self.wire.reading().query(&mut self.connection).map_err(|error| error.to_string())?;
        match Reading::decide(at, &fields)? {
            Reading::Closed(epoch) => return Ok(Answer::Allowed(LuaPermit { id, epoch, kind: PermitKind::Closed })),
            Reading::Bypass => return Ok(Answer::Allowed(LuaPermit { id, epoch: 0, kind: PermitKind::Bypass })),
            Reading::Refused(wait) => return Ok(Answer::Refused(wait)),
            Reading::AskOn => {}
        }
        let reply = self.ask(&self.wire.can_request(at.get(), &id))?;
        Ok(match reply.granted() {
            Some(kind) => Answer::Allowed(LuaPermit { id, epoch: reply.epoch, kind }),
            None => Answer::Refused(reply.wait),
        })
    }

    fn settlement(&mut self, now: u64, outcome: Outcome, permit: Option<&LuaPermit>) -> Result<Settlement, String> {
        let call = match permit {
            Some(LuaPermit { kind: PermitKind::Bypass, .. }) => return Ok(Settlement::Stale),
            Some(permit) if outcome == Outcome::Failure && permit.kind == PermitKind::Closed => {
                let instance = self.instance().to_owned();
                let id = self.names.failure_id(&instance, permit.id.clone());
                self.wire.settle(outcome, now, &LuaPermit { id, ..permit.clone() })
            }
            Some(permit) => self.wire.settle(outcome, now, permit),
            None => {
                let (mut id, instance) = (self.fresh_id(), self.instance().to_owned());
                if outcome == Outcome::Failure {
                    id = self.names.failure_id(&instance, id);
                }
                self.wire.settle_without(outcome, now, &id)
            }
        };
        Ok(self.ask(&call)?.settlement())
    }

    fn control(&mut self, now: u64, operation: &str, for_ms: Option<u64>) -> Result<Answer<LuaPermit>, String> {
        self.ask(&self.wire.control(now, operation, for_ms)).map(|_| Answer::Done)
    }
}

impl Machine for LuaCircuit {
    type Permit = LuaPermit;

    fn step(&mut self, at: Millis, operation: Operation<'_, LuaPermit>) -> Result<Answer<LuaPermit>, String> {
        let now = at.get();
        match operation {
            Operation::CanRequest => self.admission(at),
            Operation::Settle(outcome, permit) => self.settlement(now, outcome, permit).map(Answer::Settled),
            Operation::Reset => self.control(now, "reset", None),
            Operation::Trip(for_ms) => self.control(now, "trip", for_ms),
            Operation::ForceOpen => self.control(now, "force-open", None),
            Operation::Disable => self.control(now, "disable", None),
        }
    }

    fn snapshot(&mut self, at: Millis) -> Result<Snapshot, String> {
        let reply = self.wire.get_state(at.get()).send(&mut self.connection).map_err(|error| error.to_string())?;
        read_snapshot(&reply)
    }
}
