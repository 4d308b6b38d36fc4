//! What no error text may repeat: the secrets of whoever wrote it.

use alloc::borrow::Cow;
use alloc::string::String;

/// A text with the user and password of each URL in it, with or without its scheme, replaced by `***`.
#[must_use]
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    if authority_end(text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(scheme_end) = authority_end(rest) {
        let (head, tail) = rest.split_at(scheme_end);
        // A password may itself hold `@`, `/` or quotes: everything up to the last `@` before white space goes.
        let (url, after) = tail.split_at(tail.find(char::is_whitespace).unwrap_or(tail.len()));
        shown.push_str(head);
        match url.rfind('@') {
            Some(at) => {
                shown.push_str("***");
                shown.push_str(&url[at..]);
            }
            None => shown.push_str(url),
        }
        rest = after;
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Where the next `//` ends: user, password and host come after it, with a scheme before it or without.
fn authority_end(text: &str) -> Option<usize> {
    text.as_bytes().windows(2).position(|pair| pair == b"//").map(|at| at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_of_each_url_go_and_all_else_stays() {
        for (text, shown) in [
            ("", ""),
            ("mail me@host", "mail me@host"),
            ("redis://host:6379/0", "redis://host:6379/0"),
            ("redis://app:s3cret@host:6379/0", "redis://***@host:6379/0"),
            ("redis://:p@ss/w0rd@host, then amqp://you@there", "redis://***@host, then amqp://***@there"),
            ("tried \"rediss://u:pa\"ss'w`d@host\"\nand gave up", "tried \"rediss://***@host\"\nand gave up"),
            ("redis://a:b@one,redis://c:d@two", "redis://***@two"),
            ("://", "://"),
            ("connect to //u:secret@host, please // mail me@host", "connect to //***@host, please // mail me@host"),
            ("\u{e9}://\u{e9}:\u{e8}@\u{ea}", "\u{e9}://***@\u{ea}"),
        ] {
            assert_eq!(without_credentials(text), shown, "{text}");
        }
    }

    #[test]
    fn a_text_of_many_urls_is_no_trouble() {
        let urls = 100_000;
        assert_eq!(without_credentials(&"a://b:c@d ".repeat(urls)), "a://***@d ".repeat(urls));
    }
}
