//! What an admission hands out and a settlement takes back.

use crate::breaker::State;
use crate::time::Millis;

/// The right to one call, and the proof of when it was given: the outcome is settled with it (DESIGN 3.3, 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permit {
    /// Given while CLOSED.
    Closed {
        /// The period it was given in; its outcome is stale in any other.
        epoch: u64,
    },
    /// Given while HALF_OPEN: holds one of the `halfOpenMaxCalls` slots.
    Probe {
        /// The half-open period it was given in; its outcome is stale in any other.
        epoch: u64,
        /// Names its slot.
        id: u64,
    },
    /// Given while disabled: its outcome is never counted.
    Bypass,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The dependency did its work.
    Success,
    /// The dependency failed.
    Failure,
    /// Neither, as when the caller cancelled: counted nowhere, only the slot is freed.
    Release,
}

/// Whether an outcome counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Settlement {
    /// It was taken by the period it belongs to.
    Applied,
    /// It came from another period, and changed nothing.
    Stale,
}

impl Settlement {
    /// `applied` or `stale`, as hosts and vectors spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Stale => "stale",
        }
    }
}

/// The answer to a request, and the transition that answering it made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Whether the call may go ahead.
    pub decision: Decision,
    /// OPEN -> HALF_OPEN, when this request is the first after the open duration.
    pub transition: Option<Transition>,
}

/// Whether a call may go ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may; settle it with this permit.
    Allowed(Permit),
    /// It may not. A refusal carries its answer: when to come back.
    Refused {
        /// What refused it: OPEN (also when forced open) or HALF_OPEN with every slot taken.
        state: State,
        /// Milliseconds until a request may be admitted; none while forced open, which only an operator ends.
        retry_after: Option<u64>,
    },
}

/// What a settlement did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Whether the outcome counted.
    pub status: Settlement,
    /// The trip or the close it caused.
    pub transition: Option<Transition>,
}

/// A change of the state as callers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// When, on the clock of the call that made it.
    pub at: Millis,
    /// Why.
    pub reason: Reason,
    /// The failures counted when a threshold tripped, the last one included; 0 for every other reason.
    pub failures: u64,
    /// The length of the opening in milliseconds, when the machine opened; none when an operator holds it open.
    pub open_ms: Option<u64>,
    /// The epoch that began with it.
    pub epoch: u64,
}

/// Why the state changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The failures reached what `tripOn` allows.
    Threshold,
    /// The open duration was over and a request came.
    Cooldown,
    /// A probe failed.
    ProbeFailed,
    /// `successThreshold` probes succeeded.
    ProbesSucceeded,
    /// Someone said so: reset, trip, force open, disable.
    Manual,
}

impl Reason {
    /// Every reason, in the order of the wire contract.
    pub const ALL: [Self; 5] =
        [Self::Threshold, Self::Cooldown, Self::ProbeFailed, Self::ProbesSucceeded, Self::Manual];

    /// The reason as hosts spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Threshold => "threshold",
            Self::Cooldown => "cooldown",
            Self::ProbeFailed => "probe-failed",
            Self::ProbesSucceeded => "probes-succeeded",
            Self::Manual => "manual",
        }
    }
}
