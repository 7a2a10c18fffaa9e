//! Workers on this machine, and what they need around them: a folder for their logs, MPS where they share a GPU,
//! network namespaces where links are shaped. Whatever was started or made is gone when this is dropped.

mod links;
mod mps;
mod program;
mod secret;

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub use links::{LinkTools, Links};
pub use mps::Mps;
pub use program::find;
pub use secret::secret;

use crate::crew::{Child, Crew, Door, Limits, LiveError, gather};
use crate::worker::{ADDRESS, PARENT, RANK, SECRET};

/// How several ranks live on one GPU, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Every rank has a GPU of its own.
    Apart,
    /// Ranks share GPUs, each as if it were a host of its own.
    Shared,
}

/// What is to be started.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The program that is a worker with these arguments.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Ranks.
    pub ranks: u32,
    /// How they live on GPUs.
    pub sharing: Sharing,
    /// The rate of every rank's link, as `tc` reads it; none for what the machine has.
    pub link: Option<(String, LinkTools)>,
    /// Variables of all workers.
    pub variables: Vec<(String, String)>,
    /// Where logs go; none for a folder that is gone afterwards.
    pub logs: Option<PathBuf>,
    /// How long things may take.
    pub limits: Limits,
}

/// Workers that run, and what is around them.
#[derive(Debug)]
pub struct Live {
    /// The workers. They go first.
    pub crew: Crew,
    /// What is around them.
    pub site: Site,
}

/// What is around workers.
#[derive(Debug)]
pub struct Site {
    links: Option<Links>,
    mps: Option<Mps>,
    logs: PathBuf,
    _folder: Option<TempDir>,
    /// What somebody must know who reads the times.
    pub warnings: Vec<String>,
}

/// Said where ranks take turns on a GPU.
const NO_MPS: &str = "nvidia-cuda-mps-control is not there: ranks on one GPU take turns, and times mean nothing (a \
                      1 KiB allreduce takes a hundred times as long)";

impl Live {
    /// Starts workers and waits until all have come.
    pub fn start(recipe: &Recipe, stop: Box<dyn Fn() -> bool>) -> Result<Self, LiveError> {
        let site = Site::new(recipe)?;
        let host = site.links.as_ref().map_or("127.0.0.1".to_owned(), Links::host);
        let secret = secret().map_err(|error| LiveError::File(format!("/dev/urandom: {error}")))?;
        let door = Door::open(&format!("{host}:0"), secret)?;
        let address = door.address().map_err(|why| LiveError::Meet { address: host, why })?.to_string();
        let mut children = Vec::new();
        for rank in 0..recipe.ranks {
            match site.spawn(recipe, rank, &address, door.secret()) {
                Ok(child) => children.push(Some(child)),
                Err(why) => {
                    children.into_iter().flatten().for_each(end);
                    return Err(LiveError::Start { rank, why });
                }
            }
        }
        let crew = gather(&door, recipe.ranks, children, recipe.limits, stop)?;
        Ok(Live { crew, site })
    }
}

impl Site {
    fn new(recipe: &Recipe) -> Result<Self, LiveError> {
        let unwritable = |error: std::io::Error| LiveError::File(format!("the folder of logs: {error}"));
        let (logs, folder) = match &recipe.logs {
            Some(logs) => (logs.clone(), None),
            None => {
                let folder =
                    tempfile::Builder::new().prefix("dynamiccl-live-").tempdir().map_err(unwritable)?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        fs::create_dir_all(&logs).map_err(unwritable)?;
        let mut site = Site { links: None, mps: None, logs, _folder: folder, warnings: Vec::new() };
        if recipe.sharing == Sharing::Shared {
            match find("nvidia-cuda-mps-control") {
                Some(control) => site.mps = Some(Mps::start(control)?),
                None => site.warnings.push(NO_MPS.to_owned()),
            }
        }
        if let Some((rate, tools)) = &recipe.link {
            site.links = Some(Links::make(tools, recipe.ranks, rate)?);
        }
        Ok(site)
    }

    /// Where logs are.
    pub fn logs(&self) -> &Path {
        &self.logs
    }

    fn spawn(&self, recipe: &Recipe, rank: u32, address: &str, secret: &str) -> std::io::Result<Child> {
        let log = self.logs.join(format!("rank{rank}.log"));
        let file = File::create(&log)?;
        let mut command = match &self.links {
            Some(links) => links.command(rank, &recipe.program),
            None => Command::new(&recipe.program),
        };
        command.args(&recipe.arguments).envs(recipe.variables.iter().map(|(name, value)| (name, value)));
        command.env(ADDRESS, address).env(SECRET, secret).env(RANK, rank.to_string());
        command.env(PARENT, std::process::id().to_string());
        if recipe.sharing == Sharing::Shared {
            // Ranks on one GPU are refused by NCCL unless they seem to be on hosts of their own, which then speak
            // over sockets.
            command.env("NCCL_HOSTID", format!("dynamiccl-rank{rank}")).env("NCCL_IB_DISABLE", "1");
            let interface = if self.links.is_some() { Links::INTERFACE } else { "lo" };
            command.env("NCCL_SOCKET_IFNAME", interface);
        }
        if let Some(mps) = &self.mps {
            command.envs(mps.variables());
        }
        // In a group of its own, Ctrl-C is the coordinator's to answer.
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).process_group(0);
        Ok(Child { process: command.spawn()?, log })
    }
}

fn end(mut child: Child) {
    let _ = child.process.kill();
    let _ = child.process.wait();
}
