//! Whether the store is worth asking, and what its guards hear.

use super::super::call::Command;
use super::super::conversation::{Conversation, Goal, Request};
use super::super::fault::Fault;
use super::super::guard::Leave;
use super::super::node::{Health, Node, Way, Whose};
use super::super::times::Times;
use super::SharedCircuit;
use crate::time::Millis;

/// What was heard of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Answer,
    Fault(Fault),
}

impl SharedCircuit {
    /// Whether a command of a caller's is sent. Where it is not, a guard may want to know whether that is still right.
    pub(super) fn may_ask(&mut self, node: &mut Node, way: Way, at: Times) -> bool {
        for (whose, leave) in
            [(Whose::Node, node.guards.of(way).leave(at.host)), (Whose::Circuit, self.guards.of(way).leave(at.host))]
        {
            match leave {
                Leave::Ask => {}
                Leave::Keep => return false,
                Leave::Probe(permit) => {
                    let request = match way {
                        Way::Read => Request::read(),
                        Way::Write => Request::Plain(Command::TryWrite),
                    };
                    self.begin(Goal::Probe { whose, permit }, request, node, at);
                    return false;
                }
            }
        }
        true
    }

    /// Lets a guard that is open look whether the store is back, for a call that asks nothing this way itself: while this
    /// process refuses there may be none that does for as long as that takes, and where all is well none that has to write.
    pub(super) fn look(&mut self, node: &mut Node, way: Way, at: Times) {
        self.may_ask(node, way, at);
    }

    /// Whether callers' commands are sent.
    pub(super) fn is_asked(&mut self, node: &mut Node, way: Way) -> bool {
        node.guards.of(way).is_closed() && self.guards.of(way).is_closed()
    }

    /// Tells the guards what became of a command.
    pub(super) fn heard(&mut self, node: &mut Node, host: Millis, talk: &Conversation, heard: Heard) -> Option<Health> {
        if talk.answered {
            // It was counted at its deadline.
            return None;
        }
        let way = talk.way();
        let [node_ok, circuit_ok] = match heard {
            Heard::Answer => [true, true],
            Heard::Fault(Fault::Circuit) => [true, false],
            Heard::Fault(Fault::Node) => [false, true],
        };
        match talk.goal {
            Goal::Probe { whose: Whose::Node, permit } => node.guards.of(way).probed(host, Some(permit), node_ok),
            Goal::Probe { whose: Whose::Circuit, permit } if node_ok => {
                self.guards.of(way).probed(host, Some(permit), circuit_ok);
            }
            Goal::Probe { whose: Whose::Circuit, permit } => self.guards.of(way).released(host, permit),
            _ => {
                node.guards.of(way).heard(host, node_ok);
                // What is wrong with the node says nothing of the circuit.
                if node_ok {
                    self.guards.of(way).heard(host, circuit_ok);
                }
            }
        }
        node.guards.news(Whose::Node).or_else(|| self.guards.news(Whose::Circuit))
    }
}
