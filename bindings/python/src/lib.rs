//! The native module of the Python package: each function converts, calls the core, and converts back. It holds no rule.
//!
//! `switchgear/_native.pyi` is this module as the facade sees it. Every class is frozen and keeps what changes behind a lock
//! or in an atomic. INVARIANT: no Python code runs, and nothing of Python is made or dropped, while a lock is held: so no
//! lock is ever waited for by the thread that holds it, be it through a finalizer, a signal handler or the collector, and
//! under the GIL none can be held by another thread at the moment of a fork.

#![deny(unsafe_code)]

mod breaker;
mod clock;
mod config;
mod convert;
mod event;
mod flight;
mod group;
mod listing;
mod permit;
mod queue;
mod scope;
mod shared;
mod standing;

use pyo3::prelude::pymodule;

/// See `_native.pyi`.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::breaker::{Denial, Grant, Loudness, Machine, TransitionSeen};
    #[pymodule_export]
    use crate::clock::monotonic_now;
    #[pymodule_export]
    use crate::config::{
        Config, check_name, check_option, check_prefix, defaults, describe, error_codes, fields, http_status_counts,
        is_moment, without_credentials,
    };
    #[pymodule_export]
    use crate::event::{Announcement, event_channel};
    #[pymodule_export]
    use crate::flight::Flight;
    #[pymodule_export]
    use crate::group::Members;
    #[pymodule_export]
    use crate::listing::{Listing, Survey};
    #[pymodule_export]
    use crate::permit::Permit;
    #[pymodule_export]
    use crate::queue::{Queue, Turn};
    #[pymodule_export]
    use crate::scope::{Done, Scope};
    #[pymodule_export]
    use crate::shared::{Ask, Circuit, Node, SharedConfig, SharedGrant, StepSeen};
    #[pymodule_export]
    use crate::standing::{Standing, forked};

    #[pymodule_export]
    const SUCCESS: u32 = crate::convert::SUCCESS;
    #[pymodule_export]
    const FAILURE: u32 = crate::convert::FAILURE;
    #[pymodule_export]
    const RELEASE: u32 = crate::convert::RELEASE;
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "that is its name in Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
