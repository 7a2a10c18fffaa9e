//! What can run in each cell of a machine, the same in every world.

use std::collections::HashMap;

use dynamiccl_spec::features::Encoder;
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Choice, Collective, Gated, Head, Path};

use crate::asking::{Asked, Asking};
use crate::cluster::ClusterError;
use crate::evaluate::machines::Machine;
use crate::job::Shown;
use crate::model::ConstantsFile;
use crate::nccl::Realised;
use crate::schedules::Schedules;
use crate::sim;
use crate::trigger::Ran;

const CHANNELS: usize = Head::Channels.size();
const CHUNKS: usize = Head::Chunk.size();
const THREADS: usize = Head::Threads.size();
/// What stands where a choice cannot run.
const NONE: u16 = u16::MAX;

/// A machine, as far as it is the same in every world.
pub struct Ground {
    pub encoder: Encoder,
    pub ranks: u32,
    pub nodes: u32,
    /// By size, then by collective.
    pub cells: Vec<Options>,
}

/// What can run in a cell.
pub struct Options {
    /// The question at the first call of a job, at which threads are chosen.
    pub asked: Asked,
    /// What may be chosen after it.
    pub held: Gated,
    /// NCCL's own among the launches.
    pub own: usize,
    /// The different launches.
    pub launches: Vec<Launch>,
    /// The launch of every choice of NCCL's knobs.
    index: Box<[u16]>,
    /// That of the synthesised schedule, where it may be chosen.
    pub scheduled: Option<usize>,
}

/// Knobs as NCCL runs them.
pub struct Launch {
    pub realised: Realised,
    pub ran: Ran,
    /// The first choice that gives it; NCCL's own values come first.
    pub choice: Choice,
    /// µs that NCCL predicts.
    pub predicted: Option<f32>,
}

impl Ground {
    /// Lists what can run, with these schedules where there is a runtime. Everything that a deployment file would
    /// say is told.
    pub fn new(
        machine: &Machine,
        sizes: &[u64],
        schedules: Option<&dyn Schedules>,
        constants: &ConstantsFile,
    ) -> Result<Self, ClusterError> {
        let asking = Asking::new(&machine.cluster, machine.nodes, &machine.options(), Shown::ALL)?;
        let asking = match schedules {
            Some(schedules) => asking.with_schedules(schedules, &machine.cluster, constants),
            None => asking,
        };
        let asked = asking.call(Collective::AllReduce, 1, 1);
        let query = asking.query(&asked);
        let (encoder, ranks, nodes) = (query.encoder.clone(), query.ranks, query.nodes);
        let calls = sizes.iter().flat_map(|&bytes| Collective::TUNED.map(|collective| (collective, bytes)));
        let cells = calls.map(|(collective, bytes)| Options::new(&asking, asking.call(collective, bytes, 1)));
        Ok(Ground { encoder, ranks, nodes, cells: cells.collect() })
    }
}

impl Options {
    fn new(asking: &Asking, asked: Asked) -> Self {
        let held = Gated { mask: asked.gated.mask.only(Head::Threads, 0), ..asked.gated };
        let mut options = Options {
            asked,
            held,
            own: 0,
            launches: Vec::new(),
            index: vec![NONE; PAIRS * CHANNELS * CHUNKS * THREADS].into(),
            scheduled: None,
        };
        options.fill(asking);
        options.own = asked
            .gated
            .own
            .map_or(0, |pair| options.launch(&Choice([0, pair.index() as u8, 0, 0, 0])).unwrap_or(0));
        options.schedule();
        options
    }

    /// Adds the synthesised schedule, as NCCL's own launch that somebody else carries.
    fn schedule(&mut self) {
        let Some(offer) = self.asked.schedule else { return };
        let own = &self.launches[self.own];
        let mut choice = own.choice;
        choice.0[Head::Path as usize] = Path::Synthesised as u8;
        let (ran, predicted) = (Ran::path(Path::Synthesised), Some(offer.predicted));
        let launch = Launch { realised: own.realised, ran, choice, predicted };
        self.scheduled = Some(self.launches.len());
        self.launches.push(launch);
    }

    fn fill(&mut self, asking: &Asking) {
        let mask = self.asked.gated.mask.only(Head::Path, Path::Nccl.id());
        let mut known = HashMap::new();
        for choice in sim::choices(&mask) {
            let Some(knobs) = choice.knobs() else { continue };
            let Some(realised) = asking.realise(&self.asked, &knobs) else { continue };
            let at = *known.entry(sim::launch(&knobs, &realised)).or_insert_with(|| {
                let predicted = self.asked.call.table.get(realised.pair);
                self.launches.push(Launch { realised, ran: Ran::of(&realised), choice, predicted });
                (self.launches.len() - 1) as u16
            });
            self.index[position(&choice)] = at;
        }
    }

    /// The launch that a choice gives; none where it is not legal.
    pub fn launch(&self, choice: &Choice) -> Option<usize> {
        let at = self.index[position(choice)];
        let by_nccl = Some(usize::from(at)).filter(|_| at != NONE);
        match Path::from_id(choice.index(Head::Path)) {
            Some(Path::Nccl) => by_nccl,
            Some(Path::Synthesised) => self.scheduled.filter(|_| by_nccl.is_some()),
            Some(Path::InNetwork) | None => None,
        }
    }
}

fn position(choice: &Choice) -> usize {
    let [_, pair, channels, chunk, threads] = choice.0.map(usize::from);
    ((pair * CHANNELS + channels) * CHUNKS + chunk) * THREADS + threads
}
