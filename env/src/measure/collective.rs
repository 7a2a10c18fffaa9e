//! Telling which collective a log measured.
//!
//! nccl-tests prints it since 2.16.7. Before that the program's name, the file's name, or the shape
//! of the table must do: which of `redop` and `root` mean something, and the ratio of bus to
//! algorithm bandwidth.

use std::path::Path;

use dynamiccl_spec::Collective;

/// Program and file names by which people know the tests, the longer ones first.
const NAMES: [(&str, Option<Collective>); 12] = [
    ("reducescatter", Some(Collective::ReduceScatter)),
    ("allreduce", Some(Collective::AllReduce)),
    ("allgather", Some(Collective::AllGather)),
    ("alltoallv", None),
    ("alltoall", Some(Collective::AllToAll)),
    ("hypercube", None),
    ("broadcast", Some(Collective::Broadcast)),
    ("sendrecv", Some(Collective::SendRecv)),
    ("scatter", None),
    ("gather", None),
    ("bcast", Some(Collective::Broadcast)),
    ("reduce", Some(Collective::Reduce)),
];

/// What a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// One of the collectives that we have a word for.
    Known(Collective),
    /// A test that NCCL has no such collective for.
    Foreign,
    /// Nothing, or two things.
    Nothing,
}

/// What a program's or a file's name says, be it `all_reduce_perf_mpi` or `n8-AllReduce.log`.
pub(super) fn named(name: &str) -> Named {
    let mut rest: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    rest.make_ascii_lowercase();
    let mut found = Named::Nothing;
    for (word, collective) in NAMES {
        if !rest.contains(word) {
            continue;
        }
        if found != Named::Nothing {
            return Named::Nothing;
        }
        found = collective.map_or(Named::Foreign, Named::Known);
        rest = rest.replace(word, "-");
    }
    found
}

/// What a file's name says.
pub(super) fn named_by_file(file: &Path) -> Named {
    file.file_name().map_or(Named::Nothing, |name| named(&name.to_string_lossy()))
}

/// The test program named in a shell line such as `mpirun -np 8 ./build/all_reduce_perf -b 8`.
pub(super) fn named_by_command(line: &str) -> Named {
    let program = |word: &&str| word.contains("_perf") && !word.starts_with('#');
    line.split_whitespace().find(program).map_or(Named::Nothing, |word| {
        let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
        named(name)
    })
}

/// What a table's own shape shows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Shape {
    /// Whether a reduction operation is given.
    pub(super) redop: bool,
    /// Whether a root rank is given.
    pub(super) root: bool,
    /// Whether the size counts every rank's part.
    pub(super) sharded: Option<bool>,
    /// Bus bandwidth ÷ algorithm bandwidth of the largest row.
    pub(super) bus_ratio: Option<f64>,
    /// Ranks, where known.
    pub(super) ranks: Option<u32>,
}

impl Shape {
    /// The only collective that has this shape, if there is only one.
    pub(super) fn collective(self) -> Option<Collective> {
        let candidates: &[Collective] = match (self.redop, self.root) {
            (true, true) => &[Collective::Reduce],
            // sendrecv prints an operation too, although it has none.
            (true, false) => &[Collective::AllReduce, Collective::ReduceScatter, Collective::SendRecv],
            // Scatter and gather look the same, but their ratio differs.
            (false, true) => &[Collective::Broadcast],
            (false, false) => &[Collective::AllGather, Collective::AllToAll, Collective::SendRecv],
        };
        let mut fitting = candidates.iter().copied().filter(|&c| self.fits(c));
        let first = fitting.next()?;
        fitting.next().is_none().then_some(first)
    }

    /// Whether the bandwidths agree with this collective, as far as they are known.
    fn fits(self, collective: Collective) -> bool {
        let sharded = collective.is_sharded() || collective == Collective::AllToAll;
        if self.sharded.is_some_and(|seen| seen != sharded) {
            return false;
        }
        match (self.bus_ratio, self.ranks) {
            (Some(ratio), Some(ranks)) => (ratio - collective.bus_factor(ranks)).abs() < 0.02,
            // Only allreduce moves more than its size, and never less.
            (Some(ratio), None) if collective == Collective::AllReduce => ratio > 0.98,
            (Some(ratio), None) => ratio < 1.02,
            (None, _) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_every_spelling() {
        for (name, collective) in [
            ("all_reduce_perf", Collective::AllReduce),
            ("all_reduce_perf_mpi", Collective::AllReduce),
            ("reduce_perf", Collective::Reduce),
            ("reduce_scatter_perf", Collective::ReduceScatter),
            ("alltoall_perf", Collective::AllToAll),
            ("nccl-ReduceScatter_8n.log", Collective::ReduceScatter),
        ] {
            assert_eq!(named(name), Named::Known(collective), "{name}");
        }
        assert_eq!(named("gather_perf"), Named::Foreign);
        assert_eq!(named("alltoallv_perf"), Named::Foreign);
        assert_eq!(named("slurm-1234.out"), Named::Nothing);
        assert_eq!(named("allreduce_and_allgather.txt"), Named::Nothing);
        let line = "$ mpirun -np 8 ./build/all_gather_perf -b 8 -e 1G";
        assert_eq!(named_by_command(line), Named::Known(Collective::AllGather));
    }

    #[test]
    fn shapes_decide_only_where_one_collective_is_left() {
        let shape = |redop, root, bus_ratio, ranks| {
            Shape { redop, root, sharded: None, bus_ratio, ranks }.collective()
        };
        assert_eq!(shape(true, true, None, None), Some(Collective::Reduce));
        assert_eq!(shape(true, false, Some(1.75), Some(8)), Some(Collective::AllReduce));
        assert_eq!(shape(true, false, Some(0.875), Some(8)), Some(Collective::ReduceScatter));
        assert_eq!(shape(true, false, Some(1.0), Some(2)), None, "allreduce of two and sendrecv look alike");
        assert_eq!(shape(true, false, None, Some(8)), None);
        assert_eq!(shape(false, false, Some(0.875), Some(8)), None, "allgather and alltoall look alike");
        assert_eq!(shape(false, false, Some(1.0), Some(8)), Some(Collective::SendRecv));
    }
}
