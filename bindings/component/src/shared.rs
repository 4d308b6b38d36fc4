//! The engine of a shared circuit, as a host carries for it: what the core says, in the words of `wit/shared.wit`.

use std::cell::RefCell;

use switchgear_core as core;
use switchgear_core::shared as engine;
use switchgear_core::shared::{ADMISSION_FIELDS, DEFAULT_TIMEOUT_MS, Keys, SharedCircuit, SharedOptions};
use switchgear_lua::SCRIPTS;

use crate::Component;
use crate::bindings::exports::switchgear::breaker::shared::{
    Answer, Ask, CallId, Circuit, Error, Guest, GuestCircuit, Naming, Operation, Outcome, Permit, PermitKind, Reading,
    Script, ScriptName, Setting, Step,
};
use crate::convert::{build, for_ms, moment, refusal};

impl Guest for Component {
    type Circuit = Conversation;

    fn scripts() -> Vec<Script> {
        let shipped = |(script, shipped): (engine::Script, &switchgear_lua::Script)| Script {
            name: script.into(),
            text: shipped.text.into(),
            sha1: shipped.sha1.into(),
        };
        engine::Script::ALL.into_iter().zip(&SCRIPTS).map(shipped).collect()
    }

    fn admission_fields() -> Vec<String> {
        ADMISSION_FIELDS.map(Into::into).to_vec()
    }

    fn default_prefix() -> String {
        Keys::DEFAULT_PREFIX.into()
    }

    fn default_timeout_ms() -> u64 {
        DEFAULT_TIMEOUT_MS
    }
}

/// One shared circuit as one process sees it.
pub struct Conversation {
    /// A component is not entered while it runs, so this is never borrowed twice.
    circuit: RefCell<SharedCircuit>,
    naming: core::Naming,
}

impl GuestCircuit for Conversation {
    fn create(
        name: String,
        prefix: String,
        nonce: u64,
        naming: Naming,
        layers: Vec<Vec<Setting>>,
    ) -> Result<Circuit, Error> {
        let naming = naming.into();
        let (config, options) = build(naming, &layers, SharedOptions::build)?;
        let circuit = SharedCircuit::new(&name, &prefix, nonce, config, options)?;
        Ok(Circuit::new(Self { circuit: RefCell::new(circuit), naming }))
    }

    fn admit(&self, now: u64) -> Result<Step, Error> {
        let now = moment(now)?;
        let asked = self.circuit.borrow_mut().admit(now);
        Ok(self.asking(asked))
    }

    fn settle(&self, now: u64, permit: Option<Permit>, outcome: Outcome) -> Result<Step, Error> {
        let now = moment(now)?;
        let settle = self.circuit.borrow_mut().settle(now, permit.map(Into::into), outcome.into());
        Ok(match settle {
            engine::Settle::Done(settlement) => {
                self.step(engine::Step { answer: Some(engine::Answer::Settled(settlement)), ..engine::Step::default() })
            }
            engine::Settle::Tell(asked) => self.asking(asked),
        })
    }

    fn success_is_free(&self) -> bool {
        self.circuit.borrow().success_is_free()
    }

    fn get_state(&self, now: u64) -> Result<Step, Error> {
        let now = moment(now)?;
        let asked = self.circuit.borrow_mut().get_state(now);
        Ok(self.asking(asked))
    }

    fn control(&self, now: u64, operation: Operation) -> Result<Step, Error> {
        let now = moment(now)?;
        let control = match operation {
            Operation::Reset => engine::Control::Reset,
            Operation::Trip(how_long) => engine::Control::Trip { for_ms: for_ms(self.naming, how_long)? },
            Operation::ForceOpen => engine::Control::ForceOpen,
            Operation::Disable => engine::Control::Disable,
        };
        let asked = self.circuit.borrow_mut().control(now, control)?;
        Ok(self.asking(asked))
    }

    fn on_reading(&self, now: u64, ticket: u64, fields: Reading) -> Result<Step, Error> {
        let now = moment(now)?;
        let (state, mode, epoch, opened_at, open_ms) = &fields;
        let fields = [state, mode, epoch, opened_at, open_ms].map(Option::as_deref);
        let step = self.circuit.borrow_mut().on_reading(now, ticket, fields);
        Ok(self.step(step))
    }

    fn on_reply(&self, now: u64, ticket: u64, reply: Vec<i64>) -> Result<Step, Error> {
        let now = moment(now)?;
        let step = self.circuit.borrow_mut().on_reply(now, ticket, &reply);
        Ok(self.step(step))
    }

    fn on_error(&self, now: u64, ticket: u64, message: String) -> Result<Step, Error> {
        let now = moment(now)?;
        let step = self.circuit.borrow_mut().on_error(now, ticket, &message);
        Ok(self.step(step))
    }

    fn on_deadline(&self, ticket: u64) -> Step {
        let step = self.circuit.borrow_mut().on_deadline(ticket);
        self.step(step)
    }

    fn in_flight(&self) -> u32 {
        u32::try_from(self.circuit.borrow().in_flight()).unwrap_or(u32::MAX)
    }
}

impl Conversation {
    fn asking(&self, asked: engine::Ask) -> Step {
        self.step(engine::Step { ask: Some(asked), ..engine::Step::default() })
    }

    fn ask(&self, asked: engine::Ask) -> Ask {
        let engine::Ask { ticket, script, by_text, delay_ms, args } = asked;
        let keys = self.circuit.borrow().keys().of(script).to_vec();
        Ask { ticket, script: script.into(), by_text, delay_ms, keys, arguments: args }
    }

    fn step(&self, step: engine::Step) -> Step {
        let engine::Step { answer, ask, transition, counted, config_mismatch, malformed } = step;
        Step {
            answer: answer.map(Into::into),
            ask: ask.map(|asked| self.ask(asked)),
            transition: transition.map(Into::into),
            counted,
            config_mismatch,
            malformed,
        }
    }
}

impl From<engine::Script> for ScriptName {
    fn from(script: engine::Script) -> Self {
        match script {
            engine::Script::Admit => Self::Admit,
            engine::Script::CanRequest => Self::CanRequest,
            engine::Script::RecordSuccess => Self::RecordSuccess,
            engine::Script::RecordFailure => Self::RecordFailure,
            engine::Script::Release => Self::Release,
            engine::Script::GetState => Self::GetState,
            engine::Script::Control => Self::Control,
        }
    }
}

impl From<engine::Answer> for Answer {
    fn from(answer: engine::Answer) -> Self {
        match answer {
            engine::Answer::Granted(permit) => Self::Granted(permit.into()),
            engine::Answer::Refused { state, retry_after } => Self::Refused(refusal(state, retry_after)),
            engine::Answer::Unavailable => Self::Unavailable,
            engine::Answer::Settled(settlement) => Self::Settled(settlement.into()),
            engine::Answer::Controlled => Self::Controlled,
            engine::Answer::Snapshot(snapshot) => Self::Snapshot(snapshot.into()),
        }
    }
}

impl From<engine::SharedPermit> for Permit {
    fn from(permit: engine::SharedPermit) -> Self {
        let engine::SharedPermit { kind, epoch, id: engine::CallId { nonce, counter } } = permit;
        let kind = match kind {
            engine::PermitKind::Closed => PermitKind::Closed,
            engine::PermitKind::Probe => PermitKind::Probe,
            engine::PermitKind::Bypass => PermitKind::Bypass,
            engine::PermitKind::Unasked => PermitKind::Unasked,
        };
        Self { kind, epoch, id: CallId { nonce, counter } }
    }
}

impl From<Permit> for engine::SharedPermit {
    fn from(permit: Permit) -> Self {
        let Permit { kind, epoch, id: CallId { nonce, counter } } = permit;
        let kind = match kind {
            PermitKind::Closed => engine::PermitKind::Closed,
            PermitKind::Probe => engine::PermitKind::Probe,
            PermitKind::Bypass => engine::PermitKind::Bypass,
            PermitKind::Unasked => engine::PermitKind::Unasked,
        };
        Self { kind, epoch, id: engine::CallId { nonce, counter } }
    }
}
