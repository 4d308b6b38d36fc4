use super::*;
use crate::quorum::Quorum;
use alloc::format;
use alloc::string::ToString;

type Fields<'a> = &'a [(&'a str, Value<'a>)];

fn camel(layers: &[Fields<'_>]) -> Result<Config, ConfigError> {
    Config::build(Naming::Camel, layers)
}

fn message(fields: Fields<'_>) -> String {
    camel(&[fields]).unwrap_err().to_string()
}

#[test]
fn the_defaults_are_those_of_the_design() {
    let config = Config::default();
    assert_eq!(config, camel(&[]).unwrap());
    assert_eq!(config.trip_on(), TripOn::Rolling);
    let numbers = (config.failure_threshold(), config.window_ms(), config.minimum_calls(), config.failure_rate());
    assert_eq!(numbers, (5, 10_000, 20, 0.5));
    let open = (config.open_duration_ms(), config.open_backoff(), config.open_duration_max_ms());
    assert_eq!(open, (30_000, 1.0, 300_000));
    let probes = (config.half_open_max_calls(), config.success_threshold(), config.probe_timeout_ms());
    assert_eq!(probes, (1, 1, 30_000));
}

#[test]
fn defaults_that_follow_another_field_follow_it() {
    let config = camel(&[&[("openDurationMs", 7.into())]]).unwrap();
    assert_eq!((config.open_duration_max_ms(), config.probe_timeout_ms()), (70, 7));
    let longest = camel(&[&[("openDurationMs", Value::Number(3_155_760_000_000.0))]]).unwrap();
    assert_eq!(longest.open_duration_max_ms(), 3_155_760_000_000);
}

#[test]
#[expect(clippy::type_complexity, reason = "a table that is read once, right here")]
fn every_edge_of_every_range_is_taken_and_the_next_value_is_not() {
    let edges: &[(&str, &[(&str, Value<'_>)], f64, f64, f64)] = &[
        ("failureThreshold", &[], 1.0, 1_000_000.0, 1.0),
        ("windowMs", &[], 1.0, 3_155_760_000_000.0, 1.0),
        ("failureRate", &[("tripOn", Value::Text("rate"))], 5e-324, 1.0, 0.0),
        ("minimumCalls", &[("tripOn", Value::Text("rate"))], 1.0, 1_000_000.0, 1.0),
        ("openDurationMs", &[], 1.0, 3_155_760_000_000.0, 1.0),
        ("openBackoff", &[], 1.0, 100.0, 0.001),
        ("openDurationMaxMs", &[("openDurationMs", Value::Number(1.0))], 1.0, 3_155_760_000_000.0, 1.0),
        ("halfOpenMaxCalls", &[], 1.0, 1_000_000.0, 1.0),
        ("successThreshold", &[], 1.0, 1_000_000.0, 1.0),
        ("probeTimeoutMs", &[], 1.0, 3_155_760_000_000.0, 1.0),
    ];
    assert_eq!(edges.len() + 1, FIELDS.len(), "every numeric field has its edges here");
    for (name, others, low, high, step) in edges {
        let with = |n: f64| {
            let mut fields = others.to_vec();
            fields.push((name, Value::Number(n)));
            camel(&[&fields])
        };
        for good in [*low, *high] {
            let config = with(good).unwrap();
            let (_, shown) = config.fields_in_force().into_iter().find(|(field, _)| field == name).unwrap();
            assert_eq!(shown, Value::Number(good));
        }
        let bad = [low - step.max(1e-3), high + step.max(1e-9), f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0];
        for n in bad {
            let error = with(n).unwrap_err();
            assert_eq!(
                (error.field(), error.value().map(ToString::to_string)),
                (*name, Some(Value::Number(n).to_string()))
            );
        }
    }
}

#[test]
fn integers_are_integers() {
    assert_eq!(
        message(&[("failureThreshold", 2.5.into())]),
        "`failureThreshold` must be an integer from 1 to 1000000, got `2.5`"
    );
    assert_eq!(
        message(&[("windowMs", 0.into())]),
        "`windowMs` must be an integer from 1 to 3155760000000 (milliseconds), got `0`"
    );
    assert!(message(&[("windowMs", f64::INFINITY.into())]).ends_with("got `Infinity`"));
    assert!(message(&[("windowMs", f64::NEG_INFINITY.into())]).ends_with("got `-Infinity`"));
    assert_eq!(message(&[("openBackoff", f64::NAN.into())]), "`openBackoff` must be a number from 1 to 100, got `NaN`");
}

#[test]
fn wrong_types_are_shown_as_they_came() {
    assert_eq!(
        message(&[("windowMs", "10s".into())]),
        "`windowMs` must be an integer from 1 to 3155760000000 (milliseconds), got `'10s'`"
    );
    assert_eq!(
        message(&[("windowMs", Value::Other("null"))]),
        "`windowMs` must be an integer from 1 to 3155760000000 (milliseconds), got `null`"
    );
    assert_eq!(
        message(&[("tripOn", "count".into())]),
        "`tripOn` must be 'rolling', 'consecutive' or 'rate', got `'count'`"
    );
    assert_eq!(message(&[("tripOn", 1.into())]), "`tripOn` must be 'rolling', 'consecutive' or 'rate', got `1`");
}

#[test]
fn an_error_repeats_no_password() {
    let text = message(&[("windowMs", "redis://app:s3cret/p@ss@host:6379/0 and redis://:x@y".into())]);
    assert!(text.ends_with("got `'redis://***@host:6379/0 and redis://***@y'`"), "{text}");
    assert!(message(&[("redis://app:s3cret@host", 1.into())]).starts_with("`redis://***@host` is not an option"));
    assert!(message(&[(&"x".repeat(5000), 1.into())]).len() < 500);
}

#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    let text = message(&[("failuresThreshold", 1.into())]);
    assert!(
        text.starts_with("`failuresThreshold` is not an option; valid are tripOn, failureThreshold, windowMs"),
        "{text}"
    );
    assert!(camel(&[&[("failure_threshold", 1.into())]]).is_err(), "the other language's spelling is unknown too");
}

#[test]
fn synonyms_are_taken_but_not_both_names() {
    let config = camel(&[&[("resetTimeoutMs", 9.into()), ("halfOpenMaxProbes", 3.into())]]).unwrap();
    assert_eq!((config.open_duration_ms(), config.half_open_max_calls()), (9, 3));
    let text = message(&[("resetTimeoutMs", 9.into()), ("openDurationMs", 9.into())]);
    assert_eq!(text, "`resetTimeoutMs` and `openDurationMs` are two names of one option; give one of them");
    let layered = camel(&[&[("resetTimeoutMs", 9.into())], &[("openDurationMs", 8.into())]]).unwrap();
    assert_eq!(layered.open_duration_ms(), 8);
    assert_eq!(message(&[("resetTimeoutMs", 0.into())]).split(' ').next(), Some("`resetTimeoutMs`"));
    assert_eq!(message(&[("windowMs", 1.into()), ("windowMs", 1.into())]), "`windowMs` is given twice; give it once");
}

#[test]
fn a_field_that_trip_on_does_not_use_is_an_error_where_it_is_given() {
    assert_eq!(message(&[("failureRate", 0.5.into())]), "`failureRate` needs tripOn: 'rate'");
    assert_eq!(
        message(&[("minimumCalls", 1.into()), ("tripOn", "consecutive".into())]),
        "`minimumCalls` needs tripOn: 'rate'"
    );
    assert_eq!(
        message(&[("tripOn", "rate".into()), ("failureThreshold", 1.into())]),
        "`failureThreshold` needs tripOn: 'rolling' or 'consecutive'"
    );
    assert_eq!(
        message(&[("tripOn", "consecutive".into()), ("windowMs", 1.into())]),
        "`windowMs` needs tripOn: 'rolling' or 'rate'"
    );
}

#[test]
fn what_an_inner_layer_does_not_use_is_dropped() {
    let outer: Fields<'_> = &[("tripOn", "rate".into()), ("failureRate", 0.2.into()), ("windowMs", 50.into())];
    let config = camel(&[outer, &[("tripOn", "consecutive".into()), ("failureThreshold", 2.into())]]).unwrap();
    assert_eq!(config, camel(&[&[("tripOn", "consecutive".into()), ("failureThreshold", 2.into())]]).unwrap());
    let inherits = camel(&[outer, &[("minimumCalls", 3.into())]]).unwrap();
    assert_eq!((inherits.trip_on(), inherits.minimum_calls(), inherits.failure_rate()), (TripOn::Rate, 3, 0.2));
    assert!(camel(&[outer, &[("failureThreshold", 3.into())]]).is_err(), "the inner layer runs by the outer tripOn");
}

#[test]
fn the_cap_of_the_backoff_is_not_below_the_open_duration() {
    assert_eq!(
        message(&[("openDurationMs", 100.into()), ("openDurationMaxMs", 99.into())]),
        "`openDurationMaxMs` must be at least openDurationMs (100), got `99`"
    );
    assert!(camel(&[&[("openDurationMs", 100.into()), ("openDurationMaxMs", 100.into())]]).is_ok());
}

#[test]
fn snake_case_hosts_read_snake_case_errors() {
    let text = Config::from_fields(&[("failure_rate", 0.5.into())]).unwrap_err().to_string();
    assert_eq!(text, "`failure_rate` needs trip_on: 'rate'");
    assert!(Config::from_fields(&[("reset_timeout_ms", 5.into())]).is_ok());
}

#[test]
fn host_options_are_checked_by_the_same_words() {
    assert_eq!(HostOption::MaxKeys.check(Naming::Camel, 10.into()).unwrap(), 10);
    let error = HostOption::SlowCallMs.check(Naming::Snake, 0.into()).unwrap_err();
    assert_eq!(error.to_string(), "`slow_call_ms` must be an integer from 1 to 3155760000000 (milliseconds), got `0`");
    let timer = |ms: f64| HostOption::TimeoutMs.check(Naming::Camel, ms.into());
    assert_eq!(timer(2_147_483_647.0).unwrap(), 2_147_483_647);
    let error = timer(2_147_483_648.0).unwrap_err().to_string();
    assert_eq!(error, "`timeoutMs` must be an integer from 1 to 2147483647 (milliseconds), got `2147483648`");
    for option in HostOption::ALL {
        assert!(option.check(Naming::Camel, f64::NAN.into()).unwrap_err().to_string().contains(option.name()));
    }
}

#[test]
fn openings_grow_by_the_backoff_up_to_the_cap() {
    let config =
        camel(&[&[("openDurationMs", 1000.into()), ("openBackoff", 2.into()), ("openDurationMaxMs", 8000.into())]])
            .unwrap();
    let lengths: Vec<u64> = [1, 2, 3, 4, 5, 10_000].iter().map(|&trips| config.open_ms(trips)).collect();
    assert_eq!(lengths, [1000, 2000, 4000, 8000, 8000, 8000]);
    let fractional = camel(&[&[("openDurationMs", 3.into()), ("openBackoff", 1.5.into())]]).unwrap();
    // 3, 4.5, 6.75: floored once, at the end, not on the way.
    assert_eq!([1, 2, 3].map(|trips| fractional.open_ms(trips)), [3, 4, 6]);
    assert_eq!(Config::default().open_ms(u64::MAX), 30_000, "without backoff nothing is multiplied");
}

#[test]
fn the_wire_form_reads_back_exactly() {
    let config =
        camel(&[&[("tripOn", "rate".into()), ("failureRate", (1.0 / 3.0).into()), ("openBackoff", 1.1.into())]])
            .unwrap();
    let rest = "rate 5 10000 0.3333333333333333 20 30000 1.1 300000 1 1 30000 86400000";
    assert_eq!(config.wire(86_400_000, Quorum::ONE), format!("{rest} 1"));
    let quorum = Quorum::new(Naming::Camel, 3.into(), &config).unwrap();
    assert_eq!(config.wire(86_400_000, quorum), format!("{rest} 3"));
    let smallest = camel(&[&[("tripOn", "rate".into()), ("failureRate", 5e-324.into())]]).unwrap();
    let rate = smallest.wire(1, Quorum::ONE).split(' ').nth(3).unwrap().parse::<f64>().unwrap();
    assert!(
        rate > 0.0 && smallest.wire(1, Quorum::ONE).split(' ').nth(3).unwrap().len() > 300,
        "decimal, never an exponent"
    );
}
