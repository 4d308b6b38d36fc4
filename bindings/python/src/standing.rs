//! What every call of a circuit that is known to be closed is admitted with, without a question.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use switchgear_core::Millis;
use switchgear_core::shared::{CallId, PermitKind, SharedPermit};

use crate::breaker::Loudness;
use crate::clock::host_time;
use crate::convert::{Moment, locked};
use crate::shared::{Circuit, SharedConfig, SharedGrant};

/// A process was forked: what stood in its parent does not stand here. Its calls have ids of their own.
#[pyfunction]
pub fn forked() {
    FORKS.fetch_add(1, Ordering::SeqCst);
}

static FORKS: AtomicU64 = AtomicU64::new(0);

/// The grant that stands, from when until when on the host's clock. It outlives the engines that say so, one per process.
#[pyclass(frozen, module = "switchgear._native")]
#[derive(Clone)]
pub struct Standing {
    slot: Arc<Slot>,
    loudness: Loudness,
    is_plain: bool,
    success_is_free: bool,
}

#[pymethods]
impl Standing {
    #[new]
    fn new(config: &SharedConfig, loudness: &Loudness, plain: bool) -> Self {
        let success_is_free = config.success_is_free();
        Self { slot: Arc::default(), loudness: loudness.clone(), is_plain: plain && success_is_free, success_is_free }
    }

    /// Follows the steps of an engine, and of no other from here on.
    fn follow(&self, engine: &Circuit) {
        self.slot.follow(engine.feed(self.clone()));
    }

    #[getter]
    fn hot(&self) -> Option<SharedGrant> {
        if self.is_plain && self.loudness.count() == 0 { self.grant() } else { None }
    }

    /// A call that `hot` let through has a success that changes nothing, whatever has happened since.
    #[getter]
    const fn success_ignored(&self) -> bool {
        self.is_plain
    }

    #[getter]
    fn stands(&self) -> bool {
        self.slot.until.load(Ordering::Relaxed) != 0
    }

    #[getter]
    fn grant(&self) -> Option<SharedGrant> {
        self.granted(host_time)
    }

    fn grant_at(&self, now: Moment) -> Option<SharedGrant> {
        self.granted(|| Some(now.0))
    }
}

impl Standing {
    /// Takes what stands after a step of an engine; called under the engine's lock, so that nobody reads what was true before.
    pub fn take(&self, engine: u64, stands: Option<(SharedPermit, Millis, Millis)>) {
        self.slot.take(engine, stands);
    }

    fn granted(&self, now: impl FnOnce() -> Option<Millis>) -> Option<SharedGrant> {
        self.slot.at(now).map(|permit| SharedGrant::new(permit, self.success_is_free))
    }
}

/// Read without a lock, by every call: a reader that meets a writer sees nothing, and asks.
#[derive(Default)]
struct Slot {
    /// Odd while it is being written.
    version: AtomicU64,
    epoch: AtomicU64,
    nonce: AtomicU64,
    counter: AtomicU64,
    from: AtomicU64,
    /// Zero where nothing stands.
    until: AtomicU64,
    forks: AtomicU64,
    /// The engine that is followed; whoever writes has the lock.
    engine: Mutex<u64>,
}

impl Slot {
    fn follow(&self, engine: u64) {
        let mut followed = locked(&self.engine);
        if *followed != engine {
            *followed = engine;
            self.write(None);
        }
    }

    fn take(&self, engine: u64, stands: Option<(SharedPermit, Millis, Millis)>) {
        let followed = locked(&self.engine);
        if *followed == engine && (stands.is_some() || self.until.load(Ordering::Relaxed) != 0) {
            self.write(stands);
        }
    }

    fn write(&self, stands: Option<(SharedPermit, Millis, Millis)>) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        match stands {
            Some((permit, from, until)) => {
                self.epoch.store(permit.epoch, Ordering::Relaxed);
                self.nonce.store(permit.id.nonce, Ordering::Relaxed);
                self.counter.store(permit.id.counter, Ordering::Relaxed);
                self.from.store(from.get(), Ordering::Relaxed);
                self.until.store(until.get(), Ordering::Relaxed);
                self.forks.store(FORKS.load(Ordering::SeqCst), Ordering::Relaxed);
            }
            None => self.until.store(0, Ordering::Relaxed),
        }
        self.version.store(version + 2, Ordering::Release);
    }

    fn at(&self, now: impl FnOnce() -> Option<Millis>) -> Option<SharedPermit> {
        let version = self.version.load(Ordering::Acquire);
        let until = self.until.load(Ordering::Relaxed);
        // The usual case where nothing is to be remembered: no clock is read.
        if until == 0 || version % 2 == 1 {
            return None;
        }
        let from = self.from.load(Ordering::Relaxed);
        let forks = self.forks.load(Ordering::Relaxed);
        let permit = SharedPermit {
            kind: PermitKind::Closed,
            epoch: self.epoch.load(Ordering::Relaxed),
            id: CallId { nonce: self.nonce.load(Ordering::Relaxed), counter: self.counter.load(Ordering::Relaxed) },
        };
        fence(Ordering::Acquire);
        if self.version.load(Ordering::Relaxed) != version || forks != FORKS.load(Ordering::SeqCst) {
            return None;
        }
        let now = now()?.get();
        (from <= now && now < until).then_some(permit)
    }
}
