//! Who starts the ranks: this command, or a launcher that has started one such command for each of them.

use anyhow::{Context, Result, bail, ensure};
use dynamiccl_live::launch::Among;
use dynamiccl_live::worker::SECRET;

use crate::args::JobArgs;
use crate::launcher::{Asked, Place, Rendezvous};

/// A secret that is shorter can be guessed.
const SHORTEST: usize = 16;
/// Only tasks of a step have this; a batch script, which looks like its first task, does not.
const STEP: &str = "SLURM_STEP_NUM_TASKS";

/// Where this process stands among the ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// All ranks.
    pub ranks: u32,
    /// Those of rank 0's machine, as far as one knows.
    pub beside: u32,
    /// Under a launcher: which of them this is.
    pub among: Option<Among>,
}

impl Post {
    /// By the words, or by the variables of a launcher.
    pub fn find(args: &JobArgs, get: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let asked = Asked { rendezvous: args.rendezvous.as_deref(), ..Asked::default() };
        let place = Place::find(asked, &get)?;
        let launcher = place.launcher.filter(|_| place.ranks > 1);
        match (args.ranks, launcher) {
            (None, None) => {
                bail!(
                    "--ranks: say how many to start, or let mpirun, torchrun or srun start this on every rank"
                )
            }
            (Some(ranks), Some(launcher)) if launcher != "srun" || get(STEP).is_some() => bail!(
                "--ranks {ranks}: {launcher} has started {} ranks already, and each would start {ranks} more; leave \
                 --ranks away",
                place.ranks
            ),
            (Some(ranks), _) => Ok(Post { ranks, beside: ranks, among: None }),
            (None, Some(launcher)) => Post::under(launcher, args, asked, place, get),
        }
    }

    fn under(
        launcher: &str,
        args: &JobArgs,
        asked: Asked<'_>,
        place: Place,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        ensure!(args.link.is_none(), "--link: only ranks that are started here can be linked; give --ranks");
        let Rendezvous { host, port } = Rendezvous::find(asked, &place, &get)?;
        let secret = get(SECRET).filter(|secret| secret.len() >= SHORTEST).with_context(|| {
            format!(
                "{SECRET}: ranks of {launcher} know each other by a secret of at least {SHORTEST} letters; export \
                 {SECRET}=$(head -c 24 /dev/urandom | base64) first{}",
                if launcher.starts_with("mpi") { format!(", and pass it on with -x {SECRET}") } else { String::new() }
            )
        })?;
        let Place { rank, ranks, here, within, local, .. } = place;
        let (within, beside) = (within.unwrap_or(rank), local.unwrap_or(ranks));
        Ok(Post { ranks, beside, among: Some(Among { rank, within, here, host, port, secret }) })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command, LiveCommand};

    fn post(words: &str, set: &[(&str, &str)]) -> Result<Post> {
        let words = format!("dynamiccl live sweep --out s.csv {words}");
        let Command::Live(live) = Args::try_parse_from(words.split_whitespace())?.command else {
            panic!("live")
        };
        let LiveCommand::Sweep(sweep) = live.command else { panic!("sweep") };
        Post::find(&sweep.job, |name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    const WORD: (&str, &str) = (SECRET, "sixteen letters.");

    #[test]
    fn ranks_are_started_here_or_were_by_a_launcher() {
        assert_eq!(post("--ranks 4", &[]).unwrap(), Post { ranks: 4, beside: 4, among: None });
        let batch = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")];
        assert_eq!(post("--ranks 4", &batch).unwrap().ranks, 4, "a batch script is no rank");
        let torch = [
            ("RANK", "5"),
            ("WORLD_SIZE", "8"),
            ("LOCAL_RANK", "1"),
            ("LOCAL_WORLD_SIZE", "4"),
            ("MASTER_ADDR", "n1"),
            ("MASTER_PORT", "29500"),
            WORD,
        ];
        let several = post("", &torch).unwrap();
        assert_eq!((several.ranks, several.beside), (8, 4), "two machines");
        let among = several.among.unwrap();
        assert_eq!(
            (among.rank, among.within, among.here, among.address()),
            (5, 1, false, "n1:29501".to_owned())
        );
        let mpi = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4"), WORD];
        let among = post("--rendezvous [fe80::1]:7", &mpi).unwrap().among.unwrap();
        assert_eq!((among.rank, among.within, among.address()), (3, 3, "[fe80::1]:7".to_owned()));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let mpi = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        let step = [("SLURM_PROCID", "0"), (STEP, "8")];
        for (words, set, part) in [
            ("", &[][..], "mpirun, torchrun or srun"),
            ("--ranks 2", &mpi, "mpirun has started 2 ranks already"),
            ("--ranks 2", &step, "srun has started 8 ranks already"),
            ("", &mpi, "-x DYNAMICCL_LIVE_SECRET"),
            ("", &[&mpi[..], &[(SECRET, "short")]].concat(), "at least 16 letters"),
        ] {
            let error = format!("{:#}", post(words, set).unwrap_err());
            assert!(error.contains(part), "{error}");
        }
    }
}
