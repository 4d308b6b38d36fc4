//! Serde for the values that cross a host's surface, in the spelling of JSON (feature `serde`).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use ::serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use ::serde::ser::{Serialize, SerializeMap as _, Serializer};

use crate::breaker::{Mode, State};
use crate::config::{Config, Naming, Value};
use crate::permit::Settlement;

macro_rules! words {
    ($type:ident: $($variant:ident),+) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = String::deserialize(deserializer)?;
                [$($type::$variant),+]
                    .into_iter()
                    .find(|value| value.as_str() == word)
                    .ok_or_else(|| de::Error::unknown_variant(&word, const { &[$($type::$variant.as_str()),+] }))
            }
        }
    };
}

words!(State: Closed, Open, HalfOpen);
words!(Mode: Auto, ForcedOpen, Disabled);
words!(Settlement: Applied, Stale);

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.fields_in_force() {
            match value {
                Value::Number(n) | Value::Shown(n, _) if n % 1.0 == 0.0 => map.serialize_entry(name, &(n as u64))?,
                Value::Number(n) | Value::Shown(n, _) => map.serialize_entry(name, &n)?,
                Value::Text(text) | Value::Other(text) => map.serialize_entry(name, text)?,
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ConfigVisitor)
    }
}

struct ConfigVisitor;

impl<'de> Visitor<'de> for ConfigVisitor {
    type Value = Config;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the options of a circuit breaker")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Config, A::Error> {
        let mut given: Vec<(String, Given)> = Vec::new();
        while let Some(entry) = map.next_entry()? {
            given.push(entry);
        }
        let fields: Vec<(&str, Value<'_>)> =
            given.iter().map(|(name, value)| (name.as_str(), value.as_value())).collect();
        Config::build(Naming::Camel, &[&fields]).map_err(de::Error::custom)
    }
}

/// A JSON value on its way to the core's own check, which has the better words for what is wrong with it.
enum Given {
    Number(f64),
    Text(String),
    Other(&'static str),
}

impl Given {
    fn as_value(&self) -> Value<'_> {
        match self {
            Self::Number(n) => Value::Number(*n),
            Self::Text(text) => Value::Text(text),
            Self::Other(description) => Value::Other(description),
        }
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GivenVisitor)
    }
}

struct GivenVisitor;

impl<'de> Visitor<'de> for GivenVisitor {
    type Value = Given;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an option's value")
    }

    fn visit_f64<E>(self, n: f64) -> Result<Given, E> {
        Ok(Given::Number(n))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Given, E> {
        Ok(Given::Number(n as f64))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Given, E> {
        Ok(Given::Number(n as f64))
    }

    fn visit_str<E>(self, text: &str) -> Result<Given, E> {
        Ok(Given::Text(text.into()))
    }

    fn visit_bool<E>(self, b: bool) -> Result<Given, E> {
        Ok(Given::Other(if b { "true" } else { "false" }))
    }

    fn visit_unit<E>(self) -> Result<Given, E> {
        Ok(Given::Other("null"))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Given, A::Error> {
        while seq.next_element::<de::IgnoredAny>()?.is_some() {}
        Ok(Given::Other("an array"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Given, A::Error> {
        while map.next_entry::<de::IgnoredAny, de::IgnoredAny>()?.is_some() {}
        Ok(Given::Other("an object"))
    }
}
