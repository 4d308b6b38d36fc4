//! The engine of one shared circuit: it decides, the host only carries.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::call::{Ask, CallId, Command, Script};
use super::conversation::{Conversation, Goal, Request};
use super::event::{self, Announcement};
use super::keys::Keys;
use super::known::{Asked, Known, View};
use super::local::Local;
use super::node::{Guards, Node, Way};
use super::options::{OnStoreFailure, SharedOptions};
use super::permit::{PermitKind, SharedPermit};
use super::reply::Verdict;
use super::step::{Answer, Begun, Others, Step};
use super::successes::Successes;
use super::times::Times;
use crate::config::{Config, HostOption, Naming, Value};
use crate::error::{ConfigError, NameError};
use crate::permit::{Decision, Outcome, Permit, Settled, Settlement};
use crate::quorum::Ring;
use crate::time::Millis;

mod health;
mod outcomes;
mod replies;

/// A manual operation (DESIGN 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Close, and clear everything.
    Reset,
    /// Trip now, for this many milliseconds or as long as a trip lasts.
    Trip {
        /// The length of the opening, in milliseconds.
        for_ms: Option<u64>,
    },
    /// Refuse everything until reset or trip.
    ForceOpen,
    /// Admit everything until reset or trip.
    Disable,
}

/// One circuit as one process sees it.
///
/// ```
/// use switchgear_core::shared::{Answer, Begun, Command, Keys, Node, Script, SharedCircuit, SharedOptions, Times};
/// use switchgear_core::{Config, Millis};
///
/// let config = Config::default();
/// let options = SharedOptions::for_config(&config);
/// let mut circuit = SharedCircuit::new("billing", Keys::DEFAULT_PREFIX, 0x5eed, "host-1", config, options)?;
/// let mut node = Node::new();
///
/// let now = Times::one(Millis::new(1_000)?);
/// let Begun::Wait(ticket) = circuit.admit(&mut node, now) else { panic!("nothing is known yet") };
/// let ask = circuit.next_ask().expect("something to send");
/// assert_eq!(ask.command, Command::Run(Script::Admit));
/// assert_eq!(circuit.keys().of(Script::Admit), ["{cb:billing}"]);
/// // The host reads the fields of that key and hands them back; here Redis has never heard of the circuit.
/// let step = circuit.on_reading(&mut node, now, ticket, [None; 5]);
/// assert!(matches!(step.answer, Some(Answer::Granted(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A clone is for tests that look at several continuations of one moment: in earnest it would name its calls like the original.
#[derive(Clone, Debug)]
pub struct SharedCircuit {
    keys: Keys,
    config: Config,
    options: SharedOptions,
    /// The configuration as the scripts take it, rendered once.
    config_arg: String,
    channel: String,
    origin: String,
    instance: String,
    last_id: CallId,
    last_ticket: u64,
    conversations: BTreeMap<u64, Conversation>,
    outbox: VecDeque<Ask>,
    /// The admission that others may join.
    flight: Option<u64>,
    known: Known,
    local: Local,
    /// For what goes wrong with this circuit alone.
    guards: Guards,
    successes: Successes,
    /// Slots that may have been granted, and are to be given back as soon as the store takes it.
    owed: Vec<CallId>,
    /// What this process's failures are called where a quorum must agree.
    ring: Ring,
    mismatch_told: bool,
}

/// How long to let a cluster move a slot before asking again.
const TRY_AGAIN_MS: u64 = 5;

impl SharedCircuit {
    /// A circuit by its name; asks nothing and changes nothing in the store. `nonce` tells this process's call ids from
    /// those of others: draw it at random, anew for each circuit, after fork and per worker thread. `instance` names this
    /// process in announcements and in a quorum.
    ///
    /// # Errors
    /// [`NameError`] if the name or the prefix cannot be one.
    pub fn new(
        name: &str,
        prefix: &str,
        nonce: u64,
        instance: &str,
        config: Config,
        options: SharedOptions,
    ) -> Result<Self, NameError> {
        let ring = Ring::new(options.quorum, &config);
        Ok(Self {
            keys: Keys::new(prefix, name, &config, options.quorum)?,
            config_arg: config.wire(options.idle_ttl_ms, options.quorum),
            channel: Announcement::channel(prefix),
            origin: event::origin(nonce, name, instance),
            instance: instance.to_string(),
            local: Local::new(config.clone(), &options),
            config,
            options,
            last_id: CallId { nonce, counter: 0 },
            last_ticket: 0,
            conversations: BTreeMap::new(),
            outbox: VecDeque::new(),
            flight: None,
            known: Known::default(),
            guards: Guards::new(),
            successes: Successes::default(),
            owed: Vec::new(),
            ring,
            mismatch_told: false,
        })
    }

    /// The keys to send with a script.
    #[must_use]
    pub const fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The configuration it runs by.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// What it adds to that.
    #[must_use]
    pub const fn options(&self) -> &SharedOptions {
        &self.options
    }

    /// The next command to send. Hosts ask after each call of another method, until there is none; and they say it of every
    /// ticket, awaited or not, when its deadline has passed without an answer.
    pub fn next_ask(&mut self) -> Option<Ask> {
        self.outbox.pop_front()
    }

    /// How many commands have neither been replied to nor failed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.conversations.len()
    }

    /// Whether the success of a call admitted while CLOSED is never told: then a host need not hand it in.
    #[must_use]
    pub fn success_is_free(&self) -> bool {
        self.config.trip_on().ignores_successes()
    }

    /// From when until when, on the host's clock, every request is admitted with this permit, without being asked for: what
    /// [`closed_cache_ms`](SharedOptions::closed_cache_ms) allows. Holds until the next call of any method.
    #[must_use]
    pub fn free_until(&self) -> Option<(SharedPermit, Millis, Millis)> {
        if self.local.stands() {
            return None;
        }
        let (epoch, from, until) = self.known.closed_until(&self.options)?;
        Some((self.closed_permit(epoch), from, until))
    }

    /// Asks for one call: no round trip while the answer is known, else one; two when it begins or meets a half-open
    /// period, or has to ask the node for its time. Concurrent ones share it.
    pub fn admit(&mut self, node: &mut Node, at: Times) -> Begun {
        if let Some((state, retry_after)) = self.local.objection(at.host) {
            for way in [Way::Read, Way::Write] {
                self.look(node, way, at);
            }
            self.give_back_owed(node, at);
            return answered(Answer::Refused { state, retry_after });
        }
        match self.known.verdict(at.host, &self.options) {
            Some(Verdict::Refused { state, retry_after }) => return answered(Answer::Refused { state, retry_after }),
            Some(Verdict::Closed { epoch }) if !self.local.stands() => {
                return answered(Answer::Granted(self.closed_permit(epoch)));
            }
            _ => {}
        }
        if !self.may_ask(node, Way::Read, at) {
            return Begun::Answered(self.admit_unasked(at));
        }
        self.look(node, Way::Write, at);
        if let Some(ticket) = self.flight {
            return Begun::Join(ticket);
        }
        self.give_back_owed(node, at);
        if at.store.is_none() && node.clock.is_due(at.host) {
            self.begin(Goal::Clock, Request::Plain(Command::Time), node, at);
        }
        let id = self.draw_id();
        let ticket = self.begin(Goal::Admission(id), Request::read(), node, at);
        self.flight = Some(ticket);
        Begun::Wait(ticket)
    }

    /// Decides on a call without the store, as while it is away: by what `onStoreFailure` says.
    pub fn admit_unasked(&mut self, at: Times) -> Step {
        match self.options.on_store_failure {
            OnStoreFailure::FailClosed => Step::of(Answer::Unavailable),
            OnStoreFailure::FailOpen => {
                let id = self.draw_id();
                Step::of(Answer::Granted(SharedPermit { kind: PermitKind::Unasked, epoch: 0, id }))
            }
            OnStoreFailure::Local => self.admit_locally(at.host),
        }
    }

    /// Settles a call; without a permit the plain rules of the current state apply (DESIGN 3.4).
    pub fn settle(&mut self, node: &mut Node, at: Times, permit: Option<SharedPermit>, outcome: Outcome) -> Begun {
        match permit {
            Some(SharedPermit { kind: PermitKind::Bypass | PermitKind::Unasked, .. }) => return settled(STALE),
            Some(SharedPermit { kind: PermitKind::LocalClosed, epoch, .. }) => {
                return settled(self.local.settle(at.host, Permit::Closed { epoch }, outcome));
            }
            Some(SharedPermit { kind: PermitKind::LocalProbe, epoch, id }) => {
                let permit = Permit::Probe { epoch, id: id.counter };
                return settled(self.local.settle(at.host, permit, outcome));
            }
            Some(SharedPermit { kind: PermitKind::Closed, epoch, id }) => match outcome {
                Outcome::Release => return settled(APPLIED),
                Outcome::Success => {
                    self.local.feed(at.host, Some(id.counter), outcome, true);
                    if !self.success_is_free() {
                        self.successes.add(epoch);
                        self.tell_successes(node, at);
                    }
                    return settled(APPLIED);
                }
                Outcome::Failure => {}
            },
            Some(SharedPermit { kind: PermitKind::Probe, .. }) | None => {}
        }
        if !self.may_ask(node, Way::Write, at) {
            return settled(self.untaken(at.host, permit, outcome));
        }
        self.give_back_owed(node, at);
        let request = self.outcome_request(permit, outcome);
        self.flight = None;
        Begun::Wait(self.begin(Goal::Settlement { permit, outcome, host: at.host }, request, node, at))
    }

    /// Asks for the snapshot. Waits for the store also while it is thought to be away, unless this process decides then.
    pub fn get_state(&mut self, node: &mut Node, at: Times) -> Begun {
        if self.decides_alone() && (self.local.stands() || !self.may_ask(node, Way::Read, at)) {
            return answered(Answer::Snapshot(self.local.snapshot(at.host)));
        }
        let request = Request::Timed(Script::GetState, vec![self.config_arg.clone()]);
        Begun::Wait(self.begin(Goal::Snapshot, request, node, at))
    }

    /// Does a manual operation. Waits for the store also while it is thought to be away: it is meant for the whole fleet.
    ///
    /// # Errors
    /// [`ConfigError`] if `for_ms` is no duration.
    pub fn control(&mut self, node: &mut Node, at: Times, control: Control) -> Result<Begun, ConfigError> {
        let (op, for_ms) = match control {
            Control::Reset => ("reset", None),
            Control::Trip { for_ms } => ("trip", for_ms),
            Control::ForceOpen => ("force-open", None),
            Control::Disable => ("disable", None),
        };
        let for_ms = match for_ms {
            Some(ms) => HostOption::ForMs.check(Naming::Snake, Value::Number(ms as f64))?.to_string(),
            None => "-1".to_string(),
        };
        let args = vec![op.to_string(), for_ms, self.config_arg.clone(), self.channel.clone(), self.origin.clone()];
        self.flight = None;
        Ok(Begun::Wait(self.begin(Goal::Control, Request::Timed(Script::Control, args), node, at)))
    }

    /// The breaker of this process decides.
    fn admit_locally(&mut self, host: Millis) -> Step {
        let admission = self.local.can_request(host);
        let nonce = self.last_id.nonce;
        let grant = |kind, epoch, counter| Answer::Granted(SharedPermit { kind, epoch, id: CallId { nonce, counter } });
        let answer = match admission.decision {
            Decision::Allowed(Permit::Closed { epoch }) => grant(PermitKind::LocalClosed, epoch, 0),
            Decision::Allowed(Permit::Probe { epoch, id }) => grant(PermitKind::LocalProbe, epoch, id),
            Decision::Allowed(Permit::Bypass) => grant(PermitKind::Bypass, 0, 0),
            Decision::Refused { state, retry_after } => Answer::Refused { state, retry_after },
        };
        Step { transition: admission.transition, others: Others::AskAgain, ..Step::of(answer) }
    }

    fn learn(&mut self, view: View, asked: Asked, as_of: Millis) {
        if self.known.learn(view, asked, as_of) {
            self.local.follow(as_of, view);
        }
    }

    /// Whether this process's own breaker decides while the store is away.
    fn decides_alone(&self) -> bool {
        self.options.on_store_failure == OnStoreFailure::Local
    }

    fn closed_permit(&self, epoch: u64) -> SharedPermit {
        let id = CallId { nonce: self.last_id.nonce, counter: self.local.period() };
        SharedPermit { kind: PermitKind::Closed, epoch, id }
    }

    const fn bypass(&self) -> SharedPermit {
        SharedPermit { kind: PermitKind::Bypass, epoch: 0, id: CallId { nonce: self.last_id.nonce, counter: 0 } }
    }

    fn draw_id(&mut self) -> CallId {
        self.last_id.counter += 1;
        self.last_id
    }

    fn end_flight(&mut self, ticket: u64) {
        if self.flight == Some(ticket) {
            self.flight = None;
        }
    }

    fn begin(&mut self, goal: Goal, request: Request, node: &mut Node, at: Times) -> u64 {
        self.last_ticket += 1;
        self.send(self.last_ticket, Conversation::new(goal, request, at.host), node, at, 0);
        self.last_ticket
    }

    /// Sends what is to be asked; first a question for the time, where nobody knows it.
    fn send(&mut self, ticket: u64, mut talk: Conversation, node: &mut Node, at: Times, delay_ms: u64) {
        talk.asked = self.known.ask(at.host);
        let store = at.at_store(node);
        talk.asks_time = store.is_none() && talk.request.needs_time();
        talk.at = store.unwrap_or(at.host);
        let (command, args) = if talk.asks_time {
            (Command::Time, Vec::new())
        } else {
            (talk.request.command(), talk.request.args(talk.at))
        };
        if command == Command::Time {
            node.clock.asked(at.host);
        }
        self.outbox.push_back(Ask { ticket, command, by_text: talk.by_text, delay_ms, args });
        self.conversations.insert(ticket, talk);
    }
}

const STALE: Settled = Settled { status: Settlement::Stale, transition: None };
const APPLIED: Settled = Settled { status: Settlement::Applied, transition: None };

const fn answered(answer: Answer) -> Begun {
    Begun::Answered(Step::of(answer))
}

fn settled(Settled { status, transition }: Settled) -> Begun {
    let counted = status == Settlement::Applied;
    Begun::Answered(Step { transition, counted, ..Step::of(Answer::Settled(status)) })
}

#[cfg(test)]
mod tests;
