//! Which of many goes when there is no more room: the rule of a group, without what it holds.

use alloc::vec::Vec;

/// Slots in the order of their last use, those of closed circuits apart from the others. Every operation is O(1).
///
/// Hosts whose breakers live on their side of the boundary ask this for the slot to use and to give up.
#[derive(Clone, Debug)]
pub struct Recency {
    capacity: usize,
    /// The heads of the three lists, then the slots.
    links: Vec<Link>,
}

/// Where a new key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insertion {
    /// The slot, counted from 0.
    pub slot: usize,
    /// Whether it belonged to another key until now, which is thereby evicted.
    pub evicted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    older: usize,
    newer: usize,
    list: List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Closed,
    Others,
    Free,
}

impl List {
    const fn of(is_closed: bool) -> Self {
        if is_closed { Self::Closed } else { Self::Others }
    }

    /// Where the head of the list stands among the links.
    const fn head(self) -> usize {
        self as usize
    }
}

const HEADS: usize = 3;

impl Recency {
    /// No slot taken; room for `capacity`, at least 1.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let head = |list: List| Link { older: list.head(), newer: list.head(), list };
        Self { capacity: capacity.max(1), links: [List::Closed, List::Others, List::Free].map(head).to_vec() }
    }

    /// Takes a slot for a new, closed circuit, and makes it the most recently used.
    pub fn insert(&mut self) -> Insertion {
        let evicted = self.oldest(List::Closed).or_else(|| self.oldest(List::Others));
        let (at, evicted) = match (self.oldest(List::Free), evicted) {
            (Some(free), _) => (free, false),
            (None, Some(oldest)) if self.links.len() - HEADS >= self.capacity => (oldest, true),
            _ => {
                let at = self.links.len();
                self.links.push(Link { older: at, newer: at, list: List::Free });
                (at, false)
            }
        };
        self.relink(at, List::Closed);
        Insertion { slot: at - HEADS, evicted }
    }

    /// Makes a slot the most recently used of its kind.
    pub fn touch(&mut self, slot: usize) {
        if let Some(link) = self.taken(slot) {
            self.relink(slot + HEADS, link.list);
        }
    }

    /// Says what the circuit in a slot is now: closed, or not. A change is a use.
    pub fn note(&mut self, slot: usize, is_closed: bool) {
        if self.taken(slot).is_some_and(|link| link.list != List::of(is_closed)) {
            self.relink(slot + HEADS, List::of(is_closed));
        }
    }

    /// Frees a slot.
    pub fn remove(&mut self, slot: usize) {
        if self.taken(slot).is_some() {
            self.relink(slot + HEADS, List::Free);
        }
    }

    /// A slot that is in use; hosts may hold on to one that is no longer.
    fn taken(&self, slot: usize) -> Option<Link> {
        self.links.get(slot.checked_add(HEADS)?).copied().filter(|link| link.list != List::Free)
    }

    fn oldest(&self, list: List) -> Option<usize> {
        // The list is a ring through its head: what is newer than the head is the oldest.
        let oldest = self.links[list.head()].newer;
        (oldest != list.head()).then_some(oldest)
    }

    /// Takes a link out of its ring and puts it in as the newest of another, or of the same.
    fn relink(&mut self, at: usize, list: List) {
        let Link { older, newer, .. } = self.links[at];
        self.links[older].newer = newer;
        self.links[newer].older = older;
        let head = list.head();
        let newest = self.links[head].older;
        self.links[newest].newer = at;
        self.links[head].older = at;
        self.links[at] = Link { older: newest, newer: head, list };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_slots_are_used_again_before_anything_is_evicted() {
        let mut recency = Recency::new(2);
        assert_eq!(recency.insert(), Insertion { slot: 0, evicted: false });
        assert_eq!(recency.insert(), Insertion { slot: 1, evicted: false });
        recency.remove(0);
        recency.remove(0);
        assert_eq!(recency.insert(), Insertion { slot: 0, evicted: false });
        assert_eq!(recency.insert(), Insertion { slot: 1, evicted: true });
    }

    #[test]
    fn slots_that_are_not_in_use_change_nothing() {
        let mut recency = Recency::new(1);
        recency.touch(0);
        recency.note(7, false);
        recency.remove(usize::MAX);
        assert_eq!(recency.insert(), Insertion { slot: 0, evicted: false });
    }
}
