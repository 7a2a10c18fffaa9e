//! Sequences of a rollout as a network goes through them: in usual units, all sequences side by side.
//!
//! Calls lie time first here: call `t` of the `b`-th sequence is number `t * count + b`.

use dynamiccl_policies::network::EXPERTS;
use dynamiccl_spec::features::catalogue::slot;
use dynamiccl_spec::features::{CONTEXT_WIDTH, HISTORY_WIDTH, JOB_WIDTH};
use ndarray::Array2;

use crate::normal::normalise;
use crate::rollout::{Rollout, Source};

/// Some sequences of a rollout, and the units in which the network sees them.
#[derive(Debug, Clone, Copy)]
pub struct Sequences<'a> {
    /// The rollout.
    pub rollout: &'a Rollout,
    /// Which of its environments.
    pub environments: &'a [usize],
    /// What to take from each number of a context, and what to multiply it with.
    pub context_scaling: &'a [(f32, f32)],
    /// The same for history rows.
    pub history_scaling: &'a [(f32, f32)],
}

/// One call of the sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    /// Its row in the rollout.
    pub row: usize,
    /// Its number here.
    pub number: usize,
    /// Which of the states its decision saw: see [`Inputs::held`].
    pub state: usize,
}

/// What goes into the network.
#[derive(Debug, Clone)]
pub(super) struct Inputs {
    /// Sequences.
    pub count: usize,
    /// Calls, in the order of their numbers.
    pub calls: Vec<Call>,
    /// Contexts: first those of the calls before the sequences, then by call.
    pub contexts: Array2<f32>,
    /// History rows, by call; 0 where an episode begins.
    pub histories: Array2<f32>,
    /// Whether an episode begins, by call.
    pub begins: Vec<bool>,
    /// h before the sequences.
    pub hidden: Array2<f32>,
    /// c before the sequences.
    pub cell: Array2<f32>,
    /// What decisions saw of h before the sequences. It heads the list of states that decisions see: these,
    /// the one with which a job begins, then those after each call.
    pub held: Array2<f32>,
}

impl Inputs {
    pub fn new(of: &Sequences<'_>, memory: usize) -> Self {
        let (rollout, count) = (of.rollout, of.environments.len());
        let calls = count * rollout.steps;
        let mut inputs = Inputs {
            count,
            calls: Vec::with_capacity(calls),
            contexts: Array2::zeros((calls + count, CONTEXT_WIDTH)),
            histories: Array2::zeros((calls, HISTORY_WIDTH)),
            begins: Vec::with_capacity(calls),
            hidden: Array2::zeros((count, memory)),
            cell: Array2::zeros((count, memory)),
            held: Array2::zeros((count, memory)),
        };
        for step in 0..rollout.steps {
            for (at, environment) in of.environments.iter().enumerate() {
                inputs.add_call(rollout, environment * rollout.steps + step, step, at);
            }
        }
        for (at, &environment) in of.environments.iter().enumerate() {
            inputs.add_sequence(of, environment, at);
        }
        inputs
    }

    fn add_call(&mut self, rollout: &Rollout, row: usize, step: usize, at: usize) {
        let state = match rollout.sources[row] {
            Source::Held => at,
            Source::Initial => self.count,
            Source::After(step) => self.count + 1 + usize::from(step) * self.count + at,
        };
        self.calls.push(Call { row, number: step * self.count + at, state });
        self.begins.push(rollout.begins[row]);
    }

    fn add_sequence(&mut self, of: &Sequences<'_>, environment: usize, at: usize) {
        let contexts = of.rollout.contexts_of(environment).chunks_exact(CONTEXT_WIDTH);
        for (step, context) in contexts.enumerate() {
            fill(&mut self.contexts, step * self.count + at, context, of.context_scaling);
        }
        let histories = of.rollout.histories_of(environment).chunks_exact(HISTORY_WIDTH);
        for (step, history) in histories.enumerate() {
            let number = step * self.count + at;
            if !self.begins[number] {
                fill(&mut self.histories, number, history, of.history_scaling);
            }
        }
        let memory = self.held.ncols();
        let states = of.rollout.states[environment * 3 * memory..].chunks_exact(memory);
        for (into, state) in [&mut self.hidden, &mut self.cell, &mut self.held].into_iter().zip(states) {
            into.row_mut(at).iter_mut().zip(state).for_each(|(into, x)| *into = *x);
        }
    }
}

fn fill(into: &mut Array2<f32>, at: usize, row: &[f32], scaling: &[(f32, f32)]) {
    let mut into = into.row_mut(at);
    let into = into.as_slice_mut().expect("rows one after the other");
    into.copy_from_slice(row);
    normalise(scaling, into);
}

/// The role that a context names, as the network reads it: the first where it names none.
pub(super) fn role(context: &[f32]) -> usize {
    let slot = slot("pipeline_role").expect("a feature of this encoding");
    let role = context[slot].iter().position(|&x| x == 1.0).unwrap_or(0);
    debug_assert!(role < EXPERTS);
    role
}

/// The features of NCCL's predicted times in a context.
pub(super) fn costs(context: &[f32]) -> &[f32] {
    let slot = slot("nccl_cost").expect("a feature of this encoding");
    &context[JOB_WIDTH..][slot]
}
