//! Sketches as files: a person can read which ranks talk to which, and strike a connection out.

use serde::{Deserialize, Serialize};

use super::{Mode, Sketch};
use crate::error::SynthError;
use crate::machine::Machine;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The machine that it was made for.
    machine: String,
    mode: Mode,
    rank: Vec<Rank>,
}

/// One rank.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rank {
    rank: u32,
    /// None where its node has no NIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nic: Option<u32>,
    /// Ranks of its node that it sends to.
    local: Vec<u32>,
    /// Ranks of other nodes that it sends to.
    remote: Vec<u32>,
}

const HEAD: &str = "\
# A guidance sketch: the connections that a synthesizer may use. Strike out what should not be used, or add
# what should; `nic` is the NIC that a rank's traffic to other nodes takes, counted over all nodes.
";

impl Sketch {
    /// The text of a file that reads back as this sketch.
    pub fn to_toml(&self, machine: &Machine) -> String {
        let to = |rank: u32, local: bool| {
            let links = self.links.iter().filter(move |link| link.0 == rank);
            links.filter(|link| machine.together(rank, link.1) == local).map(|link| link.1).collect()
        };
        let ranks = (0..machine.ranks() as u32).map(|rank| Rank {
            rank,
            nic: self.nic_of[rank as usize],
            local: to(rank, true),
            remote: to(rank, false),
        });
        let mut text = format!("{HEAD}machine = {:?}\nmode = {:?}\n", machine.name, self.mode.name());
        for rank in ranks {
            text += &format!("\n[[rank]]\nrank = {}\n", rank.rank);
            text += &rank.nic.map_or(String::new(), |nic| format!("nic = {nic}\n"));
            text += &format!("local = {:?}\nremote = {:?}\n", rank.local, rank.remote);
        }
        text
    }

    /// Reads a sketch of this machine; `file` names it in errors.
    pub fn from_toml(file: &str, text: &str, machine: &Machine) -> Result<Sketch, SynthError> {
        let bad =
            |place: String, problem: String| SynthError::Format { file: file.to_owned(), place, problem };
        let read: File = toml::from_str(text).map_err(|error| bad("TOML".to_owned(), error.to_string()))?;
        let ranks = machine.ranks();
        if read.rank.len() != ranks {
            let problem = format!(
                "{} ranks, but {} has {ranks}: make it with the same machine",
                read.rank.len(),
                machine.name
            );
            return Err(bad("[[rank]]".to_owned(), problem));
        }
        let mut sketch = Sketch {
            name: file.to_owned(),
            mode: read.mode,
            links: Vec::new(),
            nic_of: read.rank.iter().map(|entry| entry.nic).collect(),
        };
        for (entry, expected) in read.rank.iter().zip(0..) {
            let links = links_of(entry, expected, machine);
            sketch.links.extend(links.map_err(|problem| bad(format!("rank {}", entry.rank), problem))?);
        }
        check_nics(&sketch, machine).map_err(|problem| bad("[[rank]]".to_owned(), problem))?;
        sketch.links.sort_unstable();
        sketch.links.dedup();
        Ok(sketch)
    }
}

/// The connections from the rank that is expected here, or what is wrong with its entry.
fn links_of(entry: &Rank, expected: u32, machine: &Machine) -> Result<Vec<(u32, u32)>, String> {
    if entry.rank != expected {
        return Err(format!("rank {expected} is expected here: ranks follow each other"));
    }
    let node = machine.node(expected);
    let foreign = |nic: u32| machine.nics.get(nic as usize).is_none_or(|nic| nic.node != node);
    if let Some(nic) = entry.nic.filter(|&nic| foreign(nic)) {
        return Err(format!("nic = {nic} is no NIC of node {node}"));
    }
    let local = entry.local.iter().map(|&to| (to, true));
    let remote = entry.remote.iter().map(|&to| (to, false));
    let mut links = Vec::new();
    for (to, local) in local.chain(remote) {
        if to as usize >= machine.ranks() || to == expected || machine.together(expected, to) != local {
            let (key, what) = if local {
                ("local", "another rank of its node")
            } else {
                ("remote", "a rank of another node")
            };
            return Err(format!("{key} names {to}, which is not {what}"));
        }
        if local && machine.local_rate(expected, to) <= 0.0 {
            return Err(format!("local names {to}, to which it has no link"));
        }
        links.push((expected, to));
    }
    Ok(links)
}

/// Refuses connections between nodes of ranks without a NIC.
fn check_nics(sketch: &Sketch, machine: &Machine) -> Result<(), String> {
    let bare = |rank: u32| sketch.nic_of[rank as usize].is_none();
    let fails = |&(from, to): &(u32, u32)| !machine.together(from, to) && (bare(from) || bare(to));
    if sketch.links.iter().any(fails) {
        return Err("a rank with remote connections needs a nic".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_env::cluster::Cluster;

    fn machine() -> Machine {
        Machine::from_cluster(&Cluster::load("aws_p4d").unwrap(), 2, 8).unwrap()
    }

    #[test]
    fn a_sketch_survives_writing_and_reading() {
        let machine = machine();
        for &mode in Mode::ALL {
            let sketch = Sketch::new(&machine, mode);
            let again = Sketch::from_toml(mode.name(), &sketch.to_toml(&machine), &machine).unwrap();
            assert_eq!(again, sketch);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        let machine = machine();
        let text = Sketch::new(&machine, Mode::Pair).to_toml(&machine);
        let refused = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            Sketch::from_toml("mine.toml", &text.replacen(from, to, 1), &machine).unwrap_err().to_string()
        };
        assert!(refused("remote = [8]", "remote = [3]").contains("mine.toml: rank 0: remote names 3"));
        assert!(refused("nic = 0", "nic = 5").contains("nic = 5 is no NIC of node 0"));
        assert!(refused("local = [1", "local = [0").contains("local names 0"));
        assert!(refused("mode = \"pair\"", "mode = \"pairs\"").contains("pairs"));
        let one = Machine::from_cluster(&Cluster::load("aws_p4d").unwrap(), 1, 8).unwrap();
        assert!(Sketch::from_toml("x", &text, &one).unwrap_err().to_string().contains("16 ranks"));
    }
}
