//! Which circuits there are in a store, and whether all of it was looked through.

use alloc::string::String;
use alloc::vec::Vec;

use switchgear_core::prefix_from_utf16;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::convert::{NONE, thrown};

/// Finds the circuits of a prefix.
#[wasm_bindgen]
pub struct Listing(switchgear_core::shared::Listing);

#[wasm_bindgen]
impl Listing {
    /// `key_prefix` is what the client puts in front of keys by itself. Throws `name_invalid`.
    #[wasm_bindgen(constructor)]
    pub fn new(prefix: &[u16], key_prefix: &str) -> Result<Self, JsValue> {
        let prefix = prefix_from_utf16(prefix).map_err(thrown)?;
        switchgear_core::shared::Listing::new(&prefix, key_prefix).map(Self).map_err(thrown)
    }

    /// The pattern for SCAN's MATCH.
    #[must_use]
    pub fn pattern(&self) -> String {
        self.0.pattern().into()
    }

    /// The name of the circuit that a key belongs to; undefined if it is no circuit's.
    #[wasm_bindgen(js_name = nameOf)]
    #[must_use]
    pub fn name_of(&self, key: &str) -> Option<String> {
        self.0.name_of(key).map(Into::into)
    }
}

/// What the masters of a cluster answer to `CLUSTER NODES`.
#[wasm_bindgen]
pub struct Survey(switchgear_core::shared::Survey);

#[wasm_bindgen]
impl Survey {
    /// Reads it; undefined where one of them answers something else.
    #[must_use]
    pub fn read(replies: Vec<String>) -> Option<Self> {
        switchgear_core::shared::Survey::read(replies.iter().map(String::as_str)).map(Self)
    }

    /// Where somebody is who has circuits, or may have, and is none of those that answered; undefined if nobody.
    #[wasm_bindgen(js_name = missingAddress)]
    #[must_use]
    pub fn missing_address(&self) -> Option<String> {
        self.0.missing().map(|missing| missing.address.clone())
    }

    /// A slot that leads there; -1 if nobody is missing.
    #[wasm_bindgen(js_name = missingSlot)]
    #[must_use]
    pub fn missing_slot(&self) -> f64 {
        self.0.missing().map_or(NONE, |missing| missing.slot.into())
    }

    /// Whether nothing has changed its place between these two.
    #[wasm_bindgen(js_name = stoodStill)]
    #[must_use]
    pub fn stood_still(&self, before: &Self) -> bool {
        self.0.stood_still_since(&before.0)
    }
}
