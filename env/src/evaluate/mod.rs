//! Judging tuners: any set of them on the same calls, in the same worlds, with the same luck.
//!
//! Whoever answers "which knobs for this call" is a `dyn Tuner` here; nothing knows how an answer comes
//! about. What a good answer is, is defined once (`docs/evaluation.md`): true times, against NCCL's own
//! choice and against the best there is.

mod report;

pub use report::{
    CellFigures, CellReport, Chosen, Figures, MARKS, Place, Point, Report, TierReport, TunerReport,
};
