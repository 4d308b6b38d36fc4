//! How calls ended: what the store is told of it, and what this process's own breaker.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::super::call::{CallId, Script};
use super::super::conversation::{Goal, Request};
use super::super::node::{Node, Way};
use super::super::permit::{PermitKind, SharedPermit};
use super::super::times::Times;
use super::{STALE, SharedCircuit};
use crate::permit::{Outcome, Settled, Transition};
use crate::time::Millis;

impl SharedCircuit {
    /// The store has this outcome, so this process's own breaker learns of it. The transition, if callers notice one.
    pub(super) fn taken(&mut self, host: Millis, permit: Option<SharedPermit>, outcome: Outcome) -> Option<Transition> {
        match permit {
            Some(SharedPermit { kind: PermitKind::Probe, .. }) => None,
            permit => self.local.feed(host, permit.map(|permit| permit.id.counter), outcome, true).transition,
        }
    }

    /// The store has not taken this outcome, as far as is known: this process's own breaker has to see to it.
    pub(super) fn untaken(&mut self, host: Millis, permit: Option<SharedPermit>, outcome: Outcome) -> Settled {
        match (permit, outcome) {
            (Some(SharedPermit { kind: PermitKind::Probe, .. }), Outcome::Failure) => self.local.probe_failed(host),
            (Some(SharedPermit { kind: PermitKind::Probe, id, .. }), _) => {
                // Nobody uses its slot any more. That of a failure is kept until it times out: so long nobody need try again.
                self.owe(id);
                STALE
            }
            (permit, outcome) => self.local.feed(host, permit.map(|permit| permit.id.counter), outcome, false),
        }
    }

    pub(super) fn tell_successes(&mut self, node: &mut Node, at: Times) {
        if !self.may_ask(node, Way::Write, at) {
            self.successes.forget();
            return;
        }
        let Some((epoch, count)) = self.successes.send(self.last_ticket + 1) else { return };
        let id = self.draw_id().to_string();
        let mut args = self.outcome_args(id, epoch.to_string(), "0");
        args.extend([self.channel.clone(), self.origin.clone(), count.to_string()]);
        self.begin(Goal::Successes, Request::Timed(Script::RecordSuccess, args), node, at);
    }

    pub(super) fn outcome_request(&mut self, permit: Option<SharedPermit>, outcome: Outcome) -> Request {
        let (id, epoch, kind) = match permit {
            Some(SharedPermit { kind: PermitKind::Probe, epoch, id }) => (id.to_string(), epoch.to_string(), "1"),
            Some(SharedPermit { epoch, .. }) => (self.draw_id().to_string(), epoch.to_string(), "0"),
            // A release without a permit names no call: it frees the newest slot, whosever it is.
            None if outcome == Outcome::Release => (String::new(), NO_EPOCH.to_string(), "0"),
            None => (self.draw_id().to_string(), NO_EPOCH.to_string(), "0"),
        };
        let script = match outcome {
            Outcome::Success => Script::RecordSuccess,
            Outcome::Failure => Script::RecordFailure,
            Outcome::Release => Script::Release,
        };
        let id = if outcome == Outcome::Failure && kind == "0" { self.failure_member(id) } else { id };
        let mut args = self.outcome_args(id, epoch, kind);
        if outcome != Outcome::Release {
            args.extend([self.channel.clone(), self.origin.clone()]);
        }
        if outcome == Outcome::Failure {
            let successes = permit.map_or(0, |permit| self.successes.take(permit.epoch));
            args.extend([successes.to_string(), self.instance.clone()]);
        }
        Request::Timed(script, args)
    }

    pub(super) fn outcome_args(&self, id: String, epoch: String, kind: &str) -> Vec<String> {
        vec![id, epoch, kind.to_string(), self.config_arg.clone()]
    }

    /// What a failure is called in the window: by its own id, or where a quorum must agree by one of the few that each
    /// instance has, so that one instance alone never reaches the threshold.
    pub(super) fn failure_member(&mut self, id: String) -> String {
        if self.options.quorum.has_rings(&self.config) { self.ring.next_member(&self.instance) } else { id }
    }

    /// Gives back what this id may have been granted; where the store is not worth asking, as soon as it is.
    pub(super) fn give_back(&mut self, node: &mut Node, at: Times, id: CallId) {
        if self.may_ask(node, Way::Write, at) {
            self.send_back(node, at, id);
        } else {
            self.owe(id);
        }
    }

    /// This is still to be given back. No more can be owed than this process had slots when the guard opened.
    pub(super) fn owe(&mut self, id: CallId) {
        self.owed.push(id);
    }

    /// Gives back what could not be, if the store is asked again.
    pub(super) fn give_back_owed(&mut self, node: &mut Node, at: Times) {
        if self.owed.is_empty() || !self.is_asked(node, Way::Write) {
            return;
        }
        for id in core::mem::take(&mut self.owed) {
            self.send_back(node, at, id);
        }
    }

    /// Gives back what this id was granted, as the store has just said: whatever the guards think, it answers.
    pub(super) fn send_back(&mut self, node: &mut Node, at: Times, id: CallId) {
        let args = self.outcome_args(id.to_string(), NO_EPOCH.to_string(), "1");
        self.begin(Goal::GiveBack(id), Request::Timed(Script::Release, args), node, at);
    }
}

/// On the wire: no permit.
const NO_EPOCH: &str = "-1";
