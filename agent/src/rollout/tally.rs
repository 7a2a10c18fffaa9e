//! Sums over a rollout that people watch.

use dynamiccl_env::reward::TERMS;
use dynamiccl_spec::action::HEADS;
use dynamiccl_spec::{GateCounts, Head};

use super::trainable::Outcome;

/// Sums over calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// Calls.
    pub calls: u64,
    /// Calls that decided something.
    pub decided: u64,
    /// Terms of the reward, over those.
    pub terms: [f64; TERMS],
    /// ln(NCCL's own time ÷ ours), over calls that have one.
    pub gain: f64,
    /// How many those are.
    pub gained: u64,
    /// How often each choice of each head was taken.
    pub choices: [Vec<u32>; HEADS],
    /// How often gates fired.
    pub gates: GateCounts,
    /// Episodes that ended, the sum of their returns and of their lengths.
    pub episodes: (u64, f64, u64),
    /// Seconds of environments, and of the network.
    pub seconds: [f64; 2],
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            calls: 0,
            decided: 0,
            terms: [0.0; TERMS],
            gain: 0.0,
            gained: 0,
            choices: std::array::from_fn(|head| vec![0; Head::ALL[head].size()]),
            gates: GateCounts::default(),
            episodes: (0, 0.0, 0),
            seconds: [0.0; 2],
        }
    }
}

impl Tally {
    /// Counts a call.
    pub fn call(&mut self, decides: bool, choice: &[u8; HEADS], outcome: &Outcome) {
        self.calls += 1;
        self.gates.add(outcome.gates);
        if let Some(gain) = outcome.gain {
            self.gain += f64::from(gain);
            self.gained += 1;
        }
        if !decides {
            return;
        }
        self.decided += 1;
        self.terms.iter_mut().zip(outcome.terms).for_each(|(sum, term)| *sum += term);
        for (counts, &index) in self.choices.iter_mut().zip(choice) {
            counts[usize::from(index)] += 1;
        }
    }

    /// Counts an episode that has ended.
    pub fn episode(&mut self, sum: f64, length: u64) {
        self.episodes.0 += 1;
        self.episodes.1 += sum;
        self.episodes.2 += length;
    }

    /// Adds the sums of another.
    pub fn add(&mut self, other: &Tally) {
        self.calls += other.calls;
        self.decided += other.decided;
        self.terms.iter_mut().zip(other.terms).for_each(|(sum, term)| *sum += term);
        self.gain += other.gain;
        self.gained += other.gained;
        for (counts, others) in self.choices.iter_mut().zip(&other.choices) {
            counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
        }
        self.gates.0.iter_mut().zip(other.gates.0).for_each(|(count, other)| *count += other);
        self.episodes.0 += other.episodes.0;
        self.episodes.1 += other.episodes.1;
        self.episodes.2 += other.episodes.2;
        self.seconds.iter_mut().zip(other.seconds).for_each(|(sum, other)| *sum += other);
    }
}
