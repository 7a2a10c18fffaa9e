//! Which class of the style sheet stands for which tuner, and for which algorithm and protocol.

use dynamiccl_env::evaluate::Kind;
use dynamiccl_spec::{Pair, Path};

/// Colours for tuners that have none of their own.
const COLOURS: usize = 8;

/// The class of a tuner: NCCL and the oracle look the same in every report.
pub fn tuner_class(kind: Kind, number: usize) -> String {
    match kind {
        Kind::Nccl => "t-nccl".to_owned(),
        Kind::Oracle => "t-oracle".to_owned(),
        Kind::Bayes => "t-bayes".to_owned(),
        Kind::Tuner | Kind::Random => format!("t{}", number % COLOURS),
    }
}

/// The class of a pair: a hue for each algorithm, darker from LL to Simple.
pub fn pair_class(path: Path, pair: Pair) -> String {
    match path {
        Path::Nccl => format!("{} {}", pair.algorithm, pair.protocol),
        other => other.name().to_owned(),
    }
}
