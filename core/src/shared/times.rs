//! The two times of a shared circuit.

use super::node::Node;
use crate::time::Millis;

/// What time it is, to the host and to the store.
///
/// The host's time only ever goes forward: caches, deadlines and guards are measured by it. The store's time goes into the
/// commands, so that a fleet whose clocks differ trips and probes together (DESIGN 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The host's monotonic time, in milliseconds.
    pub host: Millis,
    /// The store's time, where the user has said what it is. Else it is what the [`Node`](super::Node) was heard to say.
    pub store: Option<Millis>,
}

impl Times {
    /// One clock for both, as where the user gives one.
    #[must_use]
    pub const fn one(now: Millis) -> Self {
        Self { host: now, store: Some(now) }
    }

    /// The store's time, as far as it is known.
    pub(super) fn at_store(&self, node: &Node) -> Option<Millis> {
        self.store.or_else(|| node.clock.now(self.host))
    }

    /// The host's time; the store's is what the node says.
    #[must_use]
    pub const fn host(now: Millis) -> Self {
        Self { host: now, store: None }
    }
}
