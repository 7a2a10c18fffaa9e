//! The best settings that a recorded sweep knows, of ranks that were measured as these are.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dynamiccl_env::measure::sweep::{self, Link, Setting, Sweep, SweepRow};
use dynamiccl_env::measure::{Circumstances, Clock};
use dynamiccl_live::cell::Cell;
use dynamiccl_spec::{ChannelChoice, Order};

use crate::args::JobArgs;
use crate::words::counted;

/// What links the ranks of a job.
pub fn link(job: &JobArgs) -> Result<Link> {
    match &job.link {
        Some(word) => word.parse().with_context(|| format!("--link {word}")),
        None if job.share_gpu => Ok(Link::Loopback),
        None => Ok(Link::Machine),
    }
}

/// What must be alike before the best setting of one measurement says anything of another.
#[derive(Debug, Clone, PartialEq)]
pub struct How {
    /// Ranks.
    pub ranks: u32,
    /// What links them.
    pub link: Link,
    /// Threads per block; none for NCCL's own.
    pub threads: Option<u32>,
    /// Whose clock counts.
    pub clock: Clock,
    /// What else is the case.
    pub circumstances: Circumstances,
}

impl How {
    fn of(sweep: &Sweep) -> Self {
        let &Sweep { ranks, link, threads, ref about, .. } = sweep;
        How { ranks, link, threads, clock: about.clock, circumstances: about.circumstances.clone() }
    }

    fn is_like(&self, other: &How) -> bool {
        let exact = |how: &How| (how.ranks, how.link, how.threads, how.clock);
        exact(self) == exact(other) && self.circumstances.agree(&other.circumstances)
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clock = if self.clock == Clock::First { "first" } else { "slowest" };
        write!(f, "{}, ", counted(self.ranks, "rank"))?;
        match self.link {
            Link::Loopback => f.write_str("loopback")?,
            Link::Rate(rate) => write!(f, "links of {} Gbit", rate.0 * 8.0)?,
            Link::Machine => f.write_str("a GPU each")?,
        }
        self.threads.map_or(Ok(()), |threads| write!(f, ", {threads} threads"))?;
        write!(f, ", clock {clock}")?;
        let unusual = self.circumstances.to_string();
        if unusual.is_empty() { Ok(()) } else { write!(f, ", {unusual}") }
    }
}

/// A recorded sweep of ranks like these.
#[derive(Debug)]
pub struct Known {
    file: PathBuf,
    how: How,
    /// How the file's ranks were measured that are not like these.
    others: Vec<How>,
    rows: Vec<SweepRow>,
}

impl Known {
    /// Reads what a file knows of ranks like these.
    pub fn read(file: &Path, how: How) -> Result<Self> {
        let sweeps = sweep::read(file)?;
        let (alike, others): (Vec<&Sweep>, Vec<&Sweep>) =
            sweeps.iter().partition(|sweep| How::of(sweep).is_like(&how));
        let rows = alike.into_iter().flat_map(|sweep| sweep.rows.iter().copied()).collect();
        let mut known: Vec<How> = Vec::new();
        for other in others.into_iter().map(How::of) {
            if !known.contains(&other) {
                known.push(other);
            }
        }
        Ok(Known { file: file.to_owned(), how, others: known, rows })
    }

    /// The best of a call.
    pub fn best(&self, cell: Cell) -> Result<Order> {
        let rows =
            self.rows.iter().filter(|row| row.collective == cell.collective && row.bytes == cell.bytes);
        let orders = rows.filter_map(|row| match row.setting {
            Setting::Knobs { pair, channels } => {
                let channels = ChannelChoice::of(u8::try_from(channels.unwrap_or(0)).ok()?)?;
                Some((Order::Knobs { pair, channels, chunk: row.chunk }, row.median_us))
            }
            Setting::Default => None,
        });
        let best = orders.min_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(order, _)| order).with_context(|| {
            let others: Vec<String> = self.others.iter().map(ToString::to_string).collect();
            let others = match others.as_slice() {
                [] => String::new(),
                others => format!("; other calls of the file are with {}", others.join(" and with ")),
            };
            format!(
                "--sweep {}: it has no setting of {cell} with {}{others}; name a sweep that has, or leave --sweep out",
                self.file.display(),
                self.how
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::Collective;

    use super::*;

    /// What ranks took that ran compute beside their calls, or that NCCL gave other buffers, is not what others take.
    #[test]
    fn a_sweep_of_other_circumstances_knows_nothing_of_a_call() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.csv");
        let lines = "ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us\n\
                     4,loopback,allreduce,4096,ring,LL,1,20,20\n";
        std::fs::write(&file, lines).unwrap();
        let how = || How {
            ranks: 4,
            link: Link::Loopback,
            threads: None,
            clock: Clock::First,
            circumstances: Circumstances { variables: Some([].into()), ..Circumstances::default() },
        };
        let best = |about: &str| {
            std::fs::write(folder.path().join("s.csv.about.json"), about).unwrap();
            Known::read(&file, how())?.best(Cell { collective: Collective::AllReduce, bytes: 4096 })
        };
        for about in ["{}", r#"{"load": 0, "mps": true, "variables": {"NCCL_VERSION": "2.28.3-1"}}"#] {
            assert!(best(about).is_ok(), "{about}");
        }
        for (about, words) in [
            (r#"{"load": 66}"#, "with 4 ranks, loopback, clock first, compute on 66 multiprocessors beside"),
            (r#"{"variables": {"NCCL_BUFFSIZE": "65536"}}"#, "clock first, NCCL_BUFFSIZE=65536;"),
        ] {
            let error = best(about).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
