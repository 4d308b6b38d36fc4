//! The state machine of one local circuit, safe under threads.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use switchgear_core::config::HostOption;
use switchgear_core::{
    Admission, CircuitBreaker, ConfigError, Decision, Hints, Millis, Naming, Outcome, Permit, Settled, Settlement,
    State, Transition,
};

use crate::config::Config;
use crate::convert::{Given, Moment, Raise, SnapshotSeen, locked, outcome_of, snapshot_seen};

/// How many listen to what every single call emits: to one breaker, and to the group it is in.
#[pyclass(frozen, module = "switchgear._native")]
#[derive(Clone, Default)]
pub struct Loudness {
    own: Arc<AtomicIsize>,
    outer: Option<Arc<AtomicIsize>>,
}

#[pymethods]
impl Loudness {
    #[new]
    #[pyo3(signature = (outer = None))]
    fn new(outer: Option<&Self>) -> Self {
        Self { own: Arc::default(), outer: outer.map(|outer| outer.own.clone()) }
    }

    fn add(&self, listeners: isize) {
        self.own.fetch_add(listeners, Ordering::SeqCst);
    }

    #[getter]
    pub(crate) fn count(&self) -> isize {
        let outer = self.outer.as_ref().map_or(0, |outer| outer.load(Ordering::SeqCst));
        self.own.load(Ordering::SeqCst) + outer
    }
}

/// The right to one call.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Grant {
    permit: Permit,
    /// The circuit that gets the slot back if nobody settles this: an exception can come between any two steps of Python, and
    /// a signal handler's or a stack overflow's need not leave the time to settle.
    core: Arc<Core>,
    /// Whether it is settled, or in the hands of somebody who may settle without it.
    is_looked_after: AtomicBool,
}

impl Grant {
    /// From here on it gives nothing back by itself.
    pub(crate) fn look_after(&self) {
        self.is_looked_after.store(true, Ordering::SeqCst);
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if matches!(self.permit, Permit::Probe { .. }) && !self.is_looked_after.load(Ordering::SeqCst) {
            self.core.give_back(self.permit);
        }
    }
}

#[pymethods]
impl Grant {
    fn keep(&self) {
        self.look_after();
    }

    #[getter]
    const fn is_probe(&self) -> bool {
        matches!(self.permit, Permit::Probe { .. })
    }

    #[getter]
    const fn epoch(&self) -> u64 {
        match self.permit {
            Permit::Closed { epoch } | Permit::Probe { epoch, .. } => epoch,
            Permit::Bypass => 0,
        }
    }
}

/// The answer to a call that may not go ahead.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Denial {
    #[pyo3(get)]
    state: &'static str,
    #[pyo3(get)]
    retry_after_ms: Option<u64>,
}

impl Denial {
    pub(crate) const fn new(state: State, retry_after_ms: Option<u64>) -> Self {
        Self { state: state.as_str(), retry_after_ms }
    }
}

/// A change of the state as callers see it.
#[pyclass(frozen, module = "switchgear._native", name = "Transition")]
pub struct TransitionSeen {
    transition: Transition,
}

#[pymethods]
impl TransitionSeen {
    #[getter(from_state)]
    const fn before(&self) -> &'static str {
        self.transition.from.as_str()
    }

    #[getter(to_state)]
    const fn after(&self) -> &'static str {
        self.transition.to.as_str()
    }

    #[getter]
    const fn at(&self) -> u64 {
        self.transition.at.get()
    }

    #[getter]
    const fn reason(&self) -> &'static str {
        self.transition.reason.as_str()
    }

    #[getter]
    const fn failures(&self) -> u64 {
        self.transition.failures
    }

    #[getter]
    const fn open_ms(&self) -> Option<u64> {
        self.transition.open_ms
    }
}

impl From<Transition> for TransitionSeen {
    fn from(transition: Transition) -> Self {
        Self { transition }
    }
}

/// The answer to a request.
#[derive(IntoPyObject)]
pub enum Admitted {
    /// It may go ahead.
    Granted(Grant),
    /// It may not.
    Denied(Denial),
}

/// One circuit.
#[pyclass(frozen, module = "switchgear._native")]
pub struct Machine {
    core: Arc<Core>,
    loudness: Loudness,
    is_plain: bool,
    success_ignored: bool,
}

/// What its grants hold on to.
struct Core {
    inner: Mutex<Inner>,
    /// The epoch of the closed permit that every call gets unasked and whose success changes nothing; [`NOT_HOT`] if none.
    /// Written under the lock, so that after an operation nobody reads what was true before it.
    hot: AtomicU64,
    has_transitions: AtomicBool,
}

struct Inner {
    breaker: CircuitBreaker,
    /// In the order in which they happened, whichever thread comes to tell them.
    transitions: VecDeque<Transition>,
    /// The time of the last operation, which is the time for what comes without one.
    last: Millis,
}

const NOT_HOT: u64 = u64::MAX;

#[pymethods]
impl Machine {
    #[new]
    fn new(config: &Config, loudness: &Loudness, plain: bool) -> Self {
        let breaker = CircuitBreaker::new(config.inner.clone());
        let core = Core {
            hot: AtomicU64::new(hot_epoch(breaker.hints())),
            has_transitions: AtomicBool::new(false),
            inner: Mutex::new(Inner { breaker, transitions: VecDeque::new(), last: Millis::default() }),
        };
        Self {
            core: Arc::new(core),
            loudness: loudness.clone(),
            is_plain: plain,
            success_ignored: config.inner.trip_on().ignores_successes(),
        }
    }

    #[getter]
    pub(crate) fn hot(&self) -> Option<u64> {
        if !self.is_plain || self.loudness.count() > 0 {
            return None;
        }
        Some(self.core.hot.load(Ordering::SeqCst)).filter(|&epoch| epoch != NOT_HOT)
    }

    #[getter]
    pub(crate) const fn success_ignored(&self) -> bool {
        self.success_ignored
    }

    fn admit(&self, now: Moment) -> Admitted {
        let decision = self.core.operate(now.0, |breaker| {
            let Admission { decision, transition } = breaker.can_request(now.0);
            (decision, transition)
        });
        match decision {
            Decision::Allowed(permit) => {
                Admitted::Granted(Grant { permit, core: self.core.clone(), is_looked_after: AtomicBool::new(false) })
            }
            Decision::Refused { state, retry_after } => Admitted::Denied(Denial::new(state, retry_after)),
        }
    }

    #[pyo3(signature = (now, grant, outcome))]
    fn settle(&self, now: Moment, grant: Option<&Grant>, outcome: u32) -> PyResult<bool> {
        let outcome = outcome_of(outcome)?;
        if let Some(grant) = grant {
            grant.look_after();
        }
        Ok(self.core.settled(now.0, grant.map(|grant| grant.permit), outcome))
    }

    fn settle_closed(&self, now: Moment, epoch: u64, outcome: u32) -> PyResult<bool> {
        Ok(self.core.settled(now.0, Some(Permit::Closed { epoch }), outcome_of(outcome)?))
    }

    #[getter]
    fn has_transitions(&self) -> bool {
        self.core.has_transitions.load(Ordering::SeqCst)
    }

    fn take_transitions(&self) -> Vec<TransitionSeen> {
        let mut inner = locked(&self.core.inner);
        let taken = std::mem::take(&mut inner.transitions);
        self.core.has_transitions.store(false, Ordering::SeqCst);
        drop(inner);
        taken.into_iter().map(TransitionSeen::from).collect()
    }

    fn retry_after_ms(&self, now: Moment) -> Option<u64> {
        locked(&self.core.inner).breaker.retry_after(now.0)
    }

    fn state(&self) -> &'static str {
        locked(&self.core.inner).breaker.state().as_str()
    }

    fn snapshot(&self, now: Moment) -> SnapshotSeen {
        let snapshot = locked(&self.core.inner).breaker.snapshot(now.0);
        snapshot_seen(snapshot)
    }

    fn reset(&self, now: Moment) {
        self.core.operate(now.0, |breaker| ((), breaker.reset(now.0)));
    }

    #[pyo3(signature = (now, for_ms = None))]
    fn trip(&self, py: Python<'_>, now: Moment, for_ms: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let for_ms = checked_for_ms(for_ms).map_err(|error| error.raise(py))?;
        let tripped = self.core.operate(now.0, |breaker| match breaker.trip(now.0, for_ms) {
            Ok(transition) => (Ok(()), transition),
            Err(error) => (Err(error), None),
        });
        tripped.map_err(|error| error.raise(py))
    }

    fn force_open(&self, now: Moment) {
        self.core.operate(now.0, |breaker| ((), breaker.force_open(now.0)));
    }

    fn disable(&self, now: Moment) {
        self.core.operate(now.0, |breaker| ((), breaker.disable(now.0)));
    }
}

impl Core {
    fn settled(&self, now: Millis, permit: Option<Permit>, outcome: Outcome) -> bool {
        let status = self.operate(now, |breaker| {
            let Settled { status, transition } = breaker.settle(now, permit, outcome);
            (status, transition)
        });
        match status {
            Settlement::Applied => true,
            Settlement::Stale => false,
        }
    }

    fn give_back(&self, permit: Permit) {
        let last = locked(&self.inner).last;
        self.settled(last, Some(permit), Outcome::Release);
    }

    /// What every operation ends with is done under its lock.
    fn operate<T>(&self, now: Millis, operation: impl FnOnce(&mut CircuitBreaker) -> (T, Option<Transition>)) -> T {
        let mut inner = locked(&self.inner);
        let (answer, transition) = operation(&mut inner.breaker);
        inner.last = now;
        self.hot.store(hot_epoch(inner.breaker.hints()), Ordering::SeqCst);
        if let Some(transition) = transition {
            inner.transitions.push_back(transition);
            self.has_transitions.store(true, Ordering::SeqCst);
        }
        answer
    }
}

/// The length of a manual opening, checked by the core's rules.
pub fn checked_for_ms(for_ms: Option<&Bound<'_, PyAny>>) -> Result<Option<u64>, ConfigError> {
    for_ms.map(|given| HostOption::ForMs.check(Naming::Snake, Given::of(given).value())).transpose()
}

const fn hot_epoch(hints: Hints) -> u64 {
    match hints.admit_free {
        Some(Permit::Closed { epoch }) if hints.success_free => epoch,
        Some(Permit::Closed { .. } | Permit::Probe { .. } | Permit::Bypass) | None => NOT_HOT,
    }
}
