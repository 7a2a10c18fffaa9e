//! The order in which a collective goes round: through every GPU of a datacentre, then on to the next.

use super::Network;

/// GPUs in the order of the ring. Those of a datacentre follow each other, so that there are as many crossings
/// as datacentres and never more.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ring(pub(super) Vec<u16>);

impl Ring {
    /// Datacentre by datacentre, GPU by GPU.
    pub fn usual(network: &Network) -> Self {
        Ring((0..network.gpus() as u16).collect())
    }

    /// The GPUs, in order.
    pub fn gpus(&self) -> &[u16] {
        &self.0
    }

    /// Every hop: the GPU that sends and the one that receives.
    #[inline]
    pub fn hops(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let next = self.0.iter().cycle().skip(1);
        self.0.iter().zip(next).map(|(&from, &to)| (usize::from(from), usize::from(to)))
    }

    /// Whether it goes through every GPU once and through every datacentre in one go.
    #[cfg(test)]
    pub fn is_of(&self, network: &Network) -> bool {
        let mut gpus = self.0.clone();
        gpus.sort_unstable();
        let crossings = self.hops().filter(|&(from, to)| network.home(from) != network.home(to)).count();
        gpus == Ring::usual(network).0 && crossings == network.datacentres().len()
    }
}
