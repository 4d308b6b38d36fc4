//! The engine of a shared circuit, as the facade carries for it: what is asked per call answers one number, a low value and
//! flags (see `shared.ts`); the details of the last answer are asked for one by one.

use napi::bindgen_prelude::{Env, External, Result, Utf16String};
use napi_derive::napi;
use switchgear_core::config::HostOption;
use switchgear_core::shared::{
    ADMISSION_FIELDS, Answer, Ask, CallId, Control, PermitKind, Script, Settle, SharedOptions, SharedPermit, Step,
};
use switchgear_core::{Naming, Settlement, State, Value, name_from_utf16, prefix_from_utf16, shared};
use switchgear_lua::SCRIPTS;

use crate::breaker::{Snapshot, TransitionSeen, outcome_of};
use crate::convert::{FieldValue, double, moment, thrown};

const NO_ANSWER: u32 = 0;
const GRANTED_CLOSED: u32 = 1;
const GRANTED_PROBE: u32 = 2;
const GRANTED_BYPASS: u32 = 3;
const GRANTED_UNASKED: u32 = 4;
const REFUSED_OPEN: u32 = 5;
const REFUSED_HALF_OPEN: u32 = 6;
const UNAVAILABLE: u32 = 7;
const STALE: u32 = 8;
const APPLIED: u32 = 9;
const CONTROLLED: u32 = 10;
const SNAPSHOT: u32 = 11;
const ASK: u32 = 16;
const TRANSITION: u32 = 32;
const CONFIG_MISMATCH: u32 = 64;
const MALFORMED: u32 = 128;
const COUNTED: u32 = 256;

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
    engine: shared::SharedCircuit,
    nonce: u64,
    /// Whether a plain read goes to the server that takes writes; else a script, which always does, reads for us.
    reads_primary: bool,
    /// The last answer, whose details the facade may still ask for.
    last: Step,
}

/// A circuit. Asks nothing of the store. `nonce` is drawn at random: two halves of 32 bits each. Throws `name_invalid`.
#[napi(catch_unwind)]
pub fn shared_circuit(
    env: Env,
    name: Utf16String,
    prefix: Utf16String,
    nonce: (u32, u32),
    reads_primary: bool,
    shared: &SharedConfig,
) -> Result<External<Circuit>> {
    let name = name_from_utf16(&name).map_err(|error| thrown(&env, error))?;
    let prefix = prefix_from_utf16(&prefix).map_err(|error| thrown(&env, error))?;
    let nonce = u64::from(nonce.0) << 32 | u64::from(nonce.1);
    let engine = shared::SharedCircuit::new(&name, &prefix, nonce, shared.config.clone(), shared.options)
        .map_err(|error| thrown(&env, error))?;
    Ok(External::new(Circuit { engine, nonce, reads_primary, last: Step::default() }))
}

/// The key that everything is routed by.
#[napi(catch_unwind)]
pub fn shared_routing_key(circuit: &External<Circuit>) -> &str {
    circuit.engine.keys().routing()
}

/// The command that asks for a call; always the same.
#[napi(catch_unwind)]
pub fn shared_admit_command(circuit: &External<Circuit>) -> Vec<String> {
    circuit.command(Script::Admit, false)
}

/// Whether the success of a call admitted while CLOSED need not be settled.
#[napi(catch_unwind)]
pub fn shared_success_is_free(circuit: &External<Circuit>) -> bool {
    circuit.engine.success_is_free()
}

/// Asks for one call: answers the ticket of the admit command. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_admit(circuit: &mut External<Circuit>, env: Env, now: f64) -> Result<f64> {
    Ok(double(circuit.engine.admit(moment(&env, now)?).ticket))
}

/// Settles a call; kind 0 is none. Answers applied, stale or the ask. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_settle(
    circuit: &mut External<Circuit>,
    env: Env,
    now: f64,
    kind: u32,
    epoch: f64,
    counter: f64,
    outcome: u32,
) -> Result<u32> {
    let now = moment(&env, now)?;
    let permit = circuit.permit(kind, epoch, counter);
    Ok(match circuit.engine.settle(now, permit, outcome_of(outcome)?) {
        Settle::Done(settlement) => settled(settlement),
        Settle::Tell(ask) => circuit.keep_ask(ask),
    })
}

/// Asks for the snapshot. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_get_state(circuit: &mut External<Circuit>, env: Env, now: f64) -> Result<u32> {
    let ask = circuit.engine.get_state(moment(&env, now)?);
    Ok(circuit.keep_ask(ask))
}

/// Closes, and clears everything. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_reset(circuit: &mut External<Circuit>, env: Env, now: f64) -> Result<u32> {
    circuit.control(&env, now, Control::Reset)
}

/// Opens, for as long as given. Throws `time_invalid`, `config_invalid`.
#[napi(catch_unwind)]
pub fn shared_trip(circuit: &mut External<Circuit>, env: Env, now: f64, for_ms: Option<FieldValue>) -> Result<u32> {
    let for_ms = for_ms
        .map(|given| HostOption::ForMs.check(Naming::Camel, given.value()))
        .transpose()
        .map_err(|error| thrown(&env, error))?;
    circuit.control(&env, now, Control::Trip { for_ms })
}

/// Refuses until reset or trip. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_force_open(circuit: &mut External<Circuit>, env: Env, now: f64) -> Result<u32> {
    circuit.control(&env, now, Control::ForceOpen)
}

/// Admits everything until reset or trip. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_disable(circuit: &mut External<Circuit>, env: Env, now: f64) -> Result<u32> {
    circuit.control(&env, now, Control::Disable)
}

/// Asks for one call and takes what was read for it, in one go: the path of a healthy call. Answers the epoch of a grant
/// while CLOSED, anything else as `-1 - answer`. Throws `time_invalid`.
#[napi(catch_unwind)]
#[allow(clippy::too_many_arguments, reason = "five fields are read; an array costs more to take apart than to use")]
pub fn shared_admitted(
    circuit: &mut External<Circuit>,
    env: Env,
    now: f64,
    state: Option<String>,
    mode: Option<String>,
    epoch: Option<String>,
    opened_at: Option<String>,
    open_ms: Option<String>,
) -> Result<f64> {
    let now = moment(&env, now)?;
    let ticket = circuit.engine.admit(now).ticket;
    let fields = [&state, &mode, &epoch, &opened_at, &open_ms].map(Option::as_deref);
    let step = circuit.engine.on_reading(now, ticket, fields);
    Ok(match step.answer {
        Some(Answer::Granted(SharedPermit { kind: PermitKind::Closed, epoch, .. })) => double(epoch),
        _ => -1.0 - f64::from(circuit.keep(step)),
    })
}

/// Takes what was read for an admission that the engine knows of already. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_on_reading(
    circuit: &mut External<Circuit>,
    env: Env,
    now: f64,
    ticket: f64,
    fields: Vec<Option<String>>,
) -> Result<u32> {
    let now = moment(&env, now)?;
    let field = |i: usize| fields.get(i).and_then(Option::as_deref);
    let step = circuit.engine.on_reading(now, whole(ticket), [field(0), field(1), field(2), field(3), field(4)]);
    Ok(circuit.keep(step))
}

/// Takes a reply. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_on_reply(
    circuit: &mut External<Circuit>,
    env: Env,
    now: f64,
    ticket: f64,
    reply: Vec<f64>,
) -> Result<u32> {
    let reply: Vec<i64> = reply.into_iter().map(integer).collect();
    let step = circuit.engine.on_reply(moment(&env, now)?, whole(ticket), &reply);
    Ok(circuit.keep(step))
}

/// Takes an error, by its text. Throws `time_invalid`.
#[napi(catch_unwind)]
pub fn shared_on_error(circuit: &mut External<Circuit>, env: Env, now: f64, ticket: f64, error: String) -> Result<u32> {
    let step = circuit.engine.on_error(moment(&env, now)?, whole(ticket), &error);
    Ok(circuit.keep(step))
}

/// Takes that the deadline has passed.
#[napi(catch_unwind)]
pub fn shared_on_deadline(circuit: &mut External<Circuit>, ticket: f64) -> u32 {
    let step = circuit.engine.on_deadline(whole(ticket));
    circuit.keep(step)
}

/// The epoch of the permit granted last; -1 if none was.
#[napi(catch_unwind)]
pub fn shared_permit_epoch(circuit: &External<Circuit>) -> f64 {
    match circuit.last.answer {
        Some(Answer::Granted(permit)) => double(permit.epoch),
        _ => NONE,
    }
}

/// The number of the call that was granted last; -1 if none was.
#[napi(catch_unwind)]
pub fn shared_permit_counter(circuit: &External<Circuit>) -> f64 {
    match circuit.last.answer {
        Some(Answer::Granted(permit)) => double(permit.id.counter),
        _ => NONE,
    }
}

/// The wait of the last refusal in milliseconds; -1 if it is unknown.
#[napi(catch_unwind)]
pub fn shared_refusal_wait(circuit: &External<Circuit>) -> f64 {
    match circuit.last.answer {
        Some(Answer::Refused { retry_after, .. }) => retry_after.map_or(NONE, double),
        _ => NONE,
    }
}

/// What to send.
#[napi(catch_unwind)]
pub fn shared_ask(circuit: &External<Circuit>) -> Option<AskSeen> {
    let Ask { ticket, script, by_text, delay_ms, ref args } = *circuit.last.ask.as_ref()?;
    let mut command = circuit.command(script, by_text);
    command.extend_from_slice(args);
    let reads = script == Script::Admit;
    Some(AskSeen { ticket: double(ticket), delay_ms: double(delay_ms), reads, command })
}

/// The transition that the last answer tells of.
#[napi(catch_unwind)]
pub fn shared_transition(circuit: &External<Circuit>) -> Option<TransitionSeen> {
    circuit.last.transition.map(TransitionSeen::from)
}

/// The snapshot that the last answer brought.
#[napi(catch_unwind)]
pub fn shared_snapshot(circuit: &External<Circuit>) -> Option<Snapshot> {
    match circuit.last.answer {
        Some(Answer::Snapshot(snapshot)) => Some(snapshot.into()),
        _ => None,
    }
}

impl Circuit {
    fn control(&mut self, env: &Env, now: f64, control: Control) -> Result<u32> {
        let asked = self.engine.control(moment(env, now)?, control);
        let ask = asked.map_err(|error| thrown(env, error))?;
        Ok(self.keep_ask(ask))
    }

    /// The command of a script up to its last key.
    fn command(&self, script: Script, by_text: bool) -> Vec<String> {
        let shipped = &SCRIPTS[script as usize];
        let keys = self.engine.keys().of(script);
        if script == Script::Admit && self.reads_primary {
            let read = ["HMGET", self.engine.keys().routing()];
            return read.into_iter().chain(ADMISSION_FIELDS).map(Into::into).collect();
        }
        let head = if by_text { ["EVAL", shipped.text] } else { ["EVALSHA", shipped.sha1] };
        let head = head.map(String::from).into_iter().chain([keys.len().to_string()]);
        head.chain(keys.iter().cloned()).collect()
    }

    /// A permit from the numbers it went out as.
    fn permit(&self, kind: u32, epoch: f64, counter: f64) -> Option<SharedPermit> {
        let kind = match kind {
            GRANTED_CLOSED => PermitKind::Closed,
            GRANTED_PROBE => PermitKind::Probe,
            GRANTED_BYPASS => PermitKind::Bypass,
            GRANTED_UNASKED => PermitKind::Unasked,
            _ => return None,
        };
        Some(SharedPermit { kind, epoch: whole(epoch), id: CallId { nonce: self.nonce, counter: whole(counter) } })
    }

    fn keep_ask(&mut self, ask: Ask) -> u32 {
        self.keep(Step { ask: Some(ask), ..Step::default() })
    }

    /// Keeps the step for whoever asks, and says what it holds.
    fn keep(&mut self, step: Step) -> u32 {
        let flags = u32::from(step.ask.is_some()) * ASK
            + u32::from(step.transition.is_some()) * TRANSITION
            + u32::from(step.config_mismatch) * CONFIG_MISMATCH
            + u32::from(step.malformed) * MALFORMED
            + u32::from(step.counted) * COUNTED;
        let answer = step.answer.map_or(NO_ANSWER, answered);
        self.last = step;
        answer | flags
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
    /// The command, its name first.
    pub command: Vec<String>,
}

fn named(layer: &[FieldValue]) -> Vec<(&str, Value<'_>)> {
    layer.iter().map(|field| (field.name.as_str(), field.value())).collect()
}

const fn answered(answer: Answer) -> u32 {
    match answer {
        Answer::Granted(SharedPermit { kind: PermitKind::Closed, .. }) => GRANTED_CLOSED,
        Answer::Granted(SharedPermit { kind: PermitKind::Probe, .. }) => GRANTED_PROBE,
        Answer::Granted(SharedPermit { kind: PermitKind::Bypass, .. }) => GRANTED_BYPASS,
        Answer::Granted(SharedPermit { kind: PermitKind::Unasked, .. }) => GRANTED_UNASKED,
        Answer::Refused { state: State::HalfOpen, .. } => REFUSED_HALF_OPEN,
        Answer::Refused { state: State::Open | State::Closed, .. } => REFUSED_OPEN,
        Answer::Unavailable => UNAVAILABLE,
        Answer::Settled(settlement) => settled(settlement),
        Answer::Controlled => CONTROLLED,
        Answer::Snapshot(_) => SNAPSHOT,
    }
}

const fn settled(settlement: Settlement) -> u32 {
    match settlement {
        Settlement::Stale => STALE,
        Settlement::Applied => APPLIED,
    }
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
