//! The result of `tune` as text.

use std::fmt;

use dynamiccl_spec::{Bytes, Micros};

use super::report::{Best, Report, Tuned};
use crate::table::{Column, Table};
use crate::words::counted;

const COLUMNS: [Column; 11] = [
    Column::left("collective"),
    Column::right("size").unit("(B)"),
    Column::left("algo"),
    Column::left("proto"),
    Column::right("nch"),
    Column::right("nthr"),
    Column::right("chunk").unit("(B)"),
    Column::right("time").unit("(us)"),
    Column::right("quality"),
    Column::right("gain"),
    Column::right("trials"),
];

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = &self.about;
        let (nodes, ranks) = (counted(about.nodes, "node"), counted(about.ranks, "rank"));
        writeln!(
            f,
            "# {}: {nodes}, {ranks}; {} over {}",
            about.cluster,
            word(&about.method),
            word(&about.space)
        )?;
        let world = about.world.map_or("nominal".to_owned(), |seed| seed.to_string());
        writeln!(
            f,
            "# simulated, world {world}, constants {}; trials are noisy, times are true",
            about.constants
        )?;
        let mut table = Table::new(COLUMNS);
        self.calls.iter().for_each(|call| table.row(row(call)));
        write!(f, "#\n{table}")?;
        let share = 100.0 * self.trials / self.grid_trials.max(1) as f64;
        writeln!(
            f,
            "Summary  {:.1} trials of {} settings ({share:.1} %): quality {:.4}, {:.3} times as fast as at first",
            self.trials, self.grid_trials, self.quality, self.gain
        )?;
        writeln!(f, "         searching itself took {} for each trial", Micros(self.search_us_per_trial))
    }
}

fn row(call: &Tuned) -> [String; COLUMNS.len()] {
    let Best { pair, nchannels, nthreads, chunk_bytes, .. } = &call.best;
    let mark = if call.complete { "" } else { "+" };
    [
        call.collective.to_string(),
        Bytes(call.bytes).to_string(),
        pair.algorithm.to_string(),
        pair.protocol.to_string(),
        nchannels.to_string(),
        nthreads.to_string(),
        chunk_bytes.to_string(),
        format!("{:.2}", call.best_us),
        format!("{:.4}", call.quality),
        format!("{:.3}", call.start_us / call.best_us),
        format!("{:.1}{mark}", call.trials),
    ]
}

/// A word of the command line as it is typed.
fn word(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}
