//! How alike the links are from one collective to the next, as far as can be seen.

use super::Setting;
use super::traffic::Sample;

/// Share of what was seen that still counts after another collective.
const KEPT: f64 = 0.98;

/// An estimate of the correlation between neighbours in time.
#[derive(Debug, Clone, Default)]
pub struct Trend {
    /// Where each link stood in its range, around 0.
    before: Vec<f64>,
    both: f64,
    own: f64,
}

impl Trend {
    /// Sees the links once more.
    pub fn see(&mut self, setting: &Setting, sample: &Sample) {
        let known = self.before.len() == sample.links().len();
        self.before.resize(sample.links().len(), 0.0);
        let (mut both, mut own) = (0.0, 0.0);
        for (link, (before, gbps)) in self.before.iter_mut().zip(sample.links()).enumerate() {
            let [low, high] = setting.range(link);
            let place = if high > low { (gbps - low) / (high - low) - 0.5 } else { 0.0 };
            both += place * *before;
            own += 0.5 * (place * place + *before * *before);
            *before = place;
        }
        if known {
            (self.both, self.own) = (KEPT * self.both + both, KEPT * self.own + own);
        }
    }

    /// The correlation, −1 to 1; 0 where nothing is known yet.
    pub fn correlation(&self) -> f64 {
        if self.own > 0.0 { self.both / self.own } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wan::{Network, Traffic};

    #[test]
    fn the_correlation_is_found_within_a_few_collectives() {
        let setting = Setting::new(Network::even(2, 4, 2).unwrap()).unwrap();
        for rho in [0.0, 0.8, 0.95, 0.99] {
            let (mut traffic, mut trend) = (Traffic::new(&setting, rho, 3, 0), Trend::default());
            assert_eq!(trend.correlation(), 0.0);
            (0..30).for_each(|_| trend.see(&setting, &traffic.next_sample()));
            assert!((trend.correlation() - rho).abs() < 0.06, "{rho}: {}", trend.correlation());
        }
    }
}
