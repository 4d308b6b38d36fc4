//! Which circuits there are in a store, and whether all of it was looked through.

use napi::bindgen_prelude::{Env, External, Result, Utf16String};
use napi_derive::napi;
use switchgear_core::prefix_from_utf16;
use switchgear_core::shared::{Listing, Missing, Survey};

use crate::convert::thrown;

/// Finds the circuits of a prefix; `key_prefix` is what the client puts in front of keys by itself. Throws `name_invalid`.
#[napi(catch_unwind)]
pub fn shared_listing(env: Env, prefix: Utf16String, key_prefix: String) -> Result<External<Listing>> {
    let prefix = prefix_from_utf16(&prefix).map_err(|error| thrown(&env, error))?;
    Listing::new(&prefix, &key_prefix).map(External::new).map_err(|error| thrown(&env, error))
}

/// The pattern for SCAN's MATCH.
#[napi(catch_unwind)]
pub fn shared_listing_pattern(listing: &External<Listing>) -> &str {
    listing.pattern()
}

/// The name of the circuit that a key belongs to; null if it is no circuit's.
#[napi(catch_unwind)]
pub fn shared_listing_name(listing: &External<Listing>, key: String) -> Option<String> {
    listing.name_of(&key).map(Into::into)
}

/// Reads what the masters of a cluster answer to `CLUSTER NODES`; null where one of them answers something else.
#[napi(catch_unwind)]
pub fn shared_survey(replies: Vec<String>) -> Option<External<Survey>> {
    Survey::read(replies.iter().map(String::as_str)).map(External::new)
}

/// Who has circuits, or may have, and is none of those that answered; null if nobody.
#[napi(catch_unwind)]
pub fn shared_survey_missing(survey: &External<Survey>) -> Option<MissingMaster> {
    survey.missing().map(|Missing { address, slot }| MissingMaster { address: address.clone(), slot: (*slot).into() })
}

/// Whether nothing has changed its place between these two.
#[napi(catch_unwind)]
pub fn shared_survey_stood_still(survey: &External<Survey>, before: &External<Survey>) -> bool {
    survey.stood_still_since(before)
}

/// A master that was not asked.
#[napi(object, object_from_js = false)]
pub struct MissingMaster {
    /// Where it is, as the cluster knows it.
    pub address: String,
    /// A slot that leads to it.
    pub slot: u32,
}
