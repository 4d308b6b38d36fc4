//! The engine of a shared circuit, as a host carries for it: what the core says, in the words of `wit/shared.wit`.

use std::cell::{RefCell, RefMut};

use switchgear_core as core;
use switchgear_core::shared as engine;
use switchgear_core::shared::{ADMISSION_FIELDS, DEFAULT_TIMEOUT_MS, Keys, SharedCircuit, SharedOptions};
use switchgear_lua::SCRIPTS;

use crate::Component;
use crate::bindings::exports::switchgear::breaker::shared::{
    Announcement, Answer, Ask, Begun, CallId, Circuit, Command, Error, Free, Guest, GuestCircuit, GuestNode, Health,
    Invocation, Naming, NodeBorrow, Operation, Others, Outcome, Permit, PermitKind, Reading, Script, ScriptName,
    Setting, Step, Times, Whose,
};
use crate::convert::{build, for_ms, moment, refusal};

impl Guest for Component {
    type Circuit = Conversation;
    type Node = Server;

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

    fn channel(prefix: String) -> Result<String, Error> {
        core::check_prefix(&prefix)?;
        Ok(engine::Announcement::channel(&prefix))
    }

    fn parse_announcement(message: String) -> Option<Announcement> {
        let engine::Announcement { circuit, instance, transition, .. } = engine::Announcement::parse(&message)?;
        Some(Announcement { circuit, instance, transition: transition.into() })
    }
}

/// One server of the store.
pub struct Server(
    /// As for [`Conversation::circuit`].
    RefCell<engine::Node>,
);

impl GuestNode for Server {
    fn new() -> Self {
        Self(RefCell::new(engine::Node::new()))
    }

    fn now(&self, host: u64) -> Result<Option<u64>, Error> {
        let host = moment(host)?;
        Ok(self.0.borrow().now(host).map(core::Millis::get))
    }

    fn is_asked(&self) -> bool {
        self.0.borrow().is_asked()
    }

    fn replaced(&self) -> Option<Health> {
        self.0.borrow_mut().replaced().map(Into::into)
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
        instance: String,
        naming: Naming,
        layers: Vec<Vec<Setting>>,
    ) -> Result<Circuit, Error> {
        let naming = naming.into();
        let (config, options) = build(naming, &layers, SharedOptions::build)?;
        let circuit = SharedCircuit::new(&name, &prefix, nonce, &instance, config, options)?;
        Ok(Circuit::new(Self { circuit: RefCell::new(circuit), naming }))
    }

    fn next_ask(&self) -> Option<Ask> {
        let mut circuit = self.circuit.borrow_mut();
        let engine::Ask { ticket, command, by_text, delay_ms, args } = circuit.next_ask()?;
        let keys = circuit.keys();
        let command = match command {
            engine::Command::Run(script) => Command::Run(Invocation {
                script: script.into(),
                by_text,
                keys: keys.of(script).to_vec(),
                arguments: args,
            }),
            engine::Command::Time => Command::Time(keys.routing().into()),
            engine::Command::TryWrite => Command::TryWrite(keys.routing().into()),
        };
        Some(Ask { ticket, command, delay_ms })
    }

    fn admit(&self, node: NodeBorrow<'_>, at: Times) -> Result<Begun, Error> {
        let at = times(at)?;
        Ok(self.circuit.borrow_mut().admit(&mut server(&node), at).into())
    }

    fn admit_unasked(&self, at: Times) -> Result<Step, Error> {
        let at = times(at)?;
        Ok(self.circuit.borrow_mut().admit_unasked(at).into())
    }

    fn free_until(&self) -> Option<Free> {
        let (permit, begins, ends) = self.circuit.borrow().free_until()?;
        Some(Free { permit: permit.into(), begins: begins.get(), ends: ends.get() })
    }

    fn settle(
        &self,
        node: NodeBorrow<'_>,
        at: Times,
        permit: Option<Permit>,
        outcome: Outcome,
    ) -> Result<Begun, Error> {
        let at = times(at)?;
        let permit = permit.map(Into::into);
        Ok(self.circuit.borrow_mut().settle(&mut server(&node), at, permit, outcome.into()).into())
    }

    fn success_is_free(&self) -> bool {
        self.circuit.borrow().success_is_free()
    }

    fn get_state(&self, node: NodeBorrow<'_>, at: Times) -> Result<Begun, Error> {
        let at = times(at)?;
        Ok(self.circuit.borrow_mut().get_state(&mut server(&node), at).into())
    }

    fn control(&self, node: NodeBorrow<'_>, at: Times, operation: Operation) -> Result<Begun, Error> {
        let at = times(at)?;
        let control = match operation {
            Operation::Reset => engine::Control::Reset,
            Operation::Trip(how_long) => engine::Control::Trip { for_ms: for_ms(self.naming, how_long)? },
            Operation::ForceOpen => engine::Control::ForceOpen,
            Operation::Disable => engine::Control::Disable,
        };
        Ok(self.circuit.borrow_mut().control(&mut server(&node), at, control)?.into())
    }

    fn on_reading(&self, node: NodeBorrow<'_>, at: Times, ticket: u64, fields: Reading) -> Result<Step, Error> {
        let at = times(at)?;
        let (state, mode, epoch, opened_at, open_ms) = &fields;
        let fields = [state, mode, epoch, opened_at, open_ms].map(Option::as_deref);
        Ok(self.circuit.borrow_mut().on_reading(&mut server(&node), at, ticket, fields).into())
    }

    fn on_reply(&self, node: NodeBorrow<'_>, at: Times, ticket: u64, reply: Vec<i64>) -> Result<Step, Error> {
        let at = times(at)?;
        Ok(self.circuit.borrow_mut().on_reply(&mut server(&node), at, ticket, &reply).into())
    }

    fn on_error(&self, node: NodeBorrow<'_>, at: Times, ticket: u64, message: String) -> Result<Step, Error> {
        let at = times(at)?;
        Ok(self.circuit.borrow_mut().on_error(&mut server(&node), at, ticket, &message).into())
    }

    fn on_deadline(&self, node: NodeBorrow<'_>, at: Times, ticket: u64) -> Result<Step, Error> {
        let at = times(at)?;
        Ok(self.circuit.borrow_mut().on_deadline(&mut server(&node), at, ticket).into())
    }

    fn on_event(&self, node: NodeBorrow<'_>, at: Times, message: String) -> Result<bool, Error> {
        let at = times(at)?;
        let heard = engine::Announcement::parse(&message);
        Ok(heard.is_some_and(|heard| self.circuit.borrow_mut().on_event(&server(&node), at, &heard)))
    }

    fn in_flight(&self) -> u32 {
        u32::try_from(self.circuit.borrow().in_flight()).unwrap_or(u32::MAX)
    }
}

/// The core's server behind a host's handle.
fn server<'a>(node: &'a NodeBorrow<'_>) -> RefMut<'a, engine::Node> {
    node.get::<Server>().0.borrow_mut()
}

/// The two times, checked.
fn times(Times { host, store }: Times) -> Result<engine::Times, Error> {
    Ok(engine::Times { host: moment(host)?, store: store.map(moment).transpose()? })
}

impl From<engine::Begun> for Begun {
    fn from(begun: engine::Begun) -> Self {
        match begun {
            engine::Begun::Answered(step) => Self::Answered(step.into()),
            engine::Begun::Wait(ticket) => Self::Wait(ticket),
            engine::Begun::Join(ticket) => Self::Join(ticket),
        }
    }
}

impl From<engine::Step> for Step {
    fn from(step: engine::Step) -> Self {
        let engine::Step { answer, others, transition, counted, config_mismatch, malformed, health } = step;
        Self {
            answer: answer.map(Into::into),
            others: others.into(),
            transition: transition.map(Into::into),
            counted,
            config_mismatch,
            malformed,
            health: health.map(Into::into),
        }
    }
}

impl From<engine::Others> for Others {
    fn from(others: engine::Others) -> Self {
        match others {
            engine::Others::Share => Self::Share,
            engine::Others::AskAgain => Self::AskAgain,
            engine::Others::GoOn => Self::GoOn,
        }
    }
}

impl From<engine::Health> for Health {
    fn from(health: engine::Health) -> Self {
        match health {
            engine::Health::Degraded(whose) => Self::Degraded(whose.into()),
            engine::Health::Restored(whose) => Self::Restored(whose.into()),
        }
    }
}

impl From<engine::Whose> for Whose {
    fn from(whose: engine::Whose) -> Self {
        match whose {
            engine::Whose::Node => Self::Node,
            engine::Whose::Circuit => Self::Circuit,
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
            engine::PermitKind::LocalClosed => PermitKind::LocalClosed,
            engine::PermitKind::LocalProbe => PermitKind::LocalProbe,
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
            PermitKind::LocalClosed => engine::PermitKind::LocalClosed,
            PermitKind::LocalProbe => engine::PermitKind::LocalProbe,
        };
        Self { kind, epoch, id: engine::CallId { nonce, counter } }
    }
}
