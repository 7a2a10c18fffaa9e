//! The calls of a run, as so many ranks can make them.

use anyhow::{Result, bail};
use dynamiccl_live::cell::{self, Cell};
use dynamiccl_spec::Collective;

use crate::args::{CallsArgs, FLOAT};

/// Every collective with every size; an error where some ranks would have no part of one.
pub fn grid(calls: &CallsArgs, ranks: u32) -> Result<Vec<Cell>> {
    let least = u64::from(ranks) * FLOAT;
    let cells = cell::grid(&calls.collectives, &calls.sizes.0);
    let parted = |cell: &&Cell| matches!(cell.collective, Collective::AllGather | Collective::ReduceScatter);
    if let Some(small) = cells.iter().filter(parted).find(|cell| cell.bytes < least) {
        bail!(
            "--sizes {}: of {} every one of {ranks} ranks needs a float at least; give {least} or more",
            small.bytes,
            small.collective
        );
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command, LiveCommand};

    fn cells(collectives: &str, ranks: u32) -> Result<Vec<Cell>> {
        let words = format!("dynamiccl live sweep --out s.csv --sizes 256 --collectives {collectives}");
        let Command::Live(live) = Args::try_parse_from(words.split_whitespace())?.command else {
            panic!("live")
        };
        let LiveCommand::Sweep(sweep) = live.command else { panic!("sweep") };
        grid(&sweep.calls, ranks)
    }

    #[test]
    fn a_part_is_a_float_at_least() {
        assert_eq!(cells("allreduce,allgather", 64).unwrap().len(), 2);
        let error = cells("allreduce,allgather", 65).unwrap_err().to_string();
        assert!(error.contains("--sizes 256: of allgather") && error.contains("give 260 or more"), "{error}");
        assert_eq!(cells("allreduce", 1024).unwrap().len(), 1);
    }
}
