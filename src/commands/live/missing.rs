//! What a live run needs, looked for before anything is started.

use anyhow::{Context, Result, ensure};
use dynamiccl_gpu::{Cuda, Nccl};

use super::post::Post;
use crate::args::JobArgs;
use crate::words::counted;

/// GPUs of this machine; an error that says what is missing.
pub fn look(job: &JobArgs, post: &Post) -> Result<u32> {
    let cuda = Cuda::open().context("no GPU can be used")?;
    let gpus = cuda.devices().context("no GPU can be used")?.len() as u32;
    ensure!(gpus > 0, "no GPU can be used: the driver sees none (CUDA_VISIBLE_DEVICES?)");
    Nccl::open(job.nccl.as_deref().map(AsRef::as_ref)).context("no NCCL can be used")?;
    let ranks = post.ranks;
    // Of ranks on other machines nobody here can tell.
    ensure!(
        job.share_gpu || post.among.is_some() || ranks <= gpus,
        "{ranks} ranks and {}: give --share-gpu to let ranks share one",
        counted(gpus, "GPU")
    );
    Ok(gpus)
}
