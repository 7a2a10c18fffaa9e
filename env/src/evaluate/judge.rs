//! Keeping count: what a tuner did in every cell, and how long its episodes took.
//!
//! Sums only; what they mean is worked out when all of them are there.

use dynamiccl_spec::math::ln;

use super::calls::Outcome;
use super::report::MARKS;

/// Calls of an episode that are not judged: a tuner that learns from feedback has had none before.
pub const WARM_UP: u32 = 50;

/// What one tuner did over the episodes of one seed.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// By cell.
    pub cells: Vec<CellTally>,
    /// Its episodes.
    pub episodes: Vec<EpisodeTally>,
}

/// What it did in one cell.
#[derive(Debug, Clone, Default)]
pub struct CellTally {
    /// With feedback: the means of worlds.
    pub judged: Logs,
    /// Without.
    pub held: Logs,
    /// Judged calls.
    pub calls: u32,
    /// Judged calls that were left to NCCL.
    pub left: u32,
    /// Judged calls with an estimate.
    pub estimated: u32,
    /// Those of them whose measured time was within one spread of it.
    pub covered: u32,
    /// Judged calls by what ran.
    pub ran: Counts,
    /// Worlds, or calls of jobs, by what was decided without feedback.
    pub decided: Counts,
    /// Calls for which a synthesised schedule was wanted where none can run.
    pub unrunnable: u32,
}

/// How often each choice of a cell came up; those beyond the end never did.
#[derive(Debug, Clone, Default)]
pub struct Counts(pub Vec<u32>);

impl Counts {
    /// Counts this choice so many times more.
    pub fn add(&mut self, choice: usize, times: u32) {
        if self.0.len() <= choice {
            self.0.resize(choice + 1, 0);
        }
        self.0[choice] += times;
    }
}

/// Sums of ratios of true times: of calls within a world, of the means of worlds in a tally.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Logs {
    /// Calls, or worlds.
    pub count: f64,
    /// Σ ln(NCCL's own ÷ what ran).
    pub gain: f64,
    /// Σ ln(what ran ÷ fastest).
    pub loss: f64,
}

/// How long an episode took beside NCCL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpisodeTally {
    /// The tier of its machine.
    pub tier: u8,
    /// Whether its cluster is held out.
    pub held_out: bool,
    /// ln(time ÷ NCCL's own) since its beginning at each mark; none where it ended before.
    pub logs: [Option<f64>; MARKS.len()],
}

impl Logs {
    /// Counts as many calls that took the same.
    pub fn add(&mut self, calls: f64, outcome: [f64; 3]) {
        let [own, ran, best] = outcome;
        self.count += calls;
        self.gain += calls * (own - ran);
        self.loss += calls * (ran - best);
    }

    /// Counts the mean over the calls of a world, so that every world weighs the same; nothing where it has no
    /// call.
    pub fn add_world(&mut self, calls: Logs) {
        if calls.count > 0.0 {
            let (gain, loss) = (calls.gain / calls.count, calls.loss / calls.count);
            *self = self.and(Logs { count: 1.0, gain, loss });
        }
    }

    /// Both together.
    pub fn and(self, other: Logs) -> Logs {
        let (count, gain, loss) = (self.count + other.count, self.gain + other.gain, self.loss + other.loss);
        Logs { count, gain, loss }
    }
}

impl Tally {
    /// The tally of a cell, which is made where there is none.
    pub fn cell(&mut self, cell: usize) -> &mut CellTally {
        if self.cells.len() <= cell {
            self.cells.resize_with(cell + 1, CellTally::default);
        }
        &mut self.cells[cell]
    }
}

/// Counts the calls of one episode.
#[derive(Debug)]
pub struct Judge<'a> {
    tally: &'a mut Tally,
    calls: u32,
    spent: f64,
    own: f64,
    logs: [Option<f64>; MARKS.len()],
    held: bool,
    /// Of this episode, by cell.
    cells: Vec<Logs>,
}

impl<'a> Judge<'a> {
    /// A judge of an episode; `held` where the tuner is told nothing.
    pub fn new(tally: &'a mut Tally, held: bool) -> Self {
        Judge { tally, calls: 0, spent: 0.0, own: 0.0, logs: [None; MARKS.len()], held, cells: Vec::new() }
    }

    /// Counts a call before which trials took `tried` µs. An estimate is ln µs and a spread.
    pub fn call(&mut self, outcome: &Outcome, tried: f64, left: bool, estimate: Option<(f64, f64)>) {
        self.calls += 1;
        self.spent += tried + outcome.truth.micros;
        self.own += outcome.own.micros;
        if let Some(mark) = MARKS.iter().position(|&mark| mark == self.calls) {
            self.logs[mark] = Some(ln(self.spent / self.own));
        }
        if self.calls <= WARM_UP {
            return;
        }
        let logs = [outcome.own.log, outcome.truth.log, outcome.best.log];
        if self.cells.len() <= outcome.cell {
            self.cells.resize(outcome.cell + 1, Logs::default());
        }
        self.cells[outcome.cell].add(1.0, logs);
        let cell = self.tally.cell(outcome.cell);
        if self.held {
            cell.decided.add(outcome.ran, 1);
            return;
        }
        cell.calls += 1;
        cell.left += u32::from(left);
        if let Some((expected, spread)) = estimate {
            cell.estimated += 1;
            cell.covered += u32::from((ln(outcome.measured) - expected).abs() <= spread);
        }
        cell.ran.add(outcome.ran, 1);
    }

    /// A synthesised schedule was wanted in a cell where none can run.
    pub fn unrunnable(&mut self, cell: usize) {
        self.tally.cell(cell).unrunnable += 1;
    }

    /// The episode is over. No cell comes up in two episodes of a world.
    pub fn finish(self, tier: u8, held_out: bool) {
        for (at, calls) in self.cells.into_iter().enumerate().filter(|(_, calls)| calls.count > 0.0) {
            let cell = self.tally.cell(at);
            if self.held { cell.held.add_world(calls) } else { cell.judged.add_world(calls) }
        }
        if !self.held {
            self.tally.episodes.push(EpisodeTally { tier, held_out, logs: self.logs });
        }
    }
}
