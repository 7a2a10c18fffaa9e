//! One call of a sweep: its launches, and which choices lead to one that was measured.

use dynamiccl_spec::{
    ChannelChoice, Choice, ChunkChoice, Collective, CostTable, Head, Knobs, Mask, Pair, PairMask,
};

use super::times::Times;
use crate::measure::sweep::{Setting, SweepRow};
use crate::nccl::{Communicator, Realised};

/// NCCL's own, as bits of the choices of channels and of chunk sizes.
const OWN: u32 = 1;

/// Lines of a call by the chunk size that they asked for.
type ByChunk = [usize; ChunkChoice::ALL.len()];

/// The chunk sizes that lines asked for, as bits.
fn asked(lines: &ByChunk) -> u32 {
    let asked = lines.iter().enumerate().filter(|(_, lines)| **lines > 0);
    asked.fold(OWN, |bits, (chunk, _)| bits | 1 << chunk)
}

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
    /// Choices of chunk sizes, as bits: of those that were asked for.
    chunks: u32,
    /// The lines that it was made of; none where it was made of other cells' times.
    lines: ByChunk,
}

/// What tells launches apart where NCCL's own threads are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Launch {
    /// Algorithm and protocol.
    pub pair: Pair,
    /// Channels that run.
    pub channels: u32,
    /// Payload of one step of a channel.
    pub chunk_bytes: u64,
}

impl Launch {
    /// What NCCL launches.
    pub fn of(realised: &Realised) -> Self {
        let Realised { pair, channels, chunk_bytes, .. } = *realised;
        Launch { pair, channels, chunk_bytes }
    }
}

/// The times of a launch among those of a call, to add to; none yet where it is new.
fn entry(launches: &mut Vec<(Launch, Times)>, launch: Launch) -> &mut Times {
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
    fn new(communicator: &Communicator, (collective, bytes): (Collective, u64)) -> Call<'_> {
        let table = communicator.cost_table(collective, bytes, 1);
        Call { communicator, collective, bytes, table }
    }

    fn realise(&self, knobs: &Knobs) -> Option<Launch> {
        let Call { communicator, collective, bytes, table } = self;
        communicator.realise(*collective, *bytes, table, knobs).as_ref().map(Launch::of)
    }

    /// The pairs that can be chosen where these launches are known. A pair of which nothing is known with NCCL's own chunks is
    /// none, for those are a choice always.
    fn pairs(&self, known: impl Fn(&Launch) -> bool) -> PairMask {
        let leads = |knobs| self.realise(&knobs).is_some_and(|launch| known(&launch));
        let is_choice =
            |pair: &Pair| ChannelChoice::all().any(|channels| leads(Knobs::with_pair(*pair, channels)));
        self.table.mask().iter().filter(is_choice).fold(PairMask::NONE, PairMask::with)
    }

    /// The launch of what a line asked for; none where it asked for a count that is no choice of ours, or for a chunk size
    /// that its NCCL asks nobody about.
    fn requested(&self, row: &SweepRow) -> Option<Launch> {
        let Setting::Knobs { pair, channels } = row.setting else { return self.realise(&Knobs::OWN) };
        if row.chunk != ChunkChoice::Own && !self.communicator.version().has_chunk_knob() {
            return None;
        }
        let channels = match channels {
            None => ChannelChoice::OWN,
            Some(count) => u8::try_from(count).ok().and_then(ChannelChoice::of)?,
        };
        self.realise(&Knobs { chunk: row.chunk, ..Knobs::with_pair(pair, channels) })
    }
}

/// All that can be asked for with a pair, as far as launches are told apart; NCCL's own channels last, for how many those
/// are differs from size to size.
fn requests(pair: Pair) -> impl Iterator<Item = Knobs> {
    let counts = ChannelChoice::all().filter(|channels| *channels != ChannelChoice::OWN);
    counts.chain([ChannelChoice::OWN]).flat_map(move |channels| {
        ChunkChoice::ALL.map(|chunk| Knobs { chunk, ..Knobs::with_pair(pair, channels) })
    })
}

impl Cell {
    /// What the lines of a call say, and how many of them say nothing; none where NCCL's own choice or everything else is
    /// missing.
    pub fn new(
        communicator: &Communicator,
        (collective, bytes): (Collective, u64),
        rows: &[SweepRow],
    ) -> Option<(Self, usize)> {
        let call = Call::new(communicator, (collective, bytes));
        let own = call.realise(&Knobs::OWN)?;
        let ran: Vec<_> = rows.iter().filter_map(|row| Some((call.requested(row)?, row))).collect();
        let pairs = call.pairs(|launch| ran.iter().any(|(known, _)| known == launch));
        let (mut known, mut lines) = ([false; 2], ByChunk::default());
        let mut launches = Vec::new();
        for (ran, row) in ran.into_iter().filter(|(launch, _)| pairs.contains(launch.pair)) {
            known[usize::from(row.setting == Setting::Default)] = true;
            entry(&mut launches, ran).add(row);
            lines[row.chunk as usize] += 1;
        }
        let left_out = rows.len() - lines.iter().sum::<usize>();
        let cell = |launches| Cell { lines, ..Cell::of(&call, own, launches, asked(&lines)) };
        (known == [true; 2]).then(|| (cell(launches), left_out))
    }

    /// A call of a size between those of two others: what was asked for in both takes half way between them, and where
    /// several requests lead to one launch, those say the most that run as many channels in all three. None where NCCL's own
    /// choice or everything else is not among it.
    pub fn between(
        communicator: &Communicator,
        collective: Collective,
        bytes: u64,
        [smaller, larger]: [(u64, &Cell); 2],
    ) -> Option<Self> {
        let call = Call::new(communicator, (collective, bytes));
        let [small, large] = [smaller, larger].map(|(bytes, cell)| {
            let call = Call::new(communicator, (collective, bytes));
            move |knobs: &Knobs| {
                let launch = call.realise(knobs)?;
                Some((launch.channels, cell.times_of(&launch)?))
            }
        });
        let half_way = |knobs: Knobs| {
            let (launch, (few, small), (many, large)) =
                (call.realise(&knobs)?, small(&knobs)?, large(&knobs)?);
            let alike = [few, many] == [launch.channels; 2];
            Some((alike, launch, small.between(large)))
        };
        let mut known: Vec<_> = call.table.mask().iter().flat_map(requests).filter_map(half_way).collect();
        known.sort_by_key(|(alike, ..)| !alike);
        let mut launches: Vec<(Launch, Times)> = Vec::new();
        for (_, launch, times) in known {
            if launches.iter().all(|(known, _)| *known != launch) {
                launches.push((launch, times));
            }
        }
        Cell::of_known(&call, launches, smaller.1.chunks & larger.1.chunks)
    }

    /// A call of which some launches are known, all with NCCL's own chunks; none where NCCL's own choice or everything else
    /// is not among them.
    pub fn of_launches(
        communicator: &Communicator,
        (collective, bytes): (Collective, u64),
        table: CostTable,
        launches: Vec<(Launch, Times)>,
    ) -> Option<Self> {
        Cell::of_known(&Call { communicator, collective, bytes, table }, launches, OWN)
    }

    /// The same call as several sweeps have it: the lines of all of them.
    pub fn joined(communicator: &Communicator, call: (Collective, u64), cells: &[&Cell]) -> Option<Self> {
        let mut launches: Vec<(Launch, Times)> = Vec::new();
        for (launch, times) in cells.iter().flat_map(|cell| &cell.launches[..cell.measured]) {
            entry(&mut launches, *launch).join(times);
        }
        let launches = launches.into_iter().map(|(launch, times)| (launch, times.without_glances()));
        let lines = std::array::from_fn(|chunk| cells.iter().map(|cell| cell.lines[chunk]).sum());
        let known = Cell::of_known(&Call::new(communicator, call), launches.collect(), asked(&lines))?;
        Some(Cell { lines, ..known })
    }

    /// Lines of chunk sizes that are no choice, for not all that can be chosen was timed with them.
    pub fn without_choice(&self) -> usize {
        let lines = self.lines.iter().enumerate();
        lines.filter(|(chunk, _)| self.chunks & 1 << chunk == 0).map(|(_, lines)| lines).sum()
    }

    fn of_known(call: &Call<'_>, launches: Vec<(Launch, Times)>, chunks: u32) -> Option<Self> {
        let own = call.realise(&Knobs::OWN)?;
        let known = launches.len() > 1 && launches.iter().any(|(launch, _)| *launch == own);
        known.then(|| Cell::of(call, own, launches, chunks))
    }

    /// Notes which choices lead to a measured launch whatever the other heads have chosen, of these chunk sizes.
    fn of(call: &Call<'_>, own: Launch, launches: Vec<(Launch, Times)>, chunks: u32) -> Self {
        let measured = launches.len();
        let pairs = call.pairs(|launch| launches.iter().any(|(known, _)| known == launch));
        let lines = ByChunk::default();
        let mut cell = Cell { own, launches, measured, pairs, channels: 0, chunks, lines };
        let known = |cell: &Cell, knobs: &Knobs| {
            call.realise(knobs).is_some_and(|launch| cell.times_of(&launch).is_some())
        };
        let channels = ChannelChoice::all().enumerate().filter(|(_, channels)| {
            cell.pairs.iter().all(|pair| known(&cell, &Knobs::with_pair(pair, *channels)))
        });
        cell.channels = channels.fold(OWN, |bits, (at, _)| bits | 1 << at);
        cell.fill_own(call);
        let asked = cell.with_channels();
        let chunks = ChunkChoice::ALL
            .into_iter()
            .filter(|chunk| asked.iter().all(|knobs| known(&cell, &Knobs { chunk: *chunk, ..*knobs })));
        cell.chunks &= chunks.fold(OWN, |bits, chunk| bits | 1 << chunk as u32);
        cell
    }

    /// Its pairs with every number of channels that is a choice.
    fn with_channels(&self) -> Vec<Knobs> {
        let is_choice = |at: &usize| self.channels & 1 << at != 0;
        let channels = || ChannelChoice::all().enumerate().filter(|(at, _)| is_choice(at));
        let of = |pair| channels().map(move |(_, channels)| Knobs::with_pair(pair, channels));
        self.pairs.iter().flat_map(of).collect()
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

    /// NCCL's own number of channels must be a choice for every pair, for it is part of NCCL's own choice. Where it was
    /// not measured for a pair, the nearest number that was, with the same chunk size, stands for it.
    fn fill_own(&mut self, call: &Call<'_>) {
        for (pair, chunk) in self.pairs.iter().flat_map(|pair| ChunkChoice::ALL.map(|chunk| (pair, chunk))) {
            let asked = |channels| Knobs { chunk, ..Knobs::with_pair(pair, channels) };
            let Some(own) = call.realise(&asked(ChannelChoice::OWN)) else { continue };
            if self.times_of(&own).is_some() {
                continue;
            }
            let apart = |launch: &Launch| {
                let [few, many] = [own.channels.min(launch.channels), own.channels.max(launch.channels)];
                f64::from(many) / f64::from(few.max(1))
            };
            let others = ChannelChoice::all().filter_map(|channels| call.realise(&asked(channels)));
            let measured = others.filter_map(|launch| Some((launch, self.times_of(&launch)?)));
            let nearest = measured.min_by(|(a, _), (b, _)| apart(a).total_cmp(&apart(b)));
            self.launches.extend(nearest.map(|(_, times)| (own, times.clone())));
        }
    }

    /// The times of a launch; none where it was not measured.
    pub fn times(&self, realised: &Realised) -> Option<&Times> {
        self.times_of(&Launch::of(realised))
    }

    fn times_of(&self, launch: &Launch) -> Option<&Times> {
        self.launches.iter().find(|(known, _)| known == launch).map(|(_, times)| times)
    }

    /// What is left of a mask: measured pairs, channels and chunk sizes, NCCL's own of everything else.
    pub fn narrow(&self, mask: Mask) -> Mask {
        let Choice(own) = Choice::default();
        let mask = mask.with_pairs(mask.pairs().and(self.pairs));
        let mask = mask.with(Head::Channels, mask.bits(Head::Channels) & self.channels);
        let mask = mask.with(Head::Chunk, mask.bits(Head::Chunk) & self.chunks);
        [Head::Path, Head::Threads]
            .into_iter()
            .fold(mask, |mask, head| mask.only(head, usize::from(own[head as usize])))
    }
}

#[cfg(test)]
mod tests {
    use dynamiccl_spec::{Algorithm, Protocol};

    use super::*;
    use crate::cluster::{Cluster, CommOptions};
    use crate::nccl::Version;
    use crate::sim::knobs_in;
    use crate::swept::VERSION;

    const TREE_LL: Pair = Pair::new(Algorithm::Tree, Protocol::LL);
    const RING_LL: Pair = Pair::new(Algorithm::Ring, Protocol::LL);

    fn cell(cluster: &str, nodes: u32, rows: &[(Option<(Pair, u32)>, f64)]) -> Option<Cell> {
        let options = CommOptions { version: VERSION, ..CommOptions::default() };
        let communicator = Cluster::load(cluster).unwrap().communicator(nodes, &options).unwrap();
        let call = (Collective::AllReduce, 4 << 20);
        let row = |&(knobs, micros): &(Option<(Pair, u32)>, f64)| row_of(call, knobs, micros);
        Some(Cell::new(&communicator, call, &rows.iter().map(row).collect::<Vec<_>>())?.0)
    }

    fn row_of((collective, bytes): (Collective, u64), knobs: Option<(Pair, u32)>, micros: f64) -> SweepRow {
        let channels = |(pair, channels)| Setting::Knobs { pair, channels: Some(channels) };
        SweepRow {
            collective,
            bytes,
            setting: knobs.map_or(Setting::Default, channels),
            median_us: micros,
            min_us: micros,
            max_us: micros,
            sure: None,
            nccl_model_us: None,
            chunk: ChunkChoice::Own,
            slowdown: None,
        }
    }

    fn micros(cell: &Cell, pair: Pair, channels: u32) -> Option<f64> {
        let is_it = |launch: &Launch| (launch.pair, launch.channels) == (pair, channels);
        cell.launches.iter().find(|(launch, _)| is_it(launch)).map(|(_, times)| times.micros().round())
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
        let spread = |knobs, micros: f64| SweepRow {
            min_us: micros * 0.9,
            max_us: micros * 1.1,
            ..row_of((Collective::AllReduce, 4 << 20), knobs, micros)
        };
        let rows = [spread(None, 50.0), spread(Some((TREE_LL, 1)), 48.0), spread(Some((TREE_LL, 2)), 30.0)];
        let options = CommOptions { version: VERSION, ..CommOptions::default() };
        let communicator = Cluster::load("h200_shared").unwrap().communicator(4, &options).unwrap();
        let (cell, left_out) = Cell::new(&communicator, (Collective::AllReduce, 4 << 20), &rows).unwrap();
        assert_eq!(left_out, 0);
        let cautious = cell.cautious(1.0);
        let own = |cell: &Cell| cell.times_of(&cell.own).unwrap().micros().round();
        let of = |cell: &Cell, channels| micros(cell, TREE_LL, channels).unwrap();
        assert!(of(&cell, 1) < own(&cell), "faster by luck");
        assert!(of(&cautious, 1) > own(&cautious));
        assert!(of(&cautious, 2) < own(&cautious), "faster for sure");
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

    /// NCCL itself makes one channel of the smaller of these calls and two of the larger: its own say nothing of what one
    /// channel takes between them.
    #[test]
    fn between_two_sizes_a_number_of_channels_is_the_mean_of_the_same_number() {
        let options = CommOptions { version: VERSION, ..CommOptions::default() };
        let communicator = Cluster::load("h200_shared").unwrap().communicator(8, &options).unwrap();
        let ring = Pair::new(Algorithm::Ring, Protocol::Simple);
        let (mut apart, mut compared) = (0, 0);
        for (small, pair) in
            (10..22).step_by(2).flat_map(|octave| [(1 << octave, RING_LL), (1 << octave, ring)])
        {
            let calls = [small, 2 * small, 4 * small].map(|bytes| (Collective::AllReduce, bytes));
            let at = |call, micros: f64| {
                let settings = [(None, 1.0), (Some((pair, 1)), 3.0), (Some((pair, 2)), 2.0)];
                let rows = settings.map(|(knobs, times)| row_of(call, knobs, micros * times));
                Cell::new(&communicator, call, &rows)
            };
            let (Some((one, _)), Some((other, _))) = (at(calls[0], 10.0), at(calls[2], 40.0)) else {
                continue;
            };
            let neighbours = [(small, &one), (4 * small, &other)];
            let Some(between) = Cell::between(&communicator, Collective::AllReduce, 2 * small, neighbours)
            else {
                continue;
            };
            let own = calls.map(|call| {
                Call::new(&communicator, call).realise(&Knobs::with_pair(pair, ChannelChoice::OWN)).unwrap()
            });
            apart += usize::from(own[0].channels != own[2].channels);
            for channels in [1, 2] {
                let of = |cell: &Cell| {
                    let is_it = |launch: &Launch| (launch.pair, launch.channels) == (pair, channels);
                    let known = cell.launches.iter().find(|(launch, _)| is_it(launch));
                    known.map(|(_, times)| times.micros())
                };
                let (Some(one), Some(other)) = (of(&one), of(&other)) else { continue };
                let ratio = of(&between).map(|between| between / (one * other).sqrt());
                let ratio = ratio.expect("what both have is between them");
                assert!((ratio - 1.0).abs() < 1e-9, "{pair} {channels} {small}: {ratio}");
                compared += 1;
            }
        }
        assert!(apart > 0 && compared > 8, "{apart} {compared}");
    }

    #[test]
    fn a_cell_needs_nccls_own_line_and_another() {
        assert_eq!(cell("h200_shared", 4, &[(None, 50.0)]), None);
        assert_eq!(cell("h200_shared", 4, &[(Some((TREE_LL, 1)), 50.0)]), None);
    }

    /// With 2.30 chunk sizes are choices, those that were timed for all pairs; with releases before, lines of them say nothing.
    #[test]
    fn chunk_sizes_that_were_timed_can_be_chosen() {
        let row = |knobs: Option<(Pair, u32)>, chunk, micros| SweepRow {
            chunk,
            ..row_of((Collective::AllReduce, 4 << 20), knobs, micros)
        };
        // NCCL itself would take the ring.
        let ring = Pair::new(Algorithm::Ring, Protocol::Simple);
        let (tree, ring) = (Some((TREE_LL, 1)), Some((ring, 1)));
        let rows = [
            row(None, ChunkChoice::Own, 50.0),
            row(tree, ChunkChoice::Own, 60.0),
            row(ring, ChunkChoice::Own, 50.0),
            row(tree, ChunkChoice::Half, 30.0),
            row(ring, ChunkChoice::Half, 70.0),
            row(tree, ChunkChoice::Quarter, 20.0),
        ];
        let of = |version| {
            let options = CommOptions { version, ..CommOptions::default() };
            let communicator = Cluster::load("h200_shared").unwrap().communicator(4, &options).unwrap();
            let call = (Collective::AllReduce, 4 << 20);
            let (cell, left_out) = Cell::new(&communicator, call, &rows).unwrap();
            let half = Knobs { chunk: ChunkChoice::Half, ..Knobs::with_pair(TREE_LL, ChannelChoice::OWN) };
            let launch = Call::new(&communicator, call).realise(&half).unwrap();
            let micros = cell.times_of(&launch).unwrap().micros().round();
            (cell.narrow(Mask::ALL).indices(Head::Chunk).collect::<Vec<_>>(), micros, left_out)
        };
        let [own, _, half, ..] = std::array::from_fn::<_, 5, _>(|at| at);
        assert_eq!(of(Version::V2_30), (vec![own, half], 30.0, 0), "one channel stands for NCCL's own two");
        assert_eq!(of(Version::V2_29), (vec![own], 60.0, 3));
    }

    /// NCCL's own chunks are a choice always, and nobody knows what the tree takes with them.
    #[test]
    fn a_pair_that_was_timed_with_other_chunks_alone_cannot_be_chosen() {
        let call = (Collective::AllReduce, 4 << 20);
        let options = CommOptions { version: Version::V2_30, ..CommOptions::default() };
        let communicator = Cluster::load("h200_shared").unwrap().communicator(4, &options).unwrap();
        let ring = Pair::new(Algorithm::Ring, Protocol::Simple);
        let row = |pair, chunk, micros| SweepRow { chunk, ..row_of(call, Some((pair, 1)), micros) };
        let rows = [
            row_of(call, None, 50.0),
            row(ring, ChunkChoice::Own, 60.0),
            row(ring, ChunkChoice::Half, 70.0),
            row(TREE_LL, ChunkChoice::Half, 30.0),
        ];
        let (cell, left_out) = Cell::new(&communicator, call, &rows).unwrap();
        let mask = cell.narrow(Mask::ALL);
        assert_eq!((left_out, cell.without_choice()), (1, 0));
        assert!(mask.pairs().contains(ring) && !mask.pairs().contains(TREE_LL), "{mask:?}");
        assert_eq!(cell.fastest().round(), 50.0, "of what can be chosen");
        let call = Call::new(&communicator, call);
        let known = |knobs| cell.times_of(&call.realise(&knobs).unwrap()).is_some();
        assert!(knobs_in(&mask).all(known));
    }
}
