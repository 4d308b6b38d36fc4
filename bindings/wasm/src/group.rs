//! The order in which a full group gives up its members. The breakers themselves live in the facade.

use switchgear_core::{Insertion, Recency as Order};
use wasm_bindgen::prelude::wasm_bindgen;

/// Slots in the order of their last use.
#[wasm_bindgen]
pub struct Recency {
    order: Order,
}

#[wasm_bindgen]
impl Recency {
    /// No slot taken; room for `capacity`.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        Self { order: Order::new(capacity as usize) }
    }

    /// Takes a slot for a new, closed circuit, if need be from another. Answers twice the slot, plus 1 if it was another's.
    pub fn insert(&mut self) -> u32 {
        let Insertion { slot, evicted } = self.order.insert();
        // A group holds at most a million.
        u32::try_from(slot).map_or(u32::MAX, |slot| slot * 2 + u32::from(evicted))
    }

    /// Says of a slot: that its circuit is not closed now, or is closed; that it is the most recently used; that it is free.
    pub fn tell(&mut self, slot: u32, what: u8) {
        let slot = slot as usize;
        match what {
            NOT_CLOSED => self.order.note(slot, false),
            CLOSED => self.order.note(slot, true),
            TOUCHED => self.order.touch(slot),
            _ => self.order.remove(slot),
        }
    }
}

const NOT_CLOSED: u8 = 0;
const CLOSED: u8 = 1;
const TOUCHED: u8 = 2;
