//! What the store said, or did not say, turned into answers.

use alloc::string::ToString;
use alloc::vec;

use super::super::call::{CallId, Command, Script};
use super::super::conversation::{Conversation, Goal, Request};
use super::super::event::Announcement;
use super::super::fault::{Fault, fault};
use super::super::known::{Seen, View};
use super::super::node::{Health, Node, Way};
use super::super::permit::{PermitKind, SharedPermit};
use super::super::reading;
use super::super::reply::{self, Aftermath, Verdict};
use super::super::step::{Answer, Others, Step};
use super::super::times::Times;
use super::health::Heard;
use super::{SharedCircuit, TRY_AGAIN_MS};
use crate::breaker::State;
use crate::permit::Settlement;
use crate::time::Millis;

impl SharedCircuit {
    /// Takes what was read for an admission: the values of the [`ADMISSION_FIELDS`](crate::shared::ADMISSION_FIELDS).
    pub fn on_reading(&mut self, node: &mut Node, at: Times, ticket: u64, fields: [Option<&str>; 5]) -> Step {
        let is_reading = |talk: &Conversation| !talk.asks_time && talk.request == Request::read();
        if !self.conversations.get(&ticket).is_some_and(is_reading) {
            return Step::default();
        }
        let Some(talk) = self.conversations.remove(&ticket) else { return Step::default() };
        let health = self.heard(node, at.host, &talk, Heard::Answer);
        let view = reading::view(at.at_store(node).unwrap_or(at.host), fields);
        if let Some(view) = view {
            self.learn(view, talk.asked, at.host);
        }
        let mut step = match (talk.goal, view) {
            (Goal::Admission(_), _) if talk.answered => Step::default(),
            (Goal::Admission(_), Some(view)) if view.is_decided() => self.on_view(at.host, view),
            (Goal::Admission(id), _) => match self.objection(at.host) {
                Some(step) => step,
                None => return self.ask_on(node, at, ticket, id, health),
            },
            _ => Step::default(),
        };
        self.end_flight(ticket);
        self.give_back_owed(node, at);
        step.health = health;
        step
    }

    /// Takes what any other command replied.
    pub fn on_reply(&mut self, node: &mut Node, at: Times, ticket: u64, reply: &[i64]) -> Step {
        let Some(mut talk) = self.conversations.remove(&ticket) else { return Step::default() };
        if talk.asks_time || talk.goal == Goal::Clock {
            return self.on_time(node, at, ticket, talk, reply);
        }
        let Some(mut step) = self.read_reply(node, at, ticket, &talk, reply) else {
            let mut step = self.fail(node, at, ticket, &talk, Heard::Fault(Fault::Circuit));
            step.malformed = true;
            return step;
        };
        step.health = self.heard(node, at.host, &talk, Heard::Answer);
        self.give_back_owed(node, at);
        if core::mem::replace(&mut talk.answered, true) {
            step.answer = None;
        }
        step.config_mismatch = step.config_mismatch && !core::mem::replace(&mut self.mismatch_told, true);
        step
    }

    /// Takes that the store answered with an error, or that the connection broke; `error` is its text.
    pub fn on_error(&mut self, node: &mut Node, at: Times, ticket: u64, error: &str) -> Step {
        let Some(mut talk) = self.conversations.remove(&ticket) else { return Step::default() };
        let unknown_script = error.starts_with("NOSCRIPT") && !talk.by_text;
        let asks_again = if talk.answered || !talk.goal.is_awaited() {
            // Nobody waits, but an outcome still counts and a slot is still to be freed.
            unknown_script && matches!(talk.goal, Goal::Settlement { .. } | Goal::Successes | Goal::GiveBack(_))
        } else {
            unknown_script || error.starts_with("TRYAGAIN")
        };
        if asks_again {
            talk.by_text |= unknown_script;
            let delay_ms = if unknown_script { 0 } else { TRY_AGAIN_MS };
            self.send(ticket, talk, node, at, delay_ms);
            return Step::default();
        }
        let fault = fault(error);
        if (talk.asks_time || talk.goal == Goal::Clock) && fault == Fault::Circuit {
            // Its user may not ask for the time: the host's own must do.
            node.clock.give_up();
            if talk.goal != Goal::Clock && !talk.answered {
                talk.asks_time = false;
                self.send(ticket, talk, node, at, 0);
            }
            return Step::default();
        }
        self.fail(node, at, ticket, &talk, Heard::Fault(fault))
    }

    /// Takes that the deadline of this ticket has passed: the caller gets an answer now. What the store says later is
    /// still handed in, so that a slot it gave can be given back.
    pub fn on_deadline(&mut self, node: &mut Node, at: Times, ticket: u64) -> Step {
        let Some(talk) = self.conversations.get_mut(&ticket).filter(|talk| !talk.answered) else {
            return Step::default();
        };
        let before = talk.clone();
        talk.answered = true;
        let talk = before;
        let health = self.heard(node, at.host, &talk, Heard::Fault(Fault::Node));
        self.end_flight(ticket);
        self.successes.done(ticket);
        Step { health, ..self.unavailable(at, &talk) }
    }

    /// Takes that whoever waited for this ticket has gone: interrupted, cancelled. That says nothing of the store. Those who
    /// joined ask again. What the store says later is still handed in, so that a slot it gave can be given back.
    pub fn on_gone(&mut self, at: Times, ticket: u64) -> Step {
        let Some(talk) = self.conversations.get_mut(&ticket).filter(|talk| !talk.answered) else {
            return Step::default();
        };
        talk.answered = true;
        let talk = talk.clone();
        self.end_flight(ticket);
        self.successes.done(ticket);
        match talk.goal {
            Goal::Admission(_) => Step { others: Others::AskAgain, ..Step::default() },
            _ => self.unavailable(at, &talk),
        }
    }

    /// Takes what another instance has announced of this circuit. Whether it is news: an announcement that is late, comes
    /// twice, or is one's own is none.
    pub fn on_event(&mut self, node: &Node, at: Times, announcement: &Announcement) -> bool {
        if announcement.is_of(self.last_id.nonce) || announcement.transition.epoch <= self.known.epoch() {
            return false;
        }
        let store = at.at_store(node);
        let Some((view, store)) = announcement.view(store).zip(store) else {
            // Nobody knows how old it is, or it does not say enough.
            self.known.forget(announcement.transition.epoch);
            return true;
        };
        // What comes late is as old as it is, and good for so much less.
        let age = store.get().saturating_sub(announcement.transition.at.get());
        let asked = self.known.ask(Millis::derived(at.host.get().saturating_sub(age)));
        self.learn(view, asked, at.host);
        true
    }

    /// What this process has seen for itself since the question was asked, if that speaks against any answer.
    fn objection(&self, host: Millis) -> Option<Step> {
        let (state, retry_after) = self.local.objection(host)?;
        Some(Step::of(Answer::Refused { state, retry_after }))
    }

    /// An admission goes on to the script that decides what a reading cannot.
    fn ask_on(&mut self, node: &mut Node, at: Times, ticket: u64, id: CallId, health: Option<Health>) -> Step {
        if !self.may_ask(node, Way::Write, at) {
            self.end_flight(ticket);
            return Step { health, others: Others::GoOn, ..self.admit_unasked(at) };
        }
        let args = vec![id.to_string(), self.config_arg.clone(), self.channel.clone(), self.origin.clone()];
        let request = Request::Timed(Script::CanRequest, args);
        self.send(ticket, Conversation::new(Goal::Admission(id), request, at.host), node, at, 0);
        Step { health, ..Step::default() }
    }

    /// The node has said what time it is: now what was to be asked can be.
    fn on_time(&mut self, node: &mut Node, at: Times, ticket: u64, mut talk: Conversation, reply: &[i64]) -> Step {
        if talk.answered {
            // Slower than the deadline: nobody knows when it was read.
            return Step::default();
        }
        // The guards do not hear of it: where the server is away, the client of a cluster asks any other for the time.
        if !node.clock.heard(talk.asked.at, at.host, reply) {
            node.clock.give_up();
        }
        if talk.goal != Goal::Clock {
            talk.asks_time = false;
            self.send(ticket, talk, node, at, 0);
        }
        Step::default()
    }

    /// What a reply means; none if it is none that a command of ours gets.
    fn read_reply(
        &mut self,
        node: &mut Node,
        at: Times,
        ticket: u64,
        talk: &Conversation,
        reply: &[i64],
    ) -> Option<Step> {
        // A wait counts from the time that the script was given.
        let as_of = talk.asked.at;
        match talk.goal {
            Goal::Probe { .. } | Goal::Clock => Some(Step::default()),
            Goal::Admission(id) => {
                if talk.request == Request::read() {
                    return None;
                }
                let verdict = reply::verdict(reply)?;
                let Aftermath { transition, config_mismatch } = reply::aftermath(reply, talk.at)?;
                self.learn(reply::view(reply)?, talk.asked, as_of);
                self.end_flight(ticket);
                let step = self.on_script_verdict(node, at, talk, id, verdict);
                Some(Step { transition: step.transition.or(transition), config_mismatch, ..step })
            }
            Goal::Settlement { permit, outcome, host } => {
                let status = reply::settlement(reply)?;
                let Aftermath { transition, config_mismatch } = reply::aftermath(reply, talk.at)?;
                self.learn(reply::view(reply)?, talk.asked, as_of);
                self.flight = None;
                let counted = status == Settlement::Applied;
                let own = if counted && !talk.answered { self.taken(host, permit, outcome) } else { None };
                let answer = Some(Answer::Settled(status));
                Some(Step { answer, transition: transition.or(own), counted, config_mismatch, ..Step::default() })
            }
            Goal::Control => {
                let Aftermath { transition, config_mismatch } = reply::aftermath(reply, talk.at)?;
                self.learn(reply::view(reply)?, talk.asked, as_of);
                self.flight = None;
                Some(Step { answer: Some(Answer::Controlled), transition, config_mismatch, ..Step::default() })
            }
            Goal::Snapshot => Some(Step::of(Answer::Snapshot(reply::snapshot(reply)?))),
            Goal::GiveBack(_) => {
                self.learn(reply::view(reply)?, talk.asked, as_of);
                Some(Step::default())
            }
            Goal::Successes => {
                let Aftermath { transition, config_mismatch } = reply::aftermath(reply, talk.at)?;
                self.learn(reply::view(reply)?, talk.asked, as_of);
                self.successes.done(ticket);
                self.tell_successes(node, at);
                Some(Step { transition, config_mismatch, ..Step::default() })
            }
        }
    }

    fn admit_closed(&mut self, host: Millis, epoch: u64) -> Step {
        self.local.agree(host);
        Step::of(Answer::Granted(self.closed_permit(epoch)))
    }

    /// What a view of the circuit means to a call that wants in, where it is decided.
    fn on_view(&mut self, host: Millis, view: View) -> Step {
        match view.seen {
            Seen::Closed if self.local.stands() => self.admit_locally(host),
            Seen::Closed => self.admit_closed(host, view.epoch),
            Seen::Disabled => Step::of(Answer::Granted(self.bypass())),
            Seen::Open { wait } => Step::of(Answer::Refused { state: State::Open, retry_after: Some(wait) }),
            Seen::ForcedOpen => Step::of(Answer::Refused { state: State::Open, retry_after: None }),
            Seen::HalfOpen => Step::default(),
        }
    }

    fn on_script_verdict(
        &mut self,
        node: &mut Node,
        at: Times,
        talk: &Conversation,
        id: CallId,
        verdict: Verdict,
    ) -> Step {
        match verdict {
            Verdict::Probe { .. } if talk.answered => {
                // A grant that comes after the deadline is nobody's any more.
                self.send_back(node, at, id);
                Step::default()
            }
            Verdict::Probe { epoch } => {
                if let Some(step) = self.objection(at.host) {
                    self.send_back(node, at, id);
                    return step;
                }
                let permit = SharedPermit { kind: PermitKind::Probe, epoch, id };
                Step { others: Others::AskAgain, ..Step::of(Answer::Granted(permit)) }
            }
            _ if talk.answered => Step::default(),
            Verdict::Closed { .. } if self.local.stands() => self.admit_locally(at.host),
            Verdict::Closed { epoch } => self.admit_closed(at.host, epoch),
            Verdict::Bypass => Step::of(Answer::Granted(self.bypass())),
            Verdict::Refused { state, retry_after } => Step::of(Answer::Refused { state, retry_after }),
        }
    }

    /// The store did not answer. If a slot may have been taken by the command whose reply was lost, it is given back.
    fn fail(&mut self, node: &mut Node, at: Times, ticket: u64, talk: &Conversation, heard: Heard) -> Step {
        let health = self.heard(node, at.host, talk, heard);
        self.end_flight(ticket);
        self.successes.done(ticket);
        match (talk.goal, talk.request.command()) {
            (Goal::Admission(id), Command::Run(Script::CanRequest)) => self.give_back(node, at, id),
            // Once more with what is sent next: the id in it makes it count once.
            (Goal::GiveBack(id), _) if heard == Heard::Fault(Fault::Node) => self.owe(id),
            _ => {}
        }
        let step = if talk.answered { Step::default() } else { self.unavailable(at, talk) };
        Step { health, ..step }
    }

    /// The answer of who waits for a store that does not give one.
    fn unavailable(&mut self, at: Times, talk: &Conversation) -> Step {
        match talk.goal {
            Goal::Admission(_) => Step { others: Others::GoOn, ..self.admit_unasked(at) },
            Goal::Settlement { permit, outcome, host } => {
                let settled = self.untaken(host, permit, outcome);
                if !self.decides_alone() {
                    return Step { transition: settled.transition, ..Step::of(Answer::Unavailable) };
                }
                let counted = settled.status == Settlement::Applied;
                Step { transition: settled.transition, counted, ..Step::of(Answer::Settled(settled.status)) }
            }
            Goal::Snapshot if self.decides_alone() => Step::of(Answer::Snapshot(self.local.snapshot(at.host))),
            Goal::Snapshot | Goal::Control => Step::of(Answer::Unavailable),
            Goal::Successes | Goal::GiveBack(_) | Goal::Clock | Goal::Probe { .. } => Step::default(),
        }
    }
}
