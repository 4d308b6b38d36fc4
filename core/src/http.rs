//! What an HTTP answer says about the server (DESIGN section 6): one table for every adapter of every host.

/// Whether a status says that the server failed: 429 and 500 ..= 599, but not 501.
///
/// 429 counts because a server that turns callers away wants fewer calls; 501 does not, for what it cannot do at all it will
/// not do later either. Everything below 500 is an answer that the server was well enough to give. The same table says of what
/// is no status: a network error and a timeout count; the caller's abort, and a request that was the caller's fault and never
/// sent, are neutral.
#[must_use]
pub const fn status_counts(status: u16) -> bool {
    matches!(status, 429 | 500 | 502..=599)
}

#[cfg(test)]
mod tests {
    use super::status_counts;

    #[test]
    fn counts_what_the_server_could_not_do_now() {
        for status in [429, 500, 502, 503, 504, 599] {
            assert!(status_counts(status), "{status}");
        }
        for status in [0, 100, 200, 301, 400, 404, 408, 428, 430, 499, 501, 600, u16::MAX] {
            assert!(!status_counts(status), "{status}");
        }
    }
}
