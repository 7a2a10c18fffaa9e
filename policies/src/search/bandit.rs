//! Bandits: a few settings as arms, played again and again, without an end.
//!
//! What they believe of an arm is the mean of its ln µs, so that an arm that takes half as long is worth
//! the same whatever the size of the call; what they are unsure by is the spread between calls of one arm.

use dynamiccl_spec::math::{exp, ln};

use super::tallies::log_micros;
use super::{Found, Point, Search, Trial};
use crate::random::Random;

/// How the next arm is chosen once every arm has been played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// The arm that may be fastest: its mean less what it may be wrong by (UCB1, scaled by the spread).
    Ucb,
    /// The arm believed fastest, and with a falling share any of them.
    Epsilon {
        /// The share of calls that go to any arm, at first.
        start: f64,
        /// Calls after which it has halved.
        halves: f64,
    },
}

impl Rule {
    /// ε-greedy as every tuner and `tune` have it.
    pub const EPSILON: Rule = Rule::Epsilon { start: 0.3, halves: 50.0 };
}

/// What calls differ by from one to the next, in ln µs, before there is anything to tell it from.
const SPREAD: f64 = 0.05;
/// How many calls that first belief is worth.
const BELIEF: f64 = 4.0;

/// A bandit over some points.
#[derive(Debug, Clone)]
pub struct Bandit {
    rule: Rule,
    arms: Vec<Arm>,
    random: Random,
    pulls: f64,
    /// Sum of squared differences from the arms' means.
    scatter: f64,
    pending: Option<usize>,
}

#[derive(Debug, Clone)]
struct Arm {
    point: Point,
    pulls: f64,
    /// Mean of ln µs; infinite once it could not run.
    log_micros: f64,
}

impl Arm {
    fn runs(&self) -> bool {
        self.log_micros.is_finite()
    }

    fn found(&self) -> Found {
        Found { point: self.point, micros: exp(self.log_micros) }
    }
}

impl Bandit {
    /// A bandit over these points, played in this order at first.
    pub fn new(points: impl IntoIterator<Item = Point>, rule: Rule, seed: u64) -> Self {
        let arms = points.into_iter().map(|point| Arm { point, pulls: 0.0, log_micros: 0.0 }).collect();
        Bandit { rule, arms, random: Random::new(seed), pulls: 0.0, scatter: 0.0, pending: None }
    }

    fn next(&mut self) -> Option<usize> {
        if let Some(unplayed) = self.arms.iter().position(|arm| arm.pulls == 0.0) {
            return Some(unplayed);
        }
        match self.rule {
            Rule::Ucb => {
                let freedom = (self.pulls - self.arms.len() as f64).max(0.0) + BELIEF;
                let variance = (self.scatter + BELIEF * SPREAD * SPREAD) / freedom;
                let unsure = (2.0 * ln(self.pulls) * variance).sqrt();
                self.lowest(|arm| arm.log_micros - unsure / arm.pulls.sqrt())
            }
            Rule::Epsilon { start, halves } => {
                let any = start * halves / (halves + self.pulls);
                if self.random.uniform() < any {
                    let running: Vec<usize> = (0..self.arms.len()).filter(|&i| self.arms[i].runs()).collect();
                    return (!running.is_empty()).then(|| running[self.random.below(running.len())]);
                }
                self.lowest(|arm| arm.log_micros)
            }
        }
    }

    /// The arms that have run.
    fn played(&self) -> impl Iterator<Item = &Arm> {
        self.arms.iter().filter(|arm| arm.pulls > 0.0 && arm.runs())
    }

    fn lowest(&self, score: impl Fn(&Arm) -> f64) -> Option<usize> {
        let running = self.arms.iter().enumerate().filter(|(_, arm)| arm.runs());
        let scores = running.map(|(index, arm)| (index, score(arm)));
        scores.reduce(|low, next| if next.1 < low.1 { next } else { low }).map(|(index, _)| index)
    }
}

impl Search for Bandit {
    fn ask(&mut self) -> Option<Trial> {
        if self.pending.is_none() {
            self.pending = self.next();
        }
        self.pending.map(|index| Trial { point: self.arms[index].point, resource: 1.0 })
    }

    fn tell(&mut self, micros: f64) {
        let Some(index) = self.pending.take() else { return };
        let log_micros = log_micros(micros);
        let arm = &mut self.arms[index];
        arm.pulls += 1.0;
        self.pulls += 1.0;
        if !log_micros.is_finite() {
            arm.log_micros = f64::INFINITY;
            return;
        }
        let off = log_micros - arm.log_micros;
        arm.log_micros += off / arm.pulls;
        if arm.pulls > 1.0 {
            self.scatter += off * (log_micros - arm.log_micros);
        }
    }

    fn best(&self) -> Option<Found> {
        let best = self.played();
        let best = best.reduce(|best, arm| if arm.log_micros < best.log_micros { arm } else { best });
        best.map(Arm::found)
    }

    fn ranked(&self, count: usize) -> Vec<Found> {
        let mut ranked: Vec<&Arm> = self.played().collect();
        ranked.sort_by(|a, b| a.log_micros.total_cmp(&b.log_micros));
        ranked.into_iter().take(count).map(Arm::found).collect()
    }

    fn spent(&self) -> f64 {
        self.pulls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::drive;

    const TRUE: [f64; 6] = [100.0, 140.0, 90.0, 85.0, 300.0, 101.0];

    fn points() -> impl Iterator<Item = Point> {
        (0..6).map(|arm| Point::default().with(0, arm))
    }

    /// Times spent beside always playing the best arm, and how often it was played.
    fn play(rule: Rule, seed: u64) -> (f64, usize) {
        let mut noise = Random::of(seed, 1);
        let (mut lost, mut best) = (0.0, 0);
        drive(&mut Bandit::new(points(), rule, seed), 1000.0, |trial| {
            let micros = TRUE[trial.point.value(0)];
            lost += micros / 85.0 - 1.0;
            best += usize::from(micros == 85.0);
            micros * exp(0.05 * noise.normal())
        });
        (lost, best)
    }

    #[test]
    fn both_come_to_play_the_best_arm() {
        for rule in [Rule::Ucb, Rule::Epsilon { start: 0.3, halves: 50.0 }] {
            for seed in 0..5 {
                let (lost, best) = play(rule, seed);
                assert!(best > 800 && lost < 60.0, "{rule:?}: {best} of 1000, lost {lost}");
            }
        }
    }

    #[test]
    fn every_arm_is_played_once_in_order_first() {
        let mut bandit = Bandit::new(points(), Rule::Ucb, 1);
        let mut order = Vec::new();
        drive(&mut bandit, 6.0, |trial| {
            order.push(trial.point.value(0));
            TRUE[trial.point.value(0)]
        });
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
        assert_eq!(bandit.best().unwrap().point.value(0), 3);
    }

    #[test]
    fn an_arm_that_cannot_run_is_played_once() {
        for rule in [Rule::Ucb, Rule::Epsilon { start: 1.0, halves: 1e9 }] {
            let (mut bandit, mut played) = (Bandit::new(points(), rule, 1), 0);
            let found = drive(&mut bandit, 500.0, |trial| match trial.point.value(0) {
                3 => {
                    played += 1;
                    f64::INFINITY
                }
                arm => TRUE[arm],
            });
            assert_eq!((played, found.unwrap().point.value(0)), (1, 2), "{rule:?}");
            let ranked: Vec<usize> = bandit.ranked(9).iter().map(|found| found.point.value(0)).collect();
            assert_eq!(ranked, [2, 0, 5, 1, 4], "{rule:?}");
            let mut none = Bandit::new(points(), rule, 1);
            assert_eq!((drive(&mut none, 1e9, |_| f64::INFINITY), none.spent()), (None, 6.0));
        }
    }
}
