//! From sums to figures: geometric means over the calls of a world, then over worlds, then over cells.

use std::collections::{BTreeMap, BTreeSet};

use dynamiccl_spec::math::exp;
use dynamiccl_spec::{Choice, Collective, Head, Path};

use super::gathered::{Cell, Gathered};
use super::judge::{CellTally, Counts, EpisodeTally, Logs};
use super::report::{
    CellFigures, CellReport, Chosen, Figures, Kind, MARKS, Paths, Point, TierReport, TunerReport,
};
use crate::statistics::deviation;

/// What one tuner did in one cell, by seed.
struct Judged<'a> {
    cell: &'a Cell,
    seeds: Vec<Option<&'a CellTally>>,
}

/// The report of the tuner at this position.
pub fn tuner(name: &str, kind: Kind, position: usize, gathered: &[Gathered]) -> TunerReport {
    let cells: Vec<Judged<'_>> = gathered.iter().flat_map(|part| judged(part, position)).collect();
    let episodes: Vec<&EpisodeTally> = gathered
        .iter()
        .flat_map(|part| part.players[position].iter().flat_map(|tally| &tally.episodes))
        .collect();
    let figures = |of: &dyn Fn(u8, bool) -> bool| {
        let cells: Vec<_> = cells.iter().filter(|c| of(c.cell.tier, c.cell.held_out)).collect();
        let episodes: Vec<_> = episodes.iter().filter(|e| of(e.tier, e.held_out)).copied().collect();
        figures(&cells, &episodes)
    };
    let tier = |tier| {
        let figures = figures(&|t, held_out| t == tier && !held_out)?;
        Some(TierReport { tier, figures })
    };
    let tiers: BTreeSet<u8> = cells.iter().map(|judged| judged.cell.tier).collect();
    TunerReport {
        name: name.to_owned(),
        kind,
        tiers: tiers.into_iter().filter_map(tier).collect(),
        held_out: figures(&|_, held_out| held_out),
        overall: figures(&|_, held_out| !held_out),
        curves: curves(&cells, false),
        held_out_curves: curves(&cells, true),
    }
}

/// Every cell with what each tuner did there.
pub fn cells(gathered: &[Gathered]) -> Vec<CellReport> {
    let of_part = |part: &Gathered| {
        let tuners: Vec<Vec<Judged<'_>>> =
            (0..part.players.len()).map(|position| judged(part, position).collect()).collect();
        let report = |(at, cell): (usize, &Cell)| CellReport {
            place: cell.place.clone(),
            tier: cell.tier,
            held_out: cell.held_out,
            own: cell.chosen(cell.own, 1.0),
            best: cell.most_often(&cell.fastest),
            tuners: tuners.iter().map(|cells| cells[at].figures()).collect(),
        };
        part.cells.iter().enumerate().map(report).collect::<Vec<_>>()
    };
    gathered.iter().flat_map(of_part).collect()
}

fn judged(part: &Gathered, position: usize) -> impl Iterator<Item = Judged<'_>> {
    part.cells.iter().enumerate().map(move |(at, cell)| {
        let seeds = part.players[position].iter().map(|tally| tally.cells.get(at)).collect();
        Judged { cell, seeds }
    })
}

impl Judged<'_> {
    /// Over these of the seeds.
    fn over(&self, of: impl Fn(&CellTally) -> Logs, seed: Option<usize>) -> Option<Logs> {
        let seeds = self.seeds.iter().enumerate().filter(|(at, _)| seed.is_none_or(|seed| seed == *at));
        let sum = seeds.filter_map(|(_, tally)| *tally).map(of).fold(Logs::default(), Logs::and);
        (sum.count > 0.0).then_some(sum)
    }

    fn with_feedback(&self, seed: Option<usize>) -> Option<Logs> {
        self.over(|tally| tally.judged, seed)
    }

    fn held(&self) -> Option<Logs> {
        self.over(|tally| tally.held, None)
    }

    fn tallies(&self) -> impl Iterator<Item = &CellTally> {
        self.seeds.iter().flatten().copied()
    }

    fn counted(&self, of: fn(&CellTally) -> &Counts) -> Vec<f64> {
        let mut counts = vec![0.0; self.cell.choices.len()];
        for tally in self.tallies() {
            counts.iter_mut().zip(&of(tally).0).for_each(|(count, &times)| *count += f64::from(times));
        }
        counts
    }

    fn ran(&self) -> Vec<f64> {
        self.counted(|tally| &tally.ran)
    }

    fn decided(&self) -> Vec<f64> {
        self.counted(|tally| &tally.decided)
    }

    fn figures(&self) -> Option<CellFigures> {
        let logs = self.with_feedback(None)?;
        Some(CellFigures {
            speedup: exp(logs.mean_gain()),
            regret: exp(logs.mean_loss()) - 1.0,
            regret_hold: self.held().map(|held| exp(held.mean_loss()) - 1.0),
            chosen: self.cell.most_often(&self.ran()),
            held: self.held().map(|_| self.cell.most_often(&self.decided())),
        })
    }
}

impl Logs {
    fn mean_gain(&self) -> f64 {
        self.gain / self.count
    }

    fn mean_loss(&self) -> f64 {
        self.loss / self.count
    }
}

impl Cell {
    /// Whether more of these calls went to a synthesised schedule than to NCCL.
    fn prefers_schedule(&self, counts: &[f64]) -> bool {
        let of = |scheduled: bool| {
            let counted = counts.iter().zip(&self.choices);
            counted.filter(|(_, (choice, _))| is_scheduled(choice) == scheduled).map(|(n, _)| n).sum::<f64>()
        };
        of(true) > of(false)
    }

    fn chosen(&self, at: usize, share: f64) -> Chosen {
        let (choice, realised) = self.choices[at];
        Chosen { knobs: choice.knobs().unwrap_or_default(), realised, share }
    }

    /// The choice that came up most, the first of equals.
    fn most_often(&self, counts: &[f64]) -> Chosen {
        let most =
            counts.iter().enumerate().fold(0, |most, (at, &n)| if n > counts[most] { at } else { most });
        self.chosen(most, counts.get(most).copied().unwrap_or(0.0) / counts.iter().sum::<f64>().max(1.0))
    }
}

/// The figures over these cells and episodes; none where no call was judged.
fn figures(cells: &[&Judged<'_>], episodes: &[&EpisodeTally]) -> Option<Figures> {
    let logs: Vec<(&Judged<'_>, Logs)> =
        cells.iter().filter_map(|cell| Some((*cell, cell.with_feedback(None)?))).collect();
    let (worst, least) = logs
        .iter()
        .map(|(cell, logs)| (*cell, logs.mean_gain()))
        .reduce(|worst, other| if other.1 < worst.1 { other } else { worst })?;
    let seeds = cells.iter().map(|cell| cell.seeds.len()).max().unwrap_or(0);
    // Seeds are compared on the same cells: jobs of one seed may meet a place that those of another do not.
    let shared: Vec<_> =
        cells.iter().filter(|cell| (0..seeds).all(|seed| cell.with_feedback(Some(seed)).is_some())).collect();
    let of_seed = |seed| {
        mean(shared.iter().filter_map(|cell| cell.with_feedback(Some(seed))).map(|logs| logs.mean_gain()))
    };
    let by_seed: Vec<f64> = (0..seeds).filter_map(of_seed).map(exp).collect();
    let sum = |of: fn(&CellTally) -> u32| {
        cells.iter().flat_map(|cell| cell.tallies()).map(|tally| f64::from(of(tally))).sum::<f64>()
    };
    let (cumulative, cumulative_episodes) = cumulative(episodes);
    let estimated = sum(|tally| tally.estimated);
    Some(Figures {
        cells: logs.len(),
        speedup: exp(mean(logs.iter().map(|(_, logs)| logs.mean_gain()))?),
        speedup_std: deviation(&by_seed),
        regret: exp(mean(logs.iter().map(|(_, logs)| logs.mean_loss()))?) - 1.0,
        regret_hold: exp(mean(cells.iter().filter_map(|cell| cell.held()).map(|l| l.mean_loss()))?) - 1.0,
        worst_cell: exp(least),
        worst_at: worst.cell.place.clone(),
        fallback_share: sum(|tally| tally.left) / sum(|tally| tally.calls),
        distinct_knobs: distinct(cells),
        coverage: (estimated > 0.0).then(|| sum(|tally| tally.covered) / estimated),
        cumulative,
        cumulative_episodes,
        paths: paths(cells),
    })
}

/// How often the tuner's usual path is the oracle's.
fn paths(cells: &[&Judged<'_>]) -> Paths {
    let mut paths = Paths { cells: 0, agreement: None, unrunnable: 0 };
    let mut alike = 0.0;
    for judged in cells {
        paths.unrunnable += judged.tallies().map(|tally| u64::from(tally.unrunnable)).sum::<u64>();
        let scheduled = judged.cell.choices.iter().any(|(choice, _)| is_scheduled(choice));
        let ran = judged.ran();
        if scheduled && ran.iter().any(|calls| *calls > 0.0) {
            paths.cells += 1;
            let same =
                judged.cell.prefers_schedule(&ran) == judged.cell.prefers_schedule(&judged.cell.fastest);
            alike += f64::from(u8::from(same));
        }
    }
    paths.agreement = (paths.cells > 0).then(|| alike / paths.cells as f64);
    paths
}

fn is_scheduled(choice: &Choice) -> bool {
    choice.index(Head::Path) == Path::Synthesised.id()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

fn distinct(cells: &[&Judged<'_>]) -> usize {
    let mut seen: BTreeSet<[u8; 5]> = BTreeSet::new();
    for cell in cells {
        let ran = cell.ran().into_iter().zip(&cell.cell.choices).filter(|(calls, _)| *calls > 0.0);
        seen.extend(ran.map(|(_, (Choice(choice), _))| *choice));
    }
    seen.len()
}

/// The time since the beginning at each mark, and of how many episodes: those that reach the last mark that any
/// of them reaches, so that all marks are about the same jobs.
fn cumulative(episodes: &[&EpisodeTally]) -> (BTreeMap<u32, f64>, usize) {
    let reached = |mark: usize| episodes.iter().filter(move |episode| episode.logs[mark].is_some());
    let Some(last) = (0..MARKS.len()).rev().find(|&mark| reached(mark).next().is_some()) else {
        return (BTreeMap::new(), 0);
    };
    let at = |mark: usize| mean(reached(last).filter_map(|episode| episode.logs[mark]));
    let marks = (0..=last).filter_map(|mark| Some((MARKS[mark], exp(at(mark)?))));
    (marks.collect(), reached(last).count())
}

fn curves(cells: &[Judged<'_>], held_out: bool) -> Vec<Point> {
    let mut points: BTreeMap<(u8, usize, u64), (f64, f64, f64)> = BTreeMap::new();
    for judged in cells.iter().filter(|judged| judged.cell.held_out == held_out) {
        let Some(logs) = judged.with_feedback(None) else { continue };
        let Cell { tier, place, .. } = judged.cell;
        let point = points.entry((*tier, place.collective.id(), place.bytes)).or_default();
        *point = (point.0 + 1.0, point.1 + logs.mean_gain(), point.2 + logs.mean_loss());
    }
    let point = |((tier, collective, bytes), (cells, gain, loss)): ((u8, usize, u64), (f64, f64, f64))| {
        let collective = Collective::ALL[collective];
        Point { tier, collective, bytes, speedup: exp(gain / cells), regret: exp(loss / cells) - 1.0 }
    };
    points.into_iter().map(point).collect()
}
