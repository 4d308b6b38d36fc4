//! The native module of the Node package: each function converts, calls the core, and converts back. It holds no rule.
//!
//! Only numbers cross the boundary where something happens per call; `bindings/node/ts/native.ts` is this module as the
//! facade sees it.

#![cfg_attr(test, allow(dead_code, reason = "in a test build napi registers nothing, so nothing is used"))]

mod breaker;
mod config;
mod convert;
mod group;
mod listing;
mod shared;

use napi_derive::napi;
use switchgear_core::ErrorCode;

/// The version of this crate, which is that of the package.
#[napi(catch_unwind)]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The stable codes of all errors.
#[napi(catch_unwind)]
pub fn error_codes() -> Vec<&'static str> {
    ErrorCode::ALL.map(ErrorCode::as_str).to_vec()
}

/// Whether a number is a moment.
#[napi(catch_unwind)]
pub fn is_moment(now: f64) -> bool {
    switchgear_core::Millis::from_f64(now).is_ok()
}
