//! The WebAssembly module of the npm package: each function converts, calls the core, and converts back. It holds no rule.
//!
//! In the modules that the package ships, numbers and texts cross the boundary, never objects; `bindings/wasm/ts` makes of them what the facade expects of any
//! native module (`bindings/node/ts/native.ts`).

#![cfg_attr(all(target_arch = "wasm32", not(feature = "objects")), no_std)]

extern crate alloc;

#[cfg(all(target_arch = "wasm32", not(feature = "objects")))]
mod runtime;

mod convert;

#[cfg(feature = "local")]
mod breaker;
#[cfg(feature = "local")]
mod config;
#[cfg(feature = "local")]
mod group;
#[cfg(feature = "local")]
mod held;
#[cfg(feature = "shared")]
mod listing;
#[cfg(feature = "objects")]
mod objects;
#[cfg(feature = "shared")]
mod shared;
