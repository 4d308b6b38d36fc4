//! The engine of a shared circuit, as the facade carries for it: what is asked per call answers one number, a low value and
//! flags (see `native-shared.ts`); the details of the last answer are asked for one by one.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use core::mem::take;

use switchgear_core::shared::code::{CodedCircuit, Free};
use switchgear_core::shared::{
    ADMISSION_FIELDS, Answer, Ask, Command, Control, DEFAULT_TIMEOUT_MS, Keys, Node, Script, SharedCircuit,
    SharedOptions, Times,
};
use switchgear_core::{ErrorCode, Millis, name_from_utf16, prefix_from_utf16};
use switchgear_lua::SCRIPTS;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert::{
    Layers, NONE, double, fault, for_ms, moment, or_none, outcome, snapshot, thrown, transition, value, whole,
};

/// The places of [`Circuit::number`].
const PERMIT_EPOCH: u8 = 0;
const PERMIT_COUNTER: u8 = 1;
const REFUSAL_WAIT: u8 = 2;
const ASK_TICKET: u8 = 3;
const ASK_DELAY: u8 = 4;
const ASK_READS: u8 = 5;
const ASK_ASKS_TIME: u8 = 6;
const FREE_FROM: u8 = 7;
const FREE_UNTIL: u8 = 8;
const FREE_EPOCH: u8 = 9;
const FREE_COUNTER: u8 = 10;
const TRANSITION_FROM: u8 = 11;
const SNAPSHOT_FROM: u8 = 17;

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

/// A server of the store.
#[wasm_bindgen]
#[derive(Default)]
pub struct Server(Node);

#[wasm_bindgen]
impl Server {
    /// Nothing is known of it.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Its time at this moment of the host; -1 as long as nobody has asked it.
    #[must_use]
    pub fn now(&self, host: f64) -> f64 {
        or_none(Millis::from_f64(host).ok().and_then(|host| self.0.now(host)).map(Millis::get))
    }
}

/// One shared circuit as this process sees it.
#[wasm_bindgen]
pub struct Circuit {
    engine: CodedCircuit,
    /// Whether a plain read goes to the server that takes writes; else a script, which always does, reads for us.
    reads_primary: bool,
    /// The command that is to be sent next.
    ask: Option<Ask>,
    /// What need not be asked.
    free: Free,
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
        instance: &str,
        reads_primary: bool,
        shared: &SharedConfig,
    ) -> Result<Self, JsValue> {
        let name = name_from_utf16(name).map_err(thrown)?;
        let prefix = prefix_from_utf16(prefix).map_err(thrown)?;
        let (config, options) = shared.checked.clone().ok_or_else(|| fault("not built"))?;
        let nonce = u64::from(nonce_high) << 32 | u64::from(nonce_low);
        let engine = SharedCircuit::new(&name, &prefix, nonce, instance, config, options).map_err(thrown)?;
        Ok(Self { engine: CodedCircuit::new(engine, nonce), reads_primary, ask: None, free: Free::Nothing })
    }

    /// The key that everything is routed by.
    #[wasm_bindgen(js_name = routingKey)]
    #[must_use]
    pub fn routing_key(&self) -> String {
        self.engine.engine().keys().routing().into()
    }

    /// The command that asks for a call; always the same.
    #[wasm_bindgen(js_name = admitCommand)]
    #[must_use]
    pub fn admit_command(&self) -> Vec<String> {
        self.command(Command::Run(Script::Admit), false)
    }

    /// Whether the success of a call admitted while CLOSED need not be settled.
    #[wasm_bindgen(js_name = successIsFree)]
    #[must_use]
    pub fn success_is_free(&self) -> bool {
        self.engine.engine().success_is_free()
    }

    /// Whether there may ever be calls that need not be asked for.
    #[wasm_bindgen(js_name = mayBeFree)]
    #[must_use]
    pub fn may_be_free(&self) -> bool {
        self.engine.may_be_free()
    }

    /// Whether what need not be asked is not what it was: then [`Circuit::number`] says what it is.
    #[wasm_bindgen(js_name = isFreeNews)]
    pub fn is_free_news(&mut self) -> bool {
        let free = self.engine.free();
        if free != Free::AsBefore {
            self.free = free;
        }
        free != Free::AsBefore
    }

    /// Asks for one call: see [`CodedCircuit`] for the number. Throws `time_invalid`.
    pub fn admit(&mut self, server: &mut Server, host: f64, store: f64) -> Result<f64, JsValue> {
        Ok(signed(self.engine.admit(&mut server.0, times(host, store)?)))
    }

    /// Decides on a call without the store. Throws `time_invalid`.
    #[wasm_bindgen(js_name = admitUnasked)]
    pub fn admit_unasked(&mut self, host: f64, store: f64) -> Result<u32, JsValue> {
        Ok(self.engine.admit_unasked(times(host, store)?))
    }

    /// Settles a call; kind 0 is none. Throws `time_invalid`.
    #[allow(clippy::too_many_arguments, reason = "numbers cross, and a permit is three of them")]
    pub fn settle(
        &mut self,
        server: &mut Server,
        host: f64,
        store: f64,
        kind: u32,
        epoch: f64,
        counter: f64,
        ending: u32,
    ) -> Result<f64, JsValue> {
        let at = times(host, store)?;
        let permit = (kind, whole(epoch), whole(counter));
        Ok(signed(self.engine.settle(&mut server.0, at, permit, outcome(ending)?)))
    }

    /// Asks for the snapshot. Throws `time_invalid`.
    #[wasm_bindgen(js_name = getState)]
    pub fn get_state(&mut self, server: &mut Server, host: f64, store: f64) -> Result<f64, JsValue> {
        Ok(signed(self.engine.get_state(&mut server.0, times(host, store)?)))
    }

    /// Manual control: reset, trip (for as long as given), force open, disable. Throws `time_invalid`, `config_invalid`.
    #[allow(clippy::too_many_arguments, reason = "numbers cross, and the length of a trip is three things")]
    pub fn control(
        &mut self,
        operation: u8,
        server: &mut Server,
        host: f64,
        store: f64,
        kind: u8,
        number: f64,
        text: &str,
    ) -> Result<f64, JsValue> {
        let control = match operation {
            RESET => Control::Reset,
            TRIP => Control::Trip { for_ms: for_ms(value(kind, number, text))? },
            FORCE_OPEN => Control::ForceOpen,
            _ => Control::Disable,
        };
        let at = times(host, store)?;
        self.engine.control(&mut server.0, at, control).map(signed).map_err(thrown)
    }

    /// Takes what was read for an admission. Throws `time_invalid`.
    #[wasm_bindgen(js_name = onReading)]
    #[allow(clippy::too_many_arguments, reason = "five fields are read; an array costs more to take apart than to use")]
    pub fn on_reading(
        &mut self,
        server: &mut Server,
        host: f64,
        store: f64,
        ticket: f64,
        state: Option<String>,
        mode: Option<String>,
        epoch: Option<String>,
        opened_at: Option<String>,
        open_ms: Option<String>,
    ) -> Result<u32, JsValue> {
        let fields = [&state, &mode, &epoch, &opened_at, &open_ms].map(Option::as_deref);
        Ok(self.engine.on_reading(&mut server.0, times(host, store)?, whole(ticket), fields))
    }

    /// Takes a reply. Throws `time_invalid`.
    #[wasm_bindgen(js_name = onReply)]
    pub fn on_reply(
        &mut self,
        server: &mut Server,
        host: f64,
        store: f64,
        ticket: f64,
        reply: &[f64],
    ) -> Result<u32, JsValue> {
        let reply: Vec<i64> = reply.iter().copied().map(integer).collect();
        Ok(self.engine.on_reply(&mut server.0, times(host, store)?, whole(ticket), &reply))
    }

    /// Takes an error, by its text. Throws `time_invalid`.
    #[wasm_bindgen(js_name = onError)]
    pub fn on_error(
        &mut self,
        server: &mut Server,
        host: f64,
        store: f64,
        ticket: f64,
        error: &str,
    ) -> Result<u32, JsValue> {
        Ok(self.engine.on_error(&mut server.0, times(host, store)?, whole(ticket), error))
    }

    /// Takes that the deadline has passed. Throws `time_invalid`.
    #[wasm_bindgen(js_name = onDeadline)]
    pub fn on_deadline(&mut self, server: &mut Server, host: f64, store: f64, ticket: f64) -> Result<u32, JsValue> {
        Ok(self.engine.on_deadline(&mut server.0, times(host, store)?, whole(ticket)))
    }

    /// Takes the next command to send in hand; whether there is one.
    #[wasm_bindgen(js_name = nextAsk)]
    pub fn next_ask(&mut self) -> bool {
        self.ask = self.engine.next_ask();
        self.ask.is_some()
    }

    /// What may be asked, number by number. Of the last answer: the epoch and the number of the call that was granted; the wait
    /// of a refusal in milliseconds; the transition; the snapshot. Of the command in hand: its ticket, the milliseconds to wait
    /// before, whether its reply is a reading, whether it asks for the time. Of what need not be asked: from when and until when,
    /// and the epoch and the number of the permit. -1 for what is unknown or not there.
    pub fn number(&mut self, place: u8) -> f64 {
        match place {
            PERMIT_EPOCH => self.engine.permit().map_or(NONE, |permit| double(permit.epoch)),
            PERMIT_COUNTER => self.engine.permit().map_or(NONE, |permit| double(permit.id.counter)),
            REFUSAL_WAIT => match self.engine.last().answer {
                Some(Answer::Refused { retry_after, .. }) => or_none(retry_after),
                _ => NONE,
            },
            ASK_TICKET..=ASK_ASKS_TIME => self.ask.as_ref().map_or(NONE, |ask| match place {
                ASK_TICKET => double(ask.ticket),
                ASK_DELAY => double(ask.delay_ms),
                ASK_READS => u8::from(ask.command == Command::Run(Script::Admit)).into(),
                _ => u8::from(ask.command == Command::Time).into(),
            }),
            FREE_FROM..=FREE_COUNTER => match self.free {
                Free::While(permit, from, until) => double(match place {
                    FREE_FROM => from.get(),
                    FREE_UNTIL => until.get(),
                    FREE_EPOCH => permit.epoch,
                    _ => permit.id.counter,
                }),
                Free::AsBefore | Free::Nothing => NONE,
            },
            TRANSITION_FROM..SNAPSHOT_FROM => {
                let made = self.engine.last().transition.as_ref();
                made.map_or(NONE, |made| transition(made, place - TRANSITION_FROM))
            }
            SNAPSHOT_FROM.. => match &self.engine.last().answer {
                Some(Answer::Snapshot(seen)) => snapshot(seen, place - SNAPSHOT_FROM),
                _ => NONE,
            },
        }
    }

    /// The command in hand, its name first; empty if there is none.
    #[wasm_bindgen(js_name = askCommand)]
    #[must_use]
    pub fn ask_command(&self) -> Vec<String> {
        let Some(Ask { command, by_text, args, .. }) = &self.ask else { return Vec::new() };
        let mut words = self.command(*command, *by_text);
        words.extend_from_slice(args);
        words
    }
}

impl Circuit {
    /// A command up to its last key.
    fn command(&self, command: Command, by_text: bool) -> Vec<String> {
        let keys = self.engine.engine().keys();
        match command {
            Command::Time => ["TIME".to_string()].into(),
            Command::TryWrite => ["HDEL", keys.routing(), ""].map(String::from).into(),
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

/// The two times, from the doubles that JavaScript has; -1 for a store whose time the engine asks for itself.
fn times(host: f64, store: f64) -> Result<Times, JsValue> {
    let host = moment(host)?;
    let store = if store == NONE { None } else { Some(moment(store)?) };
    Ok(Times { host, store })
}

/// What the engine answers: a code, or a ticket in the negative.
#[allow(clippy::cast_precision_loss, reason = "no process begins 2^52 conversations")]
const fn signed(n: i64) -> f64 {
    n as f64
}

/// An integer of a reply; anything else becomes one that no script answers.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "compared with what it was")]
fn integer(n: f64) -> i64 {
    let whole = n as i64;
    if whole as f64 == n { whole } else { i64::MIN }
}
