//! What a tuner makes of a sweep: every call decided once, with nothing told of the others, as a deployed policy does.
//!
//! `evaluate` lets tuners learn while a job runs; this is for whoever fits one to a sweep and wants to know how far it is.

use std::sync::Arc;

use dynamiccl_spec::math::{exp, ln};
use dynamiccl_spec::{Choice, Collective, Knobs, Tuner};
use serde::Serialize;

use super::{Swept, SweptError};
use crate::asking::Asking;
use crate::job::Shown;
use crate::known::KnownTimes;
use crate::sim::knobs_in;

/// The speed-up that no cell is to be below.
pub const LEAST: f64 = 0.97;

/// What a tuner makes of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// The sweep.
    pub sweep: String,
    /// Its ranks.
    pub ranks: u32,
    /// Geometric mean over the cells of NCCL's own time over the tuner's.
    pub speedup: f64,
    /// The same of the best there is.
    pub oracle: f64,
    /// Share of what there was to win that was won: ln `speedup` ÷ ln `oracle`; none where there was nothing.
    pub headroom: Option<f64>,
    /// The smallest speed-up of a cell.
    pub worst_cell: f64,
    /// Cells whose speed-up is below [`LEAST`] by more than the doubts of both times.
    pub below: usize,
    /// Every cell.
    pub cells: Vec<CellJudgement>,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CellJudgement {
    /// The collective.
    pub collective: Collective,
    /// Its size.
    pub bytes: u64,
    /// What was chosen.
    pub knobs: Knobs,
    /// µs of NCCL's own choice.
    pub own_us: f64,
    /// µs of what was chosen.
    pub chosen_us: f64,
    /// µs of the best.
    pub best_us: f64,
    /// The knobs that are the best.
    pub best: Knobs,
    /// How far ln of the speed-up may be off by luck.
    pub doubt: f64,
}

impl CellJudgement {
    /// NCCL's own time over that of what was chosen.
    pub fn speedup(&self) -> f64 {
        self.own_us / self.chosen_us
    }

    /// Whether that is below [`LEAST`] for sure.
    fn is_below(&self) -> bool {
        ln(self.speedup() / LEAST) + self.doubt < 0.0
    }
}

/// Lets a tuner decide every call of a sweep, told this much of the machine.
pub fn judge(swept: &Arc<Swept>, shown: Shown, tuner: &mut dyn Tuner) -> Result<Judgement, SweptError> {
    let asking = Asking::in_job(&swept.job(shown), &swept.machine.place)?;
    tuner.begin();
    let cells =
        swept.calls().into_iter().filter_map(|call| cell(swept, &asking, call.collective, call.bytes, tuner));
    let cells: Vec<CellJudgement> = cells.collect();
    let mean = |of: fn(&CellJudgement) -> f64| {
        cells.iter().map(|cell| ln(cell.own_us / of(cell))).sum::<f64>() / cells.len().max(1) as f64
    };
    let (won, there) = (mean(|cell| cell.chosen_us), mean(|cell| cell.best_us));
    Ok(Judgement {
        sweep: swept.name.clone(),
        ranks: swept.ranks(),
        speedup: exp(won),
        oracle: exp(there),
        headroom: (there > 0.0).then(|| won / there),
        below: cells.iter().filter(|cell| cell.is_below()).count(),
        worst_cell: cells.iter().map(CellJudgement::speedup).fold(f64::INFINITY, f64::min),
        cells,
    })
}

fn cell(
    swept: &Swept,
    asking: &Asking,
    collective: Collective,
    bytes: u64,
    tuner: &mut dyn Tuner,
) -> Option<CellJudgement> {
    let asked = asking.call_of(swept, collective, bytes);
    let mask = asked.gated.mask;
    let micros = |knobs: &Knobs| swept.micros(collective, bytes, &asking.realise(&asked, knobs)?);
    let query = asking.query(&asked);
    let (own, decided) = (query.own(), tuner.decide(&query, &mut |_| None).knobs);
    let legal = asked.gated.own.is_some_and(|pair| mask.refuses(&Choice::of(&decided, pair)).is_none());
    let knobs = if legal { decided } else { own };
    let own_us = micros(&own)?;
    let all = knobs_in(&mask).filter_map(|knobs| Some((knobs, micros(&knobs)?)));
    let (best, best_us) = all.fold((own, own_us), |best, other| if other.1 < best.1 { other } else { best });
    let doubt = |knobs: &Knobs| swept.doubt(collective, bytes, &asking.realise(&asked, knobs)?);
    let chosen_us = micros(&knobs)?;
    // What launches the same is as fast, however doubtful.
    let doubts = if chosen_us == own_us { [0.0; 2] } else { [doubt(&own)?, doubt(&knobs)?] };
    let doubt = doubts.iter().map(|doubt| doubt * doubt).sum::<f64>().sqrt();
    Some(CellJudgement { collective, bytes, knobs, own_us, chosen_us, best_us, best, doubt })
}
