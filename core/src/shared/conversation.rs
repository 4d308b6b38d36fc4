//! What is in flight: one question, what it is for, and what has been sent for it.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::call::{CallId, Command, Script};
use super::known::Asked;
use super::node::{Way, Whose};
use super::permit::SharedPermit;
use crate::permit::{Outcome, Permit};
use crate::time::Millis;

/// What a conversation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// A call wants in.
    Admission(CallId),
    /// An outcome is told, and its caller waits.
    Settlement {
        permit: Option<SharedPermit>,
        outcome: Outcome,
        host: Millis,
    },
    /// Successes are told, and nobody waits.
    Successes,
    /// A slot that nobody will use is given back.
    GiveBack(CallId),
    Control,
    Snapshot,
    /// The node's time is asked again.
    Clock,
    /// A guard wants to know whether the store is back.
    Probe {
        whose: Whose,
        permit: Permit,
    },
}

impl Goal {
    /// Whether somebody waits for the answer.
    pub(super) const fn is_awaited(self) -> bool {
        matches!(self, Self::Admission(_) | Self::Settlement { .. } | Self::Control | Self::Snapshot)
    }
}

/// What is asked of the store: a command, and those of its arguments that are no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Plain(Command),
    /// The arguments stand behind the time.
    Timed(Script, Vec<String>),
}

impl Request {
    pub(super) const fn read() -> Self {
        Self::Plain(Command::Run(Script::Admit))
    }

    pub(super) const fn command(&self) -> Command {
        match self {
            Self::Plain(command) => *command,
            Self::Timed(script, _) => Command::Run(*script),
        }
    }

    /// Whether what it means depends on the store's time: on what it is given, or on when its reply is read.
    pub(super) const fn needs_time(&self) -> bool {
        !matches!(self, Self::Plain(Command::Time | Command::TryWrite))
    }

    pub(super) fn args(&self, store: Millis) -> Vec<String> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Timed(_, rest) => {
                let mut args = vec![store.get().to_string()];
                args.extend_from_slice(rest);
                args
            }
        }
    }
}

/// What is in flight under one ticket.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    pub(super) goal: Goal,
    /// What is asked; sent again as it is when the node could not take it, for the id in it makes it count once.
    pub(super) request: Request,
    /// Whether the node's time was asked first, because nobody knew it.
    pub(super) asks_time: bool,
    /// When it was sent last.
    pub(super) asked: Asked,
    /// The store's time that it was given.
    pub(super) at: Millis,
    /// Whether the caller has its answer: what still comes is only tidied up.
    pub(super) answered: bool,
    pub(super) by_text: bool,
}

impl Conversation {
    /// One that has not been sent yet.
    pub(super) const fn new(goal: Goal, request: Request, host: Millis) -> Self {
        let asked = Asked { at: host, turn: 0 };
        Self { goal, request, asks_time: false, asked, at: host, answered: false, by_text: false }
    }

    /// What the command that is in flight asks of its server.
    pub(super) const fn way(&self) -> Way {
        match self.request.command() {
            _ if self.asks_time => Way::Read,
            Command::Time | Command::Run(Script::Admit | Script::GetState) => Way::Read,
            Command::TryWrite | Command::Run(_) => Way::Write,
        }
    }
}
