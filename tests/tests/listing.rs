//! Which circuits a store has: every key leads back to its circuit's name, and SCAN finds them by the pattern, no others.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use redis::Connection;
use switchgear_core::shared::{Keys, Listing};
use switchgear_core::{Outcome, TripOn, check_name, check_prefix};
use switchgear_tests::lua::{Wire, call_id};
use switchgear_tests::servers::{Server, run};
use switchgear_tests::situations::{START, config, quorum};

/// What makes a key hard to read back, in any order.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => prop::sample::select(&["{", "}", ":", ":f", "}:f", ":r", ":p", ":i", "cb:", "*", "?", "[", "]", "\\", "^", "-"][..])
            .prop_map(str::to_owned),
        2 => "[a-c]{1,3}",
        1 => "\\PC{0,4}",
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_key_leads_back_to_the_name(prefix in texts(), key_prefix in texts(), name in texts()) {
        prop_assume!(check_prefix(&prefix).is_ok() && check_name(&name).is_ok());
        let listing = Listing::new(&prefix, &key_prefix).unwrap();
        for suffix in ["", ":f", ":p", ":r", ":i"] {
            let key = format!("{key_prefix}{{{prefix}{name}}}{suffix}");
            prop_assert_eq!(listing.name_of(&key), Some(name.as_str()));
        }
    }

    #[test]
    fn what_has_a_name_is_a_key_of_that_name(prefix in texts(), key in texts()) {
        prop_assume!(check_prefix(&prefix).is_ok());
        let key = format!("{{{prefix}{key}");
        if let Some(name) = Listing::new(&prefix, "").unwrap().name_of(&key) {
            prop_assert!(check_name(name).is_ok());
            let keys = ["", ":f", ":p", ":r", ":i"].map(|suffix| format!("{{{prefix}{name}}}{suffix}"));
            prop_assert!(keys.contains(&key));
        }
    }
}

/// What SCAN says on this connection.
fn scan(connection: &mut Connection, pattern: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply: (String, Vec<String>) =
            redis::cmd("SCAN").arg(&cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(7).query(connection).unwrap();
        found.extend(reply.1);
        cursor = reply.0;
        if cursor == "0" {
            return found;
        }
    }
}

fn names(connection: &mut Connection, listing: &Listing) -> BTreeSet<String> {
    scan(connection, listing.pattern()).iter().filter_map(|key| listing.name_of(key)).map(str::to_owned).collect()
}

#[test]
fn circuits_are_found_whatever_they_have_counted() {
    let server = Server::start().unwrap();
    let mut connection = server.connect().unwrap();
    let mut expected = BTreeSet::new();
    for trip_on in [TripOn::Rolling, TripOn::Consecutive, TripOn::Rate] {
        for number in [1, 2] {
            let config = config(trip_on);
            let quorum = quorum(number, &config);
            for tail in ["counted", "tripped {x}:f", "}", "*"] {
                let name = format!("{} {number} {tail}", trip_on.as_str());
                let wire = Wire::with_quorum(&name, &config, quorum);
                if tail.starts_with("tripped") {
                    wire.control(START, "trip", None).send(&mut connection).unwrap();
                } else {
                    // One failure: no hash yet, and of most of the keys none.
                    wire.settle_without(Outcome::Failure, START, &call_id(1)).send(&mut connection).unwrap();
                }
                expected.insert(name);
            }
        }
    }
    let listing = Listing::new(Keys::DEFAULT_PREFIX, "").unwrap();
    assert_eq!(names(&mut connection, &listing), expected);
}

#[test]
fn a_pattern_finds_the_keys_of_its_own_prefixes_alone() {
    let server = Server::start().unwrap();
    let mut connection = server.connect().unwrap();
    let prefixes = ["cb:", "c?:", "c*", "[a-d]b:", "[", "\\", "a\\*", "{", "x}", "-^", "\u{20ac}:", "CB:"];
    let clients = ["", "app:", "app*:", "ap?:", "[ap]p:", "\\"];
    for prefix in prefixes {
        for client in clients {
            for suffix in ["", ":f", ":r"] {
                run(&mut connection, &["SET", &format!("{client}{{{prefix}of {prefix}}}{suffix}"), client]).unwrap();
            }
        }
    }
    for prefix in prefixes {
        for client in clients {
            let listing = Listing::new(prefix, client).unwrap();
            let found = scan(&mut connection, listing.pattern());
            let own = |key: &&String| key.starts_with(&format!("{client}{{{prefix}"));
            assert_eq!(found.iter().filter(own).count(), found.len(), "`{client}`, `{prefix}`: {found:?}");
            // A prefix may be the beginning of another, as `[` is here.
            let names = names(&mut connection, &listing);
            assert!(names.contains(&format!("of {prefix}")), "`{client}`, `{prefix}`: {names:?}");
            let others = prefixes.iter().filter(|other| other.starts_with(prefix)).count();
            assert_eq!(names.len(), others, "`{client}`, `{prefix}`: {names:?}");
        }
    }
}
