//! Generalised advantage estimates of one sequence of calls: how much better a call went than the critic
//! thought it would.
//!
//! An episode that ends inside the sequence lends nothing to the calls before it but what comes after its
//! last call: nothing where the job ended, the critic's value where it was only cut short. Where values
//! come from, and in which units they are, is not known here.

/// One sequence of calls of one environment.
#[derive(Debug, Clone, Copy)]
pub struct Sequence<'a> {
    /// The reward of each call.
    pub rewards: &'a [f32],
    /// What the critic said of each call.
    pub values: &'a [f32],
    /// Where an episode ends with a call, what was still to come: 0 where the job terminated, the critic's
    /// value of the last observation where it was truncated. None where the episode goes on.
    pub ends: &'a [Option<f32>],
    /// What the critic says of the call after the sequence; not read where the last call ends an episode.
    pub last: f32,
}

/// How far ahead a call is responsible.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Horizon {
    /// How much the next reward counts (γ).
    pub discount: f32,
    /// How much the next surprise counts (λ).
    pub trace: f32,
}

/// Writes advantages and returns (advantage + value) of a sequence.
///
/// # Panics
/// Where the slices differ in length.
pub fn advantages(sequence: Sequence, horizon: Horizon, advantages: &mut [f32], returns: &mut [f32]) {
    let Sequence { rewards, values, ends, last } = sequence;
    let calls = rewards.len();
    let lengths = [values.len(), ends.len(), advantages.len(), returns.len()];
    assert!(lengths == [calls; 4], "{calls} rewards beside {lengths:?} of the others");
    let (mut next, mut traced) = (last, 0.0);
    for call in (0..calls).rev() {
        if let Some(left) = ends[call] {
            (next, traced) = (left, 0.0);
        }
        let surprise = rewards[call] + horizon.discount * next - values[call];
        traced = surprise + horizon.discount * horizon.trace * traced;
        advantages[call] = traced;
        returns[call] = traced + values[call];
        next = values[call];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALVES: Horizon = Horizon { discount: 0.5, trace: 0.5 };

    fn worked(
        rewards: &[f32],
        values: &[f32],
        ends: &[Option<f32>],
        last: f32,
        by: Horizon,
    ) -> [Vec<f32>; 2] {
        let mut out = [vec![0.0; rewards.len()], vec![0.0; rewards.len()]];
        let [into, returns] = &mut out;
        advantages(Sequence { rewards, values, ends, last }, by, into, returns);
        out
    }

    #[test]
    fn an_episode_that_goes_on_borrows_from_the_value_after_it() {
        // surprises: 1 + 0.5·1 − 2 = −0.5; 2 + 0.5·4 − 1 = 3; 3 + 0.5·8 − 4 = 3
        // traced with 0.25: 3; 3 + 0.75 = 3.75; −0.5 + 0.9375 = 0.4375
        let [advantages, returns] = worked(&[1.0, 2.0, 3.0], &[2.0, 1.0, 4.0], &[None; 3], 8.0, HALVES);
        assert_eq!(advantages, [0.4375, 3.75, 3.0]);
        assert_eq!(returns, [2.4375, 4.75, 7.0]);
    }

    #[test]
    fn a_job_that_ended_has_nothing_to_come() {
        // surprises: −0.5; 2 − 1 = 1 (nothing of the 4 that follows); 3 + 4 − 4 = 3
        let ends = [None, Some(0.0), None];
        let [advantages, returns] = worked(&[1.0, 2.0, 3.0], &[2.0, 1.0, 4.0], &ends, 8.0, HALVES);
        assert_eq!(advantages, [-0.25, 1.0, 3.0]);
        assert_eq!(returns, [1.75, 2.0, 7.0]);
    }

    #[test]
    fn an_episode_cut_short_borrows_from_its_own_last_observation() {
        // The middle: 2 + 0.5·6 − 1 = 4, and nothing traced over the border: −0.5 + 0.25·4 = 0.5
        let ends = [None, Some(6.0), None];
        let [advantages, _] = worked(&[1.0, 2.0, 3.0], &[2.0, 1.0, 4.0], &ends, 8.0, HALVES);
        assert_eq!(advantages, [0.5, 4.0, 3.0]);
        // The last call: 3 + 0.5·6 − 4 = 2, whatever is said of the call after the sequence.
        let ends = [None, None, Some(6.0)];
        let [advantages, _] = worked(&[1.0, 2.0, 3.0], &[2.0, 1.0, 4.0], &ends, f32::NAN, HALVES);
        assert_eq!(advantages, [0.375, 3.5, 2.0]);
    }

    #[test]
    fn every_call_can_be_an_episode() {
        let [advantages, returns] = worked(&[1.0, 2.0], &[0.5, 4.0], &[Some(0.0); 2], 8.0, HALVES);
        assert_eq!(advantages, [0.5, -2.0]);
        assert_eq!(returns, [1.0, 2.0]);
    }

    #[test]
    fn the_ends_of_the_trace_are_one_step_and_the_whole_return() {
        let (rewards, values) = ([1.0, 2.0, 3.0], [2.0, 1.0, 4.0]);
        let one = Horizon { discount: 0.5, trace: 0.0 };
        assert_eq!(worked(&rewards, &values, &[None; 3], 8.0, one)[0], [-0.5, 3.0, 3.0]);
        // 3 + 4 = 7; 2 + 3.5 = 5.5; 1 + 2.75 = 3.75
        let whole = Horizon { discount: 0.5, trace: 1.0 };
        assert_eq!(worked(&rewards, &values, &[None; 3], 8.0, whole)[1], [3.75, 5.5, 7.0]);
        // Nobody looks ahead.
        let now = Horizon { discount: 0.0, trace: 1.0 };
        assert_eq!(worked(&rewards, &values, &[None; 3], 8.0, now)[0], [-1.0, 1.0, -1.0]);
    }

    #[test]
    #[should_panic(expected = "3 rewards beside [2, 3, 3, 3]")]
    fn lengths_must_agree() {
        worked(&[1.0; 3], &[1.0; 2], &[None; 3], 0.0, HALVES);
    }
}
