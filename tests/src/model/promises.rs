//! What the engine promises, whatever happens.
//!
//! - **Probes.** At most `halfOpenMaxCalls` calls that the store admitted as probes are at the dependency. A probe is not
//!   counted once its slot has timed out, by the clock that is furthest ahead. Nor is one counted that began before a trip
//!   whose command was under way for longer than a deadline: that opening began when it was sent, and may be over already.
//!   A process admits a probe of its own only while it takes the store for away, or while the store says closed and the
//!   process stands by what it saw; there are at most `halfOpenMaxCalls` of those in each process.
//! - **Periods.** A call admitted while closed has the name of a period that the store was in while it was asked, or as long
//!   ago as `closedCacheMs` allows; so does a refusal, by `openCacheMs`, and it never outlasts the opening. What a process need
//!   not ask is never older than what the store has told it. The rules of the core see to it that an outcome of another
//!   period changes nothing.
//! - **Protection.** A process that tripped with failures which the store did not take admits nothing until its own probe
//!   succeeds or the store was closed in a later period, be it that an operator switched the circuit off.
//! - **Answers.** Every ticket is answered once, at the deadline at the latest. Nobody joins a flight that left before what
//!   this process told last. A slot that came too late is given back.
//! - **Recovery.** Once nothing goes wrong any more, every process is admitted by the store again.

use switchgear_core::shared::{Answer, OnStoreFailure, PermitKind, Script, SharedPermit, Step};
use switchgear_core::{Outcome, Quorum, Settlement, State, TripOn};

use super::instance::{Instance, Running, Shield, TIMEOUT_MS};
use super::store::Period;
use super::world::World;

/// Where an answer comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// The store's reply, and whether that told of a transition.
    Store { moved: bool },
    /// The store's reply to an admission that was asked then.
    Asked { since: u64 },
    /// Nobody was asked, though the store is there.
    Known,
    /// The store did not answer, or is not asked any more.
    Away,
}

impl World {
    /// The call goes ahead with this permit.
    pub(super) fn granted(&mut self, place: usize, permit: SharedPermit, source: Source) -> Result<(), String> {
        let has_shield = self.shielded(place, permit)?;
        let is_local = self.options.on_store_failure == OnStoreFailure::Local;
        let fits = match (permit.kind, source) {
            (PermitKind::Closed, Source::Known) => {
                let since = self.now.saturating_sub(self.options.closed_cache_ms) + 1;
                let is_it = |period: &Period| period.state == State::Closed && period.epoch == permit.epoch;
                self.options.closed_cache_ms > 0 && self.known(place, since)?.any(is_it)
            }
            (PermitKind::Closed, Source::Asked { since }) => {
                self.was(place, State::Closed, Some(permit.epoch), since)?
            }
            (PermitKind::Probe, Source::Asked { since }) => {
                self.was(place, State::HalfOpen, Some(permit.epoch), since)?
            }
            (PermitKind::Bypass, Source::Asked { .. }) => true,
            (PermitKind::LocalProbe, Source::Asked { .. }) => is_local && has_shield,
            (PermitKind::LocalClosed | PermitKind::LocalProbe | PermitKind::Bypass, Source::Away) => is_local,
            (PermitKind::Unasked, Source::Away) => self.options.on_store_failure == OnStoreFailure::FailOpen,
            _ => false,
        };
        if !fits {
            return Err(format!("{permit:?} of {source:?} while the store was {:?}", self.store(place)?.past));
        }
        self.run(place, permit)
    }

    /// The call does not go ahead.
    pub(super) fn refused(&mut self, place: usize, wait: Option<u64>, source: Source) -> Result<(), String> {
        if wait == Some(0) {
            return Err("refused for no time".into());
        }
        let stands = self.instance(place)?.shield.is_some();
        let fits = match source {
            Source::Away => self.options.on_store_failure == OnStoreFailure::Local,
            Source::Known if stands => true,
            Source::Known => {
                let since = self.now.saturating_sub(self.options.open_cache_ms) + 1;
                let ends = self.now + wait.unwrap_or(0);
                let slack = 2 * self.skew();
                let is_it = |end: Option<u64>| wait.is_none() || end.is_some_and(|end| ends <= end + slack);
                self.known(place, since)?.any(|period| period.state == State::Open && is_it(period.reopens_at))
            }
            Source::Asked { since } => {
                stands || self.was(place, State::Open, None, since)? || self.was(place, State::HalfOpen, None, since)?
            }
            Source::Store { .. } => false,
        };
        if fits {
            Ok(())
        } else {
            Err(format!("refused for {wait:?} by {source:?} while {:?}", self.store(place)?.past))
        }
    }

    /// An outcome was settled.
    pub(super) fn settled(
        &mut self,
        place: usize,
        permit: Option<SharedPermit>,
        outcome: Outcome,
        step: &Step,
        source: Source,
    ) -> Result<(), String> {
        let is_local = self.options.on_store_failure == OnStoreFailure::Local;
        let threshold = match self.config.trip_on() {
            TripOn::Rate => u64::MAX,
            TripOn::Rolling | TripOn::Consecutive => self.config.failure_threshold(),
        };
        let quorum = self.options.quorum;
        let is_probe = permit.is_some_and(|permit| permit.kind == PermitKind::Probe);
        // Its slot is kept, so that nobody tries again at once.
        self.has_lost |= is_probe && outcome == Outcome::Failure && !matches!(source, Source::Store { .. });
        let instance = self.instance_mut(place)?;
        let told_by_store = matches!(source, Source::Store { moved: true });
        match step.transition {
            Some(t) if t.to == State::Open && !told_by_store => {
                let open_ms = t.open_ms.ok_or("a trip without a length")?;
                let until = t.at.get() - instance.clock.host + open_ms;
                instance.shield = Some(Shield { until, epoch: instance.told });
            }
            Some(t) if t.to == State::Closed && permit.is_none_or(|permit| permit.kind == PermitKind::LocalProbe) => {
                instance.shield = None;
            }
            _ => {}
        }
        let Some(permit) = permit else { return Ok(()) };
        let is_ours = !matches!(permit.kind, PermitKind::Bypass | PermitKind::Unasked);
        let untaken = outcome == Outcome::Failure && matches!(source, Source::Away) && is_ours;
        // Admitted while this process's own breaker had tripped without a word.
        let is_marked = permit.kind == PermitKind::Closed && permit.id.counter == u64::MAX;
        if untaken && is_local && (threshold == 1 || is_marked) {
            // Its period may be over, or this process has tripped by then.
            let is_own = matches!(permit.kind, PermitKind::LocalClosed | PermitKind::LocalProbe);
            let is_over = step.answer == Some(Answer::Settled(Settlement::Stale)) && is_own;
            let (shield, told) = (instance.shield.is_some(), instance.told.max(instance.announced));
            let is_other = self.store(place)?.past.last().is_none_or(|period| period.epoch != permit.epoch);
            let has_moved_on = is_other || told > permit.epoch;
            if !shield && !is_over && !has_moved_on {
                return Err(format!("a failure of {permit:?} that nobody took: {step:?}"));
            }
        }
        if quorum == Quorum::ONE || permit.kind != PermitKind::Closed || !step.counted {
            return Ok(());
        }
        // Alone it cannot trip the fleet, so it opens for itself.
        let instance = self.instance_mut(place)?;
        if instance.failed.0 != permit.epoch || outcome == Outcome::Success {
            instance.failed = (permit.epoch, 0);
        }
        instance.failed.1 += u64::from(outcome == Outcome::Failure);
        let has_seen_enough = instance.failed.1 >= threshold && instance.told.max(instance.announced) == permit.epoch;
        if has_seen_enough && instance.shield.is_none() && !told_by_store {
            return Err(format!("{threshold} failures of one process that goes on: {step:?}"));
        }
        Ok(())
    }

    /// A script has run at the store, that was in this period.
    pub(super) fn executed(&self, script: Script, args: &[String], epoch: u64, counted: bool) -> Result<(), String> {
        let is_outcome = matches!(script, Script::RecordSuccess | Script::RecordFailure);
        let of = args.get(2).and_then(|epoch| epoch.parse::<u64>().ok());
        if is_outcome && counted && of.is_some_and(|of| of != epoch) {
            return Err(format!("an outcome of {of:?} changed {epoch}"));
        }
        Ok(())
    }

    /// What holds at every moment.
    pub(super) fn check(&mut self) -> Result<(), String> {
        let most = usize::try_from(self.config.half_open_max_calls()).unwrap_or(usize::MAX);
        let lives = self.config.probe_timeout_ms() - 2 * self.skew() - TIMEOUT_MS;
        let now = self.now;
        for (circuit, store) in self.stores.iter().enumerate() {
            let counts = |call: &Running| {
                let is_old = now >= call.since + lives || call.since < store.late_trip;
                !is_old && !store.freed.contains(&call.permit.id.to_string())
            };
            self.orphans.retain(|(of, call)| *of != circuit || counts(call));
            let orphans = self.orphans.iter().filter(|(of, _)| *of == circuit).count();
            let seats = || self.instances.iter().filter(|instance| instance.seat.circuit == circuit);
            let probes = |instance: &Instance, kind: PermitKind| {
                instance.running.iter().filter(|call| call.permit.kind == kind && counts(call)).count()
            };
            let in_flight = orphans + seats().map(|instance| probes(instance, PermitKind::Probe)).sum::<usize>();
            if in_flight > most {
                return Err(format!("{in_flight} probes in flight, {most} are allowed"));
            }
            if seats().any(|instance| probes(instance, PermitKind::LocalProbe) > most) {
                return Err("more probes of a process's own than it may have".into());
            }
        }
        Ok(())
    }

    /// Whether this process is shielded; an error if this permit is one that it must not have then.
    fn shielded(&mut self, place: usize, permit: SharedPermit) -> Result<bool, String> {
        let now = self.now;
        let Some(shield) = self.instance(place)?.shield.clone() else { return Ok(false) };
        if self.store(place)?.past.iter().any(|period| period.state == State::Closed && period.epoch > shield.epoch) {
            // A process that had heard of no period before knows of none that is later: it may take its own probe all the same.
            if permit.kind != PermitKind::LocalProbe {
                self.instance_mut(place)?.shield = None;
            }
            return Ok(true);
        }
        let may = now >= shield.until && permit.kind.is_probe() || permit.kind == PermitKind::Bypass;
        if may { Ok(true) } else { Err(format!("{permit:?} in spite of {shield:?}")) }
    }

    /// Whether the store was in this state (and period) at some time since then.
    fn was(&self, place: usize, state: State, epoch: Option<u64>, since: u64) -> Result<bool, String> {
        let is_it = |period: &Period| period.state == state && epoch.is_none_or(|epoch| period.epoch == epoch);
        Ok(self.periods(place, since)?.any(is_it))
    }

    /// The same, without those before the last that the store has told this process of. (Where it has forgotten one it may be
    /// announced once more.)
    fn known(&self, place: usize, since: u64) -> Result<impl Iterator<Item = &Period>, String> {
        let past = &self.store(place)?.past;
        let forgets_nothing = past.is_sorted_by_key(|period| period.epoch);
        let heard = if forgets_nothing { self.instance(place)?.heard } else { 0 };
        let from = past.get(heard).map_or(0, |period| period.from);
        let is_later = move |period: &&Period| period.from >= from;
        Ok(self.periods(place, since)?.filter(is_later))
    }

    /// The periods that the store was in since then.
    fn periods(&self, place: usize, since: u64) -> Result<impl Iterator<Item = &Period>, String> {
        let past = &self.store(place)?.past;
        let lasts = move |place: usize| past.get(place + 1).is_none_or(|next| next.from >= since);
        Ok(past.iter().enumerate().filter(move |(place, _)| lasts(*place)).map(|(_, period)| period))
    }

    /// How far a process's idea of the store's time may be off.
    pub(super) fn skew(&self) -> u64 {
        let off = |clock: &super::instance::Clock| clock.store.map_or(TIMEOUT_MS / 2, i64::unsigned_abs);
        self.scenario.clocks.iter().map(off).max().unwrap_or(0)
    }
}
