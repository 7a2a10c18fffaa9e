//! What the profiler would make of its variables. It is never worth a job, so the library goes on with a default or
//! without records, and says so when the first communicator begins; the doctor says it before.

use std::ops::RangeInclusive;
use std::path::Path;
use std::{fs, io};

use dynamiccl_spec::variables::{
    MODE, PROFILE, PROFILE_KERNELS, PROFILE_MAX_MB, PROFILE_MOST_MB, PROMETHEUS, PROMETHEUS_MOST_SECONDS,
    PROMETHEUS_SECONDS,
};

use super::facts::{Finding, Level};
use super::surroundings;
use super::variables::Variables;

/// The numbers as the library takes them.
const NUMBERS: [(&str, RangeInclusive<u64>); 2] =
    [(PROFILE_MAX_MB, 1..=PROFILE_MOST_MB), (PROMETHEUS_SECONDS, 1..=PROMETHEUS_MOST_SECONDS)];

/// What stands out.
pub fn findings(variables: &Variables) -> Vec<Finding> {
    if variables.get(MODE).is_some_and(|mode| mode.trim().eq_ignore_ascii_case("off")) {
        return Vec::new();
    }
    let numbers = NUMBERS.iter().filter_map(|(name, range)| number(name, variables.get(name)?, range));
    let folders = [PROFILE, PROMETHEUS].into_iter().filter_map(|name| folder(name, variables.get(name)?));
    let said = numbers.chain(switch(variables)).chain(folders);
    said.map(|text| Finding::new(Level::Warning, text)).collect()
}

fn number(name: &str, value: &str, range: &RangeInclusive<u64>) -> Option<String> {
    let means = value.trim().parse().is_ok_and(|number| range.contains(&number));
    let (least, most) = (range.start(), range.end());
    let remedy = "the profiler would use its default";
    (!means).then(|| format!("{name}={value}: give a whole number from {least} to {most}; {remedy}"))
}

fn switch(variables: &Variables) -> Option<String> {
    let value = variables.get(PROFILE_KERNELS).filter(|value| !matches!(value.trim(), "0" | "1" | ""))?;
    Some(format!("{PROFILE_KERNELS}={value}: give 0 or 1; the profiler would use 1"))
}

fn folder(name: &str, value: &str) -> Option<String> {
    let error = writable(Path::new(value)).err()?;
    Some(format!("{name}={value}: nothing can be written there: {error}"))
}

/// Whether something can be made in a folder, or in the nearest one above it that is there. It is tried, for modes and
/// owners do not tell it of every file system, and nothing of it stays.
fn writable(folder: &Path) -> io::Result<()> {
    let there = folder.ancestors().find(|above| above.exists()).unwrap_or(Path::new("."));
    // Ranks of all hosts may try the same folder.
    let tried = there.join(format!(".dynamiccl-doctor-{}-{}", surroundings::host(), std::process::id()));
    fs::create_dir(&tried)?;
    fs::remove_dir(&tried)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(set: &[(&str, &str)]) -> Vec<String> {
        let variables = Variables::new(set.iter().copied(), Vec::new());
        findings(&variables).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn what_the_profiler_would_replace_is_said() {
        for (name, value, part) in [
            (PROFILE_MAX_MB, "abc", "DYNAMICCL_PROFILE_MAX_MB=abc: give a whole number from 1 to 1048576"),
            (PROMETHEUS_SECONDS, "0", "DYNAMICCL_PROMETHEUS_SECONDS=0: give a whole number from 1 to 86400"),
            (PROFILE_KERNELS, "off", "DYNAMICCL_PROFILE_KERNELS=off: give 0 or 1"),
            (PROFILE, "/proc/nope", "DYNAMICCL_PROFILE=/proc/nope: nothing can be written there"),
            (PROMETHEUS, "/dev/null", "DYNAMICCL_PROMETHEUS=/dev/null: nothing can be written there"),
        ] {
            let found = said(&[(name, value)]);
            assert!(found.len() == 1 && found[0].starts_with(part), "{found:?}");
            assert_eq!(said(&[(name, value), (MODE, "Off ")]), [""; 0]);
        }
    }

    #[test]
    fn what_can_be_had_is_no_news_and_nothing_is_made() {
        let there = tempfile::tempdir().unwrap();
        let folder = there.path().join("made/later");
        let folder = folder.to_str().unwrap();
        let set = [(PROFILE, folder), (PROFILE_MAX_MB, " 7"), (PROFILE_KERNELS, "0"), (PROMETHEUS, folder)];
        assert_eq!(said(&set), [""; 0]);
        assert_eq!(there.path().read_dir().unwrap().count(), 0);
    }
}
