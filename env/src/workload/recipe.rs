//! How a model is trained: everything that decides which calls an iteration makes.

use dynamiccl_spec::{Compression, SyncMode};

use super::error::WorkloadError;
use super::layout::Layout;
use super::model::ModelShape;

/// DistributedDataParallel's default bucket.
pub const BUCKET_BYTES: u64 = 25 << 20;
/// Its first bucket, smaller so that the network starts early.
pub const FIRST_BUCKET_BYTES: u64 = 1 << 20;

/// A training job.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// The model.
    pub model: ModelShape,
    /// How it is spread.
    pub layout: Layout,
    /// Micro-batches of one iteration, of each replica.
    pub micro_batches: u32,
    /// Sequences of one micro-batch.
    pub micro_batch_size: u32,
    /// When replicas wait for each other.
    pub sync: SyncMode,
    /// Iterations between two synchronisations of local SGD.
    pub tau: u32,
    /// How gradients are made smaller.
    pub compression: Compression,
    /// Original bytes per byte that one rank sends; 0 for the method's usual rate.
    pub compression_rate: f64,
    /// Bytes after which a bucket of gradients is sent; 0 sends every tensor by itself.
    pub bucket_bytes: u64,
    /// The same for the first bucket.
    pub first_bucket_bytes: u64,
    /// Whether gradients are sent, and parameters gathered, while compute goes on.
    pub overlap: bool,
    /// Bytes of one gradient on the wire: 4 or 2.
    pub gradient_bytes: u32,
    /// Bytes of one activation, and of one parameter as FSDP gathers it: 4, 2 or 1.
    pub activation_bytes: u32,
    /// With FSDP, whether parameters are dropped after each pass and gathered again (ZeRO-3). TorchTitan
    /// does so without a pipeline and keeps them with one.
    pub reshard: bool,
    /// Tokens of the busiest expert rank ÷ the mean; above 1, experts exchange with alltoallv.
    pub imbalance: f64,
}

impl Recipe {
    /// A job with usual settings: one sequence per micro-batch, enough micro-batches to fill the
    /// pipeline twice, bulk-synchronous, nothing compressed.
    pub fn new(model: ModelShape, layout: Layout) -> Self {
        Recipe {
            model,
            layout,
            micro_batches: if layout.pp > 1 { 2 * layout.pp } else { 1 },
            micro_batch_size: 1,
            sync: SyncMode::Bsp,
            tau: 1,
            compression: Compression::None,
            compression_rate: 0.0,
            bucket_bytes: BUCKET_BYTES,
            first_bucket_bytes: FIRST_BUCKET_BYTES,
            overlap: true,
            gradient_bytes: 4,
            activation_bytes: 2,
            reshard: layout.pp == 1,
            imbalance: 1.0,
        }
    }

    /// Tokens that one rank works on in one micro-batch.
    pub fn tokens(&self) -> u64 {
        u64::from(self.micro_batch_size) * u64::from(self.model.sequence / self.layout.cp)
    }

    /// Whether replicas synchronise at the end of an iteration before which so many have ended without.
    pub fn synchronises(&self, since: u32) -> bool {
        self.sync != SyncMode::Local || since + 1 >= self.tau
    }

    /// Whether such a job can run.
    pub fn check(&self) -> Result<(), WorkloadError> {
        self.model.check()?;
        self.layout.check(&self.model)?;
        let refuse = |what, value: String, remedy: &str| {
            let (model, remedy) = (self.model.name.clone(), remedy.to_owned());
            Err(WorkloadError::Recipe { model, what, value, remedy })
        };
        let layers = self.model.layers.div_ceil(self.layout.pp);
        if self.micro_batches == 0 || u64::from(self.micro_batches) * u64::from(layers) > 1 << 20 {
            let remedy = "give at least 1, and at most 2^20 over all layers of a stage";
            return refuse("micro_batches", self.micro_batches.to_string(), remedy);
        }
        if !(1..=1 << 12).contains(&self.micro_batch_size) {
            return refuse("micro_batch_size", self.micro_batch_size.to_string(), "give 1 to 4096");
        }
        if self.tau == 0 {
            return refuse("tau", "0".to_owned(), "give at least 1");
        }
        if ![2, 4].contains(&self.gradient_bytes) {
            return refuse("gradient_bytes", self.gradient_bytes.to_string(), "give 2 or 4");
        }
        if ![1, 2, 4].contains(&self.activation_bytes) {
            return refuse("activation_bytes", self.activation_bytes.to_string(), "give 1, 2 or 4");
        }
        if self.compression_rate != 0.0 && !(1.0..=1e6).contains(&self.compression_rate) {
            let remedy = "give 1 to 1000000, or 0 for the method's usual rate";
            return refuse("compression_rate", self.compression_rate.to_string(), remedy);
        }
        if !(1.0..=8.0).contains(&self.imbalance) {
            return refuse("imbalance", self.imbalance.to_string(), "give 1 (balanced) to 8");
        }
        self.check_sharding()
    }

    /// FSDP's replicas hold no whole gradients or parameters, so not every method works with it.
    fn check_sharding(&self) -> Result<(), WorkloadError> {
        if !self.layout.fsdp {
            return Ok(());
        }
        let refuse = |what, value: String, remedy: &str| {
            let (model, remedy) = (self.model.name.clone(), remedy.to_owned());
            Err(WorkloadError::Recipe { model, what, value, remedy })
        };
        if matches!(self.sync, SyncMode::Local | SyncMode::Decentralised) {
            let remedy = "it averages whole parameters, which fsdp shards: turn fsdp off or use bsp";
            return refuse("sync", self.sync.to_string(), remedy);
        }
        use Compression::{Fp16, Int8, None, Unknown};
        if !matches!(self.compression, Unknown | None | Fp16 | Int8) {
            let remedy = "a reducescatter carries none, fp16 or int8 only: use one of these or turn fsdp off";
            return refuse("compression", self.compression.to_string(), remedy);
        }
        Ok(())
    }
}
