//! The engine of one shared circuit: it decides, the host only carries.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::call::{Ask, CallId, Script};
use super::keys::Keys;
use super::options::{OnStoreFailure, SharedOptions};
use super::reading;
use super::reply::{self, Aftermath, Verdict};
use crate::breaker::State;
use crate::config::{Config, HostOption, Naming, TripOn, Value};
use crate::error::{ConfigError, NameError};
use crate::permit::{Outcome, Settlement, Transition};
use crate::snapshot::Snapshot;
use crate::time::Millis;

/// The right to one call of a shared circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedPermit {
    /// Who gave it, and while the circuit was what.
    pub kind: PermitKind,
    /// The period it was given in; its outcome is stale in any other.
    pub epoch: u64,
    /// Names the probe in the store. A call admitted while CLOSED gets its name when there is something to tell of it.
    pub id: CallId,
}

/// Who gave a permit, and while the circuit was what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermitKind {
    /// The store, while CLOSED.
    Closed,
    /// The store, while HALF_OPEN: holds a slot there.
    Probe,
    /// The store, while disabled: its outcome is never counted.
    Bypass,
    /// Nobody: the store did not answer and the circuit fails open. Its outcome is never counted.
    Unasked,
}

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

/// What to do with an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settle {
    /// Nothing: the store need not hear of it.
    Done(Settlement),
    /// Tell the store; the answer comes through [`SharedCircuit::on_reply`].
    Tell(Ask),
}

/// What came of a reply, an error or a deadline: each part may be there or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The answer to what was asked; comes at most once per ticket.
    pub answer: Option<Answer>,
    /// What to send next. Where the answer is there already nobody waits for what comes of it.
    pub ask: Option<Ask>,
    /// The change of state that this process's call made, for its listeners.
    pub transition: Option<Transition>,
    /// The outcome that was told has counted; said also when it comes too late for an answer.
    pub counted: bool,
    /// The half-open period runs by another configuration than ours; said once per circuit and process.
    pub config_mismatch: bool,
    /// The reply was none that a script of ours gives: the same as an error.
    pub malformed: bool,
}

/// The answer to what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call may go ahead; settle it with this permit.
    Granted(SharedPermit),
    /// The call may not go ahead.
    Refused {
        /// What refused it.
        state: State,
        /// Milliseconds until a request may be admitted; none if unknown.
        retry_after: Option<u64>,
    },
    /// The store did not answer in time, or answered with an error.
    Unavailable,
    /// The outcome was told.
    Settled(Settlement),
    /// The manual operation was done.
    Controlled,
    /// The circuit as the store knows it.
    Snapshot(Snapshot),
}

/// One circuit as one process sees it.
///
/// ```
/// use switchgear_core::shared::{Answer, Keys, SharedCircuit, SharedOptions};
/// use switchgear_core::{Config, Millis};
///
/// let config = Config::default();
/// let options = SharedOptions::for_config(&config);
/// let mut circuit = SharedCircuit::new("billing", Keys::DEFAULT_PREFIX, 0x5eed, config, options)?;
///
/// let ask = circuit.admit(Millis::new(1_000)?);
/// assert_eq!(circuit.keys().of(ask.script), ["{cb:billing}"]);
/// // The host reads the fields of that key and hands them back; here Redis has never heard of the circuit.
/// let step = circuit.on_reading(Millis::new(1_001)?, ask.ticket, [None; 5]);
/// assert!(matches!(step.answer, Some(Answer::Granted(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SharedCircuit {
    keys: Keys,
    config: Config,
    /// The configuration as the scripts take it, rendered once.
    config_arg: String,
    on_store_failure: OnStoreFailure,
    last_id: CallId,
    last_ticket: u64,
    conversations: BTreeMap<u64, Conversation>,
    mismatch_told: bool,
}

/// What is in flight under one ticket.
#[derive(Debug)]
struct Conversation {
    goal: Goal,
    /// As sent last; sent again as it is when the node could not take it, for the id in it makes it count once.
    ask: Ask,
    /// The time that the script was given.
    at: Millis,
    /// Whether the caller has its answer: what still comes is only tidied up.
    answered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    Admission(CallId),
    Settlement,
    Control,
    Snapshot,
    /// A slot that nobody will use is given back.
    GiveBack,
}

/// How long to let a cluster move a slot before asking again.
const TRY_AGAIN_MS: u64 = 5;

impl SharedCircuit {
    /// A circuit by its name; asks nothing and changes nothing in the store. `nonce` tells this process's call ids from
    /// those of others: draw it at random, anew for each circuit, after fork and per worker thread.
    ///
    /// # Errors
    /// [`NameError`] if the name or the prefix cannot be one.
    pub fn new(
        name: &str,
        prefix: &str,
        nonce: u64,
        config: Config,
        options: SharedOptions,
    ) -> Result<Self, NameError> {
        Ok(Self {
            keys: Keys::new(prefix, name, config.trip_on())?,
            config_arg: config.wire(options.idle_ttl_ms),
            config,
            on_store_failure: options.on_store_failure,
            last_id: CallId { nonce, counter: 0 },
            last_ticket: 0,
            conversations: BTreeMap::new(),
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

    /// Asks for one call: a read of the [`ADMISSION_FIELDS`](super::ADMISSION_FIELDS), whose answer goes to
    /// [`on_reading`](Self::on_reading). One round trip; two when it begins or meets a half-open period.
    pub fn admit(&mut self, now: Millis) -> Ask {
        let id = self.draw_id();
        self.begin(Goal::Admission(id), Script::Admit, now, Vec::new())
    }

    /// Settles a call; without a permit the plain rules of the current state apply (DESIGN 3.4).
    pub fn settle(&mut self, now: Millis, permit: Option<SharedPermit>, outcome: Outcome) -> Settle {
        let (id, epoch, kind) = match permit {
            Some(SharedPermit { kind: PermitKind::Bypass | PermitKind::Unasked, .. }) => {
                return Settle::Done(Settlement::Stale);
            }
            Some(SharedPermit { kind: PermitKind::Closed, .. }) if self.is_free(outcome) => {
                return Settle::Done(Settlement::Applied);
            }
            Some(SharedPermit { kind: PermitKind::Probe, epoch, id }) => (id.to_string(), epoch.to_string(), "1"),
            Some(SharedPermit { kind: PermitKind::Closed, epoch, .. }) => {
                (self.draw_id().to_string(), epoch.to_string(), "0")
            }
            // A release without a permit names no call: it frees the newest slot, whosever it is.
            None if outcome == Outcome::Release => (String::new(), NO_EPOCH.to_string(), "0"),
            None => (self.draw_id().to_string(), NO_EPOCH.to_string(), "0"),
        };
        let script = match outcome {
            Outcome::Success => Script::RecordSuccess,
            Outcome::Failure => Script::RecordFailure,
            Outcome::Release => Script::Release,
        };
        let args = vec![now.get().to_string(), id, epoch, kind.to_string(), self.config_arg.clone()];
        Settle::Tell(self.begin(Goal::Settlement, script, now, args))
    }

    /// Whether the success of a call admitted while CLOSED is never told: then a host need not hand it in.
    #[must_use]
    pub fn success_is_free(&self) -> bool {
        self.is_free(Outcome::Success)
    }

    /// Asks for the snapshot.
    pub fn get_state(&mut self, now: Millis) -> Ask {
        let args = vec![now.get().to_string(), self.config_arg.clone()];
        self.begin(Goal::Snapshot, Script::GetState, now, args)
    }

    /// Does a manual operation.
    ///
    /// # Errors
    /// [`ConfigError`] if `for_ms` is no duration.
    pub fn control(&mut self, now: Millis, control: Control) -> Result<Ask, ConfigError> {
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
        let args = vec![now.get().to_string(), op.to_string(), for_ms, self.config_arg.clone()];
        Ok(self.begin(Goal::Control, Script::Control, now, args))
    }

    /// Takes what was read for an admission: the values of the [`ADMISSION_FIELDS`](super::ADMISSION_FIELDS). A grant while
    /// CLOSED depends on them alone: a host may give it again for the same reading without asking.
    pub fn on_reading(&mut self, now: Millis, ticket: u64, fields: [Option<&str>; 5]) -> Step {
        let is_reading = |talk: &Conversation| talk.ask.script == Script::Admit;
        if !self.conversations.get(&ticket).is_some_and(is_reading) {
            return Step::default();
        }
        let Some(talk) = self.conversations.remove(&ticket) else { return Step::default() };
        let (Goal::Admission(id), false) = (talk.goal, talk.answered) else { return Step::default() };
        match reading::verdict(now, fields) {
            Verdict::AskOn => {
                let args = vec![now.get().to_string(), id.to_string(), self.config_arg.clone()];
                let ask = Some(self.talk(ticket, talk.goal, Script::CanRequest, now, args));
                Step { ask, ..Step::default() }
            }
            verdict => Step { answer: answer_to(verdict, id), ..Step::default() },
        }
    }

    /// Takes what a script replied.
    pub fn on_reply(&mut self, now: Millis, ticket: u64, reply: &[i64]) -> Step {
        let Some(talk) = self.conversations.remove(&ticket) else { return Step::default() };
        let read = match talk.goal {
            Goal::Admission(id) => self.on_verdict(now, &talk, id, reply),
            Goal::Settlement => reply::settlement(reply).and_then(|status| told(&talk, Answer::Settled(status), reply)),
            Goal::Control => told(&talk, Answer::Controlled, reply),
            Goal::Snapshot => {
                reply::snapshot(reply).map(|s| Step { answer: Some(Answer::Snapshot(s)), ..Step::default() })
            }
            Goal::GiveBack => Some(Step::default()),
        };
        let Some(mut step) = read else { return Step { malformed: true, ..self.fail(now, &talk) } };
        if talk.answered {
            step.answer = None;
        }
        step.config_mismatch = step.config_mismatch && !core::mem::replace(&mut self.mismatch_told, true);
        step
    }

    /// Takes that the store answered with an error, or that the connection broke; `error` is its text.
    pub fn on_error(&mut self, now: Millis, ticket: u64, error: &str) -> Step {
        let Some(mut talk) = self.conversations.remove(&ticket) else { return Step::default() };
        let unknown_script = error.starts_with("NOSCRIPT") && !talk.ask.by_text;
        let asks_again = if talk.answered {
            // Nobody waits, but an outcome still counts and a slot is still to be freed.
            unknown_script && matches!(talk.goal, Goal::Settlement | Goal::GiveBack)
        } else {
            unknown_script || error.starts_with("TRYAGAIN")
        };
        if asks_again {
            talk.ask.by_text |= unknown_script;
            talk.ask.delay_ms = if unknown_script { 0 } else { TRY_AGAIN_MS };
            let ask = Some(talk.ask.clone());
            self.conversations.insert(ticket, talk);
            return Step { ask, ..Step::default() };
        }
        self.fail(now, &talk)
    }

    /// Takes that the deadline of this ticket has passed: the caller gets an answer now. What the store says later is
    /// still handed in, so that a slot it gave can be given back.
    pub fn on_deadline(&mut self, ticket: u64) -> Step {
        let Some(talk) = self.conversations.get_mut(&ticket).filter(|talk| !talk.answered) else {
            return Step::default();
        };
        talk.answered = true;
        let goal = talk.goal;
        Step { answer: self.unavailable(goal), ..Step::default() }
    }

    /// How many asks have neither been replied to nor failed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.conversations.len()
    }

    fn on_verdict(&mut self, now: Millis, talk: &Conversation, id: CallId, reply: &[i64]) -> Option<Step> {
        if talk.ask.script == Script::Admit {
            return None;
        }
        let verdict = reply::verdict(reply)?;
        let Aftermath { transition, config_mismatch } = reply::aftermath(reply, talk.at)?;
        // A grant that comes after the deadline is nobody's any more.
        let is_late = talk.answered && matches!(verdict, Verdict::Probe { .. });
        let ask = is_late.then(|| self.give_back(now, id));
        Some(Step { answer: answer_to(verdict, id), ask, transition, config_mismatch, ..Step::default() })
    }

    /// The store did not answer. If a slot may have been taken by the command whose reply was lost, it is given back.
    fn fail(&mut self, now: Millis, talk: &Conversation) -> Step {
        let answer = if talk.answered { None } else { self.unavailable(talk.goal) };
        let ask = match talk.goal {
            Goal::Admission(id) if talk.ask.script == Script::CanRequest => Some(self.give_back(now, id)),
            _ => None,
        };
        Step { answer, ask, ..Step::default() }
    }

    fn unavailable(&self, goal: Goal) -> Option<Answer> {
        match (goal, self.on_store_failure) {
            (Goal::GiveBack, _) => None,
            (Goal::Admission(id), OnStoreFailure::FailOpen) => {
                Some(Answer::Granted(SharedPermit { kind: PermitKind::Unasked, epoch: 0, id }))
            }
            _ => Some(Answer::Unavailable),
        }
    }

    fn give_back(&mut self, now: Millis, id: CallId) -> Ask {
        let [kind, no_epoch] = ["1", NO_EPOCH].map(ToString::to_string);
        let args = vec![now.get().to_string(), id.to_string(), no_epoch, kind, self.config_arg.clone()];
        self.begin(Goal::GiveBack, Script::Release, now, args)
    }

    /// Whether the outcome of a call admitted while CLOSED changes nothing, wherever the circuit is by now.
    fn is_free(&self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Release => true,
            Outcome::Success => self.config.trip_on() == TripOn::Rolling,
            Outcome::Failure => false,
        }
    }

    fn draw_id(&mut self) -> CallId {
        self.last_id.counter += 1;
        self.last_id
    }

    fn begin(&mut self, goal: Goal, script: Script, now: Millis, args: Vec<String>) -> Ask {
        self.last_ticket += 1;
        self.talk(self.last_ticket, goal, script, now, args)
    }

    fn talk(&mut self, ticket: u64, goal: Goal, script: Script, now: Millis, args: Vec<String>) -> Ask {
        let ask = Ask { ticket, script, by_text: false, delay_ms: 0, args };
        let answered = goal == Goal::GiveBack;
        self.conversations.insert(ticket, Conversation { goal, ask: ask.clone(), at: now, answered });
        ask
    }
}

/// On the wire: no permit.
const NO_EPOCH: &str = "-1";

fn answer_to(verdict: Verdict, id: CallId) -> Option<Answer> {
    let grant = |kind, epoch| Some(Answer::Granted(SharedPermit { kind, epoch, id }));
    match verdict {
        Verdict::Probe { epoch } => grant(PermitKind::Probe, epoch),
        Verdict::Closed { epoch } => grant(PermitKind::Closed, epoch),
        Verdict::Bypass => grant(PermitKind::Bypass, 0),
        Verdict::Refused { state, retry_after } => Some(Answer::Refused { state, retry_after }),
        Verdict::AskOn => None,
    }
}

fn told(talk: &Conversation, answer: Answer, reply: &[i64]) -> Option<Step> {
    let Aftermath { transition, config_mismatch } = reply::aftermath(reply, talk.at)?;
    let counted = answer == Answer::Settled(Settlement::Applied);
    Some(Step { answer: Some(answer), transition, counted, config_mismatch, ..Step::default() })
}

#[cfg(test)]
mod tests;
