//! A JSON object as it stands: a map would keep the last of two values of one key, and say nothing.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// An object's keys and values in their order, each key once, and a key that it or an object inside repeats.
pub(super) struct Pairs {
    pub pairs: Vec<(String, Value)>,
    pub repeated: Option<String>,
}

/// Any value, and a key that an object inside repeats.
struct Inner(Value, Option<String>);

impl Pairs {
    fn read<'de, M: MapAccess<'de>>(mut map: M) -> Result<Self, M::Error> {
        let (mut pairs, mut repeated) = (Vec::new(), None);
        // A line is long enough for more keys than can be compared with each other.
        let mut seen = HashSet::new();
        while let Some((key, Inner(value, inside))) = map.next_entry::<String, Inner>()? {
            let again = (!seen.insert(key.clone())).then(|| key.clone());
            repeated = repeated.or(inside).or(again);
            pairs.push((key, value));
        }
        Ok(Pairs { pairs, repeated })
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Pairs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object in braces")
            }
            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Pairs, M::Error> {
                Pairs::read(map)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

impl<'de> Deserialize<'de> for Inner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Inner;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Inner, E> {
        Ok(Inner(Value::Null, None))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Inner, E> {
        Ok(Inner(value.into(), None))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Inner, E> {
        Ok(Inner(value.into(), None))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Inner, E> {
        Ok(Inner(value.into(), None))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Inner, E> {
        Ok(Inner(value.into(), None))
    }

    fn visit_str<E>(self, value: &str) -> Result<Inner, E> {
        Ok(Inner(value.into(), None))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Inner, S::Error> {
        let (mut values, mut repeated) = (Vec::new(), None);
        while let Some(Inner(value, inside)) = list.next_element()? {
            repeated = repeated.or(inside);
            values.push(value);
        }
        Ok(Inner(Value::Array(values), repeated))
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Inner, M::Error> {
        let Pairs { pairs, repeated } = Pairs::read(map)?;
        Ok(Inner(Value::Object(pairs.into_iter().collect::<Map<_, _>>()), repeated))
    }
}
