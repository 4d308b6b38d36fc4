//! The order in which a full group gives up its members. The breakers themselves live in the facade.

use switchgear_core::{Insertion, Recency};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::held::{hold, let_go, with};

/// No slot taken; room for `capacity`.
#[wasm_bindgen(js_name = newRecency)]
pub fn new_recency(capacity: u32) -> *mut Recency {
    hold(Recency::new(capacity as usize))
}

#[wasm_bindgen(js_name = freeRecency)]
pub fn free_recency(order: *mut Recency) {
    let_go(order);
}

/// Takes a slot for a new, closed circuit, if need be from another. Answers twice the slot, plus 1 if it was another's.
#[wasm_bindgen]
pub fn insert(order: *mut Recency) -> u32 {
    let Insertion { slot, evicted } = with(order, Recency::insert);
    // A group holds at most a million.
    u32::try_from(slot).map_or(u32::MAX, |slot| slot * 2 + u32::from(evicted))
}

/// Says of a slot: that its circuit is not closed now, or is closed; that it is the most recently used; that it is free.
#[wasm_bindgen]
pub fn tell(order: *mut Recency, slot: u32, what: u8) {
    let slot = slot as usize;
    with(order, |order| match what {
        NOT_CLOSED => order.note(slot, false),
        CLOSED => order.note(slot, true),
        TOUCHED => order.touch(slot),
        _ => order.remove(slot),
    });
}

const NOT_CLOSED: u8 = 0;
const CLOSED: u8 = 1;
const TOUCHED: u8 = 2;
