//! Which texts may name a circuit (DESIGN section 4): the same for a local one, so that it can be shared later.

use alloc::string::String;

use crate::error::{NameError, NameFault};

const MAX_BYTES: usize = 512;

/// Checks a circuit's name: 1 ..= 512 bytes of UTF-8 without control characters (U+0000-1F, 7F-9F). Braces are fine.
///
/// # Errors
/// [`NameError`] says what is wrong with it.
pub fn check_name(name: &str) -> Result<(), NameError> {
    check("name", name)
}

/// Checks the prefix of a store's keys: a name, and not one that starts with `}`, which would leave the keys of a circuit
/// without their common hash tag.
///
/// # Errors
/// [`NameError`] says what is wrong with it.
pub fn check_prefix(prefix: &str) -> Result<(), NameError> {
    check("prefix", prefix)?;
    if prefix.starts_with('}') { Err(NameError::new("prefix", NameFault::LeadingBrace)) } else { Ok(()) }
}

/// Takes a circuit's name from a host whose texts are UTF-16, where a lone surrogate can hide.
///
/// # Errors
/// [`NameError`] says what is wrong with it.
pub fn name_from_utf16(units: &[u16]) -> Result<String, NameError> {
    let name = from_utf16("name", units)?;
    check_name(&name)?;
    Ok(name)
}

/// Takes the prefix of a store's keys from a host whose texts are UTF-16.
///
/// # Errors
/// [`NameError`] says what is wrong with it.
pub fn prefix_from_utf16(units: &[u16]) -> Result<String, NameError> {
    let prefix = from_utf16("prefix", units)?;
    check_prefix(&prefix)?;
    Ok(prefix)
}

fn from_utf16(what: &'static str, units: &[u16]) -> Result<String, NameError> {
    String::from_utf16(units).map_err(|_| NameError::new(what, NameFault::NotUnicode))
}

fn check(what: &'static str, text: &str) -> Result<(), NameError> {
    let fault = if text.is_empty() {
        NameFault::Empty
    } else if text.len() > MAX_BYTES {
        NameFault::TooLong(text.len())
    } else if let Some(c) = text.chars().find(|c| c.is_control()) {
        NameFault::Control(c)
    } else {
        return Ok(());
    };
    Err(NameError::new(what, fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn takes_what_people_call_their_dependencies() {
        for good in ["billing", "GET /users/{id}", "}x", "a{b}c", "{}", "zahlung-\u{20ac}", "\u{1f4b3}", " "] {
            check_name(good).unwrap();
        }
        check_name(&"n".repeat(512)).unwrap();
    }

    #[test]
    fn refuses_what_is_no_name() {
        for bad in ["", "a\0b", "a\nb", "\u{7f}", "\u{9f}", "\u{80}", &"n".repeat(513), &"\u{20ac}".repeat(171)] {
            let error = check_name(bad).unwrap_err();
            assert_eq!(error.code(), "name_invalid");
            assert!(error.to_string().starts_with("`name` must be 1 to 512 bytes"), "{error}");
        }
        assert!(name_from_utf16(&[0x61, 0xd800]).unwrap_err().to_string().ends_with("got one with a lone surrogate"));
        assert_eq!(name_from_utf16(&[0xd83d, 0xdcb3]).unwrap(), "\u{1f4b3}");
    }

    #[test]
    fn refuses_a_prefix_that_would_split_the_keys() {
        check_prefix("cb:").unwrap();
        check_prefix("a}b").unwrap();
        for bad in ["", "}", "}cb:", "c\tb"] {
            assert!(check_prefix(bad).unwrap_err().to_string().starts_with("`prefix` must be"), "{bad}");
        }
        assert!(prefix_from_utf16(&[0xd800]).unwrap_err().to_string().ends_with("got one with a lone surrogate"));
        assert_eq!(prefix_from_utf16(&[0x63, 0x62]).unwrap(), "cb");
    }
}
