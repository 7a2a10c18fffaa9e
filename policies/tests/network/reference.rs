//! The equations of `docs/network.md`, number by number: packed weights and partial sums change no bit.

use dynamiccl_policies::network::activation::{sigmoid, tanh};
use dynamiccl_policies::network::{Acted, BANDS, EXPERTS, Gain, Network, Shape, Weights, greedy};
use dynamiccl_policies::probe::{Call, weights};
use dynamiccl_policies::random::Random;
use dynamiccl_spec::features::catalogue::slot;
use dynamiccl_spec::features::{CALL_WIDTH, CONTEXT_WIDTH, Encoder, HISTORY_WIDTH, JOB_WIDTH};
use dynamiccl_spec::{Choice, Head, Mask};

/// Widths none of which fills the blocks that the weights are packed in.
pub const ODD: Shape = Shape { embedding: 24, memory: 40, expert: 56, resource: 8 };

struct Reference<'a>(&'a Weights);

impl Reference<'_> {
    fn get(&self, name: &str) -> &[f32] {
        self.0.get(name).unwrap()
    }

    /// bias + Σ weight · input, for every output.
    fn sums(&self, weight: &[f32], bias: &[f32], inputs: &[f32]) -> Vec<f32> {
        assert_eq!(weight.len(), bias.len() * inputs.len());
        let sum = |output: usize| {
            let products = inputs.iter().enumerate().map(|(at, x)| weight[at * bias.len() + output] * x);
            products.fold(bias[output] + 0.0, |sum, product| sum + product)
        };
        (0..bias.len()).map(sum).collect()
    }

    fn layer(&self, name: &str, inputs: &[f32]) -> Vec<f32> {
        self.sums(self.get(&format!("{name}.weight")), self.get(&format!("{name}.bias")), inputs)
    }

    fn row(&self, name: &str, value: usize, width: usize) -> &[f32] {
        &self.get(name)[value * width..][..width]
    }

    fn embedding(&self, context: &[f32]) -> Vec<f32> {
        self.layer("embed", context).into_iter().map(tanh).collect()
    }

    fn step(&self, call: &[f32], hidden: &mut [f32], cell: &mut [f32]) {
        let gates = self.layer("lstm", &[call, hidden].concat());
        let cells = cell.len();
        for at in 0..cells {
            let [i, f, g, o] = [0, 1, 2, 3].map(|gate| gates[gate * cells + at]);
            cell[at] = sigmoid(f) * cell[at] + sigmoid(i) * tanh(g);
            hidden[at] = sigmoid(o) * tanh(cell[at]);
        }
    }

    /// What an expert says, and what is read.
    fn expert(&self, context: &[f32], hidden: &[f32]) -> Vec<f32> {
        let slot = slot("pipeline_role").unwrap();
        let role = context[slot].iter().position(|&x| x == 1.0).unwrap();
        let part = |name| {
            let tensor = self.get(name);
            &tensor[role * tensor.len() / EXPERTS..][..tensor.len() / EXPERTS]
        };
        let embedding = self.embedding(context);
        let said = self.sums(part("expert.weight"), part("expert.bias"), &embedding).into_iter().map(tanh);
        said.chain(self.read(context, hidden)).collect()
    }

    /// What a call reads from the memory.
    fn read(&self, context: &[f32], hidden: &[f32]) -> Vec<f32> {
        let address = self.layer("address", &self.embedding(context));
        let of =
            |cells: &[f32]| cells.iter().zip(&address).fold(0.0, |sum, (cell, weight)| sum + cell * weight);
        hidden.chunks(BANDS).map(of).collect()
    }

    fn act(&self, context: &[f32], hidden: &[f32], mask: &Mask, own: usize) -> (Acted, Vec<f32>) {
        let z = self.expert(context, hidden);
        let pick = |head, logits: Vec<f32>, own| {
            let masked = |(at, x): (usize, f32)| if mask.allows(head, at) { x } else { f32::NEG_INFINITY };
            greedy(&logits.into_iter().enumerate().map(masked).collect::<Vec<_>>(), own)
        };
        let add =
            |sums: Vec<f32>, row: &[f32]| -> Vec<f32> { sums.iter().zip(row).map(|(a, b)| a + b).collect() };
        let path = pick(Head::Path, self.layer("path", &z), 0);
        let cost = &context[JOB_WIDTH..][slot("nccl_cost").unwrap()];
        let anchor = self.get("pair.anchor")[0];
        let pairs = self.layer("pair", &z).into_iter().zip(cost).map(|(x, cost)| x - anchor * (8.0 * cost));
        let pair = pick(Head::Pair, pairs.collect(), own);
        let width = self.0.shape().resource;
        let u = add(self.layer("resource", &z), self.row("resource.path", path, width));
        let u: Vec<f32> = add(u, self.row("resource.pair", pair, width)).into_iter().map(tanh).collect();
        let channels = pick(Head::Channels, self.layer("channels", &u), 0);
        let chunk = add(self.layer("chunk", &u), self.row("chunk.channels", channels, Head::Chunk.size()));
        let chunk = pick(Head::Chunk, chunk, 0);
        let threads = pick(Head::Threads, self.layer("threads", &u), 0);
        let gain = add(self.layer("gain", &u), self.row("gain.channels", channels, 2));
        let gain = add(gain, self.row("gain.chunk", chunk, 2));
        let gain = add(gain, self.row("gain.threads", threads, 2));
        let choice = Choice([path, pair, channels, chunk, threads].map(|index| index as u8));
        (Acted { choice, gain: Gain { mean: gain[0], ln_spread: gain[1] } }, self.layer("estimate", &z))
    }
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

fn follows_the_equations(shape: Shape, calls: usize) {
    let weights = weights(shape, 11);
    let (network, reference) = (Network::new(&weights), Reference(&weights));
    let (mut memory, mut scratch, mut job) = (network.memory(), network.scratch(), network.job_sum());
    let (mut hidden, mut cell) = (memory.hidden().to_vec(), memory.cell().to_vec());
    let mut random = Random::new(3);
    for number in 0..calls {
        let made_up = Call::draw(&mut random);
        let query = made_up.query();
        let (mut context, mut call) = ([0.0; CONTEXT_WIDTH], [0.0; CALL_WIDTH]);
        query.encoder.context(query.call, &mut context);
        query.encoder.call(query.call, &mut call);
        let own = query.gated.own.map_or(0, |pair| pair.index());
        let (expected, estimates) = reference.act(&context, &hidden, &query.gated.mask, own);
        network.sum_job(query.encoder.job(), &mut job);
        let choose = |head, logits: &[f32]| greedy(logits, if head == Head::Pair { own } else { 0 });
        let acted = network.act(&job, &call, &memory, &query.gated.mask, &mut scratch, choose);
        assert_eq!(acted, expected, "call {number}");
        let means = scratch.estimates().0;
        assert_eq!(bits(&means), bits(&estimates[..means.len()]));
        assert_eq!(bits(network.ln_spreads(&mut scratch)), bits(&estimates[means.len()..]));
        let mut history = [0.0; HISTORY_WIDTH];
        Encoder::history(query.past, &mut history);
        let row = [network.embed(&job, &call, &mut scratch), &history].concat();
        assert_eq!(bits(&row), bits(&[&reference.embedding(&context)[..], &history].concat()));
        reference.step(&row, &mut hidden, &mut cell);
        network.refresh(&row, &mut memory, &mut scratch);
        assert_eq!(bits(memory.hidden()), bits(&hidden));
        assert_eq!(bits(memory.cell()), bits(&cell));
    }
}

#[test]
fn the_usual_shape_follows_the_equations() {
    follows_the_equations(Shape::default(), 100);
}

#[test]
fn an_odd_shape_follows_the_equations() {
    follows_the_equations(ODD, 300);
}
