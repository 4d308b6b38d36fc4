//! The exhaustive search.

use std::collections::HashSet;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use super::instance::Digested;
use super::world::{Action, World};

/// What a search has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Explored {
    /// Distinct moments.
    pub states: u64,
    /// What was done, each time followed by a look at the promises.
    pub steps: u64,
    /// The moments with nothing left to happen; from each the circuit recovers, and so from every moment before.
    pub ends: u64,
}

/// Walks everything that can happen from here on.
///
/// # Errors
/// The promise that was broken, and all that led to it.
pub fn explore(world: &World) -> Result<Explored, String> {
    let mut search = Search { seen: HashSet::new(), path: Vec::new(), explored: Explored::default() };
    search.visit(&mut world.clone())?;
    Ok(search.explored)
}

struct Search {
    /// Two independent hashes: with a million states two of them are taken for one in one of 10^26 searches.
    seen: HashSet<(u64, u64)>,
    path: Vec<Action>,
    explored: Explored,
}

impl Search {
    fn visit(&mut self, world: &mut World) -> Result<(), String> {
        let fingerprint = world.fingerprint();
        if !self.seen.insert(fingerprint) {
            return Ok(());
        }
        self.explored.states += 1;
        let mut is_end = true;
        for action in world.actions() {
            let mut next = world.clone();
            self.path.push(action);
            self.explored.steps += 1;
            next.act(action).map_err(|broken| self.story(&broken))?;
            is_end = false;
            self.visit(&mut next)?;
            self.path.pop();
        }
        if is_end {
            self.explored.ends += 1;
            // Every other time what is under way is lost first.
            world.clone().recovers(fingerprint.0.is_multiple_of(2)).map_err(|broken| self.story(&broken))?;
        }
        Ok(())
    }

    fn story(&self, broken: &str) -> String {
        let mut story = format!("{broken}\nafter:");
        for action in &self.path {
            let _ = write!(story, "\n  {action:?}");
        }
        story
    }
}

impl World {
    /// Tells this moment from every other.
    fn fingerprint(&mut self) -> (u64, u64) {
        let mut digest = Digest::new();
        for instance in &mut self.instances {
            // What the engine is shows in its Debug output, whole.
            let known = instance.digested.0.unwrap_or_else(|| {
                let mut digest = Digest::new();
                let _ = write!(digest, "{instance:?}");
                digest.finish()
            });
            if instance.digested.0.is_none() {
                Rc::make_mut(instance).digested = Digested(Some(known));
            }
            let _ = write!(digest, "{known:?}");
        }
        let (net, orphans, left) = (&self.net, &self.orphans, self.left);
        let _ = write!(digest, "{}{}{left:?}{:?}{net:?}{:?}{orphans:?}", self.now, self.is_up, self.store, self.events);
        digest.finish()
    }
}

struct Digest(DefaultHasher, DefaultHasher);

impl Digest {
    fn new() -> Self {
        let mut other = DefaultHasher::new();
        other.write_u8(1);
        Self(DefaultHasher::new(), other)
    }

    fn finish(&self) -> (u64, u64) {
        (self.0.finish(), self.1.finish())
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.hash(&mut self.0);
        text.hash(&mut self.1);
        Ok(())
    }
}
