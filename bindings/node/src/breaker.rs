//! The state machine of one circuit. What is asked per call answers one number: a low value and flags, see `native.ts`.

use napi::bindgen_prelude::{Either, Env, Null, Result};
use napi_derive::napi;
use switchgear_core::config::HostOption;
use switchgear_core::{
    Admission, CircuitBreaker, Decision, Hints, Naming, Outcome, Permit, Settled, Settlement, State, Transition,
};

use crate::config::Config;
use crate::convert::{FieldValue, double, moment, or_null, thrown};

const REFUSED: u32 = 0;
const ALLOWED_CLOSED: u32 = 1;
const ALLOWED_PROBE: u32 = 2;
const ALLOWED_BYPASS: u32 = 3;
const STALE: u32 = 0;
const APPLIED: u32 = 1;
const TRANSITION: u32 = 4;
const HINTS: u32 = 8;
const BY_HALF_OPEN: u32 = 16;

/// What stands for "unknown" or "none" where a number is wanted.
const NONE: f64 = -1.0;

/// One circuit.
#[napi]
pub struct Breaker {
    machine: CircuitBreaker,
    /// What the facade knows of the hints: it is told when they change.
    hints: Hints,
    /// The last answers whose details the facade may still ask for.
    decision: Option<Decision>,
    transition: Option<Transition>,
}

#[napi]
impl Breaker {
    /// A closed circuit.
    #[napi(constructor, catch_unwind)]
    pub fn new(config: &Config) -> Self {
        let machine = CircuitBreaker::new(config.inner.clone());
        let hints = machine.hints();
        Self { machine, hints, decision: None, transition: None }
    }

    /// Asks for one call: refused or allowed, and flags. Throws `time_invalid`.
    #[napi(catch_unwind)]
    pub fn can_request(&mut self, env: Env, now: f64) -> Result<u32> {
        let Admission { decision, transition } = self.machine.can_request(moment(&env, now)?);
        self.decision = Some(decision);
        let answer = match decision {
            Decision::Allowed(Permit::Closed { .. }) => ALLOWED_CLOSED,
            Decision::Allowed(Permit::Probe { .. }) => ALLOWED_PROBE,
            Decision::Allowed(Permit::Bypass) => ALLOWED_BYPASS,
            Decision::Refused { state: State::HalfOpen, .. } => REFUSED | BY_HALF_OPEN,
            Decision::Refused { state: State::Open | State::Closed, .. } => REFUSED,
        };
        Ok(answer | self.flags(transition))
    }

    /// The epoch of the permit given last; 0 for one that has none.
    #[napi(catch_unwind)]
    pub fn permit_epoch(&self) -> f64 {
        match self.decision {
            Some(Decision::Allowed(Permit::Closed { epoch } | Permit::Probe { epoch, .. })) => double(epoch),
            Some(Decision::Allowed(Permit::Bypass) | Decision::Refused { .. }) | None => 0.0,
        }
    }

    /// The slot of the permit given last; 0 for one that has none.
    #[napi(catch_unwind)]
    pub fn permit_id(&self) -> f64 {
        match self.decision {
            Some(Decision::Allowed(Permit::Probe { id, .. })) => double(id),
            Some(Decision::Allowed(Permit::Closed { .. } | Permit::Bypass) | Decision::Refused { .. }) | None => 0.0,
        }
    }

    /// The wait of the last refusal in milliseconds; -1 if it is unknown.
    #[napi(catch_unwind)]
    pub fn refusal_wait(&self) -> f64 {
        match self.decision {
            Some(Decision::Refused { retry_after, .. }) => retry_after.map_or(NONE, double),
            Some(Decision::Allowed(_)) | None => NONE,
        }
    }

    /// Settles a call: applied or stale, and flags. Throws `time_invalid`.
    #[napi(catch_unwind)]
    pub fn settle(&mut self, env: Env, now: f64, kind: u32, epoch: f64, id: f64, outcome: u32) -> Result<u32> {
        let now = moment(&env, now)?;
        let Settled { status, transition } = self.machine.settle(now, permit(kind, epoch, id), outcome_of(outcome)?);
        let answer = match status {
            Settlement::Applied => APPLIED,
            Settlement::Stale => STALE,
        };
        Ok(answer | self.flags(transition))
    }

    /// The transition that the last operation made.
    #[napi(catch_unwind)]
    pub fn transition(&self) -> Option<TransitionSeen> {
        self.transition.map(TransitionSeen::from)
    }

    /// What the next answers are bound to be.
    #[napi(catch_unwind)]
    pub fn hints(&self) -> HintsSeen {
        let (refuse_from, refuse_until) =
            self.hints.refuse.map_or((0.0, 0.0), |(from, until)| (double(from.get()), double(until.get())));
        let admit_epoch = match self.hints.admit_free {
            Some(Permit::Closed { epoch }) => double(epoch),
            Some(Permit::Probe { .. } | Permit::Bypass) | None => NONE,
        };
        let success_ignored = self.machine.config().trip_on().ignores_successes();
        HintsSeen { admit_epoch, success_free: self.hints.success_free, success_ignored, refuse_from, refuse_until }
    }

    /// How long a request would have to wait, in milliseconds; -1 if that is unknown. Throws `time_invalid`.
    #[napi(catch_unwind)]
    pub fn retry_after(&self, env: Env, now: f64) -> Result<f64> {
        Ok(self.machine.retry_after(moment(&env, now)?).map_or(NONE, double))
    }

    /// The state as callers see it.
    #[napi(catch_unwind)]
    pub fn state(&self) -> &'static str {
        self.machine.state().as_str()
    }

    /// Everything the circuit knows. Throws `time_invalid`.
    #[napi(catch_unwind)]
    pub fn snapshot(&self, env: Env, now: f64) -> Result<Snapshot> {
        Ok(self.machine.snapshot(moment(&env, now)?).into())
    }

    /// Closes. Answers flags; throws `time_invalid`.
    #[napi(catch_unwind)]
    pub fn reset(&mut self, env: Env, now: f64) -> Result<u32> {
        let transition = self.machine.reset(moment(&env, now)?);
        Ok(self.flags(transition))
    }

    /// Opens, for as long as given. Answers flags; throws `time_invalid` or `config_invalid`.
    #[napi(catch_unwind)]
    pub fn trip(&mut self, env: Env, now: f64, for_ms: Option<FieldValue>) -> Result<u32> {
        let now = moment(&env, now)?;
        let for_ms = for_ms.map(|given| HostOption::ForMs.check(Naming::Camel, given.value())).transpose();
        let tripped = for_ms.and_then(|for_ms| self.machine.trip(now, for_ms));
        let transition = tripped.map_err(|error| thrown(&env, error))?;
        Ok(self.flags(transition))
    }

    /// Refuses until reset or trip. Answers flags; throws `time_invalid`.
    #[napi(catch_unwind)]
    pub fn force_open(&mut self, env: Env, now: f64) -> Result<u32> {
        let transition = self.machine.force_open(moment(&env, now)?);
        Ok(self.flags(transition))
    }

    /// Admits everything until reset or trip. Answers flags; throws `time_invalid`.
    #[napi(catch_unwind)]
    pub fn disable(&mut self, env: Env, now: f64) -> Result<u32> {
        let transition = self.machine.disable(moment(&env, now)?);
        Ok(self.flags(transition))
    }

    /// Keeps the transition for whoever asks, and says what is new.
    fn flags(&mut self, transition: Option<Transition>) -> u32 {
        self.transition = transition;
        let hints = self.machine.hints();
        let changed = hints != self.hints;
        self.hints = hints;
        u32::from(transition.is_some()) * TRANSITION + u32::from(changed) * HINTS
    }
}

/// A change of the state as callers see it.
#[napi(object, object_from_js = false)]
pub struct TransitionSeen {
    /// The state before.
    pub from: &'static str,
    /// The state after.
    pub to: &'static str,
    /// When, in milliseconds.
    pub at: f64,
    /// Why.
    pub reason: &'static str,
    /// The failures counted when a threshold tripped.
    pub failures: f64,
    /// The length of the opening in milliseconds; null if it did not open.
    pub open_ms: Either<f64, Null>,
}

impl From<Transition> for TransitionSeen {
    fn from(transition: Transition) -> Self {
        let Transition { from, to, at, reason, failures, open_ms, epoch: _ } = transition;
        Self {
            from: from.as_str(),
            to: to.as_str(),
            at: double(at.get()),
            reason: reason.as_str(),
            failures: double(failures),
            open_ms: or_null(open_ms),
        }
    }
}

/// What the next answers are bound to be.
#[napi(object, object_from_js = false)]
pub struct HintsSeen {
    /// Every request is admitted with the closed permit of this epoch; -1 if not.
    pub admit_epoch: f64,
    /// A success with that permit changes nothing.
    pub success_free: bool,
    /// A success with a closed permit never changes anything, whatever happens in between.
    pub success_ignored: bool,
    /// Every request from here on is refused, in milliseconds.
    pub refuse_from: f64,
    /// ... up to here, exclusive.
    pub refuse_until: f64,
}

/// A circuit at one moment.
#[napi(object, object_from_js = false)]
pub struct Snapshot {
    /// As callers see it.
    pub state: &'static str,
    /// Who decides.
    pub mode: &'static str,
    /// Failures in the window.
    pub failures_in_window: f64,
    /// Calls in the window.
    pub calls_in_window: f64,
    /// Failures in a row.
    pub consecutive_failures: f64,
    /// Probes that succeeded.
    pub half_open_successes: f64,
    /// Probes in flight.
    pub half_open_in_flight: f64,
    /// When it opened; null unless tripped.
    pub opened_at: Either<f64, Null>,
    /// Milliseconds of OPEN left.
    pub remaining_open_ms: f64,
    /// Openings since the last close.
    pub trips: f64,
    /// The period.
    pub epoch: f64,
}

impl From<switchgear_core::Snapshot> for Snapshot {
    fn from(snapshot: switchgear_core::Snapshot) -> Self {
        Self {
            state: snapshot.state.as_str(),
            mode: snapshot.mode.as_str(),
            failures_in_window: double(snapshot.failures_in_window),
            calls_in_window: double(snapshot.calls_in_window),
            consecutive_failures: double(snapshot.consecutive_failures),
            half_open_successes: double(snapshot.half_open_successes),
            half_open_in_flight: double(snapshot.half_open_in_flight),
            opened_at: or_null(snapshot.opened_at),
            remaining_open_ms: double(snapshot.remaining_open_ms),
            trips: double(snapshot.trips),
            epoch: double(snapshot.epoch),
        }
    }
}

/// A permit from the numbers it went out as; the doubles are integers that this module gave out.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates; a foreign number is a stale permit"
)]
const fn permit(kind: u32, epoch: f64, id: f64) -> Option<Permit> {
    match kind {
        ALLOWED_CLOSED => Some(Permit::Closed { epoch: epoch as u64 }),
        ALLOWED_PROBE => Some(Permit::Probe { epoch: epoch as u64, id: id as u64 }),
        ALLOWED_BYPASS => Some(Permit::Bypass),
        _ => None,
    }
}

pub fn outcome_of(outcome: u32) -> Result<Outcome> {
    match outcome {
        0 => Ok(Outcome::Success),
        1 => Ok(Outcome::Failure),
        2 => Ok(Outcome::Release),
        other => Err(napi::Error::from_reason(format!("{other} is no outcome"))),
    }
}
