//! The order in which a full group gives up its members. The breakers themselves are the host's.

use std::cell::RefCell;

use switchgear_core::Recency;

use crate::bindings::exports::switchgear::breaker::local::{GuestRecency, Insertion};

/// The order of one group.
pub struct Order {
    order: RefCell<Recency>,
}

impl GuestRecency for Order {
    fn new(capacity: u32) -> Self {
        Self { order: RefCell::new(Recency::new(place(capacity))) }
    }

    fn insert(&self) -> Insertion {
        let switchgear_core::Insertion { slot, evicted } = self.order.borrow_mut().insert();
        // There are fewer slots than the capacity, which is a u32.
        Insertion { slot: u32::try_from(slot).unwrap_or(u32::MAX), evicted }
    }

    fn touch(&self, slot: u32) {
        self.order.borrow_mut().touch(place(slot));
    }

    fn note(&self, slot: u32, is_closed: bool) {
        self.order.borrow_mut().note(place(slot), is_closed);
    }

    fn remove(&self, slot: u32) {
        self.order.borrow_mut().remove(place(slot));
    }
}

/// A number of the host as one of this machine, whose addresses have 32 bits.
const fn place(number: u32) -> usize {
    number as usize
}
