//! Who decides when, for the correlations and costs of docs/reconfiguration.md: one line each, with costs.
//!
//! `cargo run --release -p dynamiccl-env --example wan_table [TRACES] [COLLECTIVES]`; five minutes with 5 and 4000.

use std::convert::Infallible;
use std::error::Error;

use dynamiccl_env::wan::compare::Comparison;
use dynamiccl_env::wan::control::{Cadence, Controller};
use dynamiccl_env::wan::{Costs, Network, Setting};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let mut number = |usual: usize| words.next().map_or(Ok(usual), |word| word.parse());
    let (traces, collectives) = (number(5)?, number(4000)?);
    let setting = Setting::new(Network::even(2, 4, 2)?)?;
    println!("# {traces} traces of {collectives} collectives; mean ms ± deviation over the traces");
    println!("# rho  costs    cadence 10       best cadence     threshold        clairvoyant");
    for (rho, rebuild_ms, reroute_ms) in
        [(0.0, 20.0, 1.0), (0.8, 100.0, 5.0), (0.95, 20.0, 1.0), (0.95, 100.0, 5.0), (0.99, 500.0, 5.0)]
    {
        let costs = Costs { rebuild_ms, reroute_ms };
        let comparison =
            Comparison { setting: &setting, costs, rho, lag: 0, traces, collectives, seed: 1, threads: 2 };
        let step = |_| Ok::<_, Infallible>(());
        let Ok(courses) = comparison.courses(step);
        let Ok(cadence) = comparison.best_cadence(&courses, step);
        let Ok(threshold) = comparison.best_threshold(&courses, step);
        let (mut cadence, mut threshold) = (cadence.ok_or("no cadence")?, threshold.ok_or("no trigger")?);
        let Ok(least) = comparison.clairvoyant(&courses, step)?;
        let judge = |controller: &mut dyn Controller| {
            let Ok(figures) = comparison.judge(&courses, controller, step);
            figures
        };
        let all = [judge(&mut { Cadence::STUDY }), judge(&mut cadence), judge(&mut threshold), least];
        let cells = all.map(|f| format!("{:6.2} ± {:5.2}", f.mean_ms, f.std_ms.unwrap_or(0.0)));
        println!("{rho:5}  {rebuild_ms:3}/{reroute_ms}  {}  {cadence:?} {threshold:?}", cells.join("   "));
    }
    Ok(())
}
