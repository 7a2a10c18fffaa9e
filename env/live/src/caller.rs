//! Ranks as the environment asks them: a decision timed in turn with NCCL's own choice.

use std::collections::BTreeSet;

use dynamiccl_env::lived::{Caller, InTurn};
use dynamiccl_env::measure::Clock;
use dynamiccl_spec::{ChannelChoice, ChunkChoice, Collective, CostTable, Order, Pair};

use crate::cell::Cell;
use crate::crew::LiveError;
use crate::launch::Live;
use crate::measure::{Measured, Meter};

/// Rounds of one decision.
const ROUNDS: u32 = 2;

/// Ranks that are asked call by call. With this they end by themselves, unless a call has failed.
#[derive(Debug)]
pub struct RanksCaller {
    live: Live,
    clock: Clock,
    /// What was warmed up, and its results compared.
    warm: BTreeSet<(Cell, Option<Asked>)>,
    failed: bool,
}

impl RanksCaller {
    /// Takes ranks whose communicator has begun.
    pub fn new(live: Live, clock: Clock) -> Self {
        RanksCaller { live, clock, warm: BTreeSet::new(), failed: false }
    }

    fn timed(&mut self, cell: Cell, other: Option<Setting>) -> Result<Option<InTurn>, LiveError> {
        let mut orders = vec![Order::Own];
        orders.extend(other.map(|(pair, channels)| Order::Knobs { pair, channels, chunk: ChunkChoice::Own }));
        let known = (cell, other.map(|(pair, channels)| (pair.index(), channels.requested())));
        let mut meter = Meter { crew: &mut self.live.crew, clock: self.clock, beside: false };
        if !self.warm.contains(&known) {
            if meter.warm(cell, &orders)?.len() < orders.len() {
                return Ok(None);
            }
            self.warm.insert(known);
        }
        let setting = |&order: &Order| Measured::new(order, dynamiccl_spec::Knobs::OWN);
        let mut settings: Vec<Measured> = orders.iter().map(setting).collect();
        meter.rounds(cell, &mut settings, ROUNDS)?;
        let mut rounds = settings.into_iter().map(|setting| setting.rounds);
        let (own, other) = (rounds.next().unwrap_or_default(), rounds.next().unwrap_or_default());
        Ok(Some(InTurn { own, other }))
    }

    /// What the environment is told.
    fn told<T>(&mut self, came: Result<T, LiveError>) -> Result<T, String> {
        self.failed |= came.is_err();
        came.map_err(|error| error.to_string())
    }
}

impl Drop for RanksCaller {
    fn drop(&mut self) {
        if !self.failed {
            // A rank that a launcher has started fails where nobody says that the work is done. One that does not end
            // is no fault of what was learnt, and those of this machine are gone with the crew.
            let _ = self.live.crew.end();
        }
    }
}

type Setting = (Pair, ChannelChoice);
/// The same as something that has an order.
type Asked = (usize, Option<u32>);

impl Caller for RanksCaller {
    fn look(&mut self, collective: Collective, bytes: u64) -> Result<CostTable, String> {
        let mut meter = Meter { crew: &mut self.live.crew, clock: self.clock, beside: false };
        let look = meter.look(Cell { collective, bytes });
        self.told(look).map(|look| look.table)
    }

    fn time(
        &mut self,
        collective: Collective,
        bytes: u64,
        other: Option<Setting>,
    ) -> Result<Option<InTurn>, String> {
        let timed = self.timed(Cell { collective, bytes }, other);
        self.told(timed)
    }
}
