//! What a policy is fitted to: recorded sweeps, or real ranks that answer while it learns.

use std::sync::Arc;

use dynamiccl_env::lived::Lived;
use dynamiccl_env::swept::{Swept, SweptError};

/// What a policy is fitted to.
#[derive(Debug, Clone)]
pub enum Ground {
    /// Recorded sweeps.
    Sweeps(Vec<Arc<Swept>>),
    /// Real ranks.
    Live(Arc<Lived>),
}

/// What a policy can be judged on.
#[derive(Debug, Clone)]
pub(super) struct Lessons {
    /// As measured.
    pub plain: Vec<Arc<Swept>>,
    /// Those of one machine put together, as somebody cautious sees them, and with sizes between those that were measured.
    pub sure: Vec<Arc<Swept>>,
}

impl Ground {
    /// What is known now; of real ranks that is more and more.
    pub(super) fn lessons(&self, doubts: f64) -> Result<Lessons, SweptError> {
        let plain = match self {
            Ground::Sweeps(sweeps) => sweeps.clone(),
            Ground::Live(lived) => match lived.swept() {
                Ok(swept) => vec![Arc::new(swept)],
                // Nothing but NCCL's own choice was called yet.
                Err(SweptError::Nothing { .. }) => Vec::new(),
                Err(error) => return Err(error),
            },
        };
        let joined = Swept::joined(&plain)?;
        // Who doubts nothing takes nothing for known that was not measured.
        if doubts == 0.0 {
            return Ok(Lessons { sure: joined, plain });
        }
        let cautious = |swept: &Arc<Swept>| Ok(Arc::new(swept.with_between()?.cautious(doubts)));
        let sure = joined.iter().map(cautious).collect::<Result<_, SweptError>>()?;
        Ok(Lessons { plain, sure })
    }

    /// Whether more is known with every call.
    pub(super) fn is_live(&self) -> bool {
        matches!(self, Ground::Live(_))
    }
}
