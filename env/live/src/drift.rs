//! Whether the machine itself changed while it was measured: one call is timed again and again in between.

use dynamiccl_spec::Order;
use serde::Serialize;

use crate::cell::Cell;
use crate::crew::LiveError;
use crate::measure::{Measured, Meter};
use crate::spread::median;

/// Rounds of the reference at a time.
const ROUNDS: u32 = 9;
/// A reference that is this far from its usual time says that the machine is not as usual.
const TOLERANCE: f64 = 0.15;

/// NCCL's own choice for one call, timed now and then.
#[derive(Debug, Clone)]
pub struct Reference {
    cell: Cell,
    settings: Vec<Measured>,
    /// Microseconds, every time.
    seen: Vec<f64>,
}

impl Reference {
    /// A call of middle size: short ones change by themselves, long ones take too long.
    pub fn begin(meter: &mut Meter<'_>, cells: &[Cell]) -> Result<Option<Self>, LiveError> {
        let Some(first) = cells.first() else { return Ok(None) };
        let alike: Vec<Cell> =
            cells.iter().copied().filter(|cell| cell.collective == first.collective).collect();
        let cell = alike[(alike.len() - 1) / 2];
        let settings = meter.warm(cell, &[Order::Own])?;
        let mut reference = Reference { cell, settings, seen: Vec::new() };
        // The first one is warm-up.
        reference.look(meter)?;
        reference.seen.clear();
        reference.look(meter)?;
        Ok(Some(reference))
    }

    /// Times it.
    pub fn look(&mut self, meter: &mut Meter<'_>) -> Result<(), LiveError> {
        self.settings.iter_mut().for_each(|setting| setting.rounds.clear());
        meter.rounds(self.cell, &mut self.settings, ROUNDS)?;
        self.seen.extend(self.settings.first().map(Measured::median));
        Ok(())
    }

    /// How often it was timed.
    pub fn looks(&self) -> usize {
        self.seen.len()
    }

    /// What it says so far.
    pub fn drift(&self) -> Drift {
        Drift { cell: self.cell, micros: self.seen.clone() }
    }
}

/// How the reference changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift {
    /// The reference.
    pub cell: Cell,
    /// Its microseconds: before the first cell, and after every one.
    pub micros: Vec<f64>,
}

impl Drift {
    /// The slowest over the fastest.
    pub fn factor(&self) -> f64 {
        let least = self.micros.iter().copied().fold(f64::INFINITY, f64::min);
        self.micros.iter().copied().fold(0.0, f64::max) / least
    }

    /// Whether the machine was not as usual, just before or just after the cell that was measured at this place.
    pub fn is_off(&self, at: usize) -> bool {
        let usual = median(&self.micros);
        let off = |us: &f64| (us / usual).max(usual / us) > 1.0 + TOLERANCE;
        [at, at + 1].into_iter().filter_map(|at| self.micros.get(at)).any(off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamiccl_spec::Collective;

    #[test]
    fn cells_beside_an_odd_reference_are_off() {
        let cell = Cell { collective: Collective::AllReduce, bytes: 65_536 };
        let drift = Drift { cell, micros: vec![100.0, 101.0, 140.0, 99.0, 100.0, 80.0] };
        let off: Vec<usize> = (0..5).filter(|&at| drift.is_off(at)).collect();
        assert_eq!(off, [1, 2, 4]);
        assert!((drift.factor() - 1.75).abs() < 1e-12);
    }
}
