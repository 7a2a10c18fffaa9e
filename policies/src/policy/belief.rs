//! What a time may be, and what it is worth to find out: one call with it costs what it is slower, and all
//! later calls win what it is faster.

use dynamiccl_spec::math::{exp, ln};

/// Later calls of the same kind that a trial is for: jobs make the same calls thousands of times, but machines change.
const LATER: f64 = 24.0;
/// Most (ln) that a trial may be expected to cost.
const DEAREST: f64 = 0.5;
/// How much wider a spread is than a network says: it is surer of pairs that a job has not tried than it should be. With this and
/// the two above regret was least in validation worlds.
const WIDER: f64 = 1.25;
/// A spread that says nothing is known: an untrained network has 1 everywhere, and does as NCCL does.
const VAGUE: f64 = 0.9;
/// The scale of a logistic distribution with a spread of 1.
const SCALE: f64 = 0.5513;

/// ln µs, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Belief {
    pub mean: f64,
    /// One spread.
    pub spread: f64,
}

impl Belief {
    /// What a network believes; none where it knows nothing.
    pub fn new(micros: f32, ln_spread: f32) -> Option<Belief> {
        let (mean, spread) = (ln(f64::from(micros)), exp(f64::from(ln_spread)));
        let known = mean.is_finite() && spread > 0.0 && spread < VAGUE;
        known.then_some(Belief { mean, spread: WIDER * spread })
    }

    /// Both beliefs, if they know nothing of each other.
    pub fn and(self, other: Belief) -> Belief {
        let [mine, theirs] = [self, other].map(|belief| 1.0 / (belief.spread * belief.spread));
        let mean = (self.mean * mine + other.mean * theirs) / (mine + theirs);
        Belief { mean, spread: (1.0 / (mine + theirs)).sqrt() }
    }

    /// What a call with it is expected to bring where calls take `now` (ln µs); below 0 where it does not pay.
    pub fn worth_trying(self, now: f64) -> f64 {
        let (scale, faster) = (SCALE * self.spread, now - self.mean);
        let won = scale * softplus(faster / scale);
        let lost = won - faster;
        if lost <= DEAREST { LATER * won - lost } else { -lost }
    }
}

/// ln(1 + eˣ).
fn softplus(x: f64) -> f64 {
    if x > 30.0 { x } else { ln(1.0 + exp(x)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn belief(mean: f64, spread: f64) -> Belief {
        Belief { mean, spread }
    }

    #[test]
    fn who_knows_nothing_believes_nothing() {
        let known = |micros, ln_spread| Belief::new(micros, ln_spread).is_some();
        assert!(known(10.0, -2.0));
        for (micros, ln_spread) in [(10.0, 0.0), (10.0, f32::NAN), (10.0, -1e30), (-1.0, -2.0), (0.0, -2.0)] {
            assert!(!known(micros, ln_spread), "{micros} {ln_spread}");
        }
    }

    #[test]
    fn of_two_beliefs_the_surer_counts_more() {
        let both = belief(0.0, 0.1).and(belief(1.0, 0.2));
        assert!(
            (both.mean - 0.2).abs() < 1e-12 && (both.spread - 0.2 / 5_f64.sqrt()).abs() < 1e-12,
            "{both:?}"
        );
    }

    #[test]
    fn trying_pays_where_much_may_be_won_and_little_is_lost() {
        assert!(belief(1.0, 0.1).worth_trying(1.0) > 0.0);
        assert!(belief(1.3, 0.1).worth_trying(1.0) < 0.0, "three spreads slower");
        assert!(belief(1.6, 0.5).worth_trying(1.0) < 0.0, "too dear");
        assert!(belief(0.0, 0.001).worth_trying(1.0) > LATER - 0.1, "as good as known to be faster");
        let [sure, unsure] = [0.05, 0.2].map(|spread| belief(1.1, spread).worth_trying(1.0));
        assert!(unsure > sure, "what is not known can be found out");
    }
}
