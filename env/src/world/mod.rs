//! A world: one draw of everything that NCCL's own model and ours leave open.
//!
//! The nominal world takes the model's constants as they are. Any other draws each constant from its
//! range, bandwidths near the cluster's, and a field of what no model knows. The same seed gives the
//! same world and the same times to the bit. NCCL's own constants never change: the gap between the
//! two is what can be learned.

pub mod draw;
mod field;
mod weather;

use std::sync::{Arc, OnceLock};

use crate::cluster::{Cluster, InterLink};
use crate::measure::Clock;
use crate::model::constants::{Constants, ConstantsFile, Residual, Weather};
use draw::{LogUniform, Origin, Stream, generator};

pub use field::{Field, Modes};
pub use weather::{Climate, Luck, WeatherState};

/// What a communicator crosses, as far as noise and residuals differ by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Crossing {
    Node,
    Rdma,
    Socket,
}

/// One draw of the hidden truth.
#[derive(Debug, Clone)]
pub struct World {
    origin: Option<Origin>,
    constants: Constants,
    /// By crossing; made when first asked for.
    fields: [OnceLock<Arc<Field>>; 3],
}

/// A job goes on when its last rank is done.
const OF_JOBS: Clock = Clock::Slowest;

impl World {
    /// The world in which every constant has its value and the model knows everything.
    pub fn nominal(constants: &ConstantsFile) -> Self {
        World { origin: None, constants: constants.nominal().by(OF_JOBS), fields: Default::default() }
    }

    /// The world of a seed.
    pub fn draw(constants: &ConstantsFile, seed: u64) -> Self {
        Self::of(constants, Origin { seed, kept: false })
    }

    /// A world of a seed that is kept for evaluation: none that [`World::draw`] ever makes.
    pub fn keep(constants: &ConstantsFile, seed: u64) -> Self {
        Self::of(constants, Origin { seed, kept: true })
    }

    fn of(constants: &ConstantsFile, origin: Origin) -> Self {
        let mut rng = generator(origin, Stream::Constants);
        let mut factors = LogUniform::default();
        let constants = constants.draw(|range| factors.draw(&mut rng, range)).by(OF_JOBS);
        World { origin: Some(origin), constants, fields: Default::default() }
    }

    /// The seed, if it is not the nominal world.
    pub fn seed(&self) -> Option<u64> {
        self.origin.map(|origin| origin.seed)
    }

    /// The hidden constants.
    pub fn constants(&self) -> &Constants {
        &self.constants
    }

    /// What the model does not know about a communicator; nothing in the nominal world. Communicators inside
    /// nodes share one, those on the network another.
    pub fn field(&self, cluster: &Cluster, nodes: u32) -> Option<Arc<Field>> {
        let origin = self.origin?;
        let crossing = Crossing::of(cluster, nodes);
        let residuals = &self.constants.residual;
        let (residual, stream): (&Residual, Stream) = match crossing {
            Crossing::Node => (&residuals.node, Stream::NodeField),
            Crossing::Rdma => (&residuals.rdma, Stream::Field),
            Crossing::Socket => (&residuals.socket, Stream::Field),
        };
        let field = || Arc::new(Field::new(residual, origin, stream));
        Some(Arc::clone(self.fields[crossing as usize].get_or_init(field)))
    }

    /// The weather of a communicator; calm and without noise in the nominal world.
    pub fn weather(&self, cluster: &Cluster, nodes: u32) -> Option<WeatherState> {
        let origin = self.origin?;
        let weather = &self.constants.weather;
        let (constants, stream): (&Weather, Stream) = match Crossing::of(cluster, nodes) {
            Crossing::Node => (&weather.node, Stream::NodeWeather),
            Crossing::Rdma => (&weather.rdma, Stream::Weather),
            Crossing::Socket => (&weather.socket, Stream::Weather),
        };
        let nics = cluster.inter.as_ref().map_or(1, |inter| inter.nics);
        Some(WeatherState::new(constants, nics, generator(origin, stream)))
    }
}

impl Crossing {
    fn of(cluster: &Cluster, nodes: u32) -> Self {
        match cluster.inter.as_ref().filter(|_| nodes > 1).map(|inter| inter.link) {
            None => Crossing::Node,
            Some(InterLink::Tcp | InterLink::TcpLoopback | InterLink::TcpVeth) => Crossing::Socket,
            Some(_) => Crossing::Rdma,
        }
    }
}
