//! What the suites share that belong to no single crate: the vectors, and whatever talks to a real Redis.

pub mod core_runners;
pub mod lua;
pub mod model;
pub mod quorum_vectors;
pub mod servers;
pub mod situations;
pub mod vectors;
