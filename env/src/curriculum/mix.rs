//! A choice among a few things, each with a weight: how a curriculum states what may happen.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::world::draw::weighted;

/// Things and their weights: `{ bsp = 3, local = 1 }`, or a list where all weigh the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix<T>(Vec<(T, f64)>);

impl<T> Mix<T> {
    /// Draws one.
    pub fn draw(&self, rng: &mut ChaCha8Rng) -> &T {
        &self.0[weighted(rng, self.0.iter().map(|(_, weight)| *weight))].0
    }

    /// The things that can come, with their weights.
    pub fn iter(&self) -> impl Iterator<Item = &(T, f64)> {
        self.0.iter().filter(|(_, weight)| *weight > 0.0)
    }
}

impl<T: fmt::Display> Serialize for Mix<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(thing, weight)| map.serialize_entry(&thing.to_string(), weight))?;
        map.end()
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Mix<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MixVisitor(PhantomData))
    }
}

struct MixVisitor<T>(PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> MixVisitor<T> {
    fn checked<E: de::Error>(things: Vec<(T, f64)>) -> Result<Mix<T>, E> {
        let fine = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        if let Some((_, weight)) = things.iter().find(|(_, weight)| !fine(weight)) {
            return Err(E::custom(format!("weight {weight} is not a number from 0 up")));
        }
        if !things.iter().any(|(_, weight)| *weight > 0.0) {
            return Err(E::custom("nothing to choose from: give at least one with a weight above 0"));
        }
        Ok(Mix(things))
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Visitor<'de> for MixVisitor<T> {
    type Value = Mix<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of words, or a table of words and weights")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Mix<T>, A::Error> {
        let mut things = Vec::new();
        while let Some(word) = list.next_element::<Word>()? {
            things.push((word.parse()?, 1.0));
        }
        Self::checked(things)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Mix<T>, A::Error> {
        let mut things = Vec::new();
        while let Some((word, weight)) = map.next_entry::<Word, f64>()? {
            things.push((word.parse()?, weight));
        }
        Self::checked(things)
    }
}

/// A word in a file; a number stands for itself.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Number(u64),
}

impl Word {
    fn parse<T: FromStr<Err: fmt::Display>, E: de::Error>(self) -> Result<T, E> {
        let text = match self {
            Word::Text(text) => text,
            Word::Number(number) => number.to_string(),
        };
        text.parse().map_err(|error: T::Err| E::custom(format!("\"{text}\": {error}")))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use dynamiccl_spec::SyncMode;
    use rand_chacha::rand_core::SeedableRng;

    fn read<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<Mix<T>, String> {
        let mut file: HashMap<String, Mix<T>> = toml::from_str(text).map_err(|error| error.to_string())?;
        Ok(file.remove("mix").unwrap())
    }

    #[test]
    fn draws_follow_the_weights() {
        let mix = read::<SyncMode>("mix = { bsp = 3, local = 1, async = 0 }").unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let draws: Vec<_> = (0..4000).map(|_| *mix.draw(&mut rng)).collect();
        let count = |mode| draws.iter().filter(|&&drawn| drawn == mode).count();
        assert!((2850..3150).contains(&count(SyncMode::Bsp)), "{}", count(SyncMode::Bsp));
        assert_eq!(count(SyncMode::Async), 0);
        assert_eq!(mix.iter().count(), 2);
    }

    #[test]
    fn a_list_weighs_all_the_same_and_holds_numbers_too() {
        assert_eq!(read::<u32>("mix = [1, 2]").unwrap(), Mix(vec![(1, 1.0), (2, 1.0)]));
    }

    #[test]
    fn a_wrong_mix_is_refused_with_what_is_wrong() {
        let wrong = |text| read::<SyncMode>(text).unwrap_err();
        assert!(wrong("mix = [\"bspp\"]").contains("did you mean \"bsp\"?"));
        assert!(wrong("mix = { bsp = -1 }").contains("weight -1 is not a number from 0 up"));
        assert!(wrong("mix = { bsp = 0 }").contains("nothing to choose from"));
        assert!(wrong("mix = []").contains("nothing to choose from"));
        assert!(wrong("mix = 3").contains("expected a list of words"));
    }
}
