//! The engine of a shared circuit, as the facade carries for it: what is asked per call answers one number, a low value and
//! flags (see `shared.ts`); the details of the last answer are asked for one by one.

use napi::bindgen_prelude::{Env, External, Result, Utf16String};
use napi_derive::napi;
use switchgear_core::config::HostOption;
use switchgear_core::shared::code::{CodedCircuit, Free};
use switchgear_core::shared::{
    ADMISSION_FIELDS, Answer, Ask, Command, Control, Node, Script, SharedCircuit, SharedOptions, Times,
};
use switchgear_core::{Millis, Naming, Value, name_from_utf16, prefix_from_utf16};
use switchgear_lua::SCRIPTS;

use crate::breaker::{Snapshot, TransitionSeen, outcome_of};
use crate::convert::{FieldValue, double, moment, thrown};

/// What stands for "unknown" or "none" where a number is wanted.
const NONE: f64 = -1.0;

/// Checks the prefix of a store's keys. Throws `name_invalid`.
#[napi(catch_unwind)]
pub fn check_prefix(env: Env, prefix: Utf16String) -> Result<()> {
    prefix_from_utf16(&prefix).map(drop).map_err(|error| thrown(&env, error))
}

/// A checked configuration of a shared circuit: made once per policy, taken by every breaker that runs by it.
#[napi]
pub struct SharedConfig {
    config: switchgear_core::Config,
    options: SharedOptions,
}

#[napi]
impl SharedConfig {
    /// From layers of options, the outermost first. Throws `config_invalid`.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: Env, layers: Vec<Vec<FieldValue>>) -> Result<Self> {
        let layers: Vec<Vec<(&str, Value<'_>)>> = layers.iter().map(|layer| named(layer)).collect();
        let layers: Vec<&[(&str, Value<'_>)]> = layers.iter().map(Vec::as_slice).collect();
        let (config, options) = SharedOptions::build(Naming::Camel, &layers).map_err(|error| thrown(&env, error))?;
        Ok(Self { config, options })
    }
}

/// One shared circuit as this process sees it. Not a class: a function that is handed a pointer is cheaper to call than a method.
pub struct Circuit {
    engine: CodedCircuit,
    /// Whether a plain read goes to the server that takes writes; else a script, which always does, reads for us.
    reads_primary: bool,
}

/// Who a circuit is, and how it is read.
#[napi(object, object_to_js = false)]
pub struct CircuitOptions {
    /// Its name.
    pub name: Utf16String,
    /// What its keys begin with.
    pub prefix: Utf16String,
    /// Drawn at random: two halves of 32 bits each.
    pub nonce: (u32, u32),
    /// Who we are to others.
    pub instance: String,
    /// Whether a plain read goes to the server that takes writes.
    pub reads_primary: bool,
}

/// A circuit. Asks nothing of the store. Throws `name_invalid`.
#[napi(catch_unwind)]
pub fn shared_circuit(env: Env, options: CircuitOptions, shared: &SharedConfig) -> Result<External<Circuit>> {
    let CircuitOptions { name, prefix, nonce: (high, low), instance, reads_primary } = options;
    let name = name_from_utf16(&name).map_err(|error| thrown(&env, error))?;
    let prefix = prefix_from_utf16(&prefix).map_err(|error| thrown(&env, error))?;
    let nonce = u64::from(high) << 32 | u64::from(low);
    let engine = SharedCircuit::new(&name, &prefix, nonce, &instance, shared.config.clone(), shared.options)
        .map_err(|error| thrown(&env, error))?;
    Ok(External::new(Circuit { engine: CodedCircuit::new(engine, nonce), reads_primary }))
}

/// A server of the store, of which nothing is known.
#[napi(catch_unwind)]
#[must_use]
pub fn shared_node() -> External<Node> {
    External::new(Node::new())
}

/// The server's time at this moment of the host; -1 as long as nobody has asked it.
#[napi(catch_unwind)]
pub fn shared_node_now(node: &External<Node>, host: f64) -> f64 {
    Millis::from_f64(host).ok().and_then(|host| node.now(host)).map_or(NONE, |now| double(now.get()))
}

/// The key that everything is routed by.
#[napi(catch_unwind)]
pub fn shared_routing_key(circuit: &External<Circuit>) -> &str {
    circuit.engine.engine().keys().routing()
}

/// The command that asks for a call; always the same.
#[napi(catch_unwind)]
pub fn shared_admit_command(circuit: &External<Circuit>) -> Vec<String> {
    circuit.command(Command::Run(Script::Admit), false)
}

/// Whether the success of a call admitted while CLOSED need not be settled.
#[napi(catch_unwind)]
pub fn shared_success_is_free(circuit: &External<Circuit>) -> bool {
    circuit.engine.engine().success_is_free()
}

/// Asks for one call: see [`CodedCircuit`] for the number. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_admit(
    circuit: &mut External<Circuit>,
    node: &mut External<Node>,
    env: Env,
    host: f64,
    store: f64,
) -> Result<f64> {
    let at = times(&env, host, store)?;
    Ok(signed(circuit.engine.admit(node, at)))
}

/// Decides on a call without the store. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_admit_unasked(circuit: &mut External<Circuit>, env: Env, host: f64, store: f64) -> Result<u32> {
    let at = times(&env, host, store)?;
    Ok(circuit.engine.admit_unasked(at))
}

/// Settles a call; kind 0 is none. Throws `time_invalid`.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments, reason = "numbers cross, and a permit is three of them")]
pub fn shared_settle(
    circuit: &mut External<Circuit>,
    node: &mut External<Node>,
    env: Env,
    host: f64,
    store: f64,
    kind: u32,
    epoch: f64,
    counter: f64,
    outcome: u32,
) -> Result<f64> {
    let at = times(&env, host, store)?;
    let permit = (kind, whole(epoch), whole(counter));
    Ok(signed(circuit.engine.settle(node, at, permit, outcome_of(outcome)?)))
}

/// Asks for the snapshot. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_get_state(
    circuit: &mut External<Circuit>,
    node: &mut External<Node>,
    env: Env,
    host: f64,
    store: f64,
) -> Result<f64> {
    let at = times(&env, host, store)?;
    Ok(signed(circuit.engine.get_state(node, at)))
}

/// Closes, and clears everything. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_reset(
    circuit: &mut External<Circuit>,
    node: &mut External<Node>,
    env: Env,
    host: f64,
    store: f64,
) -> Result<f64> {
    circuit.control(node, &env, host, store, Control::Reset)
}

/// Opens, for as long as given. Throws `time_invalid`, `config_invalid`.
#[napi(catch_unwind)]
pub fn shared_trip(
    circuit: &mut External<Circuit>,
    node: &mut External<Node>,
    env: Env,
    host: f64,
    store: f64,
    for_ms: Option<FieldValue>,
) -> Result<f64> {
    let for_ms = for_ms
        .map(|given| HostOption::ForMs.check(Naming::Camel, given.value()))
        .transpose()
        .map_err(|error| thrown(&env, error))?;
    circuit.control(node, &env, host, store, Control::Trip { for_ms })
}

/// Refuses until reset or trip. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_force_open(
    circuit: &mut External<Circuit>,
    node: &mut External<Node>,
    env: Env,
    host: f64,
    store: f64,
) -> Result<f64> {
    circuit.control(node, &env, host, store, Control::ForceOpen)
}

/// Admits everything until reset or trip. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_disable(
    circuit: &mut External<Circuit>,
    node: &mut External<Node>,
    env: Env,
    host: f64,
    store: f64,
) -> Result<f64> {
    circuit.control(node, &env, host, store, Control::Disable)
}

/// Takes what was read for an admission. Throws `time_invalid`.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments, reason = "five fields are read; an array costs more to take apart than to use")]
pub fn shared_on_reading(
    circuit: &mut External<Circuit>,
    node: &mut External<Node>,
    env: Env,
    host: f64,
    store: f64,
    ticket: f64,
    state: Option<String>,
    mode: Option<String>,
    epoch: Option<String>,
    opened_at: Option<String>,
    open_ms: Option<String>,
) -> Result<u32> {
    let at = times(&env, host, store)?;
    let fields = [&state, &mode, &epoch, &opened_at, &open_ms].map(Option::as_deref);
    Ok(circuit.engine.on_reading(node, at, whole(ticket), fields))
}

/// Takes a reply. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_on_reply(
    circuit: &mut External<Circuit>,
    node: &mut External<Node>,
    env: Env,
    host: f64,
    store: f64,
    ticket: f64,
    reply: Vec<f64>,
) -> Result<u32> {
    let at = times(&env, host, store)?;
    let reply: Vec<i64> = reply.into_iter().map(integer).collect();
    Ok(circuit.engine.on_reply(node, at, whole(ticket), &reply))
}

/// Takes an error, by its text. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_on_error(
    circuit: &mut External<Circuit>,
    node: &mut External<Node>,
    env: Env,
    host: f64,
    store: f64,
    ticket: f64,
    error: String,
) -> Result<u32> {
    let at = times(&env, host, store)?;
    Ok(circuit.engine.on_error(node, at, whole(ticket), &error))
}

/// Takes that the deadline has passed. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_on_deadline(
    circuit: &mut External<Circuit>,
    node: &mut External<Node>,
    env: Env,
    host: f64,
    store: f64,
    ticket: f64,
) -> Result<u32> {
    let at = times(&env, host, store)?;
    Ok(circuit.engine.on_deadline(node, at, whole(ticket)))
}

/// The permit granted last: its epoch; -1 if none was.
#[napi(catch_unwind)]
pub fn shared_permit_epoch(circuit: &mut External<Circuit>) -> f64 {
    circuit.engine.permit().map_or(NONE, |permit| double(permit.epoch))
}

/// The permit granted last: its number; -1 if none was.
#[napi(catch_unwind)]
pub fn shared_permit_counter(circuit: &mut External<Circuit>) -> f64 {
    circuit.engine.permit().map_or(NONE, |permit| double(permit.id.counter))
}

/// The wait of the last refusal in milliseconds; -1 if it is unknown.
#[napi(catch_unwind)]
pub fn shared_refusal_wait(circuit: &External<Circuit>) -> f64 {
    match circuit.engine.last().answer {
        Some(Answer::Refused { retry_after, .. }) => retry_after.map_or(NONE, double),
        _ => NONE,
    }
}

/// Whether there may ever be calls that need not be asked for.
#[napi(catch_unwind)]
pub fn shared_may_be_free(circuit: &External<Circuit>) -> bool {
    circuit.engine.may_be_free()
}

/// What need not be asked, if that is news: from when and until when, on the host's clock, every request is admitted, and the
/// epoch and the number of the permit. Empty where every request is to be asked for; null where all is as it was.
#[napi(catch_unwind)]
pub fn shared_free(circuit: &mut External<Circuit>) -> Option<Vec<f64>> {
    match circuit.engine.free() {
        Free::AsBefore => None,
        Free::Nothing => Some(Vec::new()),
        Free::While(permit, from, until) => {
            Some([from.get(), until.get(), permit.epoch, permit.id.counter].map(double).to_vec())
        }
    }
}

/// What to send next; null when there is nothing more.
#[napi(catch_unwind)]
pub fn shared_ask(circuit: &mut External<Circuit>) -> Option<AskSeen> {
    let Ask { ticket, command, by_text, delay_ms, args } = circuit.engine.next_ask()?;
    let mut words = circuit.command(command, by_text);
    words.extend(args);
    let reads = command == Command::Run(Script::Admit);
    let asks_time = command == Command::Time;
    Some(AskSeen { ticket: double(ticket), delay_ms: double(delay_ms), reads, asks_time, command: words })
}

/// The transition that the last answer tells of.
#[napi(catch_unwind)]
pub fn shared_transition(circuit: &External<Circuit>) -> Option<TransitionSeen> {
    circuit.engine.last().transition.map(TransitionSeen::from)
}

/// The snapshot that the last answer brought.
#[napi(catch_unwind)]
pub fn shared_snapshot(circuit: &External<Circuit>) -> Option<Snapshot> {
    match circuit.engine.last().answer {
        Some(Answer::Snapshot(snapshot)) => Some(snapshot.into()),
        _ => None,
    }
}

impl Circuit {
    fn control(&mut self, node: &mut Node, env: &Env, host: f64, store: f64, control: Control) -> Result<f64> {
        let at = times(env, host, store)?;
        self.engine.control(node, at, control).map(signed).map_err(|error| thrown(env, error))
    }

    /// A command up to its last key.
    fn command(&self, command: Command, by_text: bool) -> Vec<String> {
        let keys = self.engine.engine().keys();
        match command {
            Command::Time => vec!["TIME".into()],
            Command::TryWrite => ["HDEL", keys.routing(), ""].map(String::from).to_vec(),
            Command::Run(Script::Admit) if self.reads_primary => {
                ["HMGET", keys.routing()].into_iter().chain(ADMISSION_FIELDS).map(Into::into).collect()
            }
            Command::Run(script) => {
                let shipped = &SCRIPTS[script as usize];
                let keys = keys.of(script);
                let head = if by_text { ["EVAL", shipped.text] } else { ["EVALSHA", shipped.sha1] };
                let head = head.map(String::from).into_iter().chain([keys.len().to_string()]);
                head.chain(keys.iter().cloned()).collect()
            }
        }
    }
}

/// A command to send.
#[napi(object, object_from_js = false)]
pub struct AskSeen {
    /// What its reply, error or deadline is handed in with.
    pub ticket: f64,
    /// Milliseconds to wait before sending it.
    pub delay_ms: f64,
    /// Whether the reply is the fields of a reading.
    pub reads: bool,
    /// Whether it asks the server that has the circuit's keys for its time, and names no key itself.
    pub asks_time: bool,
    /// The command, its name first.
    pub command: Vec<String>,
}

/// The two times, from the doubles that JavaScript has; -1 for a store whose time the engine asks for itself.
fn times(env: &Env, host: f64, store: f64) -> Result<Times> {
    let host = moment(env, host)?;
    let store = if store == NONE { None } else { Some(moment(env, store)?) };
    Ok(Times { host, store })
}

fn named(layer: &[FieldValue]) -> Vec<(&str, Value<'_>)> {
    layer.iter().map(|field| (field.name.as_str(), field.value())).collect()
}

/// A ticket, an epoch or a counter from the double it went out as.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates; a foreign number names nothing"
)]
const fn whole(n: f64) -> u64 {
    n as u64
}

/// An integer of a reply; anything else becomes one that no script answers.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "compared with what it was")]
fn integer(n: f64) -> i64 {
    let whole = n as i64;
    if whole as f64 == n { whole } else { i64::MIN }
}

/// What the engine answers: a code, or a ticket in the negative.
#[allow(clippy::cast_precision_loss, reason = "no process begins 2^52 conversations")]
const fn signed(n: i64) -> f64 {
    n as f64
}
