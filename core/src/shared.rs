//! The sans-I/O engine of a circuit that a fleet shares (DESIGN section 5): values in, values out.
//!
//! [`SharedCircuit`] decides what to ask the store and what its replies mean; the host only carries. It never sees a socket,
//! a clock or a timer: the host says what time it is and when a deadline has passed. All rules of section 3 for a shared
//! circuit are in the Lua scripts; what is here is the conversation with them, what need not be asked, and what to do while
//! nobody answers.
//!
//! A model check walks every course that a few calls of a small fleet can take, with faults of every kind, and holds the
//! engine to its promises: `tests/src/model.rs`; CONTRIBUTING.md says how to run the larger one.

mod call;
mod circuit;
mod clock;
pub mod code;
mod conversation;
mod event;
mod fault;
mod guard;
mod keys;
mod known;
mod listing;
mod local;
mod node;
mod options;
mod permit;
mod reading;
mod reply;
mod step;
mod successes;
mod survey;
mod times;

pub use self::call::{Ask, CallId, Command, Script};
pub use self::circuit::{Control, SharedCircuit};
pub use self::event::Announcement;
pub use self::keys::Keys;
pub use self::listing::Listing;
pub use self::node::{Health, Node, Whose};
pub use self::options::{DEFAULT_TIMEOUT_MS, OnStoreFailure, SharedOptions};
pub use self::permit::{PermitKind, SharedPermit};
pub use self::reading::ADMISSION_FIELDS;
pub use self::step::{Answer, Begun, Others, Step};
pub use self::survey::{Missing, Survey};
pub use self::times::Times;
