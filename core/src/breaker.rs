//! The state machine (DESIGN section 3): requests in, permits out, outcomes in. It reads no clock and does no I/O.

use crate::config::{Config, HostOption, Naming, Value};
use crate::error::ConfigError;
use crate::hints::Hints;
use crate::permit::{Admission, Decision, Outcome, Permit, Reason, Settled, Settlement, Transition};
use crate::probes::Probes;
use crate::quorum::Instances;
use crate::snapshot::Snapshot;
use crate::time::{BELIEF_MS, Millis, is_unbelievable};
use crate::window::{Counts, Window};

/// Where a circuit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// Calls go through; failures are counted.
    #[default]
    Closed,
    /// Calls are refused until the open duration is over.
    Open,
    /// A few probes go through and decide.
    HalfOpen,
}

impl State {
    /// `closed`, `open` or `half-open`, as hosts and vectors spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// Who decides: the machine, or an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The machine.
    #[default]
    Auto,
    /// An operator: everything is refused.
    ForcedOpen,
    /// An operator: everything is admitted and nothing counted.
    Disabled,
}

impl Mode {
    /// `auto`, `forced-open` or `disabled`, as hosts and vectors spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::ForcedOpen => "forced-open",
            Self::Disabled => "disabled",
        }
    }

    /// The state as callers see it while this mode is in force.
    #[must_use]
    pub const fn seen(self, underneath: State) -> State {
        match self {
            Self::Auto => underneath,
            Self::ForcedOpen => State::Open,
            Self::Disabled => State::Closed,
        }
    }
}

/// A circuit breaker: one circuit's state and the rules that move it.
///
/// The same calls with the same times give the same answers, here, in every host and in Lua. A call is admitted by
/// [`can_request`](Self::can_request) and its outcome settled with the permit that it got:
///
/// ```
/// use switchgear_core::{CircuitBreaker, Config, Decision, Millis, State};
///
/// let mut breaker = CircuitBreaker::new(Config::from_fields(&[("failure_threshold", 1.into())])?);
/// let now = Millis::new(1_000)?;
/// let Decision::Allowed(permit) = breaker.can_request(now).decision else { panic!("closed circuits admit") };
/// breaker.record_failure(now, Some(permit));
/// assert_eq!(breaker.state(), State::Open);
/// assert_eq!(breaker.retry_after(now), Some(30_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CircuitBreaker {
    config: Config,
    state: State,
    mode: Mode,
    epoch: u64,
    /// INVARIANT: some while `trips > 0`, which is while OPEN or HALF_OPEN.
    opened_at: Option<u64>,
    open_ms: u64,
    trips: u64,
    half_open_successes: u64,
    probes: Probes,
    last_probe: u64,
    window: Window,
}

impl CircuitBreaker {
    /// A closed circuit that has counted nothing.
    #[must_use]
    pub const fn new(config: Config) -> Self {
        let window = Window::new(config.trip_on);
        Self {
            config,
            state: State::Closed,
            mode: Mode::Auto,
            epoch: 0,
            opened_at: None,
            open_ms: 0,
            trips: 0,
            half_open_successes: 0,
            probes: Probes::new(),
            last_probe: 0,
            window,
        }
    }

    /// Asks for one call (DESIGN 3.3). The only operation that moves OPEN to HALF_OPEN.
    pub fn can_request(&mut self, now: Millis) -> Admission {
        let now_ms = now.get();
        let mut transition = None;
        let decision = match (self.mode, self.state) {
            (Mode::Disabled, _) => Decision::Allowed(Permit::Bypass),
            (Mode::ForcedOpen, _) => Decision::Refused { state: State::Open, retry_after: None },
            (Mode::Auto, State::Closed) => Decision::Allowed(Permit::Closed { epoch: self.epoch }),
            (Mode::Auto, State::Open) => {
                self.opened_at = Some(self.believed_opened_at(now_ms));
                match self.remaining_open(now_ms) {
                    0 => {
                        transition = Some(self.begin_half_open(now));
                        self.admit_probe(now_ms)
                    }
                    ms => Decision::Refused { state: State::Open, retry_after: Some(ms) },
                }
            }
            (Mode::Auto, State::HalfOpen) => self.admit_probe(now_ms),
        };
        Admission { decision, transition }
    }

    /// Settles a call that succeeded; without a permit the plain rules of the current state apply (DESIGN 3.4).
    pub fn record_success(&mut self, now: Millis, permit: Option<Permit>) -> Settled {
        self.settle(now, permit, Outcome::Success)
    }

    /// Settles a call that failed; without a permit the plain rules of the current state apply (DESIGN 3.4).
    pub fn record_failure(&mut self, now: Millis, permit: Option<Permit>) -> Settled {
        self.settle(now, permit, Outcome::Failure)
    }

    /// Settles a call that says nothing about the dependency: only frees its slot (DESIGN 3.4).
    pub fn release(&mut self, now: Millis, permit: Option<Permit>) -> Settled {
        self.settle(now, permit, Outcome::Release)
    }

    /// Settles a call that failed at one instance of a fleet: as [`record_failure`](Self::record_failure), but a threshold
    /// trips only if the quorum that `failed` keeps is reached as well (DESIGN 5.8). It is what the scripts of a shared
    /// circuit do; there `instance` is the name of a host or pod.
    pub fn record_failure_of(
        &mut self,
        now: Millis,
        permit: Option<Permit>,
        instance: &str,
        failed: &mut Instances,
    ) -> Settled {
        let slot = failed.slot(&self.config, permit, instance);
        let epoch = self.epoch;
        self.settle_by(now, permit, Outcome::Failure, |window, config, now| {
            failed.count(window, config, now, epoch, (instance, slot))
        })
    }

    /// Settles a call by its outcome: what [`record_success`](Self::record_success) and its siblings do.
    pub fn settle(&mut self, now: Millis, permit: Option<Permit>, outcome: Outcome) -> Settled {
        self.settle_by(now, permit, outcome, Window::failure)
    }

    /// `count` counts the failure of a closed circuit, and says by how many it trips.
    fn settle_by(
        &mut self,
        now: Millis,
        permit: Option<Permit>,
        outcome: Outcome,
        count: impl FnOnce(&mut Window, &Config, u64) -> Option<u64>,
    ) -> Settled {
        const STALE: Settled = Settled { status: Settlement::Stale, transition: None };
        if self.is_stale(permit) {
            return STALE;
        }
        let transition = match (self.state, outcome) {
            (State::Open, _) => return STALE,
            (State::Closed, Outcome::Release) => None,
            (State::Closed, Outcome::Success) => {
                self.window.success(&self.config, now.get());
                None
            }
            (State::Closed, Outcome::Failure) => count(&mut self.window, &self.config, now.get())
                .map(|failures| self.open(now, None, Reason::Threshold, failures)),
            (State::HalfOpen, Outcome::Failure) => Some(self.open(now, None, Reason::ProbeFailed, 0)),
            (State::HalfOpen, Outcome::Release) => {
                self.free_slot(now.get(), permit);
                None
            }
            (State::HalfOpen, Outcome::Success) => {
                self.free_slot(now.get(), permit);
                self.half_open_successes += 1;
                let enough = self.half_open_successes >= self.config.success_threshold;
                enough.then(|| self.close(now, Reason::ProbesSucceeded))
            }
        };
        Settled { status: Settlement::Applied, transition }
    }

    /// Closes the circuit and clears all that was counted (DESIGN 3.5). The transition, if callers see one.
    pub fn reset(&mut self, now: Millis) -> Option<Transition> {
        let from = self.state();
        self.mode = Mode::Auto;
        visible(Transition { from, ..self.close(now, Reason::Manual) })
    }

    /// Trips now, also when already open, for `for_ms` milliseconds or as long as a trip lasts; recovers as usual
    /// (DESIGN 3.5). The transition, if callers see one.
    ///
    /// # Errors
    /// [`ConfigError`] if `for_ms` is no duration; then nothing changed.
    pub fn trip(&mut self, now: Millis, for_ms: Option<u64>) -> Result<Option<Transition>, ConfigError> {
        let for_ms = for_ms.map(|ms| HostOption::ForMs.check(Naming::Snake, Value::Number(ms as f64))).transpose()?;
        let from = self.state();
        self.mode = Mode::Auto;
        Ok(visible(Transition { from, ..self.open(now, for_ms, Reason::Manual, 0) }))
    }

    /// Refuses everything until [`reset`](Self::reset) or [`trip`](Self::trip) (DESIGN 3.5). The transition, if callers see one.
    pub fn force_open(&mut self, now: Millis) -> Option<Transition> {
        self.set_mode(now, Mode::ForcedOpen)
    }

    /// Admits everything and counts nothing until [`reset`](Self::reset) or [`trip`](Self::trip) (DESIGN 3.5). The
    /// transition, if callers see one.
    pub fn disable(&mut self, now: Millis) -> Option<Transition> {
        self.set_mode(now, Mode::Disabled)
    }

    /// The state as callers see it: forced-open reads open, disabled reads closed. Never changes anything.
    #[must_use]
    pub const fn state(&self) -> State {
        self.mode.seen(self.state)
    }

    /// The configuration it runs by.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// How long a request at `now` would have to wait, in milliseconds: 0 if it would be admitted, none while forced open.
    /// Never changes anything.
    #[must_use]
    pub fn retry_after(&self, now: Millis) -> Option<u64> {
        let now = now.get();
        match (self.mode, self.state) {
            (Mode::ForcedOpen, _) => None,
            (Mode::Disabled, _) | (Mode::Auto, State::Closed) => Some(0),
            (Mode::Auto, State::Open) => Some(self.remaining_open(now)),
            (Mode::Auto, State::HalfOpen) => {
                let timeout = self.config.probe_timeout_ms;
                let full = self.probes.live(timeout, now) >= self.config.half_open_max_calls;
                Some(if full { self.probes.until_oldest_expires(timeout, now) } else { 0 })
            }
        }
    }

    /// All there is to know about the circuit at `now` (DESIGN 3.6). Never changes anything.
    #[must_use]
    pub fn snapshot(&self, now: Millis) -> Snapshot {
        let now = now.get();
        let counts =
            if self.state == State::Closed { self.window.counts(&self.config, now) } else { Counts::default() };
        let half_open = self.state == State::HalfOpen;
        Snapshot {
            state: self.state(),
            mode: self.mode,
            failures_in_window: counts.failures_in_window,
            calls_in_window: counts.calls_in_window,
            consecutive_failures: counts.consecutive_failures,
            half_open_successes: self.half_open_successes,
            half_open_in_flight: if half_open { self.probes.live(self.config.probe_timeout_ms, now) } else { 0 },
            opened_at: self
                .opened_at
                .map(|at| if self.state == State::Open { self.believed_opened_at(now) } else { at }),
            remaining_open_ms: if self.state == State::Open { self.remaining_open(now) } else { 0 },
            trips: self.trips,
            epoch: self.epoch,
        }
    }

    /// What the next answers are bound to be, until the next operation (DESIGN 3.7).
    #[must_use]
    pub fn hints(&self) -> Hints {
        match (self.mode, self.state, self.opened_at) {
            (Mode::Auto, State::Closed, _) => Hints {
                admit_free: Some(Permit::Closed { epoch: self.epoch }),
                success_free: self.window.ignores_success(),
                refuse: None,
            },
            (Mode::Auto, State::Open, Some(opened_at)) => Hints {
                // From as far back as `opened_at` is believed.
                refuse: Some((
                    Millis::derived(opened_at.saturating_sub(BELIEF_MS)),
                    Millis::derived(opened_at + self.open_ms),
                )),
                ..Hints::default()
            },
            _ => Hints::default(),
        }
    }

    fn is_stale(&self, permit: Option<Permit>) -> bool {
        if self.mode != Mode::Auto {
            return true;
        }
        match permit {
            None => false,
            Some(Permit::Bypass) => true,
            Some(Permit::Closed { epoch }) => epoch != self.epoch || self.state != State::Closed,
            Some(Permit::Probe { epoch, .. }) => epoch != self.epoch || self.state != State::HalfOpen,
        }
    }

    fn admit_probe(&mut self, now: u64) -> Decision {
        self.probes.drop_dead(self.config.probe_timeout_ms, now);
        if self.probes.len() >= self.config.half_open_max_calls {
            let wait = self.probes.until_oldest_expires(self.config.probe_timeout_ms, now);
            return Decision::Refused { state: State::HalfOpen, retry_after: Some(wait) };
        }
        self.last_probe += 1;
        self.probes.insert(now, self.last_probe);
        Decision::Allowed(Permit::Probe { epoch: self.epoch, id: self.last_probe })
    }

    fn free_slot(&mut self, now: u64, permit: Option<Permit>) {
        self.probes.drop_dead(self.config.probe_timeout_ms, now);
        match permit {
            Some(Permit::Probe { id, .. }) => self.probes.remove(id),
            _ => self.probes.remove_newest(),
        }
    }

    fn begin_half_open(&mut self, now: Millis) -> Transition {
        let from = self.state();
        self.clear_counts();
        self.state = State::HalfOpen;
        self.transition(from, now, Reason::Cooldown, 0)
    }

    fn open(&mut self, now: Millis, for_ms: Option<u64>, reason: Reason, failures: u64) -> Transition {
        let from = self.state();
        self.clear_counts();
        self.state = State::Open;
        self.trips += 1;
        self.opened_at = Some(now.get());
        self.open_ms = for_ms.unwrap_or_else(|| self.config.open_ms(self.trips));
        self.transition(from, now, reason, failures)
    }

    fn close(&mut self, now: Millis, reason: Reason) -> Transition {
        let from = self.state();
        self.clear_counts();
        self.state = State::Closed;
        self.trips = 0;
        self.opened_at = None;
        self.transition(from, now, reason, 0)
    }

    fn set_mode(&mut self, now: Millis, mode: Mode) -> Option<Transition> {
        let from = self.state();
        self.mode = mode;
        visible(self.transition(from, now, Reason::Manual, 0))
    }

    fn clear_counts(&mut self) {
        self.window.clear();
        self.probes.clear();
        self.half_open_successes = 0;
    }

    /// Begins a new epoch: the outcomes of all calls admitted before are stale from here on.
    fn transition(&mut self, from: State, at: Millis, reason: Reason, failures: u64) -> Transition {
        self.epoch = at.get().max(self.epoch + 1);
        let opened = self.mode == Mode::Auto && self.state == State::Open;
        let open_ms = opened.then_some(self.open_ms);
        Transition { from, to: self.state(), at, reason, failures, open_ms, epoch: self.epoch }
    }

    /// `opened_at`, or `now` if it is too far ahead to be believed (DESIGN 3.8).
    fn believed_opened_at(&self, now: u64) -> u64 {
        self.opened_at.filter(|&at| !is_unbelievable(at, now)).unwrap_or(now)
    }

    fn remaining_open(&self, now: u64) -> u64 {
        (self.believed_opened_at(now) + self.open_ms).saturating_sub(now)
    }
}

/// A change between two states that look alike is none to those who watch.
fn visible(transition: Transition) -> Option<Transition> {
    (transition.from != transition.to).then_some(transition)
}
