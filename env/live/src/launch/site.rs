//! What is around workers on this machine.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dynamiccl_spec::variables;

use super::guard::Guard;
use super::mps::PIPES;
use super::{Links, Mps, Recipe, Sharing, Ward};
use crate::crew::{Child, LiveError};
use crate::worker::{ADDRESS, DEVICE, PARENT, RANK, SECRET, WAIT};

/// Said where ranks take turns on a GPU.
const NO_MPS: &str = "nvidia-cuda-mps-control is not there: ranks on one GPU take turns, and times mean nothing (a \
                      1 KiB allreduce takes a hundred times as long)";
/// Said where nobody can tell whether they do.
const NOT_OUR_MPS: &str = "ranks that another launcher has started share a GPU: start nvidia-cuda-mps-control -d \
                           before, or they take turns, and times mean nothing";

/// What is around workers.
#[derive(Debug)]
pub struct Site {
    /// All that must be gone afterwards, in the order in which it was made.
    wards: Vec<Ward>,
    guard: Guard,
    logs: PathBuf,
    /// Whether ranks on one GPU run at the same time; none where they share none, or nobody can tell.
    pub has_mps: Option<bool>,
    /// What somebody must know who reads the times.
    pub warnings: Vec<String>,
}

impl Site {
    /// Makes what a recipe needs.
    pub fn new(recipe: &Recipe) -> Result<Self, LiveError> {
        let unwritable = |error: io::Error| LiveError::File(format!("the folder of logs: {error}"));
        let guard = Guard::start(recipe.command(&recipe.guard));
        let guard =
            guard.map_err(|error| LiveError::Lacking(format!("the guard cannot be started: {error}")))?;
        let mut site =
            Site { wards: Vec::new(), guard, logs: PathBuf::new(), has_mps: None, warnings: Vec::new() };
        site.logs = match &recipe.logs {
            Some(logs) => logs.clone(),
            None => {
                let folder =
                    tempfile::Builder::new().prefix("dynamiccl-live-").tempdir().map_err(unwritable)?;
                site.keep(Ward::Folder(folder.path().to_owned()))?;
                folder.keep()
            }
        };
        fs::create_dir_all(&site.logs).map_err(unwritable)?;
        if recipe.sharing == Sharing::Shared {
            site.share(recipe)?;
        }
        if let Some((rate, tools)) = &recipe.link {
            let links = Links::new(tools, recipe.ranks)?;
            site.keep(Ward::Links(links.clone()))?;
            links.make(rate)?;
        }
        Ok(site)
    }

    /// Lets kernels of several ranks run on one GPU at the same time.
    fn share(&mut self, recipe: &Recipe) -> Result<(), LiveError> {
        if recipe.among.is_some() {
            if std::env::var_os(PIPES).is_none() {
                self.warnings.push(NOT_OUR_MPS.to_owned());
            }
            return Ok(());
        }
        let Some(control) = Mps::program() else {
            self.warnings.push(NO_MPS.to_owned());
            self.has_mps = Some(false);
            return Ok(());
        };
        let mps = Mps::new(control)?;
        self.keep(Ward::Mps(mps.clone()))?;
        self.has_mps = Some(true);
        mps.start()
    }

    /// From now on it is this site's to take away, and the guard's.
    fn keep(&mut self, ward: Ward) -> Result<(), LiveError> {
        let told = self.guard.keep(&ward);
        self.wards.push(ward);
        told.map_err(|error| LiveError::Lacking(format!("the guard does not listen: {error}")))
    }

    fn links(&self) -> Option<&Links> {
        self.wards.iter().find_map(|ward| if let Ward::Links(links) = ward { Some(links) } else { None })
    }

    fn mps(&self) -> Option<&Mps> {
        self.wards.iter().find_map(|ward| if let Ward::Mps(mps) = ward { Some(mps) } else { None })
    }

    /// Where logs are.
    pub fn logs(&self) -> &Path {
        &self.logs
    }

    /// Where workers of this machine reach the coordinator.
    pub fn host(&self) -> String {
        self.links().map_or("127.0.0.1".to_owned(), Links::host)
    }

    /// Starts the worker of a rank, which beats into its standard input.
    pub fn spawn(
        &self,
        recipe: &Recipe,
        rank: u32,
        address: &str,
        secret: &str,
        input: Stdio,
    ) -> io::Result<Child> {
        let start = if recipe.start > 1 { format!(".start{}", recipe.start) } else { String::new() };
        let log = self.logs.join(format!("rank{rank}{start}.log"));
        let file = File::create(&log)?;
        let mut command = match self.links() {
            Some(links) => links.command(rank, &recipe.program),
            None => Command::new(&recipe.program),
        };
        let device = recipe.among.as_ref().map_or(rank, |among| among.within) % recipe.gpus.max(1);
        command.args(&recipe.arguments);
        // What the shell says to jobs' plugins is not meant for these: what ranks are told is in the recipe.
        for name in variables::ALL {
            command.env_remove(name);
        }
        command.envs(recipe.variables.iter().map(|(name, value)| (name, value)));
        command.env(ADDRESS, address).env(SECRET, secret).env(RANK, rank.to_string());
        command.env(PARENT, std::process::id().to_string()).env(DEVICE, device.to_string());
        command.env(WAIT, recipe.limits.gather.as_secs().to_string());
        let here = recipe.among.as_ref().is_none_or(|among| among.here);
        let interface = if self.links().is_some() { Links::INTERFACE } else { "lo" };
        command.envs(recipe.sharing.variables(rank, here.then_some(interface)));
        if let Some(mps) = self.mps() {
            command.envs(mps.variables());
        }
        // In a group of its own, Ctrl-C is the coordinator's to answer.
        command.stdin(input).stdout(file.try_clone()?).stderr(file).process_group(0);
        Ok(Child { process: command.spawn()?, log })
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.wards.iter().rev().for_each(Ward::clear);
        self.guard.dismiss();
    }
}
