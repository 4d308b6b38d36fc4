//! The rules of a switchgear circuit as atomic Redis scripts, and the one table that ships them.
//!
//! This crate runs nothing and talks to nobody: it is text. [`SCRIPTS`] is what a host walks to know what to send; what the
//! scripts take, answer and write is the wire contract, in this crate's `README.md`. They run on Redis 6.2 and later and on
//! Valkey.
//!
//! ```
//! use switchgear_lua::{Keys, SCRIPTS};
//!
//! let admit = &SCRIPTS[0];
//! assert_eq!((admit.name, admit.keys), ("admit", Keys::Circuit));
//! // EVALSHA <admit.sha1> 1 {cb:billing}, and after NOSCRIPT: EVAL <admit.text> 1 {cb:billing}
//! assert_eq!(admit.sha1.len(), 40);
//! ```
#![no_std]
#![forbid(unsafe_code)]

mod sha1;

/// One script: what to send, and what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// What it is called, in this table, in the file name and in the README.
    pub name: &'static str,
    /// The text for EVAL.
    pub text: &'static str,
    /// The SHA-1 of the text in lower-case hexadecimal, for EVALSHA.
    pub sha1: &'static str,
    /// The keys it is given.
    pub keys: Keys,
}

/// Which keys a script is given. With `K` for `{` + prefix + circuit name + `}`:
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// `K` alone.
    Circuit,
    /// `K`, `K:f`, `K:p`; then `K:r` if (and only if) the circuit's `tripOn` is `rate`; then `K:i` if (and only if) its `quorum`
    /// is above 1 and its `tripOn` is `consecutive` or `rate`.
    All,
}

macro_rules! script {
    ($name:literal, $keys:expr, [$($include:literal),*]) => {{
        const TEXT: &str = concat!(
            $(include_str!(concat!("include/", $include, ".lua")),)*
            include_str!(concat!($name, ".lua")),
        );
        const DIGEST: [u8; 40] = sha1::hex(TEXT.as_bytes());
        const SHA1: &str = match core::str::from_utf8(&DIGEST) {
            Ok(digest) => digest,
            Err(_) => "",
        };
        Script { name: $name, text: TEXT, sha1: SHA1, keys: $keys }
    }};
}

/// Every script, in the order in which the engine of the core (`switchgear-core`, module `shared`) numbers them.
pub static SCRIPTS: [Script; 7] = [
    script!("admit", Keys::Circuit, []),
    script!("can_request", Keys::All, ["values", "config", "circuit", "writing", "announcing", "probes"]),
    script!("record_success", Keys::All, ["values", "config", "circuit", "writing", "announcing", "probes", "rate"]),
    script!("record_failure", Keys::All, ["values", "config", "circuit", "writing", "announcing", "rate", "quorum"]),
    script!("release", Keys::All, ["values", "config", "circuit", "writing", "probes"]),
    script!("get_state", Keys::All, ["values", "config", "circuit", "probes", "rate"]),
    script!("control", Keys::All, ["values", "config", "circuit", "writing", "announcing"]),
];
