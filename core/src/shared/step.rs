//! What comes of what a host says to the engine.

use super::node::Health;
use super::permit::SharedPermit;
use crate::breaker::State;
use crate::permit::{Settlement, Transition};
use crate::snapshot::Snapshot;

/// What a question comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The answer is there already.
    Answered(Step),
    /// It comes with this ticket, at the deadline at the latest: the host says when that is.
    Wait(u64),
    /// Somebody else has asked already: it comes with this ticket, as [`Step::others`] says.
    Join(u64),
}

/// What came of a question, a reply, an error or a deadline: each part may be there or not. What there is to send stands in
/// [`SharedCircuit::next_ask`](super::SharedCircuit::next_ask).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The answer to what was asked; comes at most once per ticket.
    pub answer: Option<Answer>,
    /// What an admission's answer is to those who joined it.
    pub others: Others,
    /// The change of state that this process's call made, for its listeners.
    pub transition: Option<Transition>,
    /// The outcome that was told has counted; said also when it comes too late for an answer.
    pub counted: bool,
    /// The half-open period runs by another configuration than ours; said once per circuit and process.
    pub config_mismatch: bool,
    /// The reply was none that a script of ours gives: the same as an error.
    pub malformed: bool,
    /// How the store is, if that has changed.
    pub health: Option<Health>,
}

/// What an admission's answer is to those who joined it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Others {
    /// Theirs as well.
    #[default]
    Share,
    /// None: they ask again, the first for the rest.
    AskAgain,
    /// None, and the store is not to be waited for any longer: each gets its own of
    /// [`SharedCircuit::admit_unasked`](super::SharedCircuit::admit_unasked).
    GoOn,
}

/// The answer to what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call may go ahead; settle it with this permit.
    Granted(SharedPermit),
    /// The call may not go ahead.
    Refused {
        /// What refused it.
        state: State,
        /// Milliseconds until a request may be admitted; none if unknown.
        retry_after: Option<u64>,
    },
    /// The store did not answer in time, or answered with an error.
    Unavailable,
    /// Whether the outcome counted.
    Settled(Settlement),
    /// The manual operation was done.
    Controlled,
    /// The circuit as the store knows it; while that cannot be asked, and this process decides, as this process knows it.
    Snapshot(Snapshot),
}

impl Step {
    pub(super) const fn of(answer: Answer) -> Self {
        Self {
            answer: Some(answer),
            others: Others::Share,
            transition: None,
            counted: false,
            config_mismatch: false,
            malformed: false,
            health: None,
        }
    }
}
