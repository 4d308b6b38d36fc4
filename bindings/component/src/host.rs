//! What a host that wraps the circuits needs besides, checked and decided by the core.

use switchgear_core::config;

use crate::Component;
use crate::bindings::exports::switchgear::breaker::host::{Error, Guest, HostOption, Naming, Value};
use crate::convert::value;

impl Guest for Component {
    fn check_name(name: String) -> Result<(), Error> {
        Ok(switchgear_core::check_name(&name)?)
    }

    fn check_option(naming: Naming, option: HostOption, given: Value) -> Result<u64, Error> {
        let option = match option {
            HostOption::TimeoutMs => config::HostOption::TimeoutMs,
            HostOption::SlowCallMs => config::HostOption::SlowCallMs,
            HostOption::MaxKeys => config::HostOption::MaxKeys,
            HostOption::ForMs => config::HostOption::ForMs,
            HostOption::IdleTtlMs => config::HostOption::IdleTtlMs,
        };
        Ok(option.check(naming.into(), value(&given))?)
    }

    fn status_counts(status: u16) -> bool {
        switchgear_core::http::status_counts(status)
    }

    fn without_credentials(text: String) -> String {
        switchgear_core::without_credentials(&text).into_owned()
    }
}
