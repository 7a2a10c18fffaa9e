//! The first updates of the smoke curriculum: environments, acting and learning together.

use std::sync::Arc;
use std::time::Instant;

use dynamiccl_agent::Config;
use dynamiccl_agent::error::TrainError;
use dynamiccl_agent::learn::{Coefficients, Device, MissingDevice};
use dynamiccl_agent::subject::Knobs;
use dynamiccl_agent::training::{Event, Setup, Training};
use dynamiccl_env::curriculum::Curriculum;
use dynamiccl_env::model::ConstantsFile;

use crate::{Trained, mean};

/// Updates whose losses are one figure.
const WINDOW: usize = 4;

/// Trains on a device.
pub fn trained(device: Device, updates: usize) -> Result<Trained, MissingDevice> {
    let mut config = Config::default();
    config.evaluation.every = u64::MAX;
    // Every device goes through every epoch.
    config.optimiser.divergence = 0.0;
    let (loss, clip, entropy) = (config.loss, config.loss.clip[0], config.loss.entropy[0]);
    let coefficients = Coefficients { of: loss, clip, entropy };
    let setup = Setup {
        subject: Knobs {
            curriculum: Curriculum::load("smoke").expect("a curriculum of ours"),
            constants: Arc::new(ConstantsFile::full()),
            schedules: None,
        },
        config,
        seed: 1,
        threads: 1,
        device,
    };
    let mut training = match Training::new(setup) {
        Err(TrainError::Device(missing)) => return Err(missing),
        training => training.expect("a run that begins"),
    };
    let (mut of, begun) = (Vec::new(), Instant::now());
    for _ in 0..updates {
        if let Event::Updated(update) = training.step().expect("an update") {
            of.push(update.losses.total(&coefficients) as f32);
        }
    }
    let window = WINDOW.min(of.len());
    let ms = 1e3 * begun.elapsed().as_secs_f64() / updates as f64;
    Ok(Trained { first: mean(&of[..window]), last: mean(&of[of.len() - window..]), ms })
}
