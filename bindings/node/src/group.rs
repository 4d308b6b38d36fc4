//! The order in which a full group gives up its members. The breakers themselves live in the facade.

use napi_derive::napi;
use switchgear_core::{Insertion, Recency as Order};

/// Slots in the order of their last use.
#[napi]
pub struct Recency {
    order: Order,
    evicted: bool,
}

#[napi]
impl Recency {
    /// No slot taken; room for `capacity`.
    #[napi(constructor, catch_unwind)]
    pub fn new(capacity: u32) -> Self {
        Self { order: Order::new(capacity as usize), evicted: false }
    }

    /// Takes a slot for a new, closed circuit, if need be from another.
    #[napi(catch_unwind)]
    pub fn insert(&mut self) -> u32 {
        let Insertion { slot, evicted } = self.order.insert();
        self.evicted = evicted;
        // A group holds at most a million.
        u32::try_from(slot).unwrap_or(u32::MAX)
    }

    /// Whether the slot that was taken last belonged to another until then.
    #[napi(catch_unwind)]
    pub fn evicted(&self) -> bool {
        self.evicted
    }

    /// Makes a slot the most recently used.
    #[napi(catch_unwind)]
    pub fn touch(&mut self, slot: u32) {
        self.order.touch(slot as usize);
    }

    /// Says whether the circuit in a slot is closed now.
    #[napi(catch_unwind)]
    pub fn note(&mut self, slot: u32, closed: bool) {
        self.order.note(slot as usize, closed);
    }

    /// Frees a slot.
    #[napi(catch_unwind)]
    pub fn remove(&mut self, slot: u32) {
        self.order.remove(slot as usize);
    }
}
