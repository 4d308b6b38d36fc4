//! The one table of options: name, synonyms, who uses it, range, default.

use super::{Config, TripOn, Value};

/// One option of a breaker.
#[derive(Debug)]
pub struct Field {
    /// The name as JavaScript and JSON spell it; Python and Rust use its snake_case.
    pub name: &'static str,
    /// Another name that is accepted for it, from breakers that people come from.
    pub synonym: Option<&'static str>,
    /// What it may be.
    pub kind: Kind,
    /// What it is when nobody says.
    pub default: FieldDefault,
    /// The `tripOn` that use it; another one in force makes it an error to give it.
    pub used_by: &'static [TripOn],
    pub(crate) get: fn(&Config) -> Value<'static>,
    pub(crate) set: fn(&mut Config, Checked),
}

/// What an option may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of the words for [`TripOn`].
    TripOn,
    /// An integer, 1 ..= 1 000 000.
    Count,
    /// Whole milliseconds, 1 ..= 3 155 760 000 000 (100 years).
    Duration,
    /// Whole milliseconds, 1 ..= 2 147 483 647 (24 days): what a host's timer takes.
    Timer,
    /// Whole milliseconds, 0 ..= 3 155 760 000 000 (100 years): how old an answer may be.
    Age,
    /// A number above 0, at most 1.
    Share,
    /// A number, 1 ..= 100.
    Factor,
}

/// What an option is when nobody says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldDefault {
    /// This word.
    Word(&'static str),
    /// This number.
    Number(f64),
    /// This many times another field, at most the longest duration.
    Times(f64, &'static str),
}

/// A value that [`Kind`] has accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Checked {
    TripOn(TripOn),
    Whole(u64),
    Fraction(f64),
}

impl Checked {
    const fn trip_on(self) -> TripOn {
        if let Self::TripOn(word) = self { word } else { TripOn::Rolling }
    }

    pub(crate) const fn whole(self) -> u64 {
        if let Self::Whole(n) = self { n } else { 0 }
    }

    const fn fraction(self) -> f64 {
        if let Self::Fraction(n) = self { n } else { 0.0 }
    }
}

const ALL: &[TripOn] = &[TripOn::Rolling, TripOn::Consecutive, TripOn::Rate];

/// Every field of a breaker's configuration, each default with its reason.
pub static FIELDS: &[Field] = &[
    // Rolling: a success must not hide four failures, and the healthy path then has nothing to count.
    Field {
        name: "tripOn",
        synonym: None,
        kind: Kind::TripOn,
        default: FieldDefault::Word("rolling"),
        used_by: ALL,
        get: |c| Value::Text(c.trip_on.as_str()),
        set: |c, v| c.trip_on = v.trip_on(),
    },
    // Five: one failure is noise, and a dependency that is down delivers five at once.
    Field {
        name: "failureThreshold",
        synonym: None,
        kind: Kind::Count,
        default: FieldDefault::Number(5.0),
        used_by: &[TripOn::Rolling, TripOn::Consecutive],
        get: |c| Value::Number(c.failure_threshold as f64),
        set: |c, v| c.failure_threshold = v.whole(),
    },
    // Ten seconds: failures further apart than that are hardly one outage.
    Field {
        name: "windowMs",
        synonym: None,
        kind: Kind::Duration,
        default: FieldDefault::Number(10_000.0),
        used_by: &[TripOn::Rolling, TripOn::Rate],
        get: |c| Value::Number(c.window_ms as f64),
        set: |c, v| c.window_ms = v.whole(),
    },
    // Half: above what retries hide, below a full outage.
    Field {
        name: "failureRate",
        synonym: None,
        kind: Kind::Share,
        default: FieldDefault::Number(0.5),
        used_by: &[TripOn::Rate],
        get: |c| Value::Number(c.failure_rate),
        set: |c, v| c.failure_rate = v.fraction(),
    },
    // Twenty: with fewer calls a single failure moves the rate by more than five points.
    Field {
        name: "minimumCalls",
        synonym: None,
        kind: Kind::Count,
        default: FieldDefault::Number(20.0),
        used_by: &[TripOn::Rate],
        get: |c| Value::Number(c.minimum_calls as f64),
        set: |c, v| c.minimum_calls = v.whole(),
    },
    // Thirty seconds: about what a restart or a failover takes.
    Field {
        name: "openDurationMs",
        synonym: Some("resetTimeoutMs"),
        kind: Kind::Duration,
        default: FieldDefault::Number(30_000.0),
        used_by: ALL,
        get: |c| Value::Number(c.open_duration_ms as f64),
        set: |c, v| c.open_duration_ms = v.whole(),
    },
    // One, that is none: a wait that nobody asked for must not grow.
    Field {
        name: "openBackoff",
        synonym: None,
        kind: Kind::Factor,
        default: FieldDefault::Number(1.0),
        used_by: ALL,
        get: |c| Value::Number(c.open_backoff),
        set: |c, v| c.open_backoff = v.fraction(),
    },
    // Ten times: a few doublings, and people still notice a recovery the same day.
    Field {
        name: "openDurationMaxMs",
        synonym: None,
        kind: Kind::Duration,
        default: FieldDefault::Times(10.0, "openDurationMs"),
        used_by: ALL,
        get: |c| Value::Number(c.open_duration_max_ms as f64),
        set: |c, v| c.open_duration_max_ms = v.whole(),
    },
    // One: a dependency that just came back is asked, not stormed.
    Field {
        name: "halfOpenMaxCalls",
        synonym: Some("halfOpenMaxProbes"),
        kind: Kind::Count,
        default: FieldDefault::Number(1.0),
        used_by: ALL,
        get: |c| Value::Number(c.half_open_max_calls as f64),
        set: |c, v| c.half_open_max_calls = v.whole(),
    },
    // One: if it was luck, the next failures trip again.
    Field {
        name: "successThreshold",
        synonym: None,
        kind: Kind::Count,
        default: FieldDefault::Number(1.0),
        used_by: ALL,
        get: |c| Value::Number(c.success_threshold as f64),
        set: |c, v| c.success_threshold = v.whole(),
    },
    // As long as OPEN: a probe that was lost costs no more than one more opening would.
    Field {
        name: "probeTimeoutMs",
        synonym: None,
        kind: Kind::Duration,
        default: FieldDefault::Times(1.0, "openDurationMs"),
        used_by: ALL,
        get: |c| Value::Number(c.probe_timeout_ms as f64),
        set: |c, v| c.probe_timeout_ms = v.whole(),
    },
];

/// The numeric options that hosts add around the machine: checked by the same rules and with the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOption {
    /// `timeoutMs`: what a timer takes; of a call, or of one admission at the store.
    TimeoutMs,
    /// `slowCallMs`: a duration; a success slower than this counts as failure.
    SlowCallMs,
    /// `maxKeys`: a count; the breakers a group holds.
    MaxKeys,
    /// `forMs`: a duration; the length of a manual opening.
    ForMs,
    /// `idleTtlMs`: a duration; how long an idle shared circuit is remembered.
    IdleTtlMs,
    /// `openCacheMs`: an age; how long a shared circuit that is known to be open refuses without asking.
    OpenCacheMs,
    /// `closedCacheMs`: an age; how long a shared circuit that is known to be closed admits without asking.
    ClosedCacheMs,
}

impl HostOption {
    /// Every host option.
    pub const ALL: [Self; 7] = [
        Self::TimeoutMs,
        Self::SlowCallMs,
        Self::MaxKeys,
        Self::ForMs,
        Self::IdleTtlMs,
        Self::OpenCacheMs,
        Self::ClosedCacheMs,
    ];

    /// The name in JavaScript's spelling.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TimeoutMs => "timeoutMs",
            Self::SlowCallMs => "slowCallMs",
            Self::MaxKeys => "maxKeys",
            Self::ForMs => "forMs",
            Self::IdleTtlMs => "idleTtlMs",
            Self::OpenCacheMs => "openCacheMs",
            Self::ClosedCacheMs => "closedCacheMs",
        }
    }

    /// What it may be.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::TimeoutMs => Kind::Timer,
            Self::SlowCallMs | Self::ForMs | Self::IdleTtlMs => Kind::Duration,
            Self::OpenCacheMs | Self::ClosedCacheMs => Kind::Age,
            Self::MaxKeys => Kind::Count,
        }
    }
}
