//! The engine of a shared circuit, as the facade carries for it: what is asked per call answers one number, a low value and
//! flags (see `native-shared.ts`); the details of the last answer are asked for one by one.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use core::mem::take;

use switchgear_core::shared::{
    ADMISSION_FIELDS, Answer, Ask, CallId, Control, DEFAULT_TIMEOUT_MS, Keys, PermitKind, Script, Settle,
    SharedOptions, SharedPermit, Step,
};
use switchgear_core::{ErrorCode, Millis, Settlement, State, name_from_utf16, prefix_from_utf16, shared};
use switchgear_lua::SCRIPTS;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert::{
    Layers, NONE, double, fault, for_ms, moment, or_none, outcome, snapshot, thrown, transition, value, whole,
};

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

/// The places of [`Circuit::number`].
const PERMIT_EPOCH: u8 = 0;
const PERMIT_COUNTER: u8 = 1;
const REFUSAL_WAIT: u8 = 2;
const ASK_TICKET: u8 = 3;
const ASK_DELAY: u8 = 4;
const ASK_READS: u8 = 5;
const TRANSITION_FROM: u8 = 6;
const SNAPSHOT_FROM: u8 = 12;

const RESET: u8 = 0;
const TRIP: u8 = 1;
const FORCE_OPEN: u8 = 2;

/// The version of this crate, which is that of the package.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}

/// The stable codes of all errors, one by one; undefined past the last.
#[wasm_bindgen(js_name = errorCode)]
#[must_use]
pub fn error_code(place: usize) -> JsValue {
    ErrorCode::ALL.get(place).map_or(JsValue::UNDEFINED, |code| code.as_str().into())
}

/// Whether a number is a moment.
#[wasm_bindgen(js_name = isMoment)]
#[must_use]
pub fn is_moment(now: f64) -> bool {
    Millis::from_f64(now).is_ok()
}

/// What the keys of a store begin with by default.
#[wasm_bindgen(js_name = defaultPrefix)]
#[must_use]
pub fn default_prefix() -> String {
    Keys::DEFAULT_PREFIX.into()
}

/// How long one admission, outcome or question waits for the store by default, in milliseconds.
#[wasm_bindgen(js_name = defaultStoreTimeoutMs)]
#[must_use]
pub fn default_store_timeout_ms() -> f64 {
    double(DEFAULT_TIMEOUT_MS)
}

/// Checks the prefix of a store's keys. Throws `name_invalid`.
#[wasm_bindgen(js_name = checkPrefix)]
pub fn check_prefix(prefix: &[u16]) -> Result<(), JsValue> {
    prefix_from_utf16(prefix).map(drop).map_err(thrown)
}

/// A configuration of a shared circuit: put together once per policy, taken by every breaker that runs by it.
#[wasm_bindgen]
#[derive(Default)]
pub struct SharedConfig {
    layers: Layers,
    checked: Option<(switchgear_core::Config, SharedOptions)>,
}

#[wasm_bindgen]
impl SharedConfig {
    /// Nothing was added yet.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a layer of options, the outermost first.
    pub fn layer(&mut self) {
        self.layers.begin();
    }

    /// Adds an option to the layer that was begun last.
    pub fn add(&mut self, name: String, kind: u8, number: f64, text: String) {
        self.layers.add((name, kind, number, text));
    }

    /// Takes in what was added, and forgets it. Throws `config_invalid`.
    pub fn build(&mut self) -> Result<(), JsValue> {
        self.checked = Some(take(&mut self.layers).build(SharedOptions::build)?);
        Ok(())
    }
}

/// One shared circuit as this process sees it.
#[wasm_bindgen]
pub struct Circuit {
    engine: shared::SharedCircuit,
    nonce: u64,
    /// Whether a plain read goes to the server that takes writes; else a script, which always does, reads for us.
    reads_primary: bool,
    /// The last answer, whose details the facade may still ask for.
    last: Step,
}

#[wasm_bindgen]
impl Circuit {
    /// Asks nothing of the store. The nonce is drawn at random: two halves of 32 bits each. Throws `name_invalid`.
    #[wasm_bindgen(constructor)]
    pub fn new(
        name: &[u16],
        prefix: &[u16],
        nonce_high: u32,
        nonce_low: u32,
        reads_primary: bool,
        shared: &SharedConfig,
    ) -> Result<Self, JsValue> {
        let name = name_from_utf16(name).map_err(thrown)?;
        let prefix = prefix_from_utf16(prefix).map_err(thrown)?;
        let (config, options) = shared.checked.clone().ok_or_else(|| fault("not built"))?;
        let nonce = u64::from(nonce_high) << 32 | u64::from(nonce_low);
        let engine = shared::SharedCircuit::new(&name, &prefix, nonce, config, options).map_err(thrown)?;
        Ok(Self { engine, nonce, reads_primary, last: Step::default() })
    }

    /// The key that everything is routed by.
    #[wasm_bindgen(js_name = routingKey)]
    #[must_use]
    pub fn routing_key(&self) -> String {
        self.engine.keys().routing().into()
    }

    /// The command that asks for a call; always the same.
    #[wasm_bindgen(js_name = admitCommand)]
    #[must_use]
    pub fn admit_command(&self) -> Vec<String> {
        self.command(Script::Admit, false)
    }

    /// Whether the success of a call admitted while CLOSED need not be settled.
    #[wasm_bindgen(js_name = successIsFree)]
    #[must_use]
    pub fn success_is_free(&self) -> bool {
        self.engine.success_is_free()
    }

    /// Asks for one call: answers the ticket of the admit command. Throws `time_invalid`.
    pub fn admit(&mut self, now: f64) -> Result<f64, JsValue> {
        Ok(double(self.engine.admit(moment(now)?).ticket))
    }

    /// Settles a call; kind 0 is none. Answers applied, stale or the ask. Throws `time_invalid`.
    pub fn settle(&mut self, now: f64, kind: u32, epoch: f64, counter: f64, ending: u32) -> Result<u32, JsValue> {
        let now = moment(now)?;
        let permit = self.permit(kind, epoch, counter);
        Ok(match self.engine.settle(now, permit, outcome(ending)?) {
            Settle::Done(settlement) => settled(settlement),
            Settle::Tell(ask) => self.keep_ask(ask),
        })
    }

    /// Asks for the snapshot. Throws `time_invalid`.
    #[wasm_bindgen(js_name = getState)]
    pub fn get_state(&mut self, now: f64) -> Result<u32, JsValue> {
        let ask = self.engine.get_state(moment(now)?);
        Ok(self.keep_ask(ask))
    }

    /// Manual control: reset, trip (for as long as given), force open, disable. Throws `time_invalid`, `config_invalid`.
    pub fn control(&mut self, operation: u8, now: f64, kind: u8, number: f64, text: &str) -> Result<u32, JsValue> {
        let control = match operation {
            RESET => Control::Reset,
            TRIP => Control::Trip { for_ms: for_ms(value(kind, number, text))? },
            FORCE_OPEN => Control::ForceOpen,
            _ => Control::Disable,
        };
        let ask = self.engine.control(moment(now)?, control).map_err(thrown)?;
        Ok(self.keep_ask(ask))
    }

    /// Asks for one call and takes what was read for it, in one go: the path of a healthy call. Answers the epoch of a grant
    /// while CLOSED, anything else as `-1 - answer`. Throws `time_invalid`.
    #[allow(clippy::too_many_arguments, reason = "five fields are read; an array costs more to take apart than to use")]
    pub fn admitted(
        &mut self,
        now: f64,
        state: Option<String>,
        mode: Option<String>,
        epoch: Option<String>,
        opened_at: Option<String>,
        open_ms: Option<String>,
    ) -> Result<f64, JsValue> {
        let now = moment(now)?;
        let ticket = self.engine.admit(now).ticket;
        let fields = [&state, &mode, &epoch, &opened_at, &open_ms].map(Option::as_deref);
        let step = self.engine.on_reading(now, ticket, fields);
        Ok(match step.answer {
            Some(Answer::Granted(SharedPermit { kind: PermitKind::Closed, epoch, .. })) => double(epoch),
            _ => -1.0 - f64::from(self.keep(step)),
        })
    }

    /// Takes what was read for an admission that the engine knows of already. Throws `time_invalid`.
    #[wasm_bindgen(js_name = onReading)]
    #[allow(clippy::too_many_arguments, reason = "five fields are read")]
    pub fn on_reading(
        &mut self,
        now: f64,
        ticket: f64,
        state: Option<String>,
        mode: Option<String>,
        epoch: Option<String>,
        opened_at: Option<String>,
        open_ms: Option<String>,
    ) -> Result<u32, JsValue> {
        let fields = [&state, &mode, &epoch, &opened_at, &open_ms].map(Option::as_deref);
        let step = self.engine.on_reading(moment(now)?, whole(ticket), fields);
        Ok(self.keep(step))
    }

    /// Takes a reply. Throws `time_invalid`.
    #[wasm_bindgen(js_name = onReply)]
    pub fn on_reply(&mut self, now: f64, ticket: f64, reply: &[f64]) -> Result<u32, JsValue> {
        let reply: Vec<i64> = reply.iter().copied().map(integer).collect();
        let step = self.engine.on_reply(moment(now)?, whole(ticket), &reply);
        Ok(self.keep(step))
    }

    /// Takes an error, by its text. Throws `time_invalid`.
    #[wasm_bindgen(js_name = onError)]
    pub fn on_error(&mut self, now: f64, ticket: f64, error: &str) -> Result<u32, JsValue> {
        let step = self.engine.on_error(moment(now)?, whole(ticket), error);
        Ok(self.keep(step))
    }

    /// Takes that the deadline has passed.
    #[wasm_bindgen(js_name = onDeadline)]
    pub fn on_deadline(&mut self, ticket: f64) -> u32 {
        let step = self.engine.on_deadline(whole(ticket));
        self.keep(step)
    }

    /// What may be asked of the last answer, number by number: the epoch and the number of the call that was granted; the wait of
    /// a refusal in milliseconds; of the command to send its ticket, the milliseconds to wait before, whether its reply is a
    /// reading; the transition; the snapshot. -1 for what is unknown or not there.
    #[must_use]
    pub fn number(&self, place: u8) -> f64 {
        match (place, &self.last.answer) {
            (PERMIT_EPOCH, Some(Answer::Granted(permit))) => double(permit.epoch),
            (PERMIT_COUNTER, Some(Answer::Granted(permit))) => double(permit.id.counter),
            (REFUSAL_WAIT, Some(Answer::Refused { retry_after, .. })) => or_none(*retry_after),
            (ASK_TICKET..TRANSITION_FROM, _) => self.last.ask.as_ref().map_or(NONE, |ask| match place {
                ASK_TICKET => double(ask.ticket),
                ASK_DELAY => double(ask.delay_ms),
                ASK_READS.. => u8::from(ask.script == Script::Admit).into(),
                _ => NONE,
            }),
            (TRANSITION_FROM..SNAPSHOT_FROM, _) => {
                self.last.transition.as_ref().map_or(NONE, |made| transition(made, place - TRANSITION_FROM))
            }
            (SNAPSHOT_FROM.., Some(Answer::Snapshot(seen))) => snapshot(seen, place - SNAPSHOT_FROM),
            _ => NONE,
        }
    }

    /// The command to send, its name first; empty if there is none.
    #[wasm_bindgen(js_name = askCommand)]
    #[must_use]
    pub fn ask_command(&self) -> Vec<String> {
        let Some(Ask { script, by_text, args, .. }) = &self.last.ask else { return Vec::new() };
        let mut command = self.command(*script, *by_text);
        command.extend_from_slice(args);
        command
    }
}

impl Circuit {
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

/// An integer of a reply; anything else becomes one that no script answers.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "compared with what it was")]
fn integer(n: f64) -> i64 {
    let whole = n as i64;
    if whole as f64 == n { whole } else { i64::MIN }
}
