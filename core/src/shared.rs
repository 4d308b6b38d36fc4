//! The sans-I/O engine of a circuit that a fleet shares (DESIGN section 5): values in, values out.
//!
//! [`SharedCircuit`] decides what to ask the store and what its replies mean; the host only carries. It never sees a socket,
//! a clock or a timer: the host says what time it is and when a deadline has passed. All rules of section 3 for a shared
//! circuit are in the Lua scripts; what is here is the conversation with them.

mod call;
mod circuit;
mod keys;
mod listing;
mod options;
mod reading;
mod reply;

pub use self::call::{Ask, CallId, Script};
pub use self::circuit::{Answer, Control, PermitKind, Settle, SharedCircuit, SharedPermit, Step};
pub use self::keys::Keys;
pub use self::listing::Listing;
pub use self::options::{DEFAULT_TIMEOUT_MS, OnStoreFailure, SharedOptions};
pub use self::reading::ADMISSION_FIELDS;
