//! Whether an environment keeps the contract, for any environment there is or will be.
//!
//! A learner trusts an environment blindly: a mask that lies, a seed that does nothing or a number out of
//! range costs days before it is seen. So everything that [`Env`] promises is a [`Rule`] here and can be
//! shown to be broken. Nothing is known of what an environment is about.

mod described;
mod episode;
mod findings;
mod provoke;
mod report;
mod rule;
mod twins;
mod walk;

pub use report::{CheckOptions, Report, RuleResult, Verdict};
pub use rule::Rule;

use crate::gym::Env;
use findings::Findings;

/// Steps into an episode at which every legal choice is tried.
const DEPTHS: [usize; 3] = [0, 1, 5];

/// Holds environments to every rule. `make` makes a new one, always in the same way; `progress` is told of
/// every so many steps of the random walk, `options.steps` in all, and stops the check with its error.
///
/// # Panics
///
/// If the options have no seed.
pub fn check<E: Env, X>(
    make: impl Fn() -> Result<E, X>,
    options: &CheckOptions,
    mut progress: impl FnMut(u64) -> Result<(), X>,
) -> Result<Report, X> {
    assert!(!options.seeds.is_empty(), "a check needs a seed");
    let mut findings = Findings::default();
    let mut first = make()?;
    let id = first.spaces().id.clone();
    described::described(first.spaces(), &mut findings);
    let mut steps = provoke::order(&mut first, options, &mut findings);
    provoke::reset(&mut first, options, &mut findings);
    let mut second = make()?;
    for &seed in &options.seeds {
        steps += twins::repeat(&mut make()?, &mut first, seed, &mut findings);
        steps += twins::stream(&mut first, &mut second, seed, &mut findings);
        steps += provoke::refuse(&mut first, seed, &mut findings);
        for depth in DEPTHS {
            steps += provoke::accept(&mut first, seed, depth, &mut findings);
        }
        progress(0)?;
    }
    let pair = [options.seeds[0], options.seeds[0] ^ 1];
    steps += twins::isolation(&mut first, &mut second, pair, &mut findings);
    if options.seeds_matter {
        steps += twins::seeds(&mut first, options, &mut findings);
    } else {
        findings.leave_out(Rule::Seeds, "does not apply: a recording is the same with every seed");
    }
    steps += walk::walk(&mut first, options, &mut findings, &mut progress)?;
    Ok(Report { id, rules: findings.verdicts(), steps })
}

#[cfg(test)]
mod tests;
