//! The rules of a circuit breaker, and the sans-I/O engine of one that a fleet shares.
//!
//! This crate never reads a clock, never draws a random number, never does I/O and knows nothing of Redis beyond the calls
//! it asks for. Every call that depends on time takes `now`; the same input gives the same answer, in every language.
//!
//! [`CircuitBreaker`] is the type to read first: the state machine of one circuit. [`Config`] is what it runs by, and
//! [`shared`] is the engine of a circuit whose state lives in a store.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod breaker;
pub mod config;
mod error;
mod group;
mod hints;
pub mod http;
mod name;
mod permit;
mod probes;
mod quorum;
mod redact;
#[cfg(feature = "serde")]
mod serde;
pub mod shared;
mod snapshot;
mod time;
mod window;

pub use crate::breaker::{CircuitBreaker, Mode, State};
pub use crate::config::{Config, Naming, TripOn, Value};
pub use crate::error::{ConfigError, ErrorCode, NameError, TimeError};
pub use crate::group::{CircuitBreakerGroup, Insertion, Recency};
pub use crate::hints::Hints;
pub use crate::name::{check_name, check_prefix, name_from_utf16, prefix_from_utf16};
pub use crate::permit::{Admission, Decision, Outcome, Permit, Reason, Settled, Settlement, Transition};
pub use crate::quorum::{Instances, Quorum, Ring};
pub use crate::redact::without_credentials;
pub use crate::snapshot::Snapshot;
pub use crate::time::Millis;

/// The examples of the README, run by `cargo test --doc`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
