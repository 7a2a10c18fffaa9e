//! Workers, and what they need around them: a folder for their logs, MPS where they share a GPU, network namespaces
//! where links are shaped. Whatever was started or made is gone when this is dropped, and a guard sees to it where
//! this process ends before.
//!
//! Either all workers are started here, or a launcher has started one process per rank: then rank 0's is the
//! coordinator, and each starts the worker of its own rank.

mod among;
mod guard;
mod links;
mod mps;
mod program;
mod secret;
mod site;
mod ward;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub use among::{Among, attend};
pub use guard::watch;
pub use links::{LinkTools, Links};
pub use mps::Mps;
pub use program::find;
pub use secret::secret;
pub use site::Site;
pub use ward::Ward;

use crate::crew::{Child, Crew, Door, Limits, LiveError, gather};

/// How several ranks live on one GPU, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Every rank has a GPU of its own.
    Apart,
    /// Ranks share GPUs, each as if it were a host of its own.
    Shared,
}

impl Sharing {
    /// What NCCL is told of a rank, whatever else it is told. Ranks on one GPU are refused unless they seem to be on hosts of
    /// their own, which then speak over sockets: through this interface, where all can be reached there.
    pub fn variables(self, rank: u32, interface: Option<&str>) -> Vec<(&'static str, String)> {
        let Sharing::Shared = self else { return Vec::new() };
        let host = format!("dynamiccl-rank{rank}");
        let interface = interface.map(|interface| ("NCCL_SOCKET_IFNAME", interface.to_owned()));
        [("NCCL_HOSTID", host), ("NCCL_IB_DISABLE", "1".to_owned())].into_iter().chain(interface).collect()
    }
}

/// What is to be started.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The program that is a worker with these arguments.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The same program's arguments as a guard.
    pub guard: Vec<OsString>,
    /// Ranks.
    pub ranks: u32,
    /// GPUs that this process sees.
    pub gpus: u32,
    /// Where another launcher has started the ranks' processes: which of them this is.
    pub among: Option<Among>,
    /// How they live on GPUs.
    pub sharing: Sharing,
    /// The rate of every rank's link, as `tc` reads it; none for what the machine has.
    pub link: Option<(String, LinkTools)>,
    /// Variables of all workers.
    pub variables: Vec<(String, String)>,
    /// Where logs go; none for a folder that is gone afterwards.
    pub logs: Option<PathBuf>,
    /// Which start of the run's ranks this is, from 1 on; each has logs of its own.
    pub start: usize,
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

impl Recipe {
    fn command(&self, arguments: &[OsString]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        command
    }
}

impl Live {
    /// Starts workers, or that of this rank, and waits until all have come.
    pub fn start(recipe: &Recipe, stop: Box<dyn Fn() -> bool + Send>) -> Result<Self, LiveError> {
        let site = Site::new(recipe)?;
        let door = match &recipe.among {
            Some(among) => among.door()?,
            None => {
                let secret = secret().map_err(|error| LiveError::File(format!("/dev/urandom: {error}")))?;
                Door::open(&site.host(), 0, secret)?
            }
        };
        let address = door.address().map_err(|why| LiveError::Meet { address: site.host(), why })?;
        let address = recipe.among.as_ref().map_or(address.to_string(), Among::address);
        let here = if recipe.among.is_some() { 0..1 } else { 0..recipe.ranks };
        let mut children = Vec::new();
        for rank in here {
            // Their connections end with this process, and they with it: nobody else needs to hear them.
            match site.spawn(recipe, rank, &address, door.secret(), Stdio::null()) {
                Ok(child) => children.push(Some(child)),
                Err(why) => {
                    children.iter_mut().flatten().for_each(Child::end);
                    return Err(LiveError::Start { rank, why });
                }
            }
        }
        children.resize_with(recipe.ranks as usize, || None);
        let crew = gather(&door, recipe.ranks, children, recipe.limits, stop)?;
        Ok(Live { crew, site })
    }
}
