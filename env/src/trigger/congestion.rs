//! Congestion: how far a communicator's recent calls are above the best level of their kinds.

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

    /// 0 to 1: x / (1 + x) of the mean log excess x. That is the share of the time that is lost while it
    /// is small, 0.5 where calls take e times as long, and needs no exponential in every call.
    pub fn signal(&self) -> f64 {
        let excess = if self.excess > 0.0 { self.excess } else { 0.0 };
        excess / (1.0 + excess)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_the_excess_and_decays() {
        let mut congestion = Congestion::default();
        (0..100).for_each(|_| congestion.push(1.0));
        assert!((congestion.signal() - 0.5).abs() < 1e-3, "{}", congestion.signal());
        (0..30).for_each(|_| congestion.push(0.0));
        assert!(congestion.signal() < 0.03);
        (0..100).for_each(|i| congestion.push(if i % 2 == 0 { 0.2 } else { -0.2 }));
        assert!(congestion.signal() < 0.03);
    }
}
