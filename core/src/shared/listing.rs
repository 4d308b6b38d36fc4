//! Which circuits there are under a prefix: what to SCAN the store's keys for, and which circuit a key belongs to.
//!
//! A circuit need not have a hash: one that is closed and has never tripped has only what it counted. So any of its keys
//! names it.

use alloc::string::String;

use crate::error::NameError;
use crate::name::{check_name, check_prefix};

/// What a circuit's keys may have behind the hash tag (DESIGN section 4).
const SUFFIXES: [&str; 5] = ["", ":f", ":p", ":r", ":i"];

/// Finds the circuits of one prefix among the keys of a store.
///
/// ```
/// use switchgear_core::shared::{Keys, Listing};
///
/// let listing = Listing::new(Keys::DEFAULT_PREFIX, "app*:")?;
/// assert_eq!(listing.pattern(), r"app\*:{cb:*}*");
/// assert_eq!(listing.name_of("app*:{cb:billing}:f"), Some("billing"));
/// assert_eq!(listing.name_of("app*:{cb:billing}:f}"), Some("billing}:f"));
/// assert_eq!(listing.name_of("{cb:billing}"), None);
/// # Ok::<(), switchgear_core::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// What every key begins with, the circuit's name coming next.
    head: String,
    pattern: String,
}

impl Listing {
    /// The circuits of the store's `prefix`. `key_prefix` is what the host's client puts in front of every key by itself, which
    /// SCAN neither adds to a pattern nor takes from the keys that it finds; empty where there is none.
    ///
    /// # Errors
    /// [`NameError`] if the prefix cannot be one.
    pub fn new(prefix: &str, key_prefix: &str) -> Result<Self, NameError> {
        check_prefix(prefix)?;
        let head = [key_prefix, "{", prefix].concat();
        let pattern = [&escaped(&head), "*}*"].concat();
        Ok(Self { head, pattern })
    }

    /// The pattern for SCAN's MATCH, on every master. One for all keys of a circuit, for each pass looks at every key of the
    /// store: what is found names most circuits more than once, and may be somebody else's, which
    /// [`name_of`](Self::name_of) tells.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The name of the circuit that this key belongs to; none if it is no circuit's key under this prefix.
    ///
    /// No key is that of two circuits, whatever their names: the hash's key ends in `}`, and no other does. (With one prefix
    /// the beginning of another, a key has a name under each, as in `{cb:eu:billing}`: it is one circuit all the same.)
    #[must_use]
    pub fn name_of<'k>(&self, key: &'k str) -> Option<&'k str> {
        let rest = key.strip_prefix(self.head.as_str())?;
        let of = |suffix| rest.strip_suffix(suffix)?.strip_suffix('}');
        SUFFIXES.into_iter().find_map(of).filter(|name| check_name(name).is_ok())
    }
}

/// The text as a pattern that matches nothing but itself.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn listing(prefix: &str, key_prefix: &str) -> Listing {
        Listing::new(prefix, key_prefix).unwrap()
    }

    #[test]
    fn every_key_of_a_circuit_names_it() {
        let listing = listing("cb:", "");
        for name in
            ["billing", "a{b}c", "}", "{", "{}", "x:f", "x}:f", "x}", "}:f", "GET /users/{id}", "a:b", "\u{1f9ef}"]
        {
            for suffix in SUFFIXES {
                assert_eq!(listing.name_of(&format!("{{cb:{name}}}{suffix}")), Some(name), "`{suffix}`");
            }
        }
    }

    #[test]
    fn what_is_no_circuits_key_has_no_name() {
        let listing = listing("cb:", "app:");
        for key in [
            "",
            "app:{cb:}",
            "app:{cb:x",
            "app:{cb:x}:",
            "app:{cb:x}:x",
            "app:{cb:x}:ff",
            "app:{cb:x}f",
            "app:{cb:x} ",
            "app:{cb:a\nb}",
            "app:{cb:}:f",
            "{cb:x}",
            "app:{CB:x}",
            "app:{c:x}",
            "app: {cb:x}",
            "xapp:{cb:x}",
        ] {
            assert_eq!(listing.name_of(key), None, "`{key}`");
        }
        assert_eq!(listing.name_of(&format!("app:{{cb:{}}}", "n".repeat(513))), None);
        assert_eq!(listing.name_of("app:{cb:{cb:x}}"), Some("{cb:x}"));
    }

    #[test]
    fn a_pattern_means_what_it_says() {
        for (prefix, key_prefix, pattern) in [
            ("cb:", "", "{cb:*}*"),
            ("a*b?", "", r"{a\*b\?*}*"),
            ("[x]-^", "", r"{\[x\]-^*}*"),
            (r"a\", "{app}:", r"{app}:{a\\*}*"),
            ("\u{20ac}", "*", "\\*{\u{20ac}*}*"),
        ] {
            assert_eq!(listing(prefix, key_prefix).pattern(), pattern);
        }
    }

    #[test]
    fn a_prefix_that_is_none_is_refused() {
        for bad in ["", "}cb:", "a\nb"] {
            assert!(Listing::new(bad, "").is_err(), "`{bad}`");
        }
    }
}
