//! One call of a sweep: its launches, and which choices lead to one that was measured.

use dynamiccl_spec::{
    ChannelChoice, Choice, ChunkChoice, Collective, CostTable, Head, Knobs, Mask, Pair, PairMask,
};

use super::times::Times;
use crate::measure::sweep::{Setting, SweepRow};
use crate::nccl::{Communicator, Realised};

/// NCCL's own number of channels, among the choices.
const OWN: usize = 0;

/// One call of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// What NCCL does by itself.
    own: Launch,
    launches: Vec<(Launch, Times)>,
    /// How many of them were measured; for the others, which are last, another stands.
    measured: usize,
    pairs: PairMask,
    /// Choices of channels, as bits.
    channels: u32,
}

/// What tells launches apart where NCCL's own chunks and threads are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Launch {
    /// Algorithm and protocol.
    pub pair: Pair,
    /// Channels that run.
    pub channels: u32,
}

impl Launch {
    /// What NCCL launches.
    pub fn of(realised: &Realised) -> Self {
        Launch { pair: realised.pair, channels: realised.channels }
    }
}

/// The times of a launch among those of a call; none yet where it is new.
fn times_of(launches: &mut Vec<(Launch, Times)>, launch: Launch) -> &mut Times {
    let at = launches.iter().position(|(known, _)| *known == launch).unwrap_or_else(|| {
        launches.push((launch, Times::default()));
        launches.len() - 1
    });
    &mut launches[at].1
}

/// What NCCL would do with the knobs of one call.
struct Call<'a> {
    communicator: &'a Communicator,
    collective: Collective,
    bytes: u64,
    table: CostTable,
}

impl Call<'_> {
    fn realise(&self, knobs: &Knobs) -> Option<Launch> {
        let Call { communicator, collective, bytes, table } = self;
        communicator.realise(*collective, *bytes, table, knobs).as_ref().map(Launch::of)
    }

    /// The launch of what a line asked for; none where the file asked for a count that is no choice of ours.
    fn requested(&self, pair: Pair, channels: Option<u32>) -> Option<Launch> {
        let choice = match channels {
            None => ChannelChoice::OWN,
            Some(count) => u8::try_from(count).ok().and_then(ChannelChoice::of)?,
        };
        self.realise(&Knobs::with_pair(pair, choice))
    }
}

impl Cell {
    /// What the lines of a call say, and how many of them say nothing; none where NCCL's own choice or everything else is
    /// missing.
    pub fn new(
        communicator: &Communicator,
        (collective, bytes): (Collective, u64),
        rows: &[SweepRow],
    ) -> Option<(Self, usize)> {
        let table = communicator.cost_table(collective, bytes, 1);
        let call = Call { communicator, collective, bytes, table };
        let own = call.realise(&Knobs::OWN)?;
        let mut cell = Cell { own, launches: Vec::new(), measured: 0, pairs: PairMask::NONE, channels: 0 };
        let (mut known, mut used) = ([false; 2], 0);
        // Which chunk size a setting had is not part of its launch here.
        for row in rows.iter().filter(|row| row.chunk == ChunkChoice::Own) {
            let ran = match row.setting {
                Setting::Default => Some(own),
                Setting::Knobs { pair, channels } => call.requested(pair, channels),
            };
            let Some(ran) = ran else { continue };
            known[usize::from(row.setting == Setting::Default)] = true;
            times_of(&mut cell.launches, ran).add(row);
            used += 1;
        }
        (known == [true; 2]).then(|| (cell.with_choices(&call), rows.len() - used))
    }

    /// A call of a size between those of two others: what both have, half way. None where NCCL's own choice or everything
    /// else is not among it.
    pub fn between(
        communicator: &Communicator,
        (collective, bytes): (Collective, u64),
        [smaller, larger]: [&Cell; 2],
    ) -> Option<Self> {
        let both = smaller.launches.iter().filter_map(|(launch, times)| {
            let (_, other) = larger.launches.iter().find(|(known, _)| known == launch)?;
            Some((*launch, times.between(other)))
        });
        let table = communicator.cost_table(collective, bytes, 1);
        Cell::of_launches(communicator, (collective, bytes), table, both.collect())
    }

    /// A call of which some launches are known; none where NCCL's own choice or everything else is not among them.
    pub fn of_launches(
        communicator: &Communicator,
        (collective, bytes): (Collective, u64),
        table: CostTable,
        launches: Vec<(Launch, Times)>,
    ) -> Option<Self> {
        let call = Call { communicator, collective, bytes, table };
        let own = call.realise(&Knobs::OWN)?;
        let known = launches.len() > 1 && launches.iter().any(|(launch, _)| *launch == own);
        let cell = Cell { own, launches, measured: 0, pairs: PairMask::NONE, channels: 0 };
        known.then(|| cell.with_choices(&call))
    }

    /// The same call as several sweeps have it: the lines of all of them.
    pub fn joined(
        communicator: &Communicator,
        (collective, bytes): (Collective, u64),
        cells: &[&Cell],
    ) -> Option<Self> {
        let mut launches: Vec<(Launch, Times)> = Vec::new();
        for (launch, times) in cells.iter().flat_map(|cell| &cell.launches[..cell.measured]) {
            times_of(&mut launches, *launch).join(times);
        }
        let launches = launches.into_iter().map(|(launch, times)| (launch, times.without_glances()));
        let table = communicator.cost_table(collective, bytes, 1);
        Cell::of_launches(communicator, (collective, bytes), table, launches.collect())
    }

    /// µs of the fastest launch.
    pub fn fastest(&self) -> f64 {
        self.launches.iter().map(|(_, times)| times.micros()).fold(f64::INFINITY, f64::min)
    }

    /// How far ln of the time of one of its launches may be off by luck. That a few repeats are alike may be luck, too, so
    /// it is never less than what is usual for the launches of the call that were repeated.
    pub fn doubt(&self, of: &Times) -> f64 {
        let repeated = self.launches.iter().filter(|(_, times)| !times.is_glance());
        let mut all: Vec<f64> = repeated.map(|(_, times)| times.doubt()).collect();
        all.sort_by(f64::total_cmp);
        of.doubt().max(all.get(all.len() / 2).copied().unwrap_or(0.0))
    }

    /// The same call as somebody sees it who would rather change nothing: NCCL's own choice as fast as it may be, every
    /// other as slow, by so many of its doubts.
    pub fn cautious(&self, doubts: f64) -> Self {
        let seen = |(launch, times): &(Launch, Times)| {
            let sign = if *launch == self.own { -1.0 } else { 1.0 };
            (*launch, times.longer(sign * doubts * self.doubt(times)))
        };
        Cell { launches: self.launches.iter().map(seen).collect(), ..self.clone() }
    }

    /// Notes which choices lead to a measured launch whatever the other head has chosen.
    fn with_choices(mut self, call: &Call<'_>) -> Self {
        self.channels = Mask::ALL.bits(Head::Channels);
        for pair in call.table.mask().iter() {
            let launched = |(_, choice)| call.realise(&Knobs::with_pair(pair, choice));
            let measured = |launch| self.launches.iter().any(|(known, _)| *known == launch);
            if !self.launches.iter().any(|(known, _)| known.pair == pair) {
                continue;
            }
            self.pairs = self.pairs.with(pair);
            let choices = ChannelChoice::all().enumerate();
            let bits = choices.filter(|choice| launched(*choice).is_some_and(measured));
            self.channels &= bits.fold(1 << OWN, |bits, (index, _)| bits | 1 << index);
        }
        self.measured = self.launches.len();
        self.fill_own(call);
        self
    }

    /// NCCL's own number of channels must be a choice for every pair, for it is part of NCCL's own choice. Where it was
    /// not measured for a pair, the nearest number that was stands for it.
    fn fill_own(&mut self, call: &Call<'_>) {
        for pair in self.pairs.iter() {
            let Some(own) = call.realise(&Knobs::with_pair(pair, ChannelChoice::OWN)) else { continue };
            let apart = |launch: &Launch| {
                let [few, many] = [own.channels.min(launch.channels), own.channels.max(launch.channels)];
                f64::from(many) / f64::from(few.max(1))
            };
            let measured = self.launches.iter().filter(|(known, _)| known.pair == pair);
            let nearest = measured.min_by(|(a, _), (b, _)| apart(a).total_cmp(&apart(b)));
            if let Some((_, times)) = nearest.filter(|(known, _)| *known != own) {
                let times = times.clone();
                self.launches.push((own, times));
            }
        }
    }

    /// The times of a launch; none where it was not measured.
    pub fn times(&self, realised: &Realised) -> Option<&Times> {
        let launch = Launch::of(realised);
        self.launches.iter().find(|(known, _)| *known == launch).map(|(_, times)| times)
    }

    /// What is left of a mask: measured pairs and channels, NCCL's own of everything else.
    pub fn narrow(&self, mask: Mask) -> Mask {
        let Choice(own) = Choice::default();
        let mask = mask.with_pairs(mask.pairs().and(self.pairs));
        let mask = mask.with(Head::Channels, mask.bits(Head::Channels) & self.channels);
        [Head::Path, Head::Chunk, Head::Threads]
            .into_iter()
            .fold(mask, |mask, head| mask.only(head, usize::from(own[head as usize])))
    }
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::{Algorithm, Protocol};

    use super::*;
    use crate::cluster::{Cluster, CommOptions};
    use crate::swept::VERSION;

    const TREE_LL: Pair = Pair::new(Algorithm::Tree, Protocol::LL);
    const RING_LL: Pair = Pair::new(Algorithm::Ring, Protocol::LL);

    fn cell(cluster: &str, nodes: u32, rows: &[(Option<(Pair, u32)>, f64)]) -> Option<Cell> {
        let options = CommOptions { version: VERSION, ..CommOptions::default() };
        let communicator = Cluster::load(cluster).unwrap().communicator(nodes, &options).unwrap();
        let call = (Collective::AllReduce, 4 << 20);
        let row = |&(knobs, micros): &(Option<(Pair, u32)>, f64)| SweepRow {
            collective: call.0,
            bytes: call.1,
            setting: knobs.map_or(Setting::Default, |(pair, channels)| Setting::Knobs {
                pair,
                channels: Some(channels),
            }),
            median_us: micros,
            min_us: micros,
            max_us: micros,
            sure: None,
            nccl_model_us: None,
            chunk: dynamiccl_spec::ChunkChoice::Own,
            slowdown: None,
        };
        Some(Cell::new(&communicator, call, &rows.iter().map(row).collect::<Vec<_>>())?.0)
    }

    fn micros(cell: &Cell, pair: Pair, channels: u32) -> Option<f64> {
        let of = Launch { pair, channels };
        cell.launches.iter().find(|(known, _)| *known == of).map(|(_, times)| times.micros().round())
    }

    /// NCCL makes two channels on such links: a request for sixteen is one for two, and both are one launch.
    #[test]
    fn requests_that_nccl_caps_alike_are_one_launch() {
        let own = (Some((Pair::new(Algorithm::Ring, Protocol::Simple), 1)), 60.0);
        let tree = [(1, 100.0), (2, 40.0), (16, 90.0)].map(|(n, micros)| (Some((TREE_LL, n)), micros));
        let rows = [&[(None, 50.0), own], &tree[..]].concat();
        let cell = cell("h200_shared", 4, &rows).unwrap();
        assert_eq!([1, 2].map(|channels| micros(&cell, TREE_LL, channels)), [Some(100.0), Some(60.0)]);
        // Every number of channels leads to one or two.
        assert_eq!(cell.channels, Mask::ALL.bits(Head::Channels));
    }

    /// A gain of less than the spread is none to somebody cautious; a large one is.
    #[test]
    fn caution_favours_what_nccl_does() {
        let spread = |pair, micros: f64| SweepRow {
            collective: Collective::AllReduce,
            bytes: 4 << 20,
            setting: pair,
            median_us: micros,
            min_us: micros * 0.9,
            max_us: micros * 1.1,
            sure: None,
            nccl_model_us: None,
            chunk: ChunkChoice::Own,
            slowdown: None,
        };
        let setting = |pair, channels| Setting::Knobs { pair, channels: Some(channels) };
        let rows = [
            spread(Setting::Default, 50.0),
            spread(setting(TREE_LL, 1), 48.0),
            spread(setting(TREE_LL, 2), 30.0),
        ];
        let options = CommOptions { version: VERSION, ..CommOptions::default() };
        let communicator = Cluster::load("h200_shared").unwrap().communicator(4, &options).unwrap();
        let (cell, left_out) = Cell::new(&communicator, (Collective::AllReduce, 4 << 20), &rows).unwrap();
        assert_eq!(left_out, 0);
        let cautious = cell.cautious(1.0);
        let of = |cell: &Cell, launch: Launch| {
            cell.launches.iter().find(|(known, _)| *known == launch).unwrap().1.micros()
        };
        let [few, many] = [1, 2].map(|channels| Launch { pair: TREE_LL, channels });
        assert!(of(&cell, few) < of(&cell, cell.own), "faster by luck");
        assert!(of(&cautious, few) > of(&cautious, cell.own));
        assert!(of(&cautious, many) < of(&cautious, cell.own), "faster for sure");
        assert_eq!(cell.cautious(0.0), cell);
    }

    #[test]
    fn what_was_not_measured_cannot_be_chosen() {
        let rows = [(None, 50.0), (Some((RING_LL, 1)), 100.0), (Some((RING_LL, 4)), 40.0)];
        let cell = cell("dgx_h100", 1, &rows).unwrap();
        let mask = cell.narrow(Mask::ALL);
        let labels: Vec<_> = mask.indices(Head::Channels).filter_map(|at| Head::Channels.label(at)).collect();
        assert!(mask.pairs().contains(RING_LL) && !mask.pairs().contains(TREE_LL), "{mask:?}");
        assert!(labels.contains(&"own".to_owned()) && !labels.contains(&"16".to_owned()), "{labels:?}");
        for head in [Head::Path, Head::Chunk, Head::Threads] {
            assert_eq!(mask.indices(head).collect::<Vec<_>>(), [0]);
        }
    }

    #[test]
    fn a_cell_needs_nccls_own_line_and_another() {
        assert_eq!(cell("h200_shared", 4, &[(None, 50.0)]), None);
        assert_eq!(cell("h200_shared", 4, &[(Some((TREE_LL, 1)), 50.0)]), None);
    }
}
