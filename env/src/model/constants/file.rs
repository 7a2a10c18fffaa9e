//! The constants file: read, checked and written. It knows no constant by its meaning, but those that divide.

use serde::{Deserialize, Serialize};

use super::{Constants, Entry, Range, Sections};
use crate::text;

/// The constants file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConstantsFile(Sections);

/// A constants file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConstantsError {
    /// It cannot be read.
    #[error("{path}: {error}; give a constants file, or leave --constants out for the built-in one")]
    Unreadable {
        /// The file.
        path: String,
        /// What went wrong.
        error: std::io::Error,
    },
    /// It is not a constants file.
    #[error("{path}: {message}")]
    Malformed {
        /// The file.
        path: String,
        /// What is wrong where.
        message: String,
    },
}

/// Constants that times are divided by.
const DIVISORS: [&str; 8] =
    ["rate", "bandwidth", "ll_between", "ceiling", "half_threads", "data_scale", "share", "channel_share"];

const FULL: &str = include_str!("../constants.toml");
const BLIND: &str = include_str!("../constants-blind.toml");

impl ConstantsFile {
    /// The ones that are meant where nobody says which.
    pub const USUAL: &str = "full";

    /// The built-in constants, fitted on everything that was measured.
    pub fn full() -> Self {
        Self::parse("constants.toml", FULL).expect("the built-in constants parse: a test holds them to it")
    }

    /// The built-in constants that never saw the live sweeps: a forecast for a machine nobody measured.
    pub fn blind() -> Self {
        Self::parse("constants-blind.toml", BLIND)
            .expect("the built-in constants parse: a test holds them to it")
    }

    /// `blind`, `full` or a file.
    pub fn load(name: &str) -> Result<Self, ConstantsError> {
        match name {
            Self::USUAL => Ok(Self::full()),
            "blind" => Ok(Self::blind()),
            path => {
                let text = text::read(path)
                    .map_err(|error| ConstantsError::Unreadable { path: path.to_owned(), error })?;
                Self::parse(path, &text)
            }
        }
    }

    fn parse(path: &str, text: &str) -> Result<Self, ConstantsError> {
        let malformed = |message: String| ConstantsError::Malformed { path: path.to_owned(), message };
        let mut file: ConstantsFile =
            toml::from_str(text).map_err(|error| malformed(error.to_string().trim().replace('\n', " ")))?;
        let mut wrong = None;
        file.visit(&mut |name, value| {
            let divides = DIVISORS.iter().any(|divisor| name.split('.').any(|part| part == *divisor));
            let least = if divides { "above" } else { "of at least" };
            if !value.is_finite() || *value < 0.0 || (divides && *value == 0.0) {
                wrong = Some(format!("{name} is {value}; it must be a number {least} 0"));
            }
        });
        file.draw(|[low, high]| {
            if !(low > 0.0 && low <= high && high.is_finite()) {
                wrong = Some(format!(
                    "a range is [{low}, {high}]; it must be two numbers above 0, the smaller first"
                ));
            }
            1.0
        });
        wrong.map_or(Ok(file), |message| Err(malformed(message)))
    }

    /// The nominal constants.
    pub fn nominal(&self) -> Constants {
        self.0.resolve(&mut |_| 1.0)
    }

    /// The constants, each times what `factor` answers for its range.
    pub fn draw(&self, mut factor: impl FnMut(Range) -> f64) -> Constants {
        self.0.resolve(&mut factor)
    }

    /// Shows every number with its dotted name.
    pub fn visit(&mut self, each: &mut impl FnMut(&str, &mut f64)) {
        self.0.visit("", each);
    }

    /// The file's text, one constant a line.
    pub fn to_toml(&self) -> String {
        let table = toml::Table::try_from(self).expect("plain tables of numbers and text serialise");
        let mut text = String::new();
        write_sections("", &table, &mut text);
        text
    }
}

/// Writes a table of constants as a section, and tables of tables as sections below it.
fn write_sections(path: &str, table: &toml::Table, text: &mut String) {
    let is_constant = |value: &toml::Value| value.get("value").is_some();
    if table.values().any(is_constant) {
        text.push_str(&format!("{}[{path}]\n", if text.is_empty() { "" } else { "\n" }));
    }
    for (name, constant) in table.iter().filter(|(_, value)| is_constant(value)) {
        let part = |key: &str| constant.get(key).map_or(String::new(), ToString::to_string);
        let (value, range, source) = (part("value"), part("range"), part("source"));
        text.push_str(&format!("{name} = {{ value = {value}, range = {range}, source = {source} }}\n"));
    }
    for (name, value) in table.iter().filter(|(_, value)| !is_constant(value)) {
        if let toml::Value::Table(inner) = value {
            let dot = if path.is_empty() { "" } else { "." };
            write_sections(&format!("{path}{dot}{name}"), inner, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_built_in_files_parse_and_come_back_as_they_were_written() {
        for (file, text) in [(ConstantsFile::full(), FULL), (ConstantsFile::blind(), BLIND)] {
            let again = ConstantsFile::parse("again.toml", &file.to_toml()).unwrap();
            assert_eq!(again, file);
            let body = text.split_once('\n').expect("a comment stands above the constants").1;
            assert_eq!(file.to_toml(), body);
        }
        assert_ne!(
            ConstantsFile::full().nominal().hop.tcp_loopback,
            ConstantsFile::blind().nominal().hop.tcp_loopback
        );
    }

    #[test]
    fn every_constant_has_a_source_and_a_range_around_one() {
        for file in [ConstantsFile::full(), ConstantsFile::blind()] {
            let text = file.to_toml();
            assert!(!text.contains("source = \"\"") && !text.contains("source = \"fit\""), "{text}");
            file.draw(|[low, high]| {
                assert!(
                    low > 0.0 && low <= high && low <= 1.0 + 1e-9 && high >= 1.0 - 1e-9,
                    "[{low}, {high}]"
                );
                1.0
            });
        }
    }

    #[test]
    fn a_wrong_file_is_refused_with_its_place() {
        let refused = |from: &str, to: &str| {
            let text = FULL.replacen(from, to, 1);
            assert_ne!(text, FULL, "{from}");
            ConstantsFile::parse("mine.toml", &text).unwrap_err().to_string()
        };
        let misspelt = refused("launch =", "lunch =");
        assert!(
            misspelt.starts_with("mine.toml: ") && misspelt.contains("unknown field `lunch`"),
            "{misspelt}"
        );
        let negative = refused("fill = { value = ", "fill = { value = -");
        assert!(negative.contains("nvls.fill is -") && negative.contains("at least 0"), "{negative}");
        assert!(ConstantsFile::load("nowhere.toml").unwrap_err().to_string().starts_with("nowhere.toml: "));
    }
}
