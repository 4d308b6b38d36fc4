//! The keys of one circuit (DESIGN section 4).

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::Script;
use crate::config::{Config, TripOn};
use crate::error::NameError;
use crate::name::{check_name, check_prefix};
use crate::quorum::Quorum;

/// The keys of one circuit. They share a hash tag, so a cluster keeps them in one slot and a script may touch them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// `{PN}`, `{PN}:f`, `{PN}:p`; `{PN}:r` for the buckets of a rate; `{PN}:i` for the instances of a quorum that the window
    /// does not name.
    all: Vec<String>,
}

impl Keys {
    /// The prefix when nobody says: that of NestJS RedisX, so that a fleet can be moved over instance by instance.
    pub const DEFAULT_PREFIX: &'static str = "cb:";

    pub(super) fn new(prefix: &str, name: &str, config: &Config, quorum: Quorum) -> Result<Self, NameError> {
        check_prefix(prefix)?;
        check_name(name)?;
        let base = format!("{{{prefix}{name}}}");
        let mut all = vec![base.clone(), format!("{base}:f"), format!("{base}:p")];
        if config.trip_on() == TripOn::Rate {
            all.push(format!("{base}:r"));
        }
        if quorum.has_instances_key(config) {
            all.push(format!("{base}:i"));
        }
        Ok(Self { all })
    }

    /// The key that the whole circuit is routed by.
    #[must_use]
    pub fn routing(&self) -> &str {
        &self.all[0]
    }

    /// The keys to pass to a script, in order: exactly those it touches.
    #[must_use]
    pub fn of(&self, script: Script) -> &[String] {
        match script {
            Script::Admit => &self.all[..1],
            _ => &self.all,
        }
    }
}
