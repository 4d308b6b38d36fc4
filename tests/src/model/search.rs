//! The exhaustive search.

use std::collections::HashSet;
use std::fmt::{Debug, Write};

use super::part::{Fingerprint, Part, fingerprint};
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
    search.visit(world)?;
    Ok(search.explored)
}

struct Search {
    seen: HashSet<Fingerprint>,
    path: Vec<Action>,
    explored: Explored,
}

impl Search {
    fn visit(&mut self, world: &World) -> Result<(), String> {
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
            self.visit(&next)?;
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
    fn fingerprint(&self) -> Fingerprint {
        fn all<T: Clone + Debug>(parts: &[Part<T>]) -> Vec<Fingerprint> {
            parts.iter().map(Part::fingerprint).collect()
        }
        let parts = (all(&self.instances), all(&self.nodes), all(&self.stores), all(&self.net));
        let rest = (&self.now, &self.is_up, &self.left, &self.events, &self.orphans, self.has_lost);
        fingerprint(format_args!("{parts:?}{rest:?}"))
    }
}
