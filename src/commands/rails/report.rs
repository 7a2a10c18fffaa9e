//! What `rails` says about a job.

use std::fmt;

use dynamiccl_env::rails::Judged;
use serde::Serialize;

use crate::table::{Column, Table};

/// Everything about a job over photonic rails. All increases are in %, over the baseline.
#[derive(Debug, Serialize)]
pub struct Report {
    pub simulated: bool,
    pub model: String,
    pub pp: u32,
    pub fsdp: u32,
    pub tp: u32,
    pub micro_batches: u32,
    pub gflops: f64,
    pub delay_ms: f64,
    pub jitter: f64,
    pub surprise: f64,
    pub iterations: u32,
    pub repetitions: usize,
    pub baseline_s: f64,
    pub on_demand: Option<f64>,
    pub provisioned: Option<f64>,
    pub learned: Option<f64>,
    pub hoisted: f64,
    pub windows_ms: Vec<f64>,
    pub controllers: Vec<Judged>,
    pub curve: Vec<Point>,
    pub notes: Vec<String>,
}

/// Simple controllers at one delay, in % over the baseline.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Point {
    pub delay_ms: f64,
    pub on_demand: f64,
    pub provisioned: f64,
    pub static_split: f64,
    pub greedy: f64,
}

impl Report {
    /// The job in a line.
    pub fn heading(&self) -> String {
        let Report { model, pp, fsdp, tp, micro_batches, delay_ms, .. } = self;
        format!(
            "{model}, PP {pp}, FSDP {fsdp}, TP {tp}, {micro_batches} micro-batches; circuits change in {delay_ms} ms"
        )
    }

    /// What windows there are, in a line.
    pub fn windows(&self) -> String {
        let mut windows = self.windows_ms.clone();
        windows.sort_by(f64::total_cmp);
        let long = windows.iter().filter(|&&ms| ms > 1.0).count();
        let median = windows.get(windows.len() / 2).copied().unwrap_or_default();
        format!("{} windows in an iteration, {long} longer than 1 ms, median {median:.1} ms", windows.len())
    }

    /// Who may be compared with what, in a line.
    pub fn baseline(&self) -> String {
        let Report { baseline_s, jitter, surprise, iterations, repetitions, .. } = self;
        format!(
            "baseline {baseline_s:.3} s; jitter {jitter}, surprise {surprise}; {repetitions} × {iterations} iterations"
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}\n# {}\n# {}\n#", self.heading(), self.baseline(), self.windows())?;
        let mut table = Table::new([
            Column::left("controller"),
            Column::right("iteration").unit("(s)"),
            Column::right("increase").unit("(%)"),
            Column::right("±").unit("(points)"),
            Column::right("changes").unit("(per stage)"),
        ]);
        for judged in &self.controllers {
            table.row([
                judged.name.clone(),
                format!("{:.3}", judged.iteration_s),
                format!("{:.2}", judged.increase),
                judged.increase_std.map_or_else(String::new, |std| format!("{std:.2}")),
                format!("{:.1}", judged.reconfigurations),
            ]);
        }
        write!(f, "{table}#\n# with parameters gathered early, greedy: {:.2} %\n#\n", self.hoisted)?;
        let mut table = Table::new([
            Column::right("delay").unit("(ms)"),
            Column::right("on_demand").unit("(%)"),
            Column::right("provisioned").unit("(%)"),
            Column::right("static_split").unit("(%)"),
            Column::right("greedy").unit("(%)"),
        ]);
        for Point { delay_ms, on_demand, provisioned, static_split, greedy } in &self.curve {
            let shares = [on_demand, provisioned, static_split, greedy].map(|share| format!("{share:.2}"));
            let [on_demand, provisioned, static_split, greedy] = shares;
            table.row([delay_ms.to_string(), on_demand, provisioned, static_split, greedy]);
        }
        write!(f, "{table}")?;
        self.notes.iter().try_for_each(|note| writeln!(f, "# {note}"))
    }
}
