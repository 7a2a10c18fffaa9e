//! The end of a run: whether it is one, what it measured, and its rows.

use dynamiccl_spec::Collective;

use super::reader::{FAILED, Reader};
use super::section::{Cell, Section};
use crate::measure::collective::{Named, named_by_file};
use crate::measure::error::{Fault, MeasureError};
use crate::measure::{Log, Row};

impl Reader<'_> {
    /// Closes the current run and moves its rows into the log.
    pub(super) fn end_section(&mut self) -> Result<(), MeasureError> {
        self.refuse_unfinished()?;
        let section = std::mem::take(&mut self.section);
        let in_table = self.layout.take().is_some() && !section.trailer;
        if let Some((line, text)) = self.stray.take().filter(|_| in_table) {
            return Err(self.cut_off(line, &text));
        }
        if section.cells.is_empty() {
            return Ok(());
        }
        self.check_run(&section)?;
        match self.collective_of(&section)? {
            Some(collective) => self.take_cells(&section, collective),
            None => self.foreign += section.cells.len(),
        }
        self.warn_about(&section);
        Ok(())
    }

    /// Checks that the run is one run and the same communicator as those before it.
    fn check_run(&mut self, section: &Section) -> Result<(), MeasureError> {
        let mixed = |line, value: String, remedy: &str| {
            Err(MeasureError::Mixed(Fault::new(self.file, line, value, remedy)))
        };
        if let Some(line) = section.duplicate_rank {
            let remedy = "each process ran alone: build nccl-tests with MPI=1 and measure again";
            return mixed(line, "the same rank twice".to_owned(), remedy);
        }
        let seen = (section.ranks(), section.nodes());
        let before = (self.log.ranks, self.log.nodes);
        if !self.log.rows.is_empty() && seen != before {
            let count = |n: Option<u32>| n.map_or("an unknown number of".to_owned(), |n| n.to_string());
            let value = format!("{} ranks after {} ranks", count(seen.0), count(before.0));
            return mixed(section.cells[0].line, value, "split the file by communicator");
        }
        (self.log.ranks, self.log.nodes) = seen;
        let gpus = section.gpus();
        match gpus.len() {
            0 => {}
            1 => self.log.gpu = gpus.first().map(|gpu| (*gpu).to_owned()),
            n => self.warn(format!("{n} different GPUs took part")),
        }
        Ok(())
    }

    /// What the run measured; nothing where it is a test without an NCCL collective.
    fn collective_of(&mut self, section: &Section) -> Result<Option<Collective>, MeasureError> {
        if self.told.is_some() {
            return Ok(self.told);
        }
        let names = [section.named.unwrap_or(Named::Nothing), self.by_command, named_by_file(self.file)];
        match names.into_iter().find(|name| *name != Named::Nothing) {
            Some(Named::Known(collective)) => return Ok(Some(collective)),
            Some(Named::Foreign) => return Ok(None),
            _ => {}
        }
        let Some(collective) = section.by_shape() else {
            let remedy = "name the collective, or name the file after it (all_reduce.log)";
            let fault = Fault::new(self.file, section.cells[0].line, "a table without a name", remedy);
            return Err(MeasureError::WhichCollective(fault));
        };
        self.warn(format!("taken as {collective} because of the table's columns"));
        Ok(Some(collective))
    }

    fn take_cells(&mut self, section: &Section, collective: Collective) {
        let (pair, channels) = (self.forced.pair(), self.forced.channels());
        let (usable, empty): (Vec<&Cell>, Vec<&Cell>) =
            section.cells.iter().partition(|cell| cell.bytes > 0 && cell.time > 0.0);
        self.log.rows.extend(usable.into_iter().map(|cell| Row {
            collective,
            bytes: cell.bytes,
            time_us: cell.time,
            pair,
            channels,
            in_place: Some(cell.in_place),
        }));
        if !empty.is_empty() {
            self.warn(format!("{} {collective} times of no bytes or no time left out", empty.len()));
        }
    }

    fn warn_about(&mut self, section: &Section) {
        if section.wrong > 0 {
            self.warn(format!("{} rows have wrong results (#wrong)", section.wrong));
        }
        if !section.trailer {
            self.warn("the log ends without its averages: the run may not have finished".to_owned());
        }
    }

    pub(super) fn finish(mut self) -> Result<Log, MeasureError> {
        self.end_section()?;
        if self.log.rows.is_empty() {
            let failure = self.log.warnings.iter().find(|warning| warning.starts_with(FAILED));
            let (value, remedy) = if let Some(failure) = failure {
                (failure.as_str(), "repair the run and measure again")
            } else if self.foreign > 0 {
                (
                    "only tests that NCCL has no collective for",
                    "measure all_reduce_perf or another collective",
                )
            } else if self.last_line == 0 {
                ("an empty file", "give the output of nccl-tests")
            } else {
                ("no row of a table", "give the whole output of nccl-tests, with its table")
            };
            return Err(MeasureError::NoRows(Fault::new(self.file, self.last_line, value, remedy)));
        }
        if self.foreign > 0 {
            self.warn(format!("{} times of tests without an NCCL collective left out", self.foreign));
        }
        Ok(self.log)
    }
}
