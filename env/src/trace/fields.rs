//! The keys of one JSON object, each read once, with an error of its own for each way to be wrong.

use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

use dynamiccl_spec::words::{UnknownWord, nearest};
use serde_json::Value;

use super::error::TraceError;
use super::pairs::Pairs;
use crate::measure::Fault;

/// Most µs of a time: thirty years.
const MICROS_MAX: f64 = 1e15;

/// What is left of one object.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    file: &'a Path,
    line: u64,
    pairs: Vec<(String, Value)>,
}

impl<'a> Fields<'a> {
    /// The object of a line.
    pub(super) fn parse(text: &str, file: &'a Path, line: u64) -> Result<Self, TraceError> {
        let Pairs { pairs, repeated } = serde_json::from_str(text).map_err(|error| {
            let remedy = format!("write one JSON object per line ({error})");
            TraceError::NotJson(Fault::new(file, line, text, remedy))
        })?;
        let fields = Fields { file, line, pairs };
        match repeated {
            Some(key) => Err(TraceError::RepeatedKey(fields.fault(&key, "give it once"))),
            None => Ok(fields),
        }
    }

    /// The object inside a value.
    pub(super) fn inside(&self, key: &str, value: Value) -> Result<Fields<'a>, TraceError> {
        match value {
            Value::Object(map) => {
                Ok(Fields { file: self.file, line: self.line, pairs: map.into_iter().collect() })
            }
            other => Err(self.bad(key, &other, "give an object in braces")),
        }
    }

    /// A fault at this line.
    pub(super) fn fault(&self, value: &str, remedy: &str) -> Fault {
        Fault::new(self.file, self.line, value, remedy)
    }

    /// A value that its key cannot have.
    pub(super) fn bad(&self, key: &str, value: &Value, remedy: &str) -> TraceError {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        TraceError::BadValue { key: key.to_owned(), at: self.fault(&text, remedy) }
    }

    /// Whether a key is still there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.pairs.iter().any(|(name, _)| name == key)
    }

    /// Whether a key has this text.
    pub(super) fn says(&self, key: &str, text: &str) -> bool {
        self.pairs.iter().any(|(name, value)| name == key && value.as_str() == Some(text))
    }

    /// Takes a value; `null` counts as absent.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        let at = self.pairs.iter().position(|(name, _)| name == key)?;
        Some(self.pairs.swap_remove(at).1).filter(|value| !value.is_null())
    }

    /// What must be there.
    pub(super) fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, TraceError> {
        value.ok_or_else(|| TraceError::MissingKey(self.fault(key, "add it")))
    }

    /// A text.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<String>, TraceError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(other) => Err(self.bad(key, &other, "give a text in quotes")),
        }
    }

    /// A whole number.
    pub(super) fn whole(&mut self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, TraceError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let fitting = value.as_u64().filter(|number| range.contains(number));
        let remedy = || format!("give a whole number from {} to {}", range.start(), range.end());
        fitting.map(Some).ok_or_else(|| self.bad(key, &value, &remedy()))
    }

    /// A whole number that must be there.
    pub(super) fn required_whole(
        &mut self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, TraceError> {
        let value = self.whole(key, range)?;
        self.required(key, value)
    }

    /// A time in µs.
    pub(super) fn micros(&mut self, key: &str) -> Result<Option<f64>, TraceError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let fitting = value.as_f64().filter(|micros| (0.0..=MICROS_MAX).contains(micros));
        fitting.map(Some).ok_or_else(|| self.bad(key, &value, "give µs, from 0 to 1e15"))
    }

    /// One of our words.
    pub(super) fn word<T: FromStr<Err = UnknownWord>>(&mut self, key: &str) -> Result<Option<T>, TraceError> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        text.parse().map(Some).map_err(|error: UnknownWord| {
            let near = nearest(&error.value, &error.known).map(|word| format!("did you mean \"{word}\"? "));
            let remedy = format!("{}give one of {}", near.unwrap_or_default(), error.known.join(", "));
            self.bad(key, &Value::String(text), &remedy)
        })
    }

    /// Refuses what nobody has taken.
    pub(super) fn finish(self, known: &[&str]) -> Result<(), TraceError> {
        let Some((key, _)) = self.pairs.first() else { return Ok(()) };
        let near = nearest(key, known).map(|word| format!("did you mean \"{word}\"? "));
        let remedy = format!("{}known here: {}", near.unwrap_or_default(), known.join(", "));
        Err(TraceError::UnknownKey(self.fault(key, &remedy)))
    }
}
