//! The WebAssembly component: each function converts, calls the core, and converts back. It holds no rule.
//!
//! What it offers, and the documentation of it, is in `wit/`.

#![deny(unsafe_code)]

mod breaker;
mod convert;
mod group;
mod host;
mod shared;

/// What a host calls: each interface of the world is implemented in the file that is named after it.
struct Component;

mod bindings {
    #![allow(unsafe_code, reason = "generated: what crosses the boundary lies in memory that both sides read")]
    #![allow(missing_docs, reason = "generated, from what wit/ documents")]

    wit_bindgen::generate!({ path: "wit", world: "circuit-breaker" });

    use super::Component;

    export!(Component);
}
