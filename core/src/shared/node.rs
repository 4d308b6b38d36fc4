//! One server of the store: what time it has, and whether it is worth asking.

use super::clock::NodeClock;
use super::guard::Guard;
use crate::time::Millis;

/// One server of the store as this process knows it: a standalone server, or a master of a cluster.
///
/// All circuits that live there share it. A host keeps one for each, by whatever name its client knows it, and hands it to
/// the circuit with each call.
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) clock: NodeClock,
    pub(super) guards: Guards,
}

/// What a command asks of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To be read.
    Read,
    /// To be written to: a replica given by mistake, or a full disk, may be read only.
    Write,
}

/// One guard for each way.
#[derive(Clone, Debug)]
pub(super) struct Guards {
    read: Guard,
    write: Guard,
    /// Whether somebody was told that one is open.
    told: bool,
}

/// How the store is, when that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It is not asked any more: what the circuit does meanwhile is `onStoreFailure`.
    Degraded(Whose),
    /// It is asked again.
    Restored(Whose),
}

/// Whom a change of health is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The node, and so every circuit there.
    Node,
    /// This circuit alone: its key is of another type, say, or its user lacks a right.
    Circuit,
}

impl Node {
    /// A server of which nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self { clock: NodeClock::default(), guards: Guards::new() }
    }

    /// The server's time; none as long as it has not been asked.
    #[must_use]
    pub fn now(&self, host: Millis) -> Option<Millis> {
        self.clock.now(host)
    }

    /// Another server has taken over what this one had, as after a failover: nobody will ask this one whether it is back. That
    /// it is no trouble any more, if it was said to be.
    pub fn replaced(&mut self) -> Option<Health> {
        let told = self.guards.told;
        self.guards = Guards::new();
        told.then_some(Health::Restored(Whose::Node))
    }

    /// Whether callers' commands are sent there.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.guards.all_closed()
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::new()
    }
}

impl Guards {
    pub(super) fn new() -> Self {
        Self { read: Guard::new(), write: Guard::new(), told: false }
    }

    pub(super) const fn of(&mut self, way: Way) -> &mut Guard {
        match way {
            Way::Read => &mut self.read,
            Way::Write => &mut self.write,
        }
    }

    pub(super) fn all_closed(&self) -> bool {
        self.read.is_closed() && self.write.is_closed()
    }

    /// What has changed since it was asked last: once when the first guard opens, once when the last one has closed.
    pub(super) fn news(&mut self, whose: Whose) -> Option<Health> {
        let is_open = !self.all_closed();
        if core::mem::replace(&mut self.told, is_open) == is_open {
            return None;
        }
        Some(if is_open { Health::Degraded(whose) } else { Health::Restored(whose) })
    }
}
