//! That a circuit can always close again.

use switchgear_core::Outcome;
use switchgear_core::shared::{Control, PermitKind};

use super::world::{Action, World};

/// How many openings, each as long as the longest here, a recovery may take.
const ROUNDS: u32 = 12;

/// Longer than any opening, probe or cache here, and than a guard's pause.
const ROUND_MS: u64 = 4_200;

/// As long as a guard lets nobody ask.
const PAUSE_MS: u64 = 1_000;

impl World {
    /// Nothing goes wrong any more, and the dependency works (and an operator lets
    /// go): after a while every process is admitted by the store. `lost`:
    /// what was under way is lost first, instead of arriving.
    ///
    /// # Errors
    /// That they are not, or a promise broken on the way.
    pub fn recovers(mut self, lost: bool) -> Result<(), String> {
        self.left.faults = 0;
        self.left.hears = 0;
        self.is_up.fill(true);
        if lost {
            for place in (0..self.net.len()).rev() {
                self.act(Action::Break(place))?;
            }
        }
        self.settle_down()?;
        if !self.has_lost {
            self.looks_again()?;
            if self.stores.iter().any(|store| store.slots() > 0) {
                return Err("a slot that nobody uses was not given back".into());
            }
        }
        for place in 0..self.instances.len() {
            if self.store(place)?.is_forced() {
                self.act(Action::Control(place, Control::Reset))?;
                self.settle_down()?;
            }
        }
        for _ in 0..ROUNDS {
            self.act(Action::Tick(ROUND_MS))?;
            self.settle_down()?;
            let mut closed = 0;
            for place in 0..self.instances.len() {
                self.left.calls = 1;
                self.act(Action::Call(place))?;
                self.deliver()?;
                let running = &self.instance(place)?.running;
                closed += usize::from(running.iter().any(|call| call.permit.kind == PermitKind::Closed));
                self.settle_down()?;
            }
            if closed == self.instances.len() {
                return Ok(());
            }
        }
        let last: Vec<_> = self.stores.iter().map(|store| store.past.last()).collect();
        Err(format!("does not recover, the store being {last:?}"))
    }

    /// Calls come after the guards' pause, and before any slot times out.
    fn looks_again(&mut self) -> Result<(), String> {
        self.act(Action::Tick(PAUSE_MS))?;
        for place in 0..self.instances.len() {
            self.left.calls = 1;
            self.act(Action::Call(place))?;
            self.settle_down()?;
        }
        Ok(())
    }

    /// Everything arrives, and every call succeeds.
    fn settle_down(&mut self) -> Result<(), String> {
        loop {
            self.deliver()?;
            let Some(place) = self.instances.iter().position(|instance| !instance.running.is_empty()) else {
                return Ok(());
            };
            self.act(Action::End(place, 0, Outcome::Success))?;
        }
    }

    fn deliver(&mut self) -> Result<(), String> {
        while let Some(message) = self.net.first() {
            let action = if message.reply.is_some() { Action::Reply(0) } else { Action::RoundTrip(0) };
            self.act(action)?;
        }
        Ok(())
    }
}
