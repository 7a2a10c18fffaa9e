//! Whoever makes calls on real ranks, as far as the environment knows.

use dynamiccl_spec::{ChannelChoice, Collective, CostTable, Pair};

/// What was timed in turn: µs of every round.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InTurn {
    /// NCCL's own choice.
    pub own: Vec<f64>,
    /// The other setting; empty where there was none.
    pub other: Vec<f64>,
}

/// Makes calls on real ranks. An error is what its user is told; nothing can be called after one.
pub trait Caller: std::fmt::Debug + Send {
    /// What NCCL would do by itself: its table.
    fn look(&mut self, collective: Collective, bytes: u64) -> Result<CostTable, String>;

    /// Times NCCL's own choice, and in turn with it another setting; none where NCCL cannot be handed that.
    fn time(
        &mut self,
        collective: Collective,
        bytes: u64,
        other: Option<(Pair, ChannelChoice)>,
    ) -> Result<Option<InTurn>, String>;
}
