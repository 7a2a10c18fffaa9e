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
    /// Cells whose best is still not compared as surely as wished.
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
    let [lacking, known] = plan.due(sheet);
    let mut swept = Swept { cells: Vec::new(), drift: None, again: Again::default() };
    let reference = Reference::begin(meter, &[&lacking[..], &known].concat())?;
    let Some(mut reference) = reference else { return Ok(swept) };
    let better = Effort { least: plan.effort.least.max(plan.enough()), ..plan.effort };
    let first = lacking.into_iter().map(|cell| (cell, plan.effort));
    let again = known.into_iter().map(|cell| (cell, better)).take_while(|_| Instant::now() < until);
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
        let unsure = self.swept.cells.iter().filter(|times| times.is_unsure(effort));
        self.swept.again.unsure = unsure.count();
        self.swept.again.more = helped.into_iter().filter(|helped| *helped).count();
        Ok(())
    }
}
