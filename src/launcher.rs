//! Which rank this is, and where the others meet, by the variables of the launchers. What ranks do then is up to the
//! command.

use std::fmt;

use anyhow::{Context, Result, bail, ensure};
use dynamiccl_spec::launchers;

/// What a command's words say about its ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked<'a> {
    /// This rank.
    pub rank: Option<u32>,
    /// All ranks.
    pub ranks: Option<u32>,
    /// Where rank 0 is reached.
    pub rendezvous: Option<&'a str>,
}

/// Where ranks meet if nobody says; torchrun's own port is its store's, so there it is the next.
const PORT: u16 = 29_477;

/// Which rank of how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// This rank.
    pub rank: u32,
    /// All of them.
    pub ranks: u32,
    /// Who says so.
    pub launcher: Option<&'static str>,
    /// Whether all are known to be on this node.
    pub here: bool,
    /// Which of this node's ranks it is, where that is known.
    pub within: Option<u32>,
    /// How many ranks this node has, where that is known.
    pub local: Option<u32>,
}

impl Place {
    /// By the words, or by the variables of a launcher; alone without either.
    pub fn find(asked: Asked<'_>, get: impl Fn(&str) -> Option<String>) -> Result<Self> {
        if let Some(ranks) = asked.ranks {
            let rank = asked.rank.unwrap_or(0);
            ensure!(
                asked.rank.is_some() || ranks == 1,
                "--ranks {ranks}: say with --rank which of them this is"
            );
            ensure!(rank < ranks, "--rank {rank}: ranks of {ranks} are 0 to {}", ranks - 1);
            return Ok(Place { rank, ranks, launcher: None, here: false, within: None, local: None });
        }
        for launcher in launchers::to_ask(|name| get(name).is_some()) {
            let number = |name: &'static str| get(name).map(|value| (name, value));
            let Some(rank) = number(launcher.rank) else { continue };
            let Some(ranks) = launcher.ranks.iter().find_map(|name| number(name)) else { continue };
            let name = ranks.0;
            let (rank, ranks) = (whole(rank)?, whole(ranks)?);
            ensure!(ranks > 0, "{name}=0: a job has at least one rank; mend it, or unset it");
            if rank >= ranks {
                bail!("{}={rank} with {ranks} ranks: ranks begin at 0; mend it, or unset it", launcher.rank);
            }
            let local = get(launcher.local);
            let here = local.as_deref().is_some_and(|local| local.trim() == ranks.to_string());
            let within = number(launcher.within).map(whole).transpose()?;
            let local = local.and_then(|local| leading(&local));
            return Ok(Place { rank, ranks, launcher: Some(launcher.name), here, within, local });
        }
        Ok(Place { rank: 0, ranks: 1, launcher: None, here: true, within: None, local: None })
    }
}

fn whole((name, value): (&str, String)) -> Result<u32> {
    let read = value.trim().parse().ok();
    read.with_context(|| format!("{name}={value}: not a whole number; mend it, or unset it"))
}

/// The tasks of the first node in Slurm's list, `4(x2),3`; other launchers say a number of this node.
fn leading(list: &str) -> Option<u32> {
    let list = list.trim();
    list.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok().filter(|tasks| *tasks > 0)
}

/// Where rank 0 is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendezvous {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Rendezvous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Rendezvous {
    /// By the words, or by what the launcher says.
    pub fn find(asked: Asked<'_>, place: &Place, get: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        if let Some(word) = asked.rendezvous {
            return Rendezvous::parse(word)
                .with_context(|| format!("--rendezvous {word}: write it like node1:{PORT}"));
        }
        if let Some(host) = get("MASTER_ADDR") {
            let port = match get("MASTER_PORT") {
                Some(port) => next(&port).with_context(|| {
                    format!("MASTER_PORT={port}: not a port, which is 1 to 65535; mend it, or unset it")
                })?,
                None => PORT,
            };
            return Ok(Rendezvous { host, port });
        }
        let host = if place.here { Some("127.0.0.1".to_owned()) } else { None };
        let nodes = || get("SLURM_STEP_NODELIST").or_else(|| get("SLURM_JOB_NODELIST"));
        let host =
            host.or_else(|| nodes().filter(|_| place.launcher == Some("srun")).map(|list| first(&list)));
        let host = host.with_context(|| {
            format!("where rank 0 is, nobody says: give --rendezvous HOST:{PORT} with the host of rank 0")
        })?;
        Ok(Rendezvous { host, port: PORT })
    }

    fn parse(word: &str) -> Option<Self> {
        let (host, port) = word.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().ok().filter(|port| *port > 0)?;
        (!host.is_empty()).then(|| Rendezvous { host: host.to_owned(), port })
    }
}

fn next(port: &str) -> Option<u16> {
    let port: u16 = port.trim().parse().ok().filter(|port| *port > 0)?;
    Some(port.checked_add(1).unwrap_or(port - 1))
}

/// The first node of Slurm's list: `gpu[03-07,09],login` begins with gpu03. Tasks begin there.
fn first(list: &str) -> String {
    let Some((name, rest)) = list.split_once('[').filter(|(name, _)| !name.contains(',')) else {
        return list.split(',').next().unwrap_or_default().to_owned();
    };
    let number = rest.split([',', '-', ']']).next().unwrap_or_default();
    let behind = rest.split_once(']').map_or("", |(_, behind)| behind.split(',').next().unwrap_or_default());
    format!("{name}{number}{behind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `--rank 1 --ranks 2 --rendezvous h:5`, as far as it is there.
    fn asked(words: &str) -> Asked<'_> {
        let mut asked = Asked::default();
        let words: Vec<&str> = words.split_whitespace().collect();
        for pair in words.chunks(2) {
            match pair[0] {
                "--rank" => asked.rank = pair[1].parse().ok(),
                "--ranks" => asked.ranks = pair[1].parse().ok(),
                _ => asked.rendezvous = Some(pair[1]),
            }
        }
        asked
    }

    type Set<'a> = &'a [(&'a str, &'a str)];

    fn get(set: Set<'_>) -> impl Fn(&str) -> Option<String> + Copy {
        move |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    fn meeting(words: &str, set: Set<'_>) -> Result<(u32, u32, String)> {
        let place = Place::find(asked(words), get(set))?;
        let rendezvous = Rendezvous::find(asked(words), &place, get(set))?;
        Ok((place.rank, place.ranks, rendezvous.to_string()))
    }

    #[test]
    fn every_launcher_is_understood() {
        let torch = [("RANK", "3"), ("WORLD_SIZE", "16"), ("MASTER_ADDR", "n1"), ("MASTER_PORT", "29500")];
        assert_eq!(meeting("", &torch).unwrap(), (3, 16, "n1:29501".to_owned()));
        let mpi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        assert_eq!(meeting("", &mpi).unwrap(), (1, 2, format!("127.0.0.1:{PORT}")));
        let within = |set| Place::find(asked(""), get(set)).unwrap().within;
        assert_eq!(
            (within(&mpi), within(&[&mpi[..], &[("OMPI_COMM_WORLD_LOCAL_RANK", "1")]].concat())),
            (None, Some(1))
        );
        let slurm = [("SLURM_PROCID", "9"), ("SLURM_NTASKS", "16"), ("SLURM_JOB_NODELIST", "gpu[03-04]")];
        assert_eq!(meeting("", &slurm).unwrap(), (9, 16, format!("gpu03:{PORT}")));
        let one = [("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_TASKS_PER_NODE", "2")];
        assert_eq!(meeting("", &one).unwrap(), (1, 2, format!("127.0.0.1:{PORT}")));
        let pmi = [("PMI_RANK", "0"), ("PMI_SIZE", "4")];
        assert_eq!(meeting("--rendezvous [::1]:7", &pmi).unwrap(), (0, 4, "::1:7".to_owned()));
        let error = meeting("", &pmi).unwrap_err().to_string();
        assert!(error.contains("--rendezvous HOST:29477"), "{error}");
        let local = [("MPI_LOCALNRANKS", "2"), ("MPI_LOCALRANKID", "1")];
        let proxy = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_LOCALID", "0")];
        let hydra = [&[("PMI_RANK", "1"), ("PMI_SIZE", "2")], &local[..], &proxy[..]].concat();
        let place = Place::find(asked(""), get(&hydra)).unwrap();
        assert_eq!((place.rank, place.ranks, place.within), (1, 2, Some(1)));
        assert_eq!((place.launcher, place.here), (Some("mpiexec"), true));
        // `srun --mpi=pmi2` sets those of PMI as well.
        let srun = [&[("PMI_RANK", "0"), ("PMI_SIZE", "1")], &slurm[..]].concat();
        assert_eq!(Place::find(asked(""), get(&srun)).unwrap().launcher, Some("srun"));
        assert_eq!(Place::find(asked(""), get(&[])).unwrap().ranks, 1);
        // A batch script's own step has a rank and no ranks, or is told to look at itself.
        assert_eq!(Place::find(asked("--ranks 1"), get(&slurm)).unwrap().ranks, 1);
        assert_eq!(meeting("--rank 2 --ranks 4 --rendezvous h:5", &torch).unwrap(), (2, 4, "h:5".to_owned()));
    }

    #[test]
    fn what_is_no_rank_is_refused() {
        for (words, set, part) in [
            ("", &[("RANK", "x"), ("WORLD_SIZE", "2")][..], "RANK=x"),
            ("", &[("RANK", "2"), ("WORLD_SIZE", "2")], "RANK=2 with 2 ranks"),
            ("", &[("RANK", "0"), ("WORLD_SIZE", "0")], "WORLD_SIZE=0: a job has at least one rank"),
            ("--ranks 4", &[], "--rank"),
            ("--ranks 4 --rank 4", &[], "--rank 4"),
            ("--ranks 2 --rank 0 --rendezvous node1", &[], "--rendezvous node1"),
            ("--ranks 2 --rank 0 --rendezvous node1:0", &[], "node1:0"),
            (
                "--ranks 2 --rank 0",
                &[("MASTER_ADDR", "h"), ("MASTER_PORT", "99999")],
                "MASTER_PORT=99999: not a port",
            ),
        ] {
            let error = format!("{:#}", meeting(words, set).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_first_node_of_a_list() {
        for (list, node) in [
            ("gpu[03-07,09],login", "gpu03"),
            ("a,b", "a"),
            ("n7", "n7"),
            ("r[1-2]n", "r1n"),
            ("a,b[1-2]", "a"),
        ] {
            assert_eq!(first(list), node);
        }
        assert_eq!(["4(x2),3", "8", " 2 ", "", "x"].map(leading), [Some(4), Some(8), Some(2), None, None]);
        assert_eq!((next("29500"), next("65535"), next("0")), (Some(29501), Some(65534), None));
    }
}
