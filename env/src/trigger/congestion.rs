//! Congestion: how far a communicator's recent calls are above the best level of their kinds.

use dynamiccl_spec::math::exp;

/// How fast the signal follows, per call.
const FOLLOW: f64 = 1.0 / 8.0;

/// The running congestion of a communicator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Congestion {
    excess: f64,
}

impl Congestion {
    /// Takes in ln(time ÷ time at the best level) of one call, noise and all: negative ones too, so that
    /// noise averages out.
    pub fn push(&mut self, excess: f64) {
        self.excess += (excess - self.excess) * FOLLOW;
    }

    /// The share of the time that is lost, 0 to 1.
    pub fn signal(&self) -> f64 {
        if self.excess > 0.0 { 1.0 - exp(-self.excess) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_share_of_the_time_that_is_lost_and_decays() {
        let mut congestion = Congestion::default();
        (0..100).for_each(|_| congestion.push(std::f64::consts::LN_2));
        assert!((congestion.signal() - 0.5).abs() < 1e-3, "{}", congestion.signal());
        (0..30).for_each(|_| congestion.push(0.0));
        assert!(congestion.signal() < 0.02);
        (0..100).for_each(|i| congestion.push(if i % 2 == 0 { 0.2 } else { -0.2 }));
        assert!(congestion.signal() < 0.03);
    }
}
