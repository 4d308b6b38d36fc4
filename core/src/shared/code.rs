//! The engine's answers as numbers, for hosts where an object for each call costs more than the call: what all that happens
//! per call answers is one number, and the details of the last answer are asked for where it says that there are some.

use alloc::collections::VecDeque;

use super::call::{Ask, CallId, Command, Script};
use super::circuit::{Control, SharedCircuit};
use super::node::{Health, Node, Whose};
use super::permit::{PermitKind, SharedPermit};
use super::step::{Answer, Begun, Others, Step};
use super::times::Times;
use crate::breaker::State;
use crate::error::ConfigError;
use crate::permit::{Outcome, Settlement};
use crate::time::Millis;

/// There is no answer yet.
pub const NO_ANSWER: u32 = 0;
/// Granted, with a permit of this kind; it comes back by the same number.
pub const GRANTED_CLOSED: u32 = 1;
/// See [`PermitKind::Probe`].
pub const GRANTED_PROBE: u32 = 2;
/// See [`PermitKind::Bypass`].
pub const GRANTED_BYPASS: u32 = 3;
/// See [`PermitKind::Unasked`].
pub const GRANTED_UNASKED: u32 = 4;
/// See [`PermitKind::LocalClosed`].
pub const GRANTED_LOCAL_CLOSED: u32 = 5;
/// See [`PermitKind::LocalProbe`].
pub const GRANTED_LOCAL_PROBE: u32 = 6;
/// Refused by an open circuit.
pub const REFUSED_OPEN: u32 = 7;
/// Refused by a half-open circuit.
pub const REFUSED_HALF_OPEN: u32 = 8;
/// See [`Answer::Unavailable`].
pub const UNAVAILABLE: u32 = 9;
/// The outcome did not count.
pub const STALE: u32 = 10;
/// The outcome counted.
pub const APPLIED: u32 = 11;
/// See [`Answer::Controlled`].
pub const CONTROLLED: u32 = 12;
/// See [`Answer::Snapshot`].
pub const SNAPSHOT: u32 = 13;
/// See [`Begun::Join`]: somebody has asked already, by the admission that was begun last.
pub const JOIN: u32 = 14;
/// The bits of the values above. All others are flags.
pub const ANSWER: u32 = 31;

/// There is something to send.
pub const ASK: u32 = 1 << 5;
/// See [`Step::transition`].
pub const TRANSITION: u32 = 1 << 6;
/// See [`Step::config_mismatch`].
pub const CONFIG_MISMATCH: u32 = 1 << 7;
/// See [`Step::malformed`].
pub const MALFORMED: u32 = 1 << 8;
/// See [`Step::counted`].
pub const COUNTED: u32 = 1 << 9;
/// See [`Others::AskAgain`].
pub const OTHERS_ASK_AGAIN: u32 = 1 << 10;
/// See [`Others::GoOn`].
pub const OTHERS_GO_ON: u32 = 1 << 11;
/// See [`Health::Degraded`].
pub const DEGRADED: u32 = 1 << 12;
/// See [`Health::Restored`].
pub const RESTORED: u32 = 1 << 13;
/// What has changed is about this circuit alone: see [`Whose::Circuit`].
pub const OF_CIRCUIT: u32 = 1 << 14;
/// The permit is not the closed one that was told last: its numbers are to be asked for.
pub const NEW_PERMIT: u32 = 1 << 15;

/// The kind of permit that a value stands for; none if it stands for none.
#[must_use]
pub const fn permit_kind(value: u32) -> Option<PermitKind> {
    match value {
        GRANTED_CLOSED => Some(PermitKind::Closed),
        GRANTED_PROBE => Some(PermitKind::Probe),
        GRANTED_BYPASS => Some(PermitKind::Bypass),
        GRANTED_UNASKED => Some(PermitKind::Unasked),
        GRANTED_LOCAL_CLOSED => Some(PermitKind::LocalClosed),
        GRANTED_LOCAL_PROBE => Some(PermitKind::LocalProbe),
        _ => None,
    }
}

/// A circuit whose methods answer numbers.
///
/// What begins something answers a code, 0 or more, where the answer is there already; else it is to be waited for. Then the
/// number is negative: of `n = -answer` the ticket is `n / 2`, and `n % 2` says whether what is to be sent is to be asked for;
/// where it is 0, it is the command that begins every admission, and nothing else.
#[derive(Debug)]
pub struct CodedCircuit {
    engine: SharedCircuit,
    nonce: u64,
    last: Step,
    asks: VecDeque<Ask>,
    /// The permit of a closed circuit whose numbers the host has.
    told: Option<SharedPermit>,
    /// What the host knows of what need not be asked.
    free: Option<(SharedPermit, Millis, Millis)>,
}

/// What need not be asked, as [`SharedCircuit::free_until`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Free {
    /// What it was when the host asked last.
    AsBefore,
    /// Nothing.
    Nothing,
    /// The permit, from when and until when.
    While(SharedPermit, Millis, Millis),
}

impl CodedCircuit {
    /// `nonce` is that of the engine.
    #[must_use]
    pub fn new(engine: SharedCircuit, nonce: u64) -> Self {
        Self { engine, nonce, last: Step::default(), asks: VecDeque::new(), told: None, free: None }
    }

    /// The engine that answers.
    #[must_use]
    pub const fn engine(&self) -> &SharedCircuit {
        &self.engine
    }

    /// What came last; its details are what a code leaves out.
    #[must_use]
    pub const fn last(&self) -> &Step {
        &self.last
    }

    /// The permit that was granted last, if one was. The host knows it from then on.
    pub fn permit(&mut self) -> Option<SharedPermit> {
        let Some(Answer::Granted(permit)) = self.last.answer else { return None };
        if permit.kind == PermitKind::Closed {
            self.told = Some(permit);
        }
        Some(permit)
    }

    /// Whether there may ever be anything that need not be asked: only then has a host to keep up with it.
    #[must_use]
    pub const fn may_be_free(&self) -> bool {
        self.engine.options().closed_cache_ms > 0
    }

    /// What need not be asked until the next call of any method, where that is not what the host knows already.
    pub fn free(&mut self) -> Free {
        let free = self.engine.free_until();
        if core::mem::replace(&mut self.free, free) == free {
            return Free::AsBefore;
        }
        free.map_or(Free::Nothing, |(permit, from, until)| Free::While(permit, from, until))
    }

    /// The next command to send, until there is none.
    pub fn next_ask(&mut self) -> Option<Ask> {
        self.asks.pop_front()
    }

    /// See [`SharedCircuit::admit`].
    pub fn admit(&mut self, node: &mut Node, at: Times) -> i64 {
        let begun = self.engine.admit(node, at);
        self.begun(begun)
    }

    /// See [`SharedCircuit::admit_unasked`].
    pub fn admit_unasked(&mut self, at: Times) -> u32 {
        let step = self.engine.admit_unasked(at);
        self.keep(step)
    }

    /// See [`SharedCircuit::settle`]; the permit is what stands for its kind (0: none), its epoch and its counter.
    pub fn settle(&mut self, node: &mut Node, at: Times, permit: (u32, u64, u64), outcome: Outcome) -> i64 {
        let (kind, epoch, counter) = permit;
        let id = CallId { nonce: self.nonce, counter };
        let permit = permit_kind(kind).map(|kind| SharedPermit { kind, epoch, id });
        let begun = self.engine.settle(node, at, permit, outcome);
        self.begun(begun)
    }

    /// See [`SharedCircuit::get_state`].
    pub fn get_state(&mut self, node: &mut Node, at: Times) -> i64 {
        let begun = self.engine.get_state(node, at);
        self.begun(begun)
    }

    /// See [`SharedCircuit::control`].
    ///
    /// # Errors
    /// [`ConfigError`] if the length of a trip is no duration.
    pub fn control(&mut self, node: &mut Node, at: Times, control: Control) -> Result<i64, ConfigError> {
        let begun = self.engine.control(node, at, control)?;
        Ok(self.begun(begun))
    }

    /// See [`SharedCircuit::on_reading`].
    pub fn on_reading(&mut self, node: &mut Node, at: Times, ticket: u64, fields: [Option<&str>; 5]) -> u32 {
        let step = self.engine.on_reading(node, at, ticket, fields);
        self.keep(step)
    }

    /// See [`SharedCircuit::on_reply`].
    pub fn on_reply(&mut self, node: &mut Node, at: Times, ticket: u64, reply: &[i64]) -> u32 {
        let step = self.engine.on_reply(node, at, ticket, reply);
        self.keep(step)
    }

    /// See [`SharedCircuit::on_error`].
    pub fn on_error(&mut self, node: &mut Node, at: Times, ticket: u64, error: &str) -> u32 {
        let step = self.engine.on_error(node, at, ticket, error);
        self.keep(step)
    }

    /// See [`SharedCircuit::on_deadline`].
    pub fn on_deadline(&mut self, node: &mut Node, at: Times, ticket: u64) -> u32 {
        let step = self.engine.on_deadline(node, at, ticket);
        self.keep(step)
    }

    /// See [`SharedCircuit::on_event`].
    pub fn on_event(&mut self, node: &Node, at: Times, announcement: &super::Announcement) -> bool {
        self.engine.on_event(node, at, announcement)
    }

    fn begun(&mut self, begun: Begun) -> i64 {
        match begun {
            Begun::Answered(step) => i64::from(self.keep(step)),
            Begun::Join(_) => i64::from(JOIN),
            Begun::Wait(ticket) => {
                self.collect();
                let is_read =
                    |ask: &Ask| ask.ticket == ticket && ask.command == Command::Run(Script::Admit) && !ask.by_text;
                let plain = self.asks.len() == 1 && self.asks.front().is_some_and(is_read);
                if plain {
                    self.asks.clear();
                }
                -(i64::try_from(ticket).unwrap_or(i64::MAX / 2) * 2 + i64::from(!plain))
            }
        }
    }

    /// Keeps the step for whoever asks, and says what it holds.
    fn keep(&mut self, step: Step) -> u32 {
        self.collect();
        let is_told = matches!(step.answer, Some(Answer::Granted(permit)) if self.told == Some(permit));
        let code = code(&step) | flag(!self.asks.is_empty(), ASK);
        self.last = step;
        if is_told { code & !NEW_PERMIT } else { code }
    }

    fn collect(&mut self) {
        while let Some(ask) = self.engine.next_ask() {
            self.asks.push_back(ask);
        }
    }
}

fn code(step: &Step) -> u32 {
    let others = match step.others {
        Others::Share => 0,
        Others::AskAgain => OTHERS_ASK_AGAIN,
        Others::GoOn => OTHERS_GO_ON,
    };
    let health = match step.health {
        None => 0,
        Some(Health::Degraded(whose)) => DEGRADED | self::whose(whose),
        Some(Health::Restored(whose)) => RESTORED | self::whose(whose),
    };
    step.answer.map_or(NO_ANSWER, answer)
        | flag(matches!(step.answer, Some(Answer::Granted(_))), NEW_PERMIT)
        | flag(step.transition.is_some(), TRANSITION)
        | flag(step.config_mismatch, CONFIG_MISMATCH)
        | flag(step.malformed, MALFORMED)
        | flag(step.counted, COUNTED)
        | others
        | health
}

const fn answer(answer: Answer) -> u32 {
    match answer {
        Answer::Granted(SharedPermit { kind, .. }) => match kind {
            PermitKind::Closed => GRANTED_CLOSED,
            PermitKind::Probe => GRANTED_PROBE,
            PermitKind::Bypass => GRANTED_BYPASS,
            PermitKind::Unasked => GRANTED_UNASKED,
            PermitKind::LocalClosed => GRANTED_LOCAL_CLOSED,
            PermitKind::LocalProbe => GRANTED_LOCAL_PROBE,
        },
        Answer::Refused { state: State::HalfOpen, .. } => REFUSED_HALF_OPEN,
        Answer::Refused { state: State::Open | State::Closed, .. } => REFUSED_OPEN,
        Answer::Unavailable => UNAVAILABLE,
        Answer::Settled(Settlement::Stale) => STALE,
        Answer::Settled(Settlement::Applied) => APPLIED,
        Answer::Controlled => CONTROLLED,
        Answer::Snapshot(_) => SNAPSHOT,
    }
}

const fn whose(whose: Whose) -> u32 {
    match whose {
        Whose::Node => 0,
        Whose::Circuit => OF_CIRCUIT,
    }
}

const fn flag(is_set: bool, flag: u32) -> u32 {
    if is_set { flag } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::shared::{Keys, SharedOptions};

    fn at(ms: u64) -> Times {
        Times::one(Millis::new(ms).unwrap())
    }

    fn circuit() -> CodedCircuit {
        let config = Config::default();
        let options = SharedOptions::for_config(&config);
        CodedCircuit::new(SharedCircuit::new("c", Keys::DEFAULT_PREFIX, 7, "i", config, options).unwrap(), 7)
    }

    #[test]
    fn a_healthy_call_is_two_numbers_and_its_permit_is_told_once() {
        let (mut circuit, mut node) = (circuit(), Node::new());
        assert_eq!(circuit.admit(&mut node, at(1)), -2);
        assert_eq!(circuit.next_ask(), None, "what is to be sent is always the same");
        assert_eq!(circuit.admit(&mut node, at(1)), i64::from(JOIN));
        assert_eq!(circuit.on_reading(&mut node, at(2), 1, [None; 5]), GRANTED_CLOSED | NEW_PERMIT);
        assert_eq!(circuit.permit().map(|permit| permit.epoch), Some(0));
        assert_eq!(circuit.admit(&mut node, at(3)), -4);
        assert_eq!(circuit.on_reading(&mut node, at(4), 2, [None; 5]), GRANTED_CLOSED);
        circuit.admit(&mut node, at(5));
        let later = [None, None, Some("5"), None, None];
        assert_eq!(circuit.on_reading(&mut node, at(6), 3, later), GRANTED_CLOSED | NEW_PERMIT);
    }

    #[test]
    fn what_need_not_be_asked_is_told_when_it_changes() {
        let config = Config::default();
        let options = SharedOptions { closed_cache_ms: 50, ..SharedOptions::for_config(&config) };
        let engine = SharedCircuit::new("c", Keys::DEFAULT_PREFIX, 7, "i", config, options).unwrap();
        let (mut circuit, mut node) = (CodedCircuit::new(engine, 7), Node::new());
        assert!(circuit.may_be_free());
        assert_eq!(circuit.free(), Free::AsBefore);
        circuit.admit(&mut node, at(10));
        circuit.on_reading(&mut node, at(12), 1, [None; 5]);
        let permit = circuit.permit().unwrap();
        assert_eq!(circuit.free(), Free::While(permit, at(10).host, at(60).host));
        assert_eq!(circuit.free(), Free::AsBefore);
        circuit.admit(&mut node, at(60));
        circuit.on_reading(&mut node, at(61), 2, [Some("open"), None, Some("9"), Some("60"), Some("50")]);
        assert_eq!(circuit.free(), Free::Nothing);
        assert_eq!(circuit.free(), Free::AsBefore);
    }

    #[test]
    fn what_is_more_than_a_reading_is_asked_for() {
        let (mut circuit, mut node) = (circuit(), Node::new());
        let host = Times::host(Millis::new(1).unwrap());
        assert_eq!(circuit.admit(&mut node, host), -3);
        let ask = circuit.next_ask().unwrap();
        assert_eq!((ask.ticket, ask.command), (1, Command::Time));
        assert_eq!(circuit.on_reply(&mut node, host, 1, &[1, 0]), ASK);
        assert_eq!(circuit.next_ask().map(|ask| ask.command), Some(Command::Run(Script::Admit)));
        assert_eq!(circuit.next_ask(), None);
        assert_eq!(circuit.settle(&mut node, host, (GRANTED_CLOSED, 0, 0), Outcome::Failure), -5);
        assert!(circuit.next_ask().is_some());
    }

    #[test]
    fn a_permit_comes_back_as_it_went() {
        for kind in [
            PermitKind::Closed,
            PermitKind::Probe,
            PermitKind::Bypass,
            PermitKind::Unasked,
            PermitKind::LocalClosed,
            PermitKind::LocalProbe,
        ] {
            let permit = SharedPermit { kind, epoch: 1, id: CallId { nonce: 7, counter: 3 } };
            assert_eq!(permit_kind(answer(Answer::Granted(permit))), Some(kind));
        }
        assert_eq!(permit_kind(NO_ANSWER), None);
        assert_eq!(permit_kind(REFUSED_OPEN), None);
    }

    #[test]
    fn an_outage_says_what_it_means_to_all() {
        let (mut circuit, mut node) = (circuit(), Node::new());
        for ticket in 1..=3 {
            circuit.admit(&mut node, at(ticket));
            let code = circuit.on_error(&mut node, at(ticket), ticket, "LOADING");
            assert_eq!(code & ANSWER, GRANTED_LOCAL_CLOSED);
            assert_eq!(code & OTHERS_GO_ON, OTHERS_GO_ON);
            assert_eq!(code & DEGRADED, flag(ticket == 3, DEGRADED));
            assert_eq!(code & OF_CIRCUIT, 0);
        }
        assert_eq!(circuit.admit_unasked(at(9)) & ANSWER, GRANTED_LOCAL_CLOSED);
    }
}
