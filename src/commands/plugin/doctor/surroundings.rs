//! What NCCL's tables are made of, as far as it can be seen without NCCL: its release and the GPUs.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::super::probe;

/// The name by which programs find NCCL.
const NCCL: &str = "libnccl.so.2";
/// Where NVIDIA's driver lists its GPUs.
const GPUS: &str = "/proc/driver/nvidia/gpus";

/// NCCL's release, or why it is not known.
pub fn nccl(named: Option<&Path>) -> Result<String, String> {
    let name = named.map_or_else(|| PathBuf::from(NCCL), Path::to_owned);
    probe::nccl(&[name]).map_err(|error| format!("{error:#}"))
}

/// The models of the GPUs, each once; none without the driver.
pub fn gpus() -> Vec<String> {
    let mut models = models(Path::new(GPUS)).unwrap_or_default();
    models.sort();
    models.dedup();
    models
}

fn models(folder: &Path) -> io::Result<Vec<String>> {
    let mut models = Vec::new();
    for gpu in fs::read_dir(folder)? {
        let text = fs::read_to_string(gpu?.path().join("information"))?;
        models.extend(text.lines().filter_map(|line| Some(line.strip_prefix("Model:")?.trim().to_owned())));
    }
    Ok(models)
}

/// This host's name.
pub fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or("unknown".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_read_as_the_driver_writes_them() {
        let folder = tempfile::tempdir().unwrap();
        let gpu = folder.path().join("0000:01:00.0");
        fs::create_dir(&gpu).unwrap();
        fs::write(gpu.join("information"), "Model: \t\t NVIDIA H200\nIRQ:   \t\t 1\n").unwrap();
        assert_eq!(models(folder.path()).unwrap(), ["NVIDIA H200"]);
        assert!(models(Path::new("/nowhere")).is_err());
    }
}
