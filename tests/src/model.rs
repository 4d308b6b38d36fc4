//! The model check of the engine of a shared circuit (DESIGN section 5): every course that a few calls of a small fleet can
//! take, with a store that executes the rules, a network that loses, doubles, delays and reorders, crashes, outages and
//! clocks that go wrong.
//!
//! A [`World`] is a moment: instances with a real engine each, a store, what is under way between them, and the time.
//! [`World::actions`] says what may happen next, [`World::act`] does it and says which promise it broke. [`explore`] walks
//! all of it.

mod instance;
mod part;
mod promises;
mod recovery;
mod scenarios;
mod search;
mod store;
mod world;

pub use self::scenarios::{Scenario, larger, small};
pub use self::search::{Explored, explore};
pub use self::world::{Action, World};
