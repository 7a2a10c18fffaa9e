//! NVIDIA's MPS, with which the kernels of several processes run on one GPU at the same time.
//!
//! A daemon of our own, with pipes of its own: one that is there already is left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::program::{find, run};
use crate::crew::LiveError;

/// How long the daemon may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// What its processes are called, as far as the kernel keeps names.
const PROGRAM: &[u8] = b"nvidia-cuda-mps";
/// Where the daemon listens and where it writes: NVIDIA's variables.
pub const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
const LOGS: &str = "CUDA_MPS_LOG_DIRECTORY";

/// A daemon, by its program and the folder of its pipes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mps {
    control: PathBuf,
    folder: PathBuf,
}

impl Mps {
    /// What its clients are told by.
    pub const VARIABLES: [&str; 2] = [PIPES, LOGS];

    /// Its program, where it is installed.
    pub fn program() -> Option<PathBuf> {
        find("nvidia-cuda-mps-control")
    }

    /// One that does not run yet, with a folder that is there.
    pub fn new(control: PathBuf) -> Result<Self, LiveError> {
        // Pipes need a short path.
        let folder = tempfile::Builder::new().prefix("mps.").tempdir_in("/tmp");
        let folder = folder.map_err(|error| cannot(&error.to_string()))?;
        Ok(Mps { control, folder: folder.keep() })
    }

    /// Starts it.
    pub fn start(&self) -> Result<(), LiveError> {
        for (_, path) in self.folders() {
            fs::create_dir(path).map_err(|error| cannot(&error.to_string()))?;
        }
        self.tell(&["-d"], "").map_err(|why| cannot(&why))
    }

    /// What its clients need to know.
    pub fn variables(&self) -> [(&'static str, PathBuf); 2] {
        self.folders()
    }

    fn folders(&self) -> [(&'static str, PathBuf); 2] {
        [(PIPES, self.folder.join("pipe")), (LOGS, self.folder.join("log"))]
    }

    fn tell(&self, arguments: &[&str], input: &str) -> Result<(), String> {
        let folders = self.folders();
        let variables: Vec<(&str, &Path)> =
            folders.iter().map(|(name, path)| (*name, path.as_path())).collect();
        run(&self.control, arguments, &variables, input, PATIENCE)
    }

    /// Processes of this daemon: itself and the server that it started. Both were told where its pipes are.
    fn processes(&self) -> Vec<u32> {
        let [(name, pipes), _] = self.folders();
        let mark = format!("{name}={}", pipes.display()).into_bytes();
        let is_ours = |pid: &u32| {
            let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let environment = read("environ");
            read("comm").starts_with(PROGRAM) && environment.split(|byte| *byte == 0).any(|line| line == mark)
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
    }

    /// Ends it, and takes its folder away.
    pub fn clear(&self) {
        // Its clients are gone: nothing keeps it. Whether it was told is seen by whether it goes.
        let _ = self.tell(&[], "quit\n");
        let until = Instant::now() + PATIENCE;
        while !self.processes().is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.processes().into_iter().for_each(dynamiccl_gpu::kill_process);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn cannot(why: &str) -> LiveError {
    LiveError::Lacking(format!("MPS cannot be started: {why}"))
}
