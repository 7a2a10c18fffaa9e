//! The variables that turn the profiler on and bound what it writes.
//!
//! A value that means nothing is said and replaced by the default: recording is never worth a job.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use dynamiccl_spec::launchers;
use dynamiccl_spec::variables::{
    MODE, PROFILE, PROFILE_KERNELS, PROFILE_MAX_MB, PROFILE_MOST_MB, PROMETHEUS, PROMETHEUS_MOST_SECONDS,
    PROMETHEUS_SECONDS,
};

const MAX_MB_DEFAULT: u64 = 256;
/// node_exporter's textfile collector is read about as often.
const SECONDS_DEFAULT: u64 = 30;

/// What the user wants recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The folder of records.
    pub records: Option<PathBuf>,
    /// Bytes that records may take.
    pub records_max: u64,
    /// The folder of metrics.
    pub metrics: Option<PathBuf>,
    /// Time between two writings of metrics.
    pub metrics_every: Duration,
    /// Whether kernels are timed.
    pub times_kernels: bool,
    /// This process's name on its node.
    pub process: String,
    /// The job, as Slurm calls it.
    pub job: String,
}

impl Settings {
    /// Reads the variables; nothing where recording is off. What is wrong with them is said.
    pub fn read(get: impl Fn(&str) -> Option<OsString>, mut warn: impl FnMut(String)) -> Option<Self> {
        let text = |name: &str| get(name).and_then(|value| value.into_string().ok());
        let folder = |name: &str| get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let mut number = |name: &str, default: u64, most: u64| {
            let Some(value) = get(name) else { return default };
            let read = value.to_str().and_then(|value| value.trim().parse().ok());
            read.filter(|number| (1..=most).contains(number)).unwrap_or_else(|| {
                let value = value.display();
                warn(format!("{name}={value}: give a whole number from 1 to {most}; {default} is used"));
                default
            })
        };
        let (records, metrics) = (folder(PROFILE), folder(PROMETHEUS));
        let is_off = text(MODE).is_some_and(|mode| mode.trim().eq_ignore_ascii_case("off"));
        if is_off || records.is_none() && metrics.is_none() {
            return None;
        }
        let local = launchers::within(text);
        let local = local.filter(|rank| !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()));
        let records_max = number(PROFILE_MAX_MB, MAX_MB_DEFAULT, PROFILE_MOST_MB) << 20;
        let seconds = number(PROMETHEUS_SECONDS, SECONDS_DEFAULT, PROMETHEUS_MOST_SECONDS);
        let metrics_every = Duration::from_secs(seconds);
        let times_kernels = get(PROFILE_KERNELS).is_none_or(|value| match value.to_str().map(str::trim) {
            Some("0") => false,
            Some("1" | "") => true,
            _ => {
                warn(format!("{PROFILE_KERNELS}={}: give 0 or 1; 1 is used", value.display()));
                true
            }
        });
        Some(Settings {
            records,
            records_max,
            metrics,
            metrics_every,
            times_kernels,
            process: local.unwrap_or_else(|| format!("pid{}", std::process::id())),
            job: text("SLURM_JOB_ID").filter(|job| !job.is_empty()).unwrap_or_else(|| "unknown".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> (Option<Settings>, Vec<String>) {
        let mut warnings = Vec::new();
        let get = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        let settings = Settings::read(get, |warning| warnings.push(warning));
        (settings, warnings)
    }

    #[test]
    fn nothing_is_recorded_unless_somebody_asks() {
        for off in [
            &[][..],
            &[(PROFILE, "")],
            &[(PROFILE, "/tmp/x"), (MODE, "off")],
            &[(PROFILE, "/tmp/x"), (MODE, "OFF ")],
            &[(PROFILE_MAX_MB, "7"), (PROMETHEUS_SECONDS, "7")],
        ] {
            assert_eq!(read(off).0, None, "{off:?}");
        }
    }

    #[test]
    fn defaults_and_values() {
        let (settings, warnings) = read(&[(PROFILE, "/tmp/x")]);
        let settings = settings.unwrap();
        assert!(warnings.is_empty());
        assert_eq!((settings.records_max, settings.metrics), (256 << 20, None));
        assert!(settings.times_kernels && settings.process.starts_with("pid"));
        let (settings, _) = read(&[
            (PROMETHEUS, "/tmp/y"),
            (PROMETHEUS_SECONDS, "5"),
            (PROFILE_MAX_MB, "1"),
            (PROFILE_KERNELS, "0"),
            ("SLURM_LOCALID", "3"),
            ("SLURM_JOB_ID", "77"),
            (MODE, "observe"),
        ]);
        let settings = settings.unwrap();
        assert_eq!((settings.records.as_ref(), settings.records_max), (None, 1 << 20));
        assert_eq!(settings.metrics_every, Duration::from_secs(5));
        assert_eq!((settings.process.as_str(), settings.job.as_str()), ("3", "77"));
        assert!(!settings.times_kernels);
    }

    #[test]
    fn a_value_that_means_nothing_is_said_and_replaced() {
        for value in ["0", "-1", "many", "", "99999999999999999999"] {
            let (settings, warnings) = read(&[(PROFILE, "/tmp/x"), (PROFILE_MAX_MB, value)]);
            assert_eq!(settings.unwrap().records_max, 256 << 20, "{value}");
            assert!(
                warnings[0].contains("DYNAMICCL_PROFILE_MAX_MB") && warnings[0].contains("256"),
                "{warnings:?}"
            );
        }
        let (settings, warnings) = read(&[(PROFILE, "/tmp/x"), (PROFILE_KERNELS, "off")]);
        assert!(settings.unwrap().times_kernels && warnings[0].contains("DYNAMICCL_PROFILE_KERNELS=off"));
        // A rank that would lead out of the folder is no rank.
        let (settings, _) = read(&[(PROFILE, "/tmp/x"), ("LOCAL_RANK", "../3")]);
        assert!(settings.unwrap().process.starts_with("pid"));
    }

    /// Else all ranks of a node would write one file of metrics.
    #[test]
    fn a_rank_under_mpirun_within_a_job_of_slurm_has_its_own_name() {
        let inherited = ("SLURM_LOCALID", "0");
        for own in ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"] {
            let (settings, _) = read(&[(PROMETHEUS, "/tmp/y"), inherited, (own, "3")]);
            assert_eq!(settings.unwrap().process, "3", "{own}");
        }
    }
}
