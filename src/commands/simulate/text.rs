//! The result of `simulate` as text: a table that reads like those of nccl-tests, and a verdict.

use std::fmt;

use dynamiccl_spec::{Bytes, Micros};

use super::report::{Own, Report, Schedule, Timed};
use crate::table::{Column, Table};
use crate::words::counted;

/// Bytes a µs in one GB/s.
const PER_MICRO: f64 = 1e3;

const COLUMNS: [Column; 11] = [
    Column::left("algo"),
    Column::left("proto"),
    Column::right("nch"),
    Column::right("nthr"),
    Column::right("chunk").unit("(B)"),
    Column::right("predicted").unit("(us)"),
    Column::right("time").unit("(us)"),
    Column::right("algbw").unit("(GB/s)"),
    Column::right("busbw").unit("(GB/s)"),
    Column::right("vs nccl"),
    Column::left(""),
];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header(f)?;
        let mut table = Table::new(COLUMNS);
        for timed in self.listed() {
            table.row(self.row(timed));
        }
        writeln!(f, "# of each algorithm, protocol and channel count, the fastest threads and chunk")?;
        write!(f, "#\n{table}")?;
        self.summary(f)
    }
}

impl Report {
    fn header(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { cluster, description, tier, collective, bytes, .. } = self;
        let (nodes, ranks) = (counted(self.nodes, "node"), counted(self.ranks, "rank"));
        writeln!(f, "# {cluster}: {description}")?;
        writeln!(f, "# {nodes}, {ranks}, tier {tier}; {collective} of {}", size(*bytes))?;
        let world = self.world.map_or("nominal".to_owned(), |seed| seed.to_string());
        write!(f, "# simulated, world {world}, constants {}; NCCL {}", self.constants, self.nccl_version)?;
        for assignment in &self.env {
            write!(f, " {assignment}")?;
        }
        writeln!(f)?;
        if let Some(file) = &self.graph {
            writeln!(f, "# NCCL's graphs from {file}")?;
        }
        for note in &self.notes {
            writeln!(f, "# note: {note}")?;
        }
        Ok(())
    }

    /// The fastest threads and chunk of each pair and channel count, and NCCL's own choice.
    fn listed(&self) -> Vec<&Timed> {
        let mut listed: Vec<&Timed> = Vec::new();
        for timed in &self.knobs {
            let known = |other: &&Timed| (other.pair, other.nchannels) == (timed.pair, timed.nchannels);
            if timed.is_launch_of(&self.nccl) || (listed.len() < self.top && !listed.iter().any(known)) {
                listed.push(timed);
            }
        }
        listed
    }

    fn row(&self, timed: &Timed) -> [String; COLUMNS.len()] {
        let algbw = self.bytes as f64 / timed.time_us / PER_MICRO;
        let predicted = self.nccl.table.iter().find(|entry| entry.pair == timed.pair);
        [
            timed.pair.algorithm.to_string(),
            timed.pair.protocol.to_string(),
            timed.nchannels.to_string(),
            timed.nthreads.to_string(),
            timed.chunk_bytes.to_string(),
            predicted.map_or(String::new(), |entry| format!("{:.2}", entry.time_us)),
            format!("{:.2}", timed.time_us),
            format!("{algbw:.2}"),
            format!("{:.2}", algbw * self.collective.bus_factor(self.ranks)),
            format!("{:.2}", self.nccl.time_us / timed.time_us),
            if timed.is_launch_of(&self.nccl) { "NCCL's choice" } else { "" }.to_owned(),
        ]
    }

    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Own { pair, launched, predicted_us, time_us, .. } = self.nccl;
        let channels = counted(launched, "channel");
        let (predicted, took) = (Micros(predicted_us.into()), Micros(time_us));
        writeln!(f, "Summary  NCCL takes {pair} with {channels}: {took}, predicted {predicted} (simulated)")?;
        let best = &self.best;
        if best.is_launch_of(&self.nccl) {
            writeln!(f, "         none of {} settings is faster", self.knobs.len())?;
            return self.scheduled(f);
        }
        let fastest = format!("{} with {}", best.pair, counted(best.nchannels, "channel"));
        writeln!(
            f,
            "         fastest of {} settings is {fastest}: {}, {:.2} times as fast",
            self.knobs.len(),
            Micros(best.time_us),
            self.headroom
        )?;
        self.scheduled(f)
    }

    fn scheduled(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Schedule { predicted_us, time_us }) = self.schedule else { return Ok(()) };
        let (took, predicted) = (Micros(time_us), Micros(predicted_us.into()));
        let times = self.nccl.time_us / time_us;
        writeln!(
            f,
            "         a synthesised schedule takes {took}, predicted {predicted}: {times:.2} times as fast"
        )
    }
}

/// A size in the unit that suits it, and in bytes.
fn size(bytes: u64) -> String {
    let (short, exact) = (Bytes(bytes).to_string(), bytes.to_string());
    if short == exact { format!("{exact} B") } else { format!("{short} ({exact} B)") }
}
