//! A memory that starts as a table: for each pair and band of sizes, how far from what was expected its times were.
//!
//! Left to itself an LSTM takes tens of millions of calls to find out what to remember of them. So its cells start
//! with a meaning, in two halves. A *note* says how much slower than expected a pair was in a band; a *mark* says
//! that the pair was measured there. While a pair has no mark, its note follows whatever else is measured in the
//! band, because what makes one pair slow there makes all of them slow; once it has one, only its own times count.
//! A call starts with reading the band of its size, and with taking notes for what they say. Everything stays free
//! to be learned otherwise.

use dynamiccl_policies::network::{BANDS, Shape};
use dynamiccl_spec::features::catalogue::slot;
use dynamiccl_spec::features::{HISTORY_WIDTH, JOB_WIDTH, SIZE_SCALE, TIME_SCALE};
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Algorithm, Pair, Path, Protocol};

use crate::normal::Scaling;
use crate::params::{Layout, Params};

/// log2 of the sizes between two bands: between powers of two, which most sizes are.
const EDGES: [f32; BANDS - 1] = [11.5, 13.5, 15.5, 17.5, 19.5, 21.5, 23.5, 25.5, 27.5, 29.5];
/// How sharply a unit tells sizes below an edge from those above, per octave.
const SHARP: f32 = 4.0;
/// How far a gate is shut where a condition of its writing does not hold.
const CONDITION: f32 = 9.0;
/// How far a note is opened by a time of its own pair. The first such time replaces what was guessed.
const OWN_TIME: f32 = 6.0;
/// How far it is shut by a mark, so that a further time of its own replaces half of it and others nothing.
const MARKED: f32 = 9.0;
/// What a mark is made of.
const MARK: f32 = 2.0;
/// How open output gates are.
const OPEN: f32 = 3.0;
/// How much more a read number is than what the cells hold: weights after it can then be small.
const LOUD: f32 = 10.0;

/// How much a note that a pair is slower (by so much ln) lowers its logit.
const BELIEF: f32 = 8.0;
/// How much a mark lowers it.
const BOREDOM: f32 = 2.0;

/// Gates of an LSTM, in the order of its columns.
#[derive(Debug, Clone, Copy)]
enum Gate {
    Input,
    Forget,
    Candidate,
    Output,
}

/// The pairs that have a row in the table.
fn pairs() -> Vec<usize> {
    let kept = |pair: Pair| match pair.algorithm {
        Algorithm::Tree | Algorithm::Ring => true,
        Algorithm::Nvls | Algorithm::NvlsTree | Algorithm::Pat => pair.protocol == Protocol::Simple,
        Algorithm::CollnetDirect | Algorithm::CollnetChain => false,
    };
    (0..PAIRS).filter(|&pair| Pair::from_index(pair).is_some_and(kept)).collect()
}

/// Whether a network is wide enough for the table.
pub fn fits(shape: &Shape) -> bool {
    shape.embedding >= EDGES.len() && shape.memory >= 2 * pairs().len() * BANDS
}

/// What share of the learning rate each parameter gets, where those that make the table get `slow`: what they mean is
/// lost sooner than something better is found.
pub fn pace(layout: &Layout, slow: f32) -> Vec<f32> {
    let mut pace = vec![1.0; layout.len()];
    let width = layout.shape.embedding;
    for tensor in layout.tensors() {
        let part = &mut pace[tensor.range.clone()];
        match tensor.name.split('.').next() {
            Some("lstm" | "memory" | "address") => part.fill(slow),
            Some("embed") => part.chunks_exact_mut(width).for_each(|row| row[..EDGES.len()].fill(slow)),
            _ => {}
        }
    }
    pace
}

/// Lets a memory start as a table.
pub fn lay(params: &mut Params, contexts: &Scaling, histories: &Scaling) {
    let pairs = pairs();
    tell_sizes(params, contexts);
    let mut table = Table { params, histories };
    for (at, &pair) in pairs.iter().enumerate() {
        for band in 0..BANDS {
            let (note, mark) = (at * BANDS + band, (pairs.len() + at) * BANDS + band);
            table.note(note, mark, pair, band);
            table.mark(mark, pair, band);
        }
    }
    look_up(params);
    believe(params, &pairs);
}

/// Lets the first numbers of an embedding say on which side of each edge a size is.
fn tell_sizes(params: &mut Params, contexts: &Scaling) {
    let width = params.layout().shape.embedding;
    let size = JOB_WIDTH + slot("log2_bytes").expect("a feature").start;
    let (mean, scale) = contexts[size];
    for (unit, edge) in EDGES.into_iter().enumerate() {
        let slope = SHARP * SIZE_SCALE;
        let weight = params.tensor_mut("embed.weight");
        weight[unit..].iter_mut().step_by(width).for_each(|x| *x = 0.0);
        weight[size * width + unit] = slope / scale;
        params.tensor_mut("embed.bias")[unit] = slope * mean - SHARP * edge;
    }
}

/// Whether a size is in a band, as weights of an embedding's numbers and a constant: 1 inside, 0 outside.
fn in_band(band: usize) -> (Vec<(usize, f32)>, f32) {
    let below = band.checked_sub(1).map(|edge| (edge, 0.5));
    let above = (band < EDGES.len()).then_some((band, -0.5));
    let ends = usize::from(below.is_none()) + usize::from(above.is_none());
    (below.into_iter().chain(above).collect(), 0.5 * ends as f32)
}

/// The cells of the LSTM while they get their meaning.
struct Table<'a> {
    params: &'a mut Params,
    histories: &'a Scaling,
}

impl Table<'_> {
    /// Lets a cell keep how much slower than expected a pair was in a band.
    fn note(&mut self, cell: usize, mark: usize, pair: usize, band: usize) {
        for (gate, sign) in [(Gate::Input, 1.0), (Gate::Forget, -1.0)] {
            self.begin(gate, cell, 0.0);
            self.where_measured(gate, cell, band, sign);
            self.history(gate, cell, feature("last_pair") + pair, sign * OWN_TIME);
            self.hidden(gate, cell, mark, -sign * MARKED);
        }
        self.begin(Gate::Candidate, cell, 0.0);
        self.history(Gate::Candidate, cell, feature("last_time"), TIME_SCALE);
        self.begin(Gate::Output, cell, OPEN);
    }

    /// Lets a cell keep that a pair was measured in a band.
    fn mark(&mut self, cell: usize, pair: usize, band: usize) {
        for (gate, sign) in [(Gate::Input, 1.0), (Gate::Forget, -1.0)] {
            self.begin(gate, cell, sign * (OPEN - CONDITION));
            self.where_measured(gate, cell, band, sign);
            self.history(gate, cell, feature("last_pair") + pair, sign * CONDITION);
        }
        self.begin(Gate::Candidate, cell, MARK);
        self.begin(Gate::Output, cell, OPEN);
    }

    /// Shuts a gate but for calls in a band that were measured and that NCCL's pairs carried.
    fn where_measured(&mut self, gate: Gate, cell: usize, band: usize, sign: f32) {
        let (of_band, inside) = in_band(band);
        let column = self.column(gate, cell);
        self.params.tensor_mut("lstm.bias")[column] -= sign * CONDITION * (2.0 - inside);
        let columns = 4 * self.params.layout().shape.memory;
        for (unit, weight) in of_band {
            self.params.tensor_mut("lstm.weight")[unit * columns + column] = sign * CONDITION * weight;
        }
        self.history(gate, cell, feature("has_feedback"), sign * CONDITION);
        for elsewhere in [Path::InNetwork, Path::Synthesised] {
            self.history(gate, cell, feature("last_path") + elsewhere.id(), -sign * CONDITION);
        }
    }

    /// Leaves no weight for a gate of a cell but this one.
    fn begin(&mut self, gate: Gate, cell: usize, bias: f32) {
        let (column, columns) = (self.column(gate, cell), 4 * self.params.layout().shape.memory);
        let weight = self.params.tensor_mut("lstm.weight");
        weight[column..].iter_mut().step_by(columns).for_each(|x| *x = 0.0);
        self.params.tensor_mut("lstm.bias")[column] = bias;
    }

    /// Lets a number of the history row count so much, however rows are scaled.
    fn history(&mut self, gate: Gate, cell: usize, feature: usize, weight: f32) {
        let (mean, scale) = self.histories[feature];
        let Shape { embedding, memory, .. } = self.params.layout().shape;
        let column = self.column(gate, cell);
        self.params.tensor_mut("lstm.weight")[(embedding + feature) * 4 * memory + column] = weight / scale;
        self.params.tensor_mut("lstm.bias")[column] += weight * mean;
    }

    /// Lets another cell count so much.
    fn hidden(&mut self, gate: Gate, cell: usize, other: usize, weight: f32) {
        let Shape { embedding, memory, .. } = self.params.layout().shape;
        let column = self.column(gate, cell);
        self.params.tensor_mut("lstm.weight")[(embedding + HISTORY_WIDTH + other) * 4 * memory + column] =
            weight;
    }

    fn column(&self, gate: Gate, cell: usize) -> usize {
        gate as usize * self.params.layout().shape.memory + cell
    }
}

fn feature(name: &str) -> usize {
    slot(name).expect("a feature of this encoding").start
}

/// Lets a call read the band that its size is in.
fn look_up(params: &mut Params) {
    params.tensor_mut("address.weight").fill(0.0);
    for band in 0..BANDS {
        let (of_band, inside) = in_band(band);
        for (number, side) in of_band {
            params.tensor_mut("address.weight")[number * BANDS + band] = LOUD * side;
        }
        params.tensor_mut("address.bias")[band] = LOUD * inside;
    }
}

/// Lets a note of a pair count as a longer time of it, and a mark as a reason to try another.
fn believe(params: &mut Params, pairs: &[usize]) {
    let Shape { expert, resource, .. } = params.layout().shape;
    params.tensor_mut("resource.weight")[expert * resource..].fill(0.0);
    for (slot, pair) in pairs.iter().enumerate() {
        params.tensor_mut("pair.weight")[(expert + slot) * PAIRS + pair] = -BELIEF / LOUD;
        params.tensor_mut("pair.weight")[(expert + pairs.len() + slot) * PAIRS + pair] = -BOREDOM / LOUD;
        params.tensor_mut("estimate.weight")[(expert + slot) * 2 * PAIRS + pair] = 1.0 / LOUD;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dynamiccl_policies::network::{Memory, Network, Scratch, greedy};
    use dynamiccl_spec::features::{CALL_WIDTH, CONTEXT_WIDTH};
    use dynamiccl_spec::{Head, Mask};

    use super::*;
    use crate::config::NetworkConfig;
    use crate::normal::Normaliser;

    const SLOW: usize = 3;
    const FAST: usize = 5;

    /// A network that starts as a table, and what it has seen.
    struct Reader {
        network: Network,
        memory: Memory,
        scratch: Scratch,
    }

    impl Reader {
        fn new() -> Self {
            let layout = Arc::new(Layout::new(&NetworkConfig::default(), 0));
            let mut params = Params::new(layout);
            params.tensor_mut("pair.anchor").fill(1.0);
            let [contexts, histories] = [CONTEXT_WIDTH, HISTORY_WIDTH].map(Normaliser::new);
            lay(&mut params, &contexts.scaling(), &histories.scaling());
            let network = Network::new(&params.folded(&contexts, &histories));
            Reader { memory: network.memory(), scratch: network.scratch(), network }
        }

        fn call(octave: u32) -> [f32; CALL_WIDTH] {
            let mut call = [0.0; CALL_WIDTH];
            call[feature("log2_bytes")] = octave as f32 / SIZE_SCALE;
            call
        }

        /// Lets it see that a pair took so much longer than expected.
        fn sees(&mut self, octave: u32, pair: usize, slower: f32) {
            self.sees_on(Path::Nccl, octave, pair, slower);
        }

        /// The same of a call that this path carried.
        fn sees_on(&mut self, path: Path, octave: u32, pair: usize, slower: f32) {
            let Reader { network, memory, scratch } = self;
            let mut job = network.job_sum();
            network.sum_job(&[0.0; JOB_WIDTH], &mut job);
            let mut seen = network.embed(&job, &Self::call(octave), scratch).to_vec();
            let mut history = [0.0; HISTORY_WIDTH];
            history[feature("has_feedback")] = 1.0;
            history[feature("last_path") + path.id()] = 1.0;
            history[feature("last_pair") + pair] = 1.0;
            history[feature("last_time")] = slower / TIME_SCALE;
            seen.extend(history);
            network.refresh(&seen, memory, scratch);
        }

        /// How much sooner it takes the fast pair than the slow one.
        fn prefers(&mut self, octave: u32) -> f32 {
            let Reader { network, memory, scratch } = self;
            let mut job = network.job_sum();
            network.sum_job(&[0.0; JOB_WIDTH], &mut job);
            let mut by = 0.0;
            network.act(&job, &Self::call(octave), memory, &Mask::ALL, scratch, |head, logits| {
                if head == Head::Pair {
                    by = logits[FAST] - logits[SLOW];
                }
                greedy(logits, 0)
            });
            by
        }
    }

    /// Powers of two lie inside of bands, two in each, and what was measured there says nothing about others.
    #[test]
    fn what_was_measured_counts_in_its_band_and_nowhere_else() {
        for octave in 10..=30 {
            let mut reader = Reader::new();
            assert_eq!(reader.prefers(octave), 0.0);
            reader.sees(octave, SLOW, 0.3);
            reader.sees(octave, FAST, 0.0);
            for other in 10..=30 {
                let by = reader.prefers(other);
                if octave / 2 == other / 2 {
                    assert!(by > 0.2 * BELIEF && by < 0.3 * BELIEF, "{octave} {other}: {by}");
                } else {
                    assert!(by.abs() < 0.02 * BELIEF, "{octave} {other}: {by}");
                }
            }
        }
    }

    /// What makes one pair slower than expected makes others slower too, but not as much: the worse the first did, the
    /// sooner another is tried.
    #[test]
    fn a_pair_that_was_not_tried_comes_before_one_that_did_badly() {
        let by = [-0.3, 0.0, 0.3].map(|slower| {
            let mut reader = Reader::new();
            reader.sees(20, SLOW, slower);
            reader.prefers(20)
        });
        assert!(by.is_sorted() && by[1] > 0.5 * BOREDOM && by[2] < BOREDOM + 0.3 * BELIEF, "{by:?}");
    }

    #[test]
    fn what_other_paths_take_says_nothing_of_a_pair() {
        for path in [Path::InNetwork, Path::Synthesised] {
            let mut reader = Reader::new();
            reader.sees_on(path, 20, SLOW, 0.3);
            let by = reader.prefers(20);
            assert!(by.abs() < 0.02 * BELIEF, "{path:?}: {by}");
        }
    }

    #[test]
    fn it_is_still_known_after_a_thousand_other_calls() {
        let mut reader = Reader::new();
        reader.sees(20, SLOW, 0.3);
        reader.sees(20, FAST, 0.0);
        for call in 0..1000 {
            reader.sees(10 + 2 * (call % 4), SLOW, -0.2);
        }
        let by = reader.prefers(20);
        assert!(by > 0.15 * BELIEF, "{by}");
    }

    #[test]
    fn only_what_makes_the_table_is_slow() {
        let layout = Layout::new(&NetworkConfig::default(), 0);
        let pace = pace(&layout, 0.1);
        let of = |name: &str| &pace[layout.tensor(name).range.clone()];
        assert!(of("lstm.weight").iter().chain(of("address.bias")).all(|share| *share == 0.1));
        assert!(of("pair.weight").iter().chain(of("critic.value.weight")).all(|share| *share == 1.0));
        let first = &of("embed.weight")[..layout.shape.embedding];
        assert_eq!(first.iter().filter(|share| **share == 0.1).count(), EDGES.len());
    }
}
