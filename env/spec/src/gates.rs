//! The gates: what no policy may decide, whatever its network says.
//!
//! They stand here once because three parties apply them: the environment while training, the guard
//! in front of a frozen policy, and the plugin inside a job. A gate works by taking choices away;
//! what is left always holds "NCCL's own", so a gate can never leave a call without an answer.

use serde::{Deserialize, Serialize};

use crate::action::{Choice, Head, Mask};
use crate::context::{CclLibrary, Topology};
use crate::ids::{Algorithm, Collective, Pair};
use crate::knobs::{ChannelChoice, ChunkChoice, Knobs, Path, ThreadChoice};
use crate::overrides::Overrides;
use crate::table::{CostTable, PairMask};
use crate::words::word_enum;

/// Number of gates.
pub const GATES: usize = 5;

word_enum! {
    /// A reason why a choice was not the policy's.
    Gate, "gate", {
        /// Switches aggregate the reduction: NCCL's knobs would do it twice.
        InNetwork = 0 => "in_network",
        /// Another library carries the call: it keeps its own default.
        ForeignLibrary = 1 => "foreign_library",
        /// NCCL marks the pair as unavailable.
        Unavailable = 2 => "unavailable",
        /// The algorithm may add in another order from one call to the next.
        Deterministic = 3 => "deterministic",
        /// The user has fixed it.
        UserOverride = 4 => "user_override",
    }
}

/// A set of gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GateSet(u8);

impl GateSet {
    /// This set and one gate more.
    pub const fn with(self, gate: Gate) -> Self {
        GateSet(self.0 | 1 << gate as u8)
    }

    /// This set, and the gate if it fired.
    pub const fn with_if(self, gate: Gate, fired: bool) -> Self {
        if fired { self.with(gate) } else { self }
    }

    /// The set as bits by the gates' ids.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether the gate is in the set.
    pub const fn contains(self, gate: Gate) -> bool {
        self.0 & (1 << gate as u8) != 0
    }

    /// The gates in the set.
    pub fn iter(self) -> impl Iterator<Item = Gate> {
        Gate::ALL.iter().copied().filter(move |&gate| self.contains(gate))
    }
}

/// How often each gate fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GateCounts(pub [u64; GATES]);

impl GateCounts {
    /// Counts a call at which these gates fired.
    pub fn add(&mut self, fired: GateSet) {
        for gate in fired.iter() {
            self.0[gate as usize] += 1;
        }
    }

    /// How often a gate fired.
    pub const fn of(&self, gate: Gate) -> u64 {
        self.0[gate as usize]
    }
}

/// What holds for a communicator, before any call is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gates {
    in_network: bool,
    foreign: bool,
    deterministic: bool,
    overrides: Overrides,
}

/// What the gates leave of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gated {
    /// What may be chosen. Threads are left to the caller, who knows whether it is the first call.
    pub mask: Mask,
    /// NCCL's pick among what is left; none where the call is not NCCL's to tune.
    pub own: Option<Pair>,
    /// The gates that took a choice away.
    pub fired: GateSet,
}

impl Gates {
    /// The gates of a communicator.
    pub fn new(topology: &Topology, deterministic: bool, overrides: Overrides) -> Self {
        Gates {
            in_network: topology.in_network == Some(true),
            // Only NCCL asks a tuner, so a library that nobody named is NCCL.
            foreign: !matches!(topology.library, CclLibrary::Nccl | CclLibrary::Unknown),
            deterministic,
            overrides,
        }
    }

    /// Narrows a call whose table NCCL has filled.
    #[inline]
    pub fn narrow(&self, collective: Collective, table: &CostTable) -> Gated {
        let own_only = Mask::ALL
            .only(Head::Path, Path::Nccl as usize)
            .only(Head::Channels, 0)
            .only(Head::Chunk, 0)
            .only(Head::Threads, 0);
        let available = table.mask();
        let Some((best, _)) = table.best() else {
            return Gated { mask: own_only.with_pairs(PairMask::NONE), own: None, fired: GateSet::default() };
        };
        let only_best = own_only.with_pairs(PairMask::NONE.with(best));
        if self.foreign {
            let fired = GateSet::default().with(Gate::ForeignLibrary);
            return Gated { mask: only_best, own: Some(best), fired };
        }
        // Switches add in an order of their own.
        if self.in_network && !self.deterministic && collective.reduces() {
            let mask = only_best.only(Head::Path, Path::InNetwork as usize);
            return Gated { mask, own: Some(best), fired: GateSet::default().with(Gate::InNetwork) };
        }
        let ordered = if self.deterministic { ordered(collective, available) } else { available };
        let pairs = if ordered.is_empty() { PairMask::NONE.with(best) } else { ordered };
        let fired = GateSet::default()
            .with_if(Gate::Deterministic, pairs != available)
            .with_if(Gate::UserOverride, self.user_fixed(collective))
            .with_if(
                Gate::Unavailable,
                available != catalogue(collective).and(self.overrides.mask(collective)),
            );
        let mut mask = Mask::ALL.only(Head::Path, Path::Nccl as usize).with_pairs(pairs);
        let limited = self.overrides.min_channels.is_some() || self.overrides.max_channels.is_some();
        let unchecked = self.overrides.gathers_broadcasts && collective == Collective::AllGather;
        if limited || unchecked {
            mask = mask.only(Head::Channels, 0);
        }
        if self.overrides.threads.is_some() || self.overrides.ll128_threads.is_some() {
            mask = mask.only(Head::Threads, 0);
        }
        let own = if pairs == available { Some(best) } else { table.best_of(pairs).map(|(pair, _)| pair) };
        Gated { mask, own, fired }
    }

    fn user_fixed(&self, collective: Collective) -> bool {
        let fixed = &self.overrides;
        let numbers = [fixed.threads, fixed.ll128_threads, fixed.min_channels, fixed.max_channels];
        fixed.mask(collective) != PairMask::ALL || numbers.into_iter().any(|number| number.is_some())
    }
}

impl Gated {
    /// The same where a runtime can run a synthesised schedule for the call. Nothing is added where a gate has
    /// decided, or where the user has fixed how NCCL is to carry it.
    pub fn with_schedule(self) -> Gated {
        let settled = [Gate::InNetwork, Gate::ForeignLibrary, Gate::UserOverride];
        if self.own.is_none() || settled.iter().any(|&gate| self.fired.contains(gate)) {
            return self;
        }
        let paths = self.mask.bits(Head::Path) | 1 << Path::Synthesised.id();
        Gated { mask: self.mask.with(Head::Path, paths), ..self }
    }

    /// Whether a synthesised schedule may be chosen.
    pub const fn has_schedule(&self) -> bool {
        self.mask.allows(Head::Path, Path::Synthesised as usize)
    }

    /// What becomes of a wish: itself where every part of it is left, NCCL's own otherwise, and why.
    pub fn pass(&self, wish: &Knobs) -> (Knobs, Option<Gate>) {
        if self.own.is_none() {
            return (Knobs::OWN, None);
        }
        if self.fired.contains(Gate::InNetwork) {
            return (Knobs { path: Path::InNetwork, ..Knobs::OWN }, Some(Gate::InNetwork));
        }
        if self.fired.contains(Gate::ForeignLibrary) {
            return (Knobs::OWN, Some(Gate::ForeignLibrary));
        }
        let mut passed = *wish;
        let mut gate = None;
        if let Some(pair) = wish.pair.filter(|pair| !self.mask.allows(Head::Pair, pair.index())) {
            (passed.pair, passed.channels, passed.chunk) = (self.own, ChannelChoice::OWN, ChunkChoice::Own);
            gate = Some(if self.fired.contains(Gate::Deterministic) && keeps_no_order(pair.algorithm) {
                Gate::Deterministic
            } else {
                Gate::Unavailable
            });
        }
        if wish.path != Path::Nccl && !self.mask.allows(Head::Path, wish.path.id()) {
            (passed.path, gate) = (Path::Nccl, gate.or(Some(Gate::Unavailable)));
        }
        for head in [Head::Channels, Head::Chunk, Head::Threads] {
            if self.allows(head, &passed) {
                continue;
            }
            match head {
                Head::Channels => passed.channels = ChannelChoice::OWN,
                Head::Chunk => passed.chunk = ChunkChoice::Own,
                _ => passed.threads = ThreadChoice::OWN,
            }
            let user = self.fired.contains(Gate::UserOverride);
            gate = if user { Some(Gate::UserOverride) } else { gate.or(Some(Gate::Unavailable)) };
        }
        (passed, gate)
    }

    fn allows(&self, head: Head, knobs: &Knobs) -> bool {
        self.own.is_some_and(|own| self.mask.allows(head, Choice::of(knobs, own).index(head)))
    }
}

/// The pairs that NCCL has code for.
pub fn catalogue(collective: Collective) -> PairMask {
    Pair::all().filter(|pair| pair.exists_for(collective)).fold(PairMask::NONE, PairMask::with)
}

/// The pairs that add in the same order at every call, where the collective adds at all.
fn ordered(collective: Collective, pairs: PairMask) -> PairMask {
    let keeps_order = |pair: &Pair| !collective.reduces() || !keeps_no_order(pair.algorithm);
    pairs.iter().filter(keeps_order).fold(PairMask::NONE, PairMask::with)
}

/// Whether a switch adds, in whatever order data arrive.
fn keeps_no_order(algorithm: Algorithm) -> bool {
    matches!(
        algorithm,
        Algorithm::Nvls | Algorithm::NvlsTree | Algorithm::CollnetDirect | Algorithm::CollnetChain
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Protocol;

    const RING: Pair = Pair::new(Algorithm::Ring, Protocol::LL);
    const NVLS: Pair = Pair::new(Algorithm::Nvls, Protocol::Simple);

    fn table() -> CostTable {
        let mut table = CostTable::default();
        table.set(RING, 20.0);
        table.set(Pair::new(Algorithm::Tree, Protocol::Simple), 30.0);
        table.set(NVLS, 10.0);
        table
    }

    fn gates(change: impl Fn(&mut Topology), deterministic: bool, variables: &[(&str, &str)]) -> Gates {
        let mut topology = Topology::default();
        change(&mut topology);
        let mut overrides = Overrides::default();
        variables.iter().for_each(|(name, value)| overrides.set(name, value).unwrap());
        Gates::new(&topology, deterministic, overrides)
    }

    #[test]
    fn channels_of_what_may_be_grouped_broadcasts_stay_nccls() {
        let mut gathering = Overrides { gathers_broadcasts: true, ..Overrides::default() };
        let channels = |overrides: &Overrides, collective| {
            let gates = Gates::new(&Topology::default(), false, overrides.clone());
            gates.narrow(collective, &table()).mask.count(Head::Channels) as usize
        };
        assert_eq!(channels(&gathering, Collective::AllGather), 1);
        for collective in Collective::TUNED.into_iter().filter(|c| *c != Collective::AllGather) {
            assert_eq!(channels(&gathering, collective), Head::Channels.size());
        }
        gathering.gathers_broadcasts = false;
        assert_eq!(channels(&gathering, Collective::AllGather), Head::Channels.size());
    }

    #[test]
    fn without_a_gate_only_availability_counts() {
        let gated = Gates::default().narrow(Collective::AllReduce, &table());
        assert_eq!(gated.own, Some(NVLS));
        assert_eq!(gated.mask.count(Head::Pair), 3);
        assert_eq!(gated.mask.count(Head::Channels) as usize, Head::Channels.size());
        assert_eq!(gated.fired.iter().collect::<Vec<_>>(), [Gate::Unavailable]);
        let wish = Knobs::with_pair(RING, ChannelChoice::of(8).unwrap());
        assert_eq!(gated.pass(&wish), (wish, None));
        assert_eq!(gated.pass(&Knobs::OWN), (Knobs::OWN, None));
    }

    #[test]
    fn in_network_aggregation_passes_reductions_through() {
        let gates = gates(|t| t.in_network = Some(true), false, &[]);
        let gated = gates.narrow(Collective::AllReduce, &table());
        assert_eq!(gated.mask.bits(Head::Path), 1 << Path::InNetwork as usize);
        let (knobs, gate) = gated.pass(&Knobs::with_pair(RING, ChannelChoice::OWN));
        assert_eq!((knobs.path, gate), (Path::InNetwork, Some(Gate::InNetwork)));
        // Nothing is added up in an allgather, so there is nothing for a switch to take over.
        assert_eq!(gates.narrow(Collective::AllGather, &table()).mask.bits(Head::Path), 1);
    }

    #[test]
    fn a_foreign_library_keeps_its_default() {
        let gated =
            gates(|t| t.library = CclLibrary::Gloo, false, &[]).narrow(Collective::AllReduce, &table());
        assert!(Head::ALL.iter().all(|&head| gated.mask.count(head) == 1));
        let wish = Knobs::with_pair(RING, ChannelChoice::of(4).unwrap());
        assert_eq!(gated.pass(&wish), (Knobs::OWN, Some(Gate::ForeignLibrary)));
    }

    #[test]
    fn an_unavailable_pair_is_never_chosen() {
        let gated = Gates::default().narrow(Collective::AllReduce, &table());
        let missing = Pair::new(Algorithm::Pat, Protocol::Simple);
        let (knobs, gate) = gated.pass(&Knobs::with_pair(missing, ChannelChoice::of(4).unwrap()));
        assert_eq!((knobs, gate), (Knobs { pair: Some(NVLS), ..Knobs::OWN }, Some(Gate::Unavailable)));
    }

    #[test]
    fn deterministic_mode_refuses_reductions_inside_switches() {
        let gates = gates(|_| {}, true, &[]);
        let gated = gates.narrow(Collective::AllReduce, &table());
        assert!(!gated.mask.allows(Head::Pair, NVLS.index()));
        assert_eq!(gated.own, Some(RING));
        let (knobs, gate) = gated.pass(&Knobs::with_pair(NVLS, ChannelChoice::OWN));
        assert_eq!((knobs.pair, gate), (Some(RING), Some(Gate::Deterministic)));
        // An allgather adds nothing.
        assert!(gates.narrow(Collective::AllGather, &table()).mask.allows(Head::Pair, NVLS.index()));
    }

    #[test]
    fn what_the_user_has_fixed_stands() {
        let gated = gates(|_| {}, false, &[("NCCL_NTHREADS", "256"), ("NCCL_MAX_NCHANNELS", "4")])
            .narrow(Collective::AllReduce, &table());
        assert!(gated.fired.contains(Gate::UserOverride));
        assert_eq!((gated.mask.count(Head::Threads), gated.mask.count(Head::Channels)), (1, 1));
        let wish = Knobs {
            threads: ThreadChoice::of(64).unwrap(),
            ..Knobs::with_pair(RING, ChannelChoice::of(8).unwrap())
        };
        let (knobs, gate) = gated.pass(&wish);
        assert_eq!(knobs, Knobs::with_pair(RING, ChannelChoice::OWN));
        assert_eq!(gate, Some(Gate::UserOverride));
        // A protocol that the user has ruled out is missing from NCCL's table already.
        let listed = gates(|_| {}, false, &[("NCCL_PROTO", "LL")]).narrow(Collective::AllReduce, &table());
        assert!(listed.fired.contains(Gate::UserOverride));
    }

    #[test]
    fn nothing_passes_that_the_mask_does_not_hold() {
        let free = Gates::default().narrow(Collective::AllReduce, &table());
        let narrow = |mask: Mask| Gated { mask, ..free };
        let wish = Knobs {
            chunk: ChunkChoice::Half,
            threads: ThreadChoice::of(64).unwrap(),
            ..Knobs::with_pair(RING, ChannelChoice::of(8).unwrap())
        };
        let own_chunk = narrow(free.mask.only(Head::Chunk, 0)).pass(&wish);
        assert_eq!(own_chunk, (Knobs { chunk: ChunkChoice::Own, ..wish }, Some(Gate::Unavailable)));
        let few_channels = narrow(free.mask.with(Head::Channels, 0b11)).pass(&wish);
        assert_eq!(few_channels.0, Knobs { channels: ChannelChoice::OWN, ..wish });
        let later = narrow(free.mask.only(Head::Threads, 0)).pass(&wish);
        assert_eq!(later.0, Knobs { threads: ThreadChoice::OWN, ..wish });
        assert_eq!(free.pass(&wish), (wish, None));
    }

    #[test]
    fn a_schedule_can_be_chosen_only_where_it_was_added_and_nobody_has_decided() {
        let wish = Knobs { path: Path::Synthesised, ..Knobs::with_pair(RING, ChannelChoice::OWN) };
        let free = Gates::default().narrow(Collective::AllReduce, &table());
        assert!(!free.has_schedule());
        assert_eq!(free.pass(&wish).0.path, Path::Nccl);
        let added = free.with_schedule();
        assert!(added.has_schedule() && added.mask.allows(Head::Path, 0));
        assert_eq!(added.pass(&wish), (wish, None));
        let settled = [
            gates(|t| t.in_network = Some(true), false, &[]),
            gates(|t| t.library = CclLibrary::Gloo, false, &[]),
            gates(|_| {}, false, &[("NCCL_PROTO", "LL")]),
        ];
        for gates in settled {
            let gated = gates.narrow(Collective::AllReduce, &table());
            assert_eq!(gated.with_schedule(), gated);
        }
        let untuned = Gates::default().narrow(Collective::SendRecv, &CostTable::default());
        assert!(!untuned.with_schedule().has_schedule());
    }

    #[test]
    fn a_call_without_a_table_has_nothing_to_choose() {
        // With everything available that NCCL has code for, nothing is taken away.
        let mut full = CostTable::default();
        catalogue(Collective::AllReduce).iter().for_each(|pair| full.set(pair, 1.0));
        let free = Gates::default().narrow(Collective::AllReduce, &full);
        assert_eq!(free.fired, GateSet::default());

        let gated = Gates::default().narrow(Collective::SendRecv, &CostTable::default());
        assert_eq!((gated.own, gated.mask.count(Head::Pair)), (None, 0));
        assert_eq!(gated.pass(&Knobs::with_pair(RING, ChannelChoice::OWN)), (Knobs::OWN, None));
    }

    #[test]
    fn counts_add_up() {
        let mut counts = GateCounts::default();
        counts.add(GateSet::default().with(Gate::InNetwork));
        counts.add(GateSet::default().with(Gate::InNetwork).with(Gate::UserOverride));
        assert_eq!(counts, GateCounts([2, 0, 0, 0, 1]));
        assert_eq!((counts.of(Gate::InNetwork), counts.of(Gate::UserOverride)), (2, 1));
    }
}
