//! The WebAssembly component: each function converts, calls the core, and converts back. It holds no rule.
//!
//! What it offers, and the documentation of it, is in `wit/`.

#![deny(unsafe_code)]

mod breaker;
mod convert;
mod group;
mod host;
mod shared;

/// What a host calls: `local` is in `breaker` and `group`, each other interface in the file of its name.
struct Component;

mod bindings {
    #![allow(unsafe_code, reason = "generated: what crosses the boundary lies in memory that both sides read")]
    #![allow(missing_docs, reason = "generated, from what wit/ documents")]

    wit_bindgen::generate!({ path: "wit", world: "circuit-breaker" });

    // Exports have names that other linkers do not take: elsewhere the crate is compiled only to be checked.
    #[cfg(target_arch = "wasm32")]
    use super::Component;
    #[cfg(target_arch = "wasm32")]
    export!(Component);
}
