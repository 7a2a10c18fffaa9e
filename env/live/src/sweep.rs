//! A sweep: every call with every setting, and again where it is unsure.
//!
//! First all cells get the same rounds, those that the file lacks before those of which it has too few: these are measured
//! anew, and take the place of what is there once they are better. Then those that were measured while the machine was not as usual are measured
//! anew, and those whose best is still unsure get more rounds, in turn, as long as the budget lasts: what disturbs the
//! machine for some seconds is outvoted by rounds from another time.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cell::{Cell, Tries};
use crate::crew::LiveError;
use crate::drift::{Drift, Reference};
use crate::measure::{CellTimes, Effort, Meter, SURE};
use crate::sheet::Sheet;

/// What is swept, and how much is done for it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The calls.
    pub cells: Vec<Cell>,
    /// The settings.
    pub tries: Tries,
    /// Rounds.
    pub effort: Effort,
    /// Threads per block that the workers were started with; 0 for NCCL's own.
    pub threads: u32,
    /// After this no cell is measured again.
    pub budget: Duration,
}

impl Plan {
    /// Whether a file has as many rounds of a call as every one is to get: a sweep may have been stopped before.
    pub fn is_done(&self, sheet: &Sheet, cell: Cell) -> bool {
        sheet.rounds(self.threads, cell).is_some_and(|rounds| rounds >= self.enough())
    }

    /// Rounds from which on a call is not measured again by another run.
    fn enough(&self) -> u32 {
        SURE.min(self.effort.most)
    }

    /// The calls that are to be measured: those that a file lacks, and then those of which it has too few rounds.
    fn due(&self, sheet: &Sheet) -> [Vec<Cell>; 2] {
        let all = self.cells.iter().copied().filter(|cell| !self.is_done(sheet, *cell));
        let (known, lacking) = all.partition(|cell| sheet.rounds(self.threads, *cell).is_some());
        [lacking, known]
    }

    /// How many of its calls are not known as surely as wished: of those measured now, and of those of which a file has rounds.
    fn unsure(&self, sheet: &Sheet, measured: &[CellTimes]) -> usize {
        let is_unsure = |cell: &&Cell| match measured.iter().find(|times| times.cell == **cell) {
            Some(times) => times.is_unsure(&self.effort),
            None => sheet.rounds(self.threads, **cell).is_some_and(|rounds| rounds < SURE),
        };
        self.cells.iter().filter(is_unsure).count()
    }
}

/// What was measured now.
#[derive(Debug, Clone, PartialEq)]
pub struct Swept {
    /// The cells.
    pub cells: Vec<CellTimes>,
    /// How the reference changed; none without a cell.
    pub drift: Option<Drift>,
    /// What was measured again.
    pub again: Again,
}

/// What was measured again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Again {
    /// Cells that were measured anew, for the machine had not been as usual.
    pub anew: usize,
    /// Cells of which that is still so.
    pub off: usize,
    /// Cells that got more rounds.
    pub more: usize,
    /// Cells whose best is still not compared as surely as wished, those with too few rounds that were not measured again
    /// included.
    pub unsure: usize,
}

impl std::ops::Add for Again {
    type Output = Again;

    fn add(self, other: Again) -> Again {
        Again {
            anew: self.anew + other.anew,
            off: self.off + other.off,
            more: self.more + other.more,
            unsure: self.unsure + other.unsure,
        }
    }
}

/// Measures all cells of which the sheet has not enough; `seen` hears of every one.
pub fn sweep(
    meter: &mut Meter<'_>,
    plan: &Plan,
    sheet: &mut Sheet,
    mut seen: impl FnMut(Cell),
) -> Result<Swept, LiveError> {
    let until = Instant::now() + plan.budget;
    let has_time = || Instant::now() < until;
    let [lacking, known] = plan.due(sheet);
    let mut swept = Swept { cells: Vec::new(), drift: None, again: Again::default() };
    let due = if lacking.is_empty() && !has_time() { Vec::new() } else { [&lacking[..], &known].concat() };
    let Some(mut reference) = Reference::begin(meter, &due)? else {
        swept.again.unsure = plan.unsure(sheet, &swept.cells);
        return Ok(swept);
    };
    let better = Effort { least: plan.effort.least.max(plan.enough()), ..plan.effort };
    let first = lacking.into_iter().map(|cell| (cell, plan.effort));
    let again = known.into_iter().map(|cell| (cell, better)).take_while(|_| has_time());
    for (cell, effort) in first.chain(again) {
        let times = meter.begin(cell, &plan.tries, &effort)?;
        sheet.put(plan.threads, &times)?;
        swept.cells.push(times);
        reference.look(meter)?;
        seen(cell);
    }
    let mut repeat = Repeat { plan, until, swept: &mut swept };
    repeat.anew(meter, &mut reference, sheet)?;
    repeat.more(meter, sheet)?;
    swept.again.unsure = plan.unsure(sheet, &swept.cells);
    swept.drift = Some(reference.drift());
    Ok(swept)
}

struct Repeat<'a> {
    plan: &'a Plan,
    until: Instant,
    swept: &'a mut Swept,
}

impl Repeat<'_> {
    fn has_time(&self) -> bool {
        Instant::now() < self.until
    }

    /// Cells beside a reference that was off are measured once more from the beginning.
    fn anew(
        &mut self,
        meter: &mut Meter<'_>,
        reference: &mut Reference,
        sheet: &mut Sheet,
    ) -> Result<(), LiveError> {
        let drift = reference.drift();
        let off: Vec<usize> = (0..self.swept.cells.len()).filter(|&at| drift.is_off(at)).collect();
        for at in off {
            if !self.has_time() {
                self.swept.again.off += 1;
                continue;
            }
            reference.look(meter)?;
            let before = reference.looks() - 1;
            let times = &mut self.swept.cells[at];
            let rounds = times.rounds() as u32;
            times.clear();
            meter.more_by(times, rounds)?;
            reference.look(meter)?;
            sheet.put(self.plan.threads, times)?;
            self.swept.again.anew += 1;
            self.swept.again.off += usize::from(reference.drift().is_off(before));
        }
        Ok(())
    }

    /// Cells whose best is unsure get more rounds in turn.
    fn more(&mut self, meter: &mut Meter<'_>, sheet: &mut Sheet) -> Result<(), LiveError> {
        let effort = &self.plan.effort;
        let mut helped = vec![false; self.swept.cells.len()];
        loop {
            let unsure: Vec<usize> =
                (0..self.swept.cells.len()).filter(|&at| self.swept.cells[at].needs_more(effort)).collect();
            if unsure.is_empty() || !self.has_time() {
                break;
            }
            for at in unsure {
                if self.has_time() {
                    meter.more(&mut self.swept.cells[at], effort)?;
                    sheet.put(self.plan.threads, &self.swept.cells[at])?;
                    helped[at] = true;
                }
            }
        }
        self.swept.again.more = helped.into_iter().filter(|helped| *helped).count();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use dynamiccl_spec::Collective;

    use super::*;
    use crate::sheet::Columns;

    /// A file may have cells that there was no time to measure again.
    #[test]
    fn what_is_not_measured_again_is_as_unsure_as_before() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.csv");
        let about = r#"{"ranks": 2, "link": "loopback", "shared": true, "gpu": "G", "cuda": "12.8", "nccl": "2.28.3",
                        "threads": [], "load": 0}"#;
        let header = "ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us,max_us,nccl_model_us,rounds,low_us,\
                      high_us";
        let line =
            |bytes, rounds| format!("2,loopback,allreduce,{bytes},default,default,,9,9,9,,{rounds},9,9");
        fs::write(&file, [header.to_owned(), line(1024, 2), line(4096, 6)].join("\n") + "\n").unwrap();
        fs::write(dir.path().join("s.csv.about.json"), about).unwrap();
        let sheet = Sheet::open(&file, serde_json::from_str(about).unwrap(), Columns::default()).unwrap();
        let cells = [1024, 4096, 16_384].map(|bytes| Cell { collective: Collective::AllReduce, bytes });
        let plan = Plan {
            cells: cells.to_vec(),
            tries: Tries { channels: Vec::new(), chunks: Vec::new() },
            effort: Effort { least: 2, most: 25, bound: 0.03 },
            threads: 0,
            budget: Duration::ZERO,
        };
        assert_eq!(plan.due(&sheet), [vec![cells[2]], vec![cells[0]]]);
        assert_eq!(plan.unsure(&sheet, &[]), 1);
        // Where no more are asked for, two are enough, and say as little.
        let few = Plan { effort: Effort { most: 2, ..plan.effort }, ..plan };
        assert_eq!((few.due(&sheet), few.unsure(&sheet, &[])), ([vec![cells[2]], vec![]], 1));
    }
}
