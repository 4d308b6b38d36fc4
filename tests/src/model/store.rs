//! The store of the model: answers the wire contract by the rules of the core.

use std::collections::{BTreeMap, BTreeSet};

use switchgear_core::shared::Script;
use switchgear_core::{
    CircuitBreaker, Config, Decision, Instances, Millis, Mode, Outcome, Permit, Quorum, Reason, Settlement, State,
    Transition, TripOn,
};

use super::instance::TIMEOUT_MS;

/// One circuit in the store. What the core's machine does not know is what the scripts know calls by.
#[derive(Clone, Debug)]
pub struct Store {
    machine: CircuitBreaker,
    quorum: Quorum,
    /// Whose failures count, where a quorum must agree.
    failed: Instances,
    /// The length of the last opening.
    open_ms: u64,
    /// The probes that hold a slot: number in the machine, and start.
    slots: BTreeMap<String, (u64, u64)>,
    /// The failures (closed) or successes (half-open) of this period that have been counted.
    counted: BTreeSet<String>,
    /// The probes whose slot was freed by hand: whoever did it took no call for theirs.
    pub freed: BTreeSet<String>,
    /// When a command tripped it that had been under way for longer than anybody waits: such an opening may be over at once.
    pub late_trip: u64,
    /// Everything that it was, the present last.
    pub past: Vec<Period>,
    replicated: bool,
    /// What a replica has that lags by one write.
    replica: Option<Box<Self>>,
}

/// What the circuit was from a moment on, on no one's clock but the model's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Since when.
    pub from: u64,
    /// As callers see it.
    pub state: State,
    /// Its name.
    pub epoch: u64,
    /// Of an opening, on the store's clock.
    pub reopens_at: Option<u64>,
}

/// What goes back to the instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The fields that an admission reads.
    Reading([Option<String>; 5]),
    /// What scripts answer.
    Integers(Vec<i64>),
}

/// What came of a command.
#[derive(Debug)]
pub struct Executed {
    /// What goes back.
    pub reply: Reply,
    /// What is announced.
    pub announcement: Option<String>,
    /// Whether the outcome of a call changed anything.
    pub counted: bool,
}

impl Store {
    /// A store that has never heard of the circuit.
    ///
    /// `replicated`: whether it has a replica, which lags.
    pub fn new(config: &Config, quorum: Quorum, replicated: bool, at: u64) -> Self {
        Self {
            machine: CircuitBreaker::new(config.clone()),
            quorum,
            failed: Instances::new(quorum),
            open_ms: 0,
            slots: BTreeMap::new(),
            counted: BTreeSet::new(),
            freed: BTreeSet::new(),
            late_trip: 0,
            past: vec![Period { from: at, state: State::Closed, epoch: 0, reopens_at: None }],
            replicated,
            replica: None,
        }
    }

    /// A replica takes over that has not got the last write.
    pub fn fall_back(&mut self, at: u64) {
        let Some(replica) = self.replica.take() else { return };
        let old = std::mem::replace(self, *replica);
        // What the dependency works on goes on, though nobody knows of it any more.
        let forgotten = old.slots.into_keys().filter(|id| !self.slots.contains_key(id));
        self.freed = old.freed.into_iter().chain(forgotten).collect();
        self.late_trip = old.late_trip;
        let now = self.past.last().copied();
        self.past = old.past;
        self.past.extend(now.map(|period| Period { from: at, ..period }));
    }

    /// Whether a replica lags.
    pub fn lags(&self) -> bool {
        self.replica.is_some()
    }

    /// FLUSHALL.
    pub fn forget(&mut self, at: u64) {
        let past = std::mem::take(&mut self.past);
        let freed = std::mem::take(&mut self.freed);
        *self = Self {
            past,
            freed,
            late_trip: self.late_trip,
            ..Self::new(self.machine.config(), self.quorum, self.replicated, at)
        };
        self.past.push(Period { from: at, state: State::Closed, epoch: 0, reopens_at: None });
    }

    /// Whether an operator holds it where it is.
    pub fn is_forced(&self) -> bool {
        self.machine.snapshot(Millis::MAX).mode != Mode::Auto
    }

    /// How many calls hold a slot.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The plain read of an admission.
    pub fn read(&self) -> Reply {
        let snapshot = self.machine.snapshot(Millis::MAX);
        let (state, opened) = match (snapshot.mode, self.machine.state()) {
            (Mode::Auto, State::Open) => (Some("open"), true),
            (Mode::Auto, State::HalfOpen) => (Some("half-open"), true),
            _ => (None, false),
        };
        let mode = (snapshot.mode != Mode::Auto).then(|| snapshot.mode.as_str());
        let opened_at = self.past.last().and_then(|last| Some(last.reopens_at? - self.open_ms));
        Reply::Reading([
            state.map(str::to_owned),
            mode.map(str::to_owned),
            (snapshot.epoch > 0).then(|| snapshot.epoch.to_string()),
            opened_at.filter(|_| opened).map(|ms| ms.to_string()),
            opened.then(|| self.open_ms.to_string()),
        ])
    }

    /// A script with its arguments; `at` is the model's time.
    pub fn run(&mut self, at: u64, script: Script, args: &[String]) -> Executed {
        let word = |place: usize| args.get(place).map_or("", String::as_str);
        let number = |place: usize| word(place).parse::<u64>().unwrap_or_default();
        let now = Millis::new(number(0)).unwrap_or_default();
        let before = Self { replica: None, ..self.clone() };
        let (status, transition, wait, origin) = match script {
            Script::CanRequest => {
                let (status, transition, wait) = self.can_request(now, word(1));
                (status, transition, wait, 3)
            }
            Script::RecordSuccess => {
                let (status, transition) = self.settle(now, args, Outcome::Success, number(7).max(1));
                (status, transition, None, 5)
            }
            Script::RecordFailure => {
                for _ in 0..number(7) {
                    self.settle_once(now, args, Outcome::Success);
                }
                let (status, transition) = self.settle(now, args, Outcome::Failure, 1);
                (status, transition, None, 5)
            }
            Script::Release if word(2) == "-1" && !word(1).is_empty() => (self.give_back(now, word(1)), None, None, 9),
            Script::Release => {
                let (status, transition) = self.settle(now, args, Outcome::Release, 1);
                (status, transition, None, 9)
            }
            Script::Control => (1, self.control(now, word(1), word(2)), None, 4),
            Script::Admit | Script::GetState => (0, None, None, 9),
        };
        let counted = self.machine != before.machine || self.counted.len() != before.counted.len();
        self.remember(at, now, transition);
        if self.replicated && (counted || before.slots != self.slots) {
            self.replica = Some(Box::new(before));
        }
        let announcement = transition.map(|t| announcement(&t, word(origin + 1)));
        Executed { reply: Reply::Integers(self.reply(now, status, transition, wait)), announcement, counted }
    }

    fn can_request(&mut self, now: Millis, id: &str) -> (i64, Option<Transition>, Option<i64>) {
        let timeout = self.machine.config().probe_timeout_ms();
        let holds = self.slots.get(id).is_some_and(|(_, start)| now.get() < start + timeout);
        if holds && self.machine.state() == State::HalfOpen {
            return (2, None, Some(0));
        }
        let admission = self.machine.can_request(now);
        let (status, wait) = match admission.decision {
            Decision::Allowed(Permit::Closed { .. }) => (1, 0),
            Decision::Allowed(Permit::Probe { id: number, .. }) => {
                if admission.transition.is_some() {
                    self.slots.clear();
                    self.counted.clear();
                }
                self.slots.insert(id.to_owned(), (number, now.get()));
                (2, 0)
            }
            Decision::Allowed(Permit::Bypass) => (3, 0),
            Decision::Refused { retry_after, .. } => (0, retry_after.map_or(-1, signed)),
        };
        (status, admission.transition, Some(wait))
    }

    fn settle(&mut self, now: Millis, args: &[String], outcome: Outcome, times: u64) -> (i64, Option<Transition>) {
        let mut last = (0, None);
        for _ in 0..times {
            last = self.settle_once(now, args, outcome);
        }
        last
    }

    fn settle_once(&mut self, now: Millis, args: &[String], outcome: Outcome) -> (i64, Option<Transition>) {
        let [_, id, epoch, kind, ..] = args else { return (0, None) };
        let permit = epoch.parse::<u64>().ok().map(|epoch| match kind.as_str() {
            "1" => Permit::Probe { epoch, id: self.slots.get(id).map_or(u64::MAX, |(number, _)| *number) },
            _ => Permit::Closed { epoch },
        });
        let is_half_open = self.machine.state() == State::HalfOpen;
        // Buckets keep no ids, and where each instance has its places a later failure takes over an earlier one's.
        let has_ids = self.machine.config().trip_on() != TripOn::Rate && !self.quorum.has_rings(self.machine.config());
        let is_named = match outcome {
            Outcome::Success => is_half_open,
            Outcome::Failure => is_half_open || has_ids,
            Outcome::Release => false,
        };
        if is_named && self.counted.contains(id) {
            return (1, None);
        }
        let settled = if outcome == Outcome::Failure {
            let instance = args.get(8).map_or("", String::as_str);
            self.machine.record_failure_of(now, permit, instance, &mut self.failed)
        } else {
            self.machine.settle(now, permit, outcome)
        };
        if settled.status == Settlement::Stale {
            return (0, None);
        }
        if is_half_open && permit.is_none() && outcome != Outcome::Failure {
            let newest = self.slots.iter().max_by_key(|(_, (number, start))| (*start, *number));
            let newest = newest.map(|(id, _)| id.clone());
            newest.as_ref().map(|id| self.slots.remove(id));
            self.freed.extend(newest);
        }
        if self.machine.state() == State::HalfOpen {
            self.slots.remove(id);
        }
        if is_named {
            self.counted.insert(id.clone());
        }
        if settled.transition.is_some() || outcome == Outcome::Success && self.machine.state() == State::Closed {
            self.counted.clear();
        }
        (1, settled.transition)
    }

    fn give_back(&mut self, now: Millis, id: &str) -> i64 {
        let Some((number, _)) = self.slots.remove(id) else { return 0 };
        let epoch = self.machine.snapshot(now).epoch;
        self.machine.release(now, Some(Permit::Probe { epoch, id: number }));
        1
    }

    fn control(&mut self, now: Millis, operation: &str, for_ms: &str) -> Option<Transition> {
        match operation {
            "reset" => self.machine.reset(now),
            "force-open" => self.machine.force_open(now),
            "disable" => self.machine.disable(now),
            _ => self.machine.trip(now, for_ms.parse().ok()).ok().flatten(),
        }
    }

    fn remember(&mut self, at: u64, now: Millis, transition: Option<Transition>) {
        let snapshot = self.machine.snapshot(now);
        if self.past.last().is_some_and(|last| last.epoch == snapshot.epoch) {
            return;
        }
        self.open_ms = transition.and_then(|t| t.open_ms).unwrap_or(self.open_ms);
        if snapshot.state == State::Open && snapshot.mode == Mode::Auto {
            // An operator's trip of an open circuit is no transition that callers see.
            self.open_ms = snapshot.remaining_open_ms;
        }
        if snapshot.state != State::HalfOpen {
            self.slots.clear();
        }
        self.counted.clear();
        if snapshot.state == State::Open && now.get() + LATE_MS < at {
            self.late_trip = at;
        }
        let reopens_at = snapshot.opened_at.map(|opened_at| opened_at + self.open_ms);
        self.past.push(Period { from: at, state: snapshot.state, epoch: snapshot.epoch, reopens_at });
    }

    fn reply(&self, now: Millis, status: i64, transition: Option<Transition>, wait: Option<i64>) -> Vec<i64> {
        let snapshot = self.machine.snapshot(now);
        let mode = match snapshot.mode {
            Mode::Auto => 0,
            Mode::ForcedOpen => 1,
            Mode::Disabled => 2,
        };
        let remaining = signed(snapshot.remaining_open_ms);
        let is_open = snapshot.mode == Mode::Auto && snapshot.state == State::Open;
        let (from, reason, failures) = transition.map_or((-1, -1, 0), |t| {
            let reason = Reason::ALL.iter().position(|reason| *reason == t.reason);
            (code(t.from), reason.map_or(-1, |place| signed(place as u64)), signed(t.failures))
        });
        vec![
            status,
            code(snapshot.state),
            mode,
            signed(snapshot.epoch),
            wait.unwrap_or(remaining),
            from,
            reason,
            failures,
            if is_open { signed(self.open_ms) } else { -1 },
            0,
        ]
    }
}

/// Later than at the deadline, whatever the clocks.
const LATE_MS: u64 = TIMEOUT_MS + 50;

fn announcement(t: &Transition, origin: &str) -> String {
    let reason = Reason::ALL.iter().position(|reason| *reason == t.reason).unwrap_or_default();
    let open_ms = t.open_ms.map_or(-1, signed);
    let (from, to) = (code(t.from), code(t.to));
    format!("1 {from} {to} {reason} {} {} {} {open_ms} {origin}", t.epoch, t.at.get(), t.failures)
}

fn code(state: State) -> i64 {
    match state {
        State::Closed => 0,
        State::Open => 1,
        State::HalfOpen => 2,
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
