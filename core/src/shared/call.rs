//! What the engine asks the host to send.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The scripts of the wire contract (DESIGN section 4), in the order of the table that ships them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Script {
    /// The hot one: reads what answers CLOSED, OPEN and the manual modes. A plain `HMGET` of the
    /// [`ADMISSION_FIELDS`](super::ADMISSION_FIELDS) does the same for less, wherever reads go to the primary.
    Admit,
    /// The whole admission, with its writes.
    CanRequest,
    /// Settles a success.
    RecordSuccess,
    /// Settles a failure.
    RecordFailure,
    /// Frees a slot.
    Release,
    /// The snapshot.
    GetState,
    /// Reset, trip, force open, disable.
    Control,
}

impl Script {
    /// Every script, in the order of the table.
    pub const ALL: [Self; 7] = [
        Self::Admit,
        Self::CanRequest,
        Self::RecordSuccess,
        Self::RecordFailure,
        Self::Release,
        Self::GetState,
        Self::Control,
    ];

    /// The name, which is also that of its file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::CanRequest => "can_request",
            Self::RecordSuccess => "record_success",
            Self::RecordFailure => "record_failure",
            Self::Release => "release",
            Self::GetState => "get_state",
            Self::Control => "control",
        }
    }
}

/// What to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// `EVALSHA` of a script, with the circuit's [keys](super::SharedCircuit::keys) for it; of [`Script::Admit`] a host may
    /// send the plain `HMGET` instead. Its reply goes to [`on_reading`](super::SharedCircuit::on_reading), every other one to
    /// [`on_reply`](super::SharedCircuit::on_reply).
    Run(Script),
    /// `TIME`, to the node that has the circuit's keys. The reply is its two integers.
    Time,
    /// `HDEL {PN} ''`: needs all that a write needs, and changes nothing.
    TryWrite,
}

/// A command to send, and the ticket to hand back with what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Names the conversation that the reply, the error or the deadline belongs to.
    pub ticket: u64,
    /// What to send.
    pub command: Command,
    /// Whether to send the script's text (`EVAL`), because the node said that it does not know it.
    pub by_text: bool,
    /// Milliseconds to wait before sending; 0 almost always.
    pub delay_ms: u64,
    /// The arguments of a script, after the keys.
    pub args: Vec<String>,
}

/// Names a failure and a probe in the store, so that a command delivered twice counts once (DESIGN section 4).
///
/// Its text has a fixed width: the byte order of one process's ids is the order in which they were drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallId {
    /// Tells processes apart: drawn at random by the host, anew after fork and per worker thread.
    pub nonce: u64,
    /// Tells the calls of one process apart.
    pub counter: u64,
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:013x}", self.nonce, self.counter)
    }
}
