//! The right to one call of a shared circuit.

use super::call::CallId;

/// The right to one call of a shared circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedPermit {
    /// Who gave it, and while the circuit was what.
    pub kind: PermitKind,
    /// The period it was given in, by the clock of who gave it; its outcome is stale in any other.
    pub epoch: u64,
    /// Names the probe. A call admitted while CLOSED gets its name when there is something to tell of it; until then the
    /// counter is the period of this process's own breaker, which is fed with the outcome too.
    pub id: CallId,
}

/// Who gave a permit, and while the circuit was what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermitKind {
    /// The store, while CLOSED.
    Closed,
    /// The store, while HALF_OPEN: holds a slot there.
    Probe,
    /// While disabled: its outcome is never counted.
    Bypass,
    /// Nobody: the store did not answer and the circuit fails open. Its outcome is never counted.
    Unasked,
    /// This process's own breaker, while CLOSED: the store was not asked, and does not hear of it.
    LocalClosed,
    /// This process's own breaker, while HALF_OPEN: holds a slot there, and none in the store.
    LocalProbe,
}

impl PermitKind {
    /// Whether it holds one of the slots of a half-open circuit.
    #[must_use]
    pub const fn is_probe(self) -> bool {
        matches!(self, Self::Probe | Self::LocalProbe)
    }
}
