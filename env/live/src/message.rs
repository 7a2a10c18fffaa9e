//! What coordinator and workers say to each other: one line of JSON each way, and beats in between.

use std::fmt;

use dynamiccl_spec::{Bytes, Collective, CostTable, Knobs, Order};
use serde::{Deserialize, Serialize};

/// The first line of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// What a worker is to prove its secret with.
    pub nonce: String,
}

/// The second line of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// That the coordinator knows the secret, too.
    pub proof: String,
}

/// The first line of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// That it knows what only workers of this run know.
    pub proof: String,
    /// What the coordinator is to prove its secret with.
    pub nonce: String,
    /// Its rank.
    pub rank: u32,
    /// Its process.
    pub pid: u32,
    /// Its version, which must be the coordinator's.
    pub version: String,
}

impl Hello {
    /// What it proves: the challenge, and all that it says of itself.
    pub(crate) fn said(&self, challenge: &Challenge) -> [String; 5] {
        let Hello { nonce, rank, pid, version, .. } = self;
        [challenge.nonce.clone(), nonce.clone(), rank.to_string(), pid.to_string(), version.clone()]
    }
}

/// What a worker is asked to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Open the libraries and take the GPU.
    Open(Opening),
    /// Make what the ranks of a communicator find each other by.
    Name,
    /// Begin the communicator that is found by this.
    Join(String),
    /// Call NCCL's own choice and say what its table is.
    Look(Task),
    /// Call every order once, compare the result with what it must be, and once more.
    Warm(Task, Vec<Order>),
    /// Time every order in turn.
    Time(Task, Vec<Order>),
    /// End the communicator, and the process.
    End,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, task) = match self {
            Request::Open(_) => return f.write_str("opening the GPU, NCCL and the plugin"),
            Request::Name => return f.write_str("ncclGetUniqueId"),
            Request::Join(_) => return f.write_str("ncclCommInitRank"),
            Request::End => return f.write_str("ncclCommDestroy"),
            Request::Look(task) => ("looking", task),
            Request::Warm(task, _) => ("warming up", task),
            Request::Time(task, _) => ("timing", task),
        };
        write!(f, "{verb} {} {}", task.collective, Bytes(task.bytes))
    }
}

/// What a worker needs to begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// All ranks.
    pub ranks: u32,
    /// NCCL's library; none for the one that the dynamic linker finds.
    pub nccl: Option<String>,
    /// The plugin's library.
    pub plugin: String,
    /// Floats of the largest call.
    pub floats: usize,
    /// Thousandths of the GPU's multiprocessors that this rank's load beside communication fills; 0 for none.
    pub beside: u32,
}

/// A call, and how often it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The collective.
    pub collective: Collective,
    /// Bytes, as NCCL counts them.
    pub bytes: u64,
    /// Calls between two moments; 0 for the load alone.
    pub calls: u32,
    /// Rounds of the load beside them; 0 for none.
    pub load: u32,
    /// Whether all ranks wait for each other before the first moment.
    pub drained: bool,
}

/// What a worker says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It lives.
    Beat {
        /// The step of what it was asked that it has come to, which grows unless it hangs; 0 before the first.
        steps: u64,
        /// What it does.
        doing: String,
    },
    /// It has done what it was asked to.
    Done(Answer),
    /// It cannot.
    Failed {
        /// What it did.
        doing: String,
        /// Why.
        why: String,
        /// Whether another rank may be at fault.
        remote: bool,
    },
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What was opened.
    Opened(Surroundings),
    /// What a communicator is found by.
    Named(String),
    /// It has begun.
    Joined,
    /// What NCCL would do.
    Looked(Look),
    /// What came of every order.
    Warmed(Vec<Warmed>),
    /// Microseconds of every order.
    Timed(Vec<Timing>),
    /// It has ended.
    Ended,
}

/// What a worker runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// The GPU.
    pub gpu: String,
    /// Its multiprocessors.
    pub multiprocessors: u32,
    /// The newest CUDA that its driver runs.
    pub cuda: String,
    /// NCCL's release.
    pub nccl: String,
    /// What it is on, as NCCL tells hosts apart.
    pub host: String,
    /// Blocks of the load, each of which fills a multiprocessor; 0 for none.
    pub blocks: u32,
}

/// What NCCL would do by itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// The version of the interface through which it asks.
    pub interface: u32,
    /// Bytes as NCCL counts them.
    pub bytes: u64,
    /// Its table.
    #[serde(with = "bits")]
    pub table: CostTable,
}

/// A table as the bits of its entries: JSON has no word for some of them.
mod bits {
    use dynamiccl_spec::CostTable;
    use dynamiccl_spec::ids::{ALGORITHMS, PROTOCOLS};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(table: &CostTable, to: S) -> Result<S::Ok, S::Error> {
        table.0.map(|row| row.map(f32::to_bits)).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<CostTable, D::Error> {
        let rows = <[[u32; PROTOCOLS]; ALGORITHMS]>::deserialize(from)?;
        Ok(CostTable(rows.map(|row| row.map(f32::from_bits))))
    }
}

/// What came of calling an order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Warmed {
    /// Whether NCCL was handed it.
    pub carried_out: bool,
    /// What was handed over; NCCL's own where nothing was.
    pub handed: Knobs,
    /// Numbers of the result that are wrong.
    pub wrong: u64,
}

/// How long an order took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Microseconds of one call.
    pub us: f64,
    /// Microseconds of the load beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_us: Option<f64>,
}
