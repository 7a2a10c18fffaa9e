//! The words of `validate`.

use std::path::PathBuf;

use super::numbers::number;
use super::shared::ConstantsArgs;

/// Words of `validate`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = concat!("\
EXAMPLES
    dynamiccl validate --sweeps measured/sweeps
    dynamiccl validate --tables measured/nccl-tests --constants blind --json
    dynamiccl validate --sweeps measured/sweeps --fail-above 1.15

", exit_codes!()))]
pub struct ValidateArgs {
    /// What to compare with.
    #[command(flatten)]
    pub data: MeasuredArgs,
    /// Exit with 1 if the overall figure is above this: of sweeps the decision fidelity, of tables
    /// the error of the model as it is
    #[arg(long, value_name = "X", value_parser = number::<f64>)]
    pub fail_above: Option<f64>,
    /// Constants of the performance model
    #[command(flatten)]
    pub constants: ConstantsArgs,
}

/// Measurements to compare with: one of the two.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct MeasuredArgs {
    /// Folder of knob sweeps: every setting measured, so rankings can be compared
    #[arg(long, value_name = "DIR")]
    pub sweeps: Option<PathBuf>,
    /// Folder of nccl-tests tables: NCCL's own choice measured, so times can be compared
    #[arg(long, value_name = "DIR")]
    pub tables: Option<PathBuf>,
}
