//! The result of `live train`: what the policy made of each sweep before and after.

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use dynamiccl_agent::fit::{Fit, Ground, Judged};
use dynamiccl_env::swept::{Judgement, Swept};
use dynamiccl_policies::frozen::Frozen;
use serde::Serialize;

use super::threads;
use crate::args::LiveTrainArgs;
use crate::commands::machine::name;
use crate::table::{Column, Table};
use crate::words::percent;

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Report {
    way: &'static str,
    policy: String,
    source_hash: String,
    out: String,
    hash: String,
    steps: u64,
    best_step: u64,
    /// Decisions that were timed on real ranks; none with sweeps.
    calls: Option<u64>,
    /// Threads of a block to start ranks with; none for NCCL's own.
    threads: Option<u32>,
    seconds: f64,
    sweeps: Vec<Line>,
    /// The smallest share of what there was to win on a sweep that was won.
    headroom: f64,
    fail_below: Option<f64>,
    /// The answer to `--fail-below`; none where it was not asked.
    pub passed: Option<bool>,
    /// What changes the meaning of the numbers.
    notes: Vec<String>,
}

/// One sweep.
#[derive(Debug, Serialize)]
struct Line {
    fitted: bool,
    sweep: String,
    ranks: u32,
    cells: usize,
    oracle: f64,
    before: Won,
    after: Won,
    told: Won,
}

/// What was won on a sweep.
#[derive(Debug, Clone, Copy, Serialize)]
struct Won {
    speedup: f64,
    headroom: Option<f64>,
    worst_cell: f64,
    below: usize,
}

impl Won {
    fn of(judged: &Judgement) -> Self {
        let Judgement { speedup, headroom, worst_cell, below, .. } = *judged;
        Won { speedup, headroom, worst_cell, below }
    }
}

impl Report {
    /// The report on a fit.
    pub fn new(
        args: &LiveTrainArgs,
        [source, written]: [&Frozen; 2],
        (fit, ground): (&Fit, &Ground),
        (others, threads): (&[Arc<Swept>], Option<u32>),
        seconds: f64,
    ) -> Result<Self> {
        let hash = |frozen: &Frozen| format!("{:016x}", frozen.hash());
        let headroom = fit.best().headroom();
        let [before, after] = fit.elsewhere(others)?;
        let mut sweeps = lines(true, fit.before(), fit.best());
        sweeps.extend(lines(false, &before, &after));
        let (way, calls, notes) = match ground {
            Ground::Sweeps(fitted) => ("sweep", None, notes(fitted)?),
            Ground::Live(lived) => ("live", Some(lived.called()), Vec::new()),
        };
        Ok(Report {
            way,
            calls,
            threads,
            policy: args.policy.clone(),
            source_hash: hash(source),
            out: name(&args.out),
            hash: hash(written),
            steps: fit.steps(),
            best_step: fit.best().steps,
            seconds,
            sweeps,
            headroom,
            fail_below: args.fail_below,
            passed: args.fail_below.map(|least| headroom >= least),
            notes,
        })
    }

    /// Says what was not fitted to.
    pub fn leave_out(&mut self, sweeps: &[Arc<Swept>]) {
        let kept = threads::word(self.threads);
        self.notes.extend(sweeps.iter().map(|swept| {
            format!("{} with {} is left out: {kept} are faster", swept.name, threads::word(swept.threads))
        }));
    }

    /// What was won on each sweep.
    fn table(&self) -> Table<11> {
        let won = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), percent);
        let mut table = Table::new([
            Column::left("sweep"),
            Column::left("fitted"),
            Column::right("ranks"),
            Column::right("cells"),
            Column::right("best").unit("(x)"),
            Column::right("before").unit("(x)"),
            Column::right("after").unit("(x)"),
            Column::right("won").unit("(%)"),
            Column::right("worst").unit("(x)"),
            Column::right("below").unit("(cells)"),
            Column::right("told").unit("(%)"),
        ]);
        for line in &self.sweeps {
            table.row([
                line.sweep.clone(),
                if line.fitted { "yes" } else { "no" }.to_owned(),
                line.ranks.to_string(),
                line.cells.to_string(),
                format!("{:.3}", line.oracle),
                format!("{:.3}", line.before.speedup),
                format!("{:.3}", line.after.speedup),
                won(line.after.headroom),
                format!("{:.3}", line.after.worst_cell),
                line.after.below.to_string(),
                won(line.told.headroom),
            ]);
        }
        table
    }
}

fn lines(fitted: bool, before: &Judged, after: &Judged) -> Vec<Line> {
    let all = before.untold.iter().zip(&after.untold).zip(&after.told);
    let line = |((before, after), told): ((&Judgement, &Judgement), &Judgement)| Line {
        fitted,
        sweep: after.sweep.clone(),
        ranks: after.ranks,
        cells: after.cells.len(),
        oracle: after.oracle,
        before: Won::of(before),
        after: Won::of(after),
        told: Won::of(told),
    };
    all.map(line).collect()
}

/// What makes sweeps doubtful, and what is left of them once those of one machine are put together.
fn notes(sweeps: &[Arc<Swept>]) -> Result<Vec<String>> {
    let note = |swept: &Arc<Swept>| {
        format!(
            "{} is by rank 0's clock, where a broadcast is done when its root has sent; for a policy that is to be used, \
             sweep with --clock slowest",
            swept.name
        )
    };
    let by_roots = sweeps.iter().filter(|swept| swept.stops_at_roots()).map(note);
    let joined = Swept::joined(sweeps)?;
    Ok(by_roots.chain(joined.iter().flat_map(|swept| swept.notes())).collect())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (policy, hash, steps) = (&self.policy, &self.source_hash, self.steps);
        match self.calls {
            Some(calls) => {
                writeln!(
                    f,
                    "# measured: {policy} {hash} fitted to live episodes, {calls} calls on real ranks in {steps} steps"
                )?;
            }
            None => writeln!(f, "# measured: {policy} {hash} fitted to a recorded sweep in {steps} steps")?,
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "# note: {note}"))?;
        write!(f, "#\n{}", self.table())?;
        if let (Some(least), Some(passed)) = (self.fail_below, self.passed) {
            let (is, answer) = if passed { ("is not below", "yes") } else { ("is below", "no") };
            writeln!(f, "Verdict  {:.3} {is} {least}: {answer}", self.headroom)?;
        }
        if let Some(threads) = self.threads {
            writeln!(
                f,
                "# with {threads} threads of a block: start all ranks with NCCL_NTHREADS={threads}, or give the plugin a \
                 deployment file with threads = {threads} under [launch]"
            )?;
        }
        let won = 100.0 * self.headroom;
        writeln!(
            f,
            "Summary  wrote policy {} to {}: {won:.1} % of what there was to win, in {:.0} s",
            self.hash, self.out, self.seconds
        )
    }
}
