//! Links with a rate: every rank in a network namespace of its own, with an interface that a token bucket shapes, all
//! on one bridge. Needs root, `ip` and `tc`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::program::{find, run};
use crate::crew::LiveError;

/// How long one command may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The token bucket's depth and the longest that a packet waits in it.
const BURST: &str = "1mb";
const LATENCY: &str = "50ms";
/// Jumbo frames, as such links have.
const MTU: &str = "9000";
/// Ranks that one network has addresses for.
const MOST: u32 = 200;
/// The coordinator's address in the network.
const HOST: u32 = 254;

/// The two programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTools {
    /// `ip` of iproute2.
    pub ip: PathBuf,
    /// `tc` of iproute2.
    pub tc: PathBuf,
}

impl LinkTools {
    /// The ones that were named, or those of the search path.
    pub fn find(ip: Option<&Path>, tc: Option<&Path>) -> Result<Self, LiveError> {
        let one = |named: Option<&Path>, name: &str| {
            let found = named.map_or_else(|| find(name), |path| find(&path.to_string_lossy()));
            found.ok_or_else(|| {
                let what = named.map_or(name.to_owned(), |path| path.display().to_string());
                LiveError::Lacking(format!(
                    "--link: {what} is not there; install iproute2, or name it with --{name}"
                ))
            })
        };
        Ok(LinkTools { ip: one(ip, "ip")?, tc: one(tc, "tc")? })
    }
}

/// Namespaces and links, by what their names have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Links {
    tools: LinkTools,
    mark: u32,
    ranks: u32,
}

impl Links {
    /// The interface within every namespace.
    pub const INTERFACE: &'static str = "eth0";

    /// Those of this process, not made yet.
    pub fn new(tools: &LinkTools, ranks: u32) -> Result<Self, LiveError> {
        if ranks > MOST {
            return Err(LiveError::Lacking(format!(
                "--link: {ranks} ranks, but at most {MOST} can be linked"
            )));
        }
        Ok(Links { tools: tools.clone(), mark: std::process::id(), ranks })
    }

    /// Makes them.
    pub fn make(&self, rate: &str) -> Result<(), LiveError> {
        self.build(rate).map_err(|why| {
            LiveError::Lacking(format!(
                "--link: network namespaces and shaped links need root (CAP_NET_ADMIN and CAP_SYS_ADMIN): {why}"
            ))
        })
    }

    fn build(&self, rate: &str) -> Result<(), String> {
        let bridge = self.bridge();
        self.ip(&["link", "add", &bridge, "type", "bridge"])?;
        self.ip(&["addr", "add", &self.address(HOST), "dev", &bridge])?;
        self.ip(&["link", "set", &bridge, "mtu", MTU, "up"])?;
        for rank in 0..self.ranks {
            let (namespace, outside) = (self.namespace(rank), format!("dv{}x{rank}", self.mark));
            let address = self.address(rank + 1);
            self.ip(&["netns", "add", &namespace])?;
            self.ip(&[
                "link",
                "add",
                &outside,
                "type",
                "veth",
                "peer",
                "name",
                Self::INTERFACE,
                "netns",
                &namespace,
            ])?;
            self.ip(&["link", "set", &outside, "mtu", MTU, "master", &bridge, "up"])?;
            let inside = ["netns", "exec", &namespace];
            let ip = self.tools.ip.to_string_lossy();
            let tc = self.tools.tc.to_string_lossy();
            let within = |words: &[&str]| self.ip(&[&inside[..], words].concat());
            within(&[&ip, "addr", "add", &address, "dev", Self::INTERFACE])?;
            within(&[&ip, "link", "set", Self::INTERFACE, "mtu", MTU, "up"])?;
            within(&[&ip, "link", "set", "lo", "up"])?;
            within(&[
                &tc,
                "qdisc",
                "replace",
                "dev",
                Self::INTERFACE,
                "root",
                "tbf",
                "rate",
                rate,
                "burst",
                BURST,
                "latency",
                LATENCY,
            ])?;
        }
        Ok(())
    }

    /// Where the coordinator can be reached from within.
    pub fn host(&self) -> String {
        self.address(HOST).split('/').next().unwrap_or_default().to_owned()
    }

    /// A program within a rank's namespace.
    pub fn command(&self, rank: u32, program: &Path) -> Command {
        let mut command = Command::new(&self.tools.ip);
        command.args(["netns", "exec", &self.namespace(rank)]).arg(program);
        command
    }

    fn ip(&self, words: &[&str]) -> Result<(), String> {
        run(&self.tools.ip, words, &[], "", PATIENCE)
    }

    fn bridge(&self) -> String {
        format!("db{}", self.mark)
    }

    fn namespace(&self, rank: u32) -> String {
        format!("dynamiccl{}r{rank}", self.mark)
    }

    /// An address in a network that two runs at the same time hardly share.
    fn address(&self, host: u32) -> String {
        format!("10.99.{}.{host}/24", self.mark % 250)
    }

    /// Takes them away, however many were made.
    pub fn clear(&self) {
        // What was never made cannot be taken away, and need not be. A namespace takes its interfaces along.
        for rank in 0..self.ranks {
            let _ = self.ip(&["netns", "del", &self.namespace(rank)]);
        }
        let _ = self.ip(&["link", "del", &self.bridge()]);
    }
}
