//! The JSON of the core's values: what every host shows and takes.
#![cfg(feature = "serde")]

use serde_json::{Value as Json, from_value, json, to_value};
use switchgear_core::{CircuitBreaker, Config, Millis, Mode, Settlement, Snapshot, State};

#[test]
fn a_configuration_shows_what_is_in_force_and_reads_back() {
    let given = json!({"tripOn": "rate", "failureRate": 0.25, "openDurationMs": 5, "halfOpenMaxProbes": 2});
    let config: Config = from_value(given).unwrap();
    let shown = to_value(&config).unwrap();
    let expected = json!({
        "tripOn": "rate", "windowMs": 10_000, "failureRate": 0.25, "minimumCalls": 20, "openDurationMs": 5, "openBackoff": 1,
        "openDurationMaxMs": 50, "halfOpenMaxCalls": 2, "successThreshold": 1, "probeTimeoutMs": 5,
    });
    assert_eq!(shown, expected);
    assert_eq!(from_value::<Config>(shown).unwrap(), config);
}

#[test]
fn a_configuration_is_refused_in_the_words_of_the_core() {
    let refusal = |given: Json| from_value::<Config>(given).unwrap_err().to_string();
    assert_eq!(
        refusal(json!({"windowMs": 0})),
        "`windowMs` must be an integer from 1 to 3155760000000 (milliseconds), got `0`"
    );
    let shown =
        [(json!(null), "null"), (json!(true), "true"), (json!([1]), "an array"), (json!({"a": 1}), "an object")];
    for (value, shown) in shown {
        assert!(refusal(json!({"failureThreshold": value})).ends_with(&format!("got `{shown}`")));
    }
    assert!(refusal(json!({"failureThreshold": "5"})).ends_with("got `'5'`"));
    assert!(refusal(json!({"nope": 5})).starts_with("`nope` is not an option"));
    assert!(refusal(json!({"failureThreshold": -3})).ends_with("got `-3`"));
    assert!(from_value::<Config>(json!([])).is_err());
}

#[test]
fn a_snapshot_is_spelled_as_in_the_vectors() {
    let mut breaker = CircuitBreaker::new(Config::default());
    breaker.trip(Millis::new(7).unwrap(), Some(50)).unwrap();
    let snapshot = breaker.snapshot(Millis::new(10).unwrap());
    let expected = json!({
        "state": "open", "mode": "auto", "failuresInWindow": 0, "callsInWindow": 0, "consecutiveFailures": 0,
        "halfOpenSuccesses": 0, "halfOpenInFlight": 0, "openedAt": 7, "remainingOpenMs": 47, "trips": 1, "epoch": 7,
    });
    assert_eq!(to_value(snapshot).unwrap(), expected);
    assert_eq!(from_value::<Snapshot>(expected).unwrap(), snapshot);
    let closed = CircuitBreaker::new(Config::default()).snapshot(Millis::default());
    assert_eq!(to_value(closed).unwrap()["openedAt"], Json::Null);
}

#[test]
fn every_word_reads_back_and_no_other_does() {
    for state in [State::Closed, State::Open, State::HalfOpen] {
        assert_eq!(from_value::<State>(to_value(state).unwrap()).unwrap(), state);
    }
    for mode in [Mode::Auto, Mode::ForcedOpen, Mode::Disabled] {
        assert_eq!(from_value::<Mode>(to_value(mode).unwrap()).unwrap(), mode);
    }
    for settlement in [Settlement::Applied, Settlement::Stale] {
        assert_eq!(from_value::<Settlement>(to_value(settlement).unwrap()).unwrap(), settlement);
    }
    assert!(from_value::<State>(json!("half_open")).unwrap_err().to_string().contains("half-open"));
}
