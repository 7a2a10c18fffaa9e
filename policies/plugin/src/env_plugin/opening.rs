//! What a launch was given, from our variables and the deployment file. A variable wins over the file.

use dynamiccl_spec::variables::{BUFFSIZE, CONTEXT, NTHREADS};

use crate::deployment::{Deployment, DeploymentError, Launch};
use crate::settings::{Mode, Settings, SettingsError, Unexpected};

/// Why a launch cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A variable means nothing.
    #[error("{0}")]
    Settings(#[from] SettingsError),
    /// No deployment.
    #[error("{CONTEXT}: {0}")]
    Context(#[from] DeploymentError),
    /// Another file than the launcher meant.
    #[error("{0}")]
    Unexpected(#[from] Unexpected),
    /// A number that NCCL would not take.
    #[error("{NTHREADS} or {BUFFSIZE}: {0}")]
    Numbers(String),
}

/// What NCCL is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handed {
    /// Threads of a block.
    pub threads: Option<u64>,
    /// Bytes of the buffer.
    pub buffer: Option<u64>,
}

impl Handed {
    /// Reads variables and file; nothing is handed over unless decisions are.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, LaunchError> {
        let settings = Settings::read(&get)?;
        if settings.mode != Mode::Act {
            return Ok(Handed::default());
        }
        let deployment = settings.context.as_deref().map(Deployment::open).transpose()?.unwrap_or_default();
        settings.expects_context(deployment.hash())?;
        let file = deployment.launch().clone();
        let get =
            |variable: &str| get(variable).map(|value| value.trim().to_owned()).filter(|v| !v.is_empty());
        let number = |text: String| {
            text.parse().map_err(|_| LaunchError::Numbers(format!("threads = {text}: give a whole number")))
        };
        let launch = Launch {
            threads: get(NTHREADS).map(number).transpose()?.or(file.threads),
            buffer: get(BUFFSIZE).or(file.buffer),
        };
        launch.check().map_err(LaunchError::Numbers)?;
        let buffer = launch.buffer_bytes().map_err(LaunchError::Numbers)?;
        Ok(Handed { threads: launch.threads.map(u64::from), buffer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_spec::variables::EXPECT;

    fn read(set: &[(&str, &str)]) -> Result<Handed, String> {
        let get = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        Handed::read(get).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_handed_over_unless_somebody_says_what() {
        assert_eq!(read(&[]), Ok(Handed::default()));
        assert_eq!(read(&[(NTHREADS, " ")]), Ok(Handed::default()));
        for mode in ["observe", "driven", "off"] {
            assert_eq!(read(&[(NTHREADS, "256"), ("DYNAMICCL_MODE", mode)]), Ok(Handed::default()));
        }
        let both = read(&[(NTHREADS, "256"), (BUFFSIZE, "8M")]);
        assert_eq!(both, Ok(Handed { threads: Some(256), buffer: Some(8 << 20) }));
    }

    #[test]
    fn a_variable_wins_over_the_file() {
        let file = std::env::temp_dir().join(format!("dynamiccl-launch-{}.toml", std::process::id()));
        std::fs::write(&file, "[launch]\nthreads = 128\nbuffer = \"2M\"\n").unwrap();
        let path = file.to_str().unwrap();
        assert_eq!(read(&[(CONTEXT, path)]), Ok(Handed { threads: Some(128), buffer: Some(2 << 20) }));
        let handed = read(&[(CONTEXT, path), (NTHREADS, "512")]);
        assert_eq!(handed, Ok(Handed { threads: Some(512), buffer: Some(2 << 20) }));
        for (text, message) in [
            ("[launch]\nthreads = 100\n", "launch.threads = 100"),
            ("[launch]\nbuffer = \"1\"\n", "launch.buffer = \"1\""),
            ("[launch]\nthread = 128\n", "thread"),
        ] {
            std::fs::write(&file, text).unwrap();
            let said = read(&[(CONTEXT, path)]).unwrap_err();
            assert!(said.starts_with("DYNAMICCL_CONTEXT: ") && said.contains(message), "{said}");
        }
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn a_file_that_the_launcher_did_not_mean_is_refused() {
        let file = std::env::temp_dir().join(format!("dynamiccl-expected-{}.toml", std::process::id()));
        std::fs::write(&file, "[launch]\nthreads = 128\n").unwrap();
        let hash = Deployment::open(&file).unwrap().hash().unwrap();
        let expecting = |hash: u64| {
            let expected = format!("0000000000000000,{hash:016x}");
            read(&[(CONTEXT, file.to_str().unwrap()), (EXPECT, &expected)])
        };
        assert_eq!(expecting(hash), Ok(Handed { threads: Some(128), buffer: None }));
        let said = expecting(hash ^ 1).unwrap_err();
        assert!(said.starts_with("DYNAMICCL_EXPECT: the context of this rank is "), "{said}");
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for (variable, value) in [
            (NTHREADS, "many"),
            (NTHREADS, "100"),
            (BUFFSIZE, "big"),
            (CONTEXT, "/nowhere/x.toml"),
            (EXPECT, ""),
        ] {
            let said = read(&[(variable, value)]).unwrap_err();
            assert!(said.contains(variable) && said.contains(value), "{said}");
        }
    }
}
