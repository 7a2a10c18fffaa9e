//! How large and how smooth the residuals of the fitted model are: what a world's field is sized by.
//!
//! Tables are calibrated first, since a world draws its constants as well: the field is for what no
//! constant explains. Sweeps are taken as fitted.

use std::collections::BTreeMap;

use dynamiccl_env::calibrate::{calibrate, fabric};
use dynamiccl_env::measure::tables::Health;
use dynamiccl_env::model::{Call, ConstantsFile};
use dynamiccl_env::validate::sweeps::PreparedSweep;
use dynamiccl_env::validate::tables::PreparedTable;

/// One residual: where, what, and the log of measured over modelled time.
struct Residual {
    machine: String,
    call: Call,
    log: f64,
}

/// Writes the sizes of the residuals into the file and prints them.
pub fn measure(tables: &[PreparedTable], sweeps: &[PreparedSweep], file: &mut ConstantsFile) {
    let constants = file.nominal();
    let (mut node, mut rdma, mut socket) = (Vec::new(), Vec::new(), Vec::new());
    for table in tables.iter().filter(|t| t.health == Health::Yes) {
        let mut cluster = table.cluster.clone();
        cluster.calibration = calibrate(&cluster, &table.communicator, &table.samples, &constants);
        let fabric = fabric(&cluster, &table.communicator, &constants);
        let into = if table.communicator.nodes() > 1 { &mut rdma } else { &mut node };
        // One machine's tables stand side by side, whatever their collective.
        let machine = table.cluster.description.clone() + table.id.split('_').next().unwrap_or_default();
        into.extend(table.samples.iter().map(|s| Residual {
            machine: machine.clone(),
            call: s.call,
            log: (s.measured_us / fabric.time(&s.call)).ln(),
        }));
    }
    for sweep in sweeps {
        socket.extend(sweep.residuals(&constants).into_iter().map(|(call, log)| Residual {
            machine: sweep.file().to_owned(),
            call,
            log,
        }));
    }
    for (name, residuals) in [("node", &node), ("rdma", &rdma), ("socket", &socket)] {
        write(name, residuals, sweeps, file);
    }
}

fn write(name: &str, residuals: &[Residual], sweeps: &[PreparedSweep], file: &mut ConstantsFile) {
    let spread = robust_deviation(residuals.iter().map(|r| r.log));
    let by_size = along(residuals, |c| (c.channels, c.collective.id()), |c| c.bytes as f64);
    let by_channels =
        along(residuals, |c| (0, c.collective.id() + 8 * c.bytes as usize), |c| f64::from(c.channels));
    let alike = across_collectives(residuals);
    let (jumps, series) = cliffs(residuals, spread);
    let modes: Vec<f64> = sweeps.iter().flat_map(PreparedSweep::repeat_ratios).collect();
    let slow: Vec<f64> = modes.iter().copied().filter(|&ratio| ratio > 1.7).collect();
    println!(
        "residual.{name}: {} rows, spread {spread:.3}, size {by_size:?}, channels {by_channels:?}, alike {alike:?}, \
         cliffs {} of {series}, bimodal {} of {}",
        residuals.len(),
        jumps.len(),
        slow.len(),
        modes.len()
    );
    file.visit(&mut |constant, value| {
        let Some(field) = constant.strip_prefix(&format!("residual.{name}.")) else { return };
        match field {
            "spread" => *value = spread,
            "size_octaves" => *value = by_size.unwrap_or(*value),
            "channel_octaves" => *value = by_channels.unwrap_or(*value),
            "own" => *value = alike.map_or(*value, |alike| (1.0 - alike).clamp(0.05, 0.95)),
            "cliff" if !jumps.is_empty() => *value = robust_deviation(jumps.iter().copied()).max(spread),
            "cliff_rate" => *value = jumps.len() as f64 / series.max(1) as f64,
            "bimodal_rate" if name == "socket" => *value = slow.len() as f64 / modes.len().max(1) as f64,
            "bimodal_slow" if name == "socket" => *value = median(slow.clone()).unwrap_or(*value),
            _ => {}
        }
    });
}

/// Correlation length in octaves of `axis`, from neighbours within a group of otherwise equal calls.
fn along(
    residuals: &[Residual],
    group: impl Fn(&Call) -> (u32, usize),
    axis: impl Fn(&Call) -> f64,
) -> Option<f64> {
    let mut products = 0.0;
    let mut squares = 0.0;
    let mut octaves = 0.0;
    let mut pairs = 0.0;
    for series in series(residuals, group, &axis).values() {
        for neighbours in series.windows(2) {
            let apart = (neighbours[1].0 / neighbours[0].0).log2();
            if apart < 0.5 {
                continue;
            }
            products += neighbours[0].1 * neighbours[1].1;
            squares += (neighbours[0].1.powi(2) + neighbours[1].1.powi(2)) / 2.0;
            octaves += apart;
            pairs += 1.0;
        }
    }
    let correlation: f64 = products / squares;
    (pairs >= 20.0 && correlation > 0.01).then(|| -octaves / pairs / correlation.min(0.99).ln())
}

type Series = BTreeMap<(String, usize, u32, usize), Vec<(f64, f64)>>;

/// Residuals in order of `axis`, repeated points averaged, limited so that outliers do not decide.
fn series(
    residuals: &[Residual],
    group: impl Fn(&Call) -> (u32, usize),
    axis: &impl Fn(&Call) -> f64,
) -> Series {
    const LIMIT: f64 = 0.5;
    let mut points: BTreeMap<_, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    for r in residuals {
        let (a, b) = group(&r.call);
        let key = (r.machine.clone(), r.call.pair.index(), a, b);
        points
            .entry(key)
            .or_default()
            .entry(axis(&r.call) as u64)
            .or_default()
            .push(r.log.clamp(-LIMIT, LIMIT));
    }
    let mean = |(x, logs): (u64, Vec<f64>)| (x as f64, logs.iter().sum::<f64>() / logs.len() as f64);
    points.into_iter().map(|(key, at)| (key, at.into_iter().map(mean).collect())).collect()
}

/// How alike residuals of different collectives are at the same machine, pair, channels and size.
fn across_collectives(residuals: &[Residual]) -> Option<f64> {
    let by_collective =
        series(residuals, |c| (c.channels, c.bytes as usize), &|c: &Call| c.collective.id() as f64 + 1.0);
    let (mut products, mut squares, mut pairs) = (0.0, 0.0, 0);
    for at in by_collective.values() {
        for (i, a) in at.iter().enumerate() {
            for b in &at[i + 1..] {
                products += a.1 * b.1;
                squares += (a.1.powi(2) + b.1.powi(2)) / 2.0;
                pairs += 1;
            }
        }
    }
    (pairs >= 20).then(|| (products / squares).max(0.0))
}

/// Jumps between neighbouring sizes that are too large for the smooth part, and the number of series.
fn cliffs(residuals: &[Residual], spread: f64) -> (Vec<f64>, usize) {
    let all = series(residuals, |c| (c.channels, c.collective.id()), &|c: &Call| c.bytes as f64);
    let long: Vec<_> = all.values().filter(|s| s.len() >= 4).collect();
    let largest = |s: &&Vec<(f64, f64)>| {
        s.windows(2).map(|w| w[1].1 - w[0].1).max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0)
    };
    let jumps = long.iter().map(largest).filter(|jump| jump.abs() > 3.0 * spread).collect();
    (jumps, long.len())
}

fn robust_deviation(logs: impl Iterator<Item = f64>) -> f64 {
    // 1.4826 turns the median absolute value of a normal variable into its deviation.
    1.4826 * median(logs.map(f64::abs).collect()).unwrap_or(0.0)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
