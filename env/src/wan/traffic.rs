//! What other traffic leaves of each link: correlated in time, uniform over its range at any moment.
//!
//! Each link has a hidden normal number that forgets a share of itself between two collectives (AR(1)); how much
//! of a normal distribution lies below it is where the link stands in its range (a Gaussian copula). So the
//! correlation can be turned without changing what a link looks like at any one moment.

use dynamiccl_spec::math::normal_below;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::Setting;
use crate::world::draw::normal;

/// Gbit/s of every link during one collective.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample(Box<[f64]>);

impl Sample {
    /// Gbit/s of every link, in the order of their numbers.
    pub fn of(gbps: impl IntoIterator<Item = f64>) -> Self {
        Sample(gbps.into_iter().collect())
    }

    /// Gbit/s of a link.
    #[inline]
    pub fn gbps(&self, link: usize) -> f64 {
        self.0[link]
    }

    /// Gbit/s of every link.
    pub fn links(&self) -> &[f64] {
        &self.0
    }
}

/// Traffic that goes on for ever.
#[derive(Debug, Clone)]
pub struct Traffic {
    rng: ChaCha8Rng,
    /// Share of the hidden number that stays, and the size of what is new.
    stays: [f64; 2],
    hidden: Vec<f64>,
    ranges: Vec<[f64; 2]>,
}

impl Traffic {
    /// Traffic on the links of a setting with this correlation between neighbours in time. Streams of one seed are
    /// independent.
    pub fn new(setting: &Setting, rho: f64, seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        let ranges = (0..setting.network.links()).map(|link| setting.range(link)).collect();
        Traffic::over(ranges, rho, rng)
    }

    /// Traffic on links of these ranges.
    pub fn over(ranges: Vec<[f64; 2]>, rho: f64, mut rng: ChaCha8Rng) -> Self {
        let hidden = ranges.iter().map(|_| normal(&mut rng)).collect();
        Traffic { rng, stays: [rho, (1.0 - rho * rho).sqrt()], hidden, ranges }
    }

    /// The links during the next collective.
    pub fn next_into(&mut self, sample: &mut Sample) {
        let [stays, new] = self.stays;
        if sample.0.len() != self.ranges.len() {
            sample.0 = vec![0.0; self.ranges.len()].into();
        }
        for ((hidden, [low, high]), gbps) in self.hidden.iter_mut().zip(&self.ranges).zip(&mut sample.0) {
            *hidden = stays * *hidden + new * normal(&mut self.rng);
            *gbps = low + (high - low) * normal_below(*hidden);
        }
    }

    /// The same links from here on with other noise.
    #[cfg(test)]
    pub fn branch(&self, stream: u64) -> Self {
        let mut other = self.clone();
        other.rng.set_stream(1 + stream);
        other
    }

    /// The same as a new sample.
    pub fn next_sample(&mut self) -> Sample {
        let mut sample = Sample::default();
        self.next_into(&mut sample);
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wan::Network;

    fn setting() -> Setting {
        Setting::new(Network::even(2, 4, 2).unwrap()).unwrap()
    }

    fn drawn(rho: f64, count: usize) -> Vec<Sample> {
        let mut traffic = Traffic::new(&setting(), rho, 5, 0);
        (0..count).map(|_| traffic.next_sample()).collect()
    }

    #[test]
    fn links_are_uniform_over_their_range_whatever_the_correlation() {
        for rho in [0.0, 0.8] {
            let samples = drawn(rho, 4000);
            let last = setting().network.links() - 1;
            for (link, [low, high]) in [(0, [20.0, 200.0]), (last, [10.0, 100.0])] {
                let mut shares: Vec<f64> =
                    samples.iter().map(|s| (s.gbps(link) - low) / (high - low)).collect();
                shares.sort_by(f64::total_cmp);
                let far = |(at, share): (usize, &f64)| (share - at as f64 / 4000.0).abs();
                let farthest = shares.iter().enumerate().map(far).fold(0.0, f64::max);
                // Kolmogorov's distance at 1 in 1,000 is 0.031 for independent draws, three times that at 0.8.
                assert!(farthest < if rho == 0.0 { 0.031 } else { 0.09 }, "{rho} {link}: {farthest}");
            }
        }
    }

    #[test]
    fn neighbours_in_time_are_as_alike_as_was_asked_for() {
        for (rho, expected) in [(0.0, 0.0), (0.5, 0.483), (0.95, 0.946)] {
            let samples = drawn(rho, 4000);
            let (mut both, mut own) = (0.0, 0.0);
            for pair in samples.windows(2) {
                for link in 0..setting().network.inside(1, 0) + 20 {
                    let [a, b] = [&pair[0], &pair[1]].map(|s| s.gbps(link) - 110.0);
                    (both, own) = (both + a * b, own + a * a);
                }
            }
            // Of uniform numbers over a Gaussian copula: 6/π · asin(ρ/2).
            assert!((both / own - expected).abs() < 0.02, "{rho}: {}", both / own);
        }
    }

    #[test]
    fn a_seed_gives_the_same_traffic_and_another_stream_another() {
        let first = |seed, stream| Traffic::new(&setting(), 0.9, seed, stream).next_sample();
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
    }
}
