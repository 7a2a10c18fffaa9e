//! From memory and embedding to the logits of every head, in burn: the equations of `docs/network.md`.

use burn::tensor::{Tensor, activation};
use dynamiccl_policies::network::BANDS;
use dynamiccl_spec::Head;
use dynamiccl_spec::action::HEADS;

use super::chosen::Targets;
use super::leaves::Leaves;

/// The layers that read what is thought of a call.
pub(super) const FIRST: [&str; 4] = ["path", "pair", "resource", "estimate"];

/// What the network says of calls, given what was chosen.
#[derive(Debug)]
pub(super) struct Said {
    /// ln of the probability of every choice, by head.
    pub ln_probabilities: [Tensor<2>; HEADS],
    /// Means of the pairs' ln times, then ln of their spreads.
    pub estimates: Tensor<2>,
    /// Mean of the gain and ln of its spread.
    pub gain: Tensor<2>,
    /// The sums below the resources, for the path that was chosen and without any pair.
    pub resource: Tensor<2>,
}

/// The sums of the [`FIRST`] layers, which read what the expert of a call's role says and what the call reads from the
/// memory. `seen` has [h, e] of the calls of each role.
pub(super) fn first(leaves: &Leaves, seen: impl Iterator<Item = (usize, Tensor<2>)>) -> [Tensor<2>; 4] {
    let thoughts = seen.map(|(role, seen)| {
        let (embedding, read) = read(leaves, seen);
        Tensor::cat(vec![leaves.expert(role, embedding), read], 1)
    });
    let z = Tensor::cat(thoughts.collect(), 0);
    FIRST.map(|name| leaves.layer(name, z.clone()))
}

/// What the network says of calls, given the sums of the [`FIRST`] layers.
pub(super) fn heads(leaves: &Leaves, first: [Tensor<2>; 4], targets: &Targets) -> Said {
    let [path, pair, resource, estimates] = first;
    let chosen = |head: Head| targets.choices[head as usize].clone();
    let ln = |head: Head, logits: Tensor<2>| {
        activation::log_softmax(logits + targets.masks[head as usize].clone(), 1)
    };
    let path = ln(Head::Path, path);
    let anchored = targets.costs.clone() * leaves.get("pair.anchor");
    let pair = ln(Head::Pair, pair - anchored);
    let resource = resource + chosen(Head::Path).matmul(leaves.get("resource.path"));
    let u = leaves.tanh(resource.clone() + chosen(Head::Pair).matmul(leaves.get("resource.pair")));
    let channels = ln(Head::Channels, leaves.layer("channels", u.clone()));
    let of_channels = chosen(Head::Channels).matmul(leaves.get("chunk.channels"));
    let chunk = ln(Head::Chunk, leaves.layer("chunk", u.clone()) + of_channels);
    let threads = ln(Head::Threads, leaves.layer("threads", u.clone()));
    let gain = leaves.layer("gain", u)
        + chosen(Head::Channels).matmul(leaves.get("gain.channels"))
        + chosen(Head::Chunk).matmul(leaves.get("gain.chunk"))
        + chosen(Head::Threads).matmul(leaves.get("gain.threads"));
    Said { ln_probabilities: [path, pair, channels, chunk, threads], estimates, gain, resource }
}

/// The embeddings of calls, and what they read from the memory: its cells, band by band, weighed by their addresses.
fn read(leaves: &Leaves, seen: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let ([calls, width], [embedding, _]) = (seen.dims(), leaves.get("address.weight").dims());
    let memory = width - embedding;
    let slots = memory.div_ceil(BANDS);
    let embeddings = seen.clone().narrow(1, memory, embedding);
    let address = leaves.layer("address", embeddings.clone());
    let missing = Tensor::zeros([calls, slots * BANDS - memory], &seen.device());
    let cells = Tensor::cat(vec![seen.narrow(1, 0, memory), missing], 1).reshape([calls, slots, BANDS]);
    let read = (cells * address.reshape([calls, 1, BANDS])).sum_dim(2).reshape([calls, slots]);
    (embeddings, read)
}
