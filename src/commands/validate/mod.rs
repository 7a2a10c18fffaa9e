//! `validate`: the simulator against measurements.

mod sweeps;
mod tables;

use anyhow::Result;
use dynamiccl_env::model::{Constants, ConstantsFile};

use crate::args::ValidateArgs;
use crate::exit::Ending;
use crate::session::Session;

/// Makes the plan and carries it out.
pub fn run(args: &ValidateArgs, session: &Session) -> Result<Ending> {
    let bound = args.fail_above;
    let file = ConstantsFile::load(&args.constants.constants)?;
    let model = Model { name: args.constants.constants.clone(), constants: file.nominal() };
    let figure = match (&args.data.sweeps, &args.data.tables) {
        (Some(folder), _) => sweeps::run(folder, &model, session)?,
        (None, Some(folder)) => tables::run(folder, &model, session)?,
        (None, None) => unreachable!("the arguments require one of the two"),
    };
    Ok(verdict(figure, bound))
}

/// The model that is held against the measurements.
struct Model {
    name: String,
    constants: Constants,
}

/// The answer is no if there is a bound and the overall figure is above it, or there is none.
fn verdict(figure: Option<f64>, bound: Option<f64>) -> Ending {
    match (figure, bound) {
        (_, None) => Ending::Done,
        (Some(figure), Some(bound)) if figure <= bound => Ending::Done,
        _ => Ending::No,
    }
}

/// A figure of a table; a dash where there is none.
fn figure(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_no_above_the_bound_and_without_a_figure() {
        assert_eq!(verdict(Some(1.3), None), Ending::Done);
        assert_eq!(verdict(Some(1.3), Some(1.3)), Ending::Done);
        assert_eq!(verdict(Some(1.4), Some(1.3)), Ending::No);
        assert_eq!(verdict(None, Some(1.3)), Ending::No);
    }
}
