//! What can be wrong with input, each with the code that it has in every host.

use alloc::string::{String, ToString};
use core::fmt::{self, Write as _};

/// The stable codes of all errors, of the core and of the hosts: the same words everywhere (DESIGN section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// An option has an unknown name, a wrong type, a value out of range, or does not fit the others.
    ConfigInvalid,
    /// A text cannot name a circuit.
    NameInvalid,
    /// A number is not a moment: `now` is an integer, 0 ..= 2^52.
    TimeInvalid,
    /// The circuit refused the call.
    CircuitOpen,
    /// The guarded call took longer than its `timeoutMs`.
    CallTimeout,
    /// The store answered with an error.
    StoreError,
    /// The store did not answer in time, or not at all.
    StoreUnavailable,
}

impl ErrorCode {
    /// Every code, in the order of DESIGN section 6.
    pub const ALL: [Self; 7] = [
        Self::ConfigInvalid,
        Self::NameInvalid,
        Self::TimeInvalid,
        Self::CircuitOpen,
        Self::CallTimeout,
        Self::StoreError,
        Self::StoreUnavailable,
    ];

    /// The code as hosts show it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigInvalid => "config_invalid",
            Self::NameInvalid => "name_invalid",
            Self::TimeInvalid => "time_invalid",
            Self::CircuitOpen => "circuit_open",
            Self::CallTimeout => "call_timeout",
            Self::StoreError => "store_error",
            Self::StoreUnavailable => "store_unavailable",
        }
    }
}

/// An option that cannot be taken; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    field: String,
    value: Option<String>,
    message: String,
}

impl ConfigError {
    /// `field` must be `valid`, but is `value`.
    pub(crate) fn out_of_range(field: &str, valid: &str, value: String) -> Self {
        let message = ["`", field, "` must be ", valid, ", got `", &value, "`"].concat();
        Self { field: field.to_string(), value: Some(value), message }
    }

    /// `field` cannot stand here at all; `message` says why and what can.
    pub(crate) fn misplaced(field: &str, message: String) -> Self {
        Self { field: field.to_string(), value: None, message }
    }

    /// The option's name, spelled as the host spells it.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The value as it was given, shortened and without passwords; none where the name itself is what is wrong.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// `config_invalid`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        ErrorCode::ConfigInvalid.as_str()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for ConfigError {}

/// A number that is no moment; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeError {
    value: String,
}

impl TimeError {
    pub(crate) const fn new(value: String) -> Self {
        Self { value }
    }

    /// The error of a host's value that is not even a number; `shown` is how it may be shown.
    #[must_use]
    pub fn of(shown: &str) -> Self {
        Self::new(shown.to_string())
    }

    /// `time_invalid`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        ErrorCode::TimeInvalid.as_str()
    }
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`now` must be an integer from 0 to 4503599627370496 (2^52) milliseconds, got `")?;
        f.write_str(&self.value)?;
        f.write_str("`")
    }
}

impl core::error::Error for TimeError {}

/// A text that cannot name a circuit, or be the prefix of one; raised before any I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    what: &'static str,
    fault: NameFault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameFault {
    Empty,
    TooLong(usize),
    Control(char),
    NotUnicode,
    LeadingBrace,
}

impl NameError {
    pub(crate) const fn new(what: &'static str, fault: NameFault) -> Self {
        Self { what, fault }
    }

    /// `name_invalid`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        ErrorCode::NameInvalid.as_str()
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`")?;
        f.write_str(self.what)?;
        f.write_str("` must be 1 to 512 bytes of UTF-8 without control characters")?;
        match self.fault {
            NameFault::Empty => f.write_str(", got an empty text"),
            NameFault::TooLong(bytes) => f.write_str(&[", got ", &bytes.to_string(), " bytes"].concat()),
            NameFault::Control(c) => {
                f.write_str(", got one with `U+00")?;
                // Control characters are below U+0100.
                for place in [4, 0] {
                    let digit = char::from_digit(u32::from(c) >> place & 0xf, 16).unwrap_or_default();
                    f.write_char(digit.to_ascii_uppercase())?;
                }
                f.write_str("`")
            }
            NameFault::NotUnicode => f.write_str(", got one with a lone surrogate"),
            NameFault::LeadingBrace => f.write_str(" and must not start with `}`, got one that does"),
        }
    }
}

impl core::error::Error for NameError {}
