//! NVIDIA's MPS, with which the kernels of several processes run on one GPU at the same time.
//!
//! A daemon of our own, with pipes of its own: one that is there already is left alone, and this one is gone
//! afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::program::run;
use crate::crew::LiveError;

/// How long the daemon may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// What its processes are called, as far as the kernel keeps names.
const PROGRAM: &[u8] = b"nvidia-cuda-mps";
/// Where the daemon listens and where it writes: NVIDIA's variables.
const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
const LOGS: &str = "CUDA_MPS_LOG_DIRECTORY";

/// A daemon that runs.
#[derive(Debug)]
pub struct Mps {
    control: PathBuf,
    folder: TempDir,
}

impl Mps {
    /// Starts one.
    pub fn start(control: PathBuf) -> Result<Self, LiveError> {
        let cannot = |why: String| LiveError::Lacking(format!("MPS cannot be started: {why}"));
        // Pipes need a short path.
        let folder = tempfile::Builder::new().prefix("mps.").tempdir_in("/tmp");
        let folder = folder.map_err(|error| cannot(error.to_string()))?;
        let mps = Mps { control, folder };
        for (_, path) in mps.folders() {
            fs::create_dir(path).map_err(|error| cannot(error.to_string()))?;
        }
        mps.tell(&["-d"], "").map_err(cannot)?;
        Ok(mps)
    }

    /// What its clients need to know.
    pub fn variables(&self) -> [(&'static str, PathBuf); 2] {
        self.folders()
    }

    fn folders(&self) -> [(&'static str, PathBuf); 2] {
        [(PIPES, self.folder.path().join("pipe")), (LOGS, self.folder.path().join("log"))]
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
}

impl Drop for Mps {
    fn drop(&mut self) {
        // Its clients are gone: nothing keeps it. Whether it was told is seen by whether it goes.
        let _ = self.tell(&[], "quit\n");
        let until = Instant::now() + PATIENCE;
        while !self.processes().is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.processes().into_iter().for_each(dynamiccl_gpu::kill_process);
    }
}
