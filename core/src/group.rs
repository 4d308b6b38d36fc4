//! Keyed breakers in bounded memory: the least recently used goes first, closed ones before others (DESIGN section 6).

mod recency;

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

pub use self::recency::{Insertion, Recency};

use crate::breaker::{CircuitBreaker, State};
use crate::config::Config;

/// One breaker per key (host, tenant, route), of one configuration.
///
/// It holds at most `max_keys` breakers: a new key takes the place of the least recently used closed breaker, whose state
/// is the least to lose, and only if none is closed that of the least recently used one.
#[derive(Clone, Debug)]
pub struct CircuitBreakerGroup {
    config: Config,
    slot_of: BTreeMap<String, usize>,
    entries: Vec<Option<(String, CircuitBreaker)>>,
    recency: Recency,
    /// The slot handed out last: its breaker may have changed since, which no one else can.
    handed_out: Option<usize>,
}

impl CircuitBreakerGroup {
    /// How many breakers a group holds when nobody says: more dependencies than most services have.
    pub const DEFAULT_MAX_KEYS: usize = 1024;

    /// An empty group; `max_keys` is at least 1.
    #[must_use]
    pub fn new(config: Config, max_keys: usize) -> Self {
        Self {
            config,
            slot_of: BTreeMap::new(),
            entries: Vec::new(),
            recency: Recency::new(max_keys),
            handed_out: None,
        }
    }

    /// The breaker of a key, made if there is none, and now the most recently used.
    pub fn for_key(&mut self, key: &str) -> &mut CircuitBreaker {
        self.note_handed_out();
        let slot = match self.slot_of.get(key) {
            Some(&slot) => {
                self.recency.touch(slot);
                slot
            }
            None => self.insert(key),
        };
        self.handed_out = Some(slot);
        let fresh = || (key.to_string(), CircuitBreaker::new(self.config.clone()));
        &mut self.entries[slot].get_or_insert_with(fresh).1
    }

    /// Forgets a key. Whether there was one.
    pub fn remove(&mut self, key: &str) -> bool {
        self.note_handed_out();
        let Some(slot) = self.slot_of.remove(key) else { return false };
        self.recency.remove(slot);
        self.entries[slot] = None;
        true
    }

    /// How many breakers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slot_of.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slot_of.is_empty()
    }

    /// The keys and their breakers, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CircuitBreaker)> {
        self.slot_of
            .values()
            .filter_map(|&slot| self.entries[slot].as_ref())
            .map(|(key, breaker)| (key.as_str(), breaker))
    }

    fn insert(&mut self, key: &str) -> usize {
        let Insertion { slot, evicted } = self.recency.insert();
        if evicted && let Some((old, _)) = self.entries[slot].take() {
            self.slot_of.remove(&old);
        }
        if slot == self.entries.len() {
            self.entries.push(None);
        }
        self.slot_of.insert(key.to_string(), slot);
        slot
    }

    fn note_handed_out(&mut self) {
        if let Some(slot) = self.handed_out.take()
            && let Some((_, breaker)) = &self.entries[slot]
        {
            self.recency.note(slot, breaker.state() == State::Closed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Millis;
    use alloc::format;

    fn group(max_keys: usize) -> CircuitBreakerGroup {
        CircuitBreakerGroup::new(Config::from_fields(&[("failure_threshold", 1.into())]).unwrap(), max_keys)
    }

    fn keys(group: &CircuitBreakerGroup) -> Vec<&str> {
        group.iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn a_key_keeps_its_breaker() {
        let mut group = group(2);
        group.for_key("a").record_failure(Millis::default(), None);
        assert_eq!(group.for_key("a").state(), State::Open);
        assert_eq!(group.for_key("b").state(), State::Closed);
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut group = group(2);
        group.for_key("a");
        group.for_key("b");
        group.for_key("a");
        group.for_key("c");
        assert_eq!(keys(&group), ["a", "c"]);
    }

    #[test]
    fn an_open_one_goes_after_the_closed_ones() {
        let mut group = group(3);
        for key in ["open", "b", "c"] {
            group.for_key(key);
        }
        group.for_key("open").record_failure(Millis::default(), None);
        for n in 0..10 {
            group.for_key(&format!("new-{n}"));
        }
        assert!(keys(&group).contains(&"open"));
        group.for_key("open").reset(Millis::default());
        for n in 10..13 {
            group.for_key(&format!("new-{n}"));
        }
        assert!(!keys(&group).contains(&"open"));
    }

    #[test]
    fn when_none_is_closed_the_least_recently_used_goes() {
        let mut group = group(2);
        for key in ["a", "b", "c"] {
            group.for_key(key).record_failure(Millis::default(), None);
        }
        assert_eq!(keys(&group), ["b", "c"]);
    }

    #[test]
    fn a_removed_key_starts_afresh() {
        let mut group = group(2);
        group.for_key("a").record_failure(Millis::default(), None);
        assert!(group.remove("a") && !group.remove("a"));
        assert!(group.is_empty());
        assert_eq!(group.for_key("a").state(), State::Closed);
    }

    #[test]
    fn a_million_keys_leave_as_many_as_allowed() {
        let mut group = group(10_000);
        group.for_key("down").record_failure(Millis::default(), None);
        for n in 0..1_000_000 {
            group.for_key(&format!("{n}"));
        }
        assert_eq!(group.len(), 10_000);
        assert_eq!(group.for_key("down").state(), State::Open);
    }
}
