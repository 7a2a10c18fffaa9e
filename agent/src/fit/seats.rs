//! Which environments a fit has: calls of sweeps or of real ranks, and simulated jobs among them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dynamiccl_env::curriculum::Stage;
use dynamiccl_env::lived::Lived;
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_env::swept::Swept;

use super::{Ground, Setup};

/// Makes environments, one after the other.
#[derive(Debug)]
pub(super) struct Seats {
    live: Option<Arc<Lived>>,
    sweeps: Vec<Arc<Swept>>,
    stage: Arc<Stage>,
    simulated: f64,
    constants: Arc<ConstantsFile>,
    made: AtomicUsize,
}

impl Seats {
    pub fn new(setup: &Setup, lessons: &[Arc<Swept>]) -> Self {
        Seats {
            live: if let Ground::Live(lived) = &setup.ground { Some(Arc::clone(lived)) } else { None },
            sweeps: lessons.to_vec(),
            stage: Arc::clone(&setup.stage),
            simulated: setup.simulated,
            constants: Arc::clone(&setup.constants),
            made: AtomicUsize::new(0),
        }
    }

    /// The next one. They change by twos, so that of each kind as many see the history as do not.
    pub fn make(&self) -> SimEnv {
        let two = self.made.fetch_add(1, Ordering::Relaxed) / 2;
        let simulated = |twos: usize| (twos as f64 * self.simulated) as usize;
        if simulated(two + 1) > simulated(two) {
            SimEnv::new(Arc::clone(&self.stage), Arc::clone(&self.constants))
        } else if let Some(lived) = &self.live {
            SimEnv::of_live(Arc::clone(lived), None, Arc::clone(&self.constants))
        } else {
            SimEnv::of_sweeps(self.sweeps.iter().cloned(), None, Arc::clone(&self.constants))
        }
    }
}
