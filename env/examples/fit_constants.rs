//! Fits the model's constants to measurements and writes a constants file.
//!
//! cargo run --release -p dynamiccl-env --example fit_constants -- TABLES SWEEPS|none OUT
//!
//! TABLES is a folder as `validate --tables` takes, SWEEPS one as `validate --sweeps` takes; `none`
//! leaves the sweeps out, which is how `constants-blind.toml` is made. Starts from the built-in
//! constants and holds to them what the data does not speak about.

use std::collections::BTreeMap;
use std::path::Path;

use dynamiccl_env::calibrate::fabric;
use dynamiccl_env::least_squares::{Options, minimise};
use dynamiccl_env::measure::{sweep, tables};
use dynamiccl_env::model::{Constants, ConstantsFile};
use dynamiccl_env::validate::sweeps::{Fidelity, PreparedSweep};
use dynamiccl_env::validate::tables::{Overall, PreparedTable};

/// Constants that no data of ours speaks about, or that are facts.
const FIXED: [&str; 11] = [
    "eager",
    "collision",
    "incast",
    "cache",
    "spilled",
    "residual",
    "weather",
    "bandwidth",
    "collnet",
    "lone_channel",
    "channel_rate",
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [tables_dir, sweeps_dir, out] = &arguments[..] else {
        eprintln!("usage: fit_constants TABLES SWEEPS|none OUT");
        std::process::exit(2);
    };
    let start_file = ConstantsFile::load(&std::env::var("START").unwrap_or("full".into())).unwrap();
    let holdout = std::env::var("HOLDOUT").ok();
    let all: Vec<PreparedTable> = tables::read(Path::new(tables_dir))
        .unwrap()
        .iter()
        .filter_map(|t| PreparedTable::new(t).ok())
        .collect();
    let usable = |t: &&PreparedTable| !matches!(t.health, tables::Health::No);
    let source = |t: &PreparedTable| t.id.split('_').next().unwrap_or("").to_owned();
    let train: Vec<&PreparedTable> = all
        .iter()
        .filter(usable)
        .filter(|_| std::env::var("NOTABLES").is_err())
        .filter(|t| holdout.as_deref().is_none_or(|h| !h.split(',').any(|h| h == source(t))))
        .collect();
    let sweeps: Vec<PreparedSweep> = if sweeps_dir == "none" {
        vec![]
    } else {
        sweep::read(Path::new(sweeps_dir)).unwrap().iter().map(|s| PreparedSweep::new(s).unwrap()).collect()
    };
    let mut siblings: BTreeMap<String, f64> = BTreeMap::new();
    let group = |t: &PreparedTable| {
        format!("{} {} {}", source(t), t.cluster.description, t.samples[0].call.collective)
    };
    for t in &train {
        *siblings.entry(group(t)).or_default() += 1.0
    }

    let mut names = vec![];
    let mut start = vec![];
    start_file.clone().visit(&mut |name, value| {
        if *value > 0.0
            && !FIXED.iter().any(|f| name.contains(f))
            && !(*value >= 1e3)
            && (!sweeps.is_empty() || !name.contains("tcp_"))
            && std::env::var("ONLY").map_or(true, |o| o.split(',').any(|o| name.starts_with(o)))
        {
            names.push(name.to_owned());
            start.push(value.ln())
        }
    });
    let apply = |x: &[f64]| {
        let mut file = start_file.clone();
        let mut i = 0;
        file.visit(&mut |name, value| {
            if i < names.len() && names[i] == name {
                *value = x[i].exp();
                i += 1
            }
        });
        file
    };
    let residuals = |constants: &Constants| -> Vec<f64> {
        let mut out = vec![];
        for t in &train {
            let weight = (20.0 / (t.samples.len() as f64 * siblings[&group(t)])).sqrt();
            let fabric = fabric(&t.cluster, &t.communicator, constants);
            out.extend(t.samples.iter().map(|s| weight * (fabric.time(&s.call) / s.measured_us).ln()));
        }
        for s in sweeps.iter().filter(|s| std::env::var("LEAVE").map_or(true, |l| !s.file().starts_with(&l)))
        {
            for cell in s.times(constants) {
                let best = cell.iter().map(|c| c.0).fold(f64::INFINITY, f64::min);
                out.extend(cell.iter().map(|(measured, modelled)| {
                    let w = (1.0 / (1.0 + (measured / best).ln().powi(2))).sqrt();
                    w * (modelled / measured).ln()
                }));
            }
        }
        out
    };
    let report = |label: &str, constants: &Constants| {
        let reports: Vec<_> = all.iter().map(|t| t.report(constants)).collect();
        let healthy = |r: &&_| matches!(<_ as Into<Option<&dynamiccl_env::validate::tables::TableReport>>>::into(*r), Some(r) if r.health == tables::Health::Yes);
        println!("{label} healthy {:?}", Overall::of(reports.iter().filter(healthy)));
        println!(
            "{label} not-no  {:?}",
            Overall::of(reports.iter().filter(|r| r.health != tables::Health::No))
        );
        if let Some(h) = &holdout {
            println!(
                "{label} HELD OUT {:?}",
                Overall::of(
                    reports.iter().filter(
                        |r| r.health != tables::Health::No && h.split(',').any(|h| r.id.starts_with(h))
                    )
                )
            )
        }
        let reports: Vec<_> = sweeps.iter().map(|s| s.report(constants)).collect();
        for r in &reports {
            println!("{label} {} {:?}", r.file, Fidelity::of([r]))
        }
        println!("{label} sweeps {:?}", Fidelity::of(&reports));
    };
    report("start", &start_file.nominal());
    let options = Options {
        outlier: 0.2,
        hold: std::env::var("HOLD").map_or(0.3, |h| h.parse().unwrap()),
        reach: std::env::var("REACH").map_or(1.1, |h| h.parse().unwrap()),
        iterations: std::env::var("ITER").map_or(15, |h| h.parse().unwrap()),
    };
    let x = minimise(&start, options, |x| residuals(&apply(x).nominal()));
    for ((name, a), b) in names.iter().zip(&start).zip(&x) {
        if (a - b).abs() > 0.02 {
            println!("{name:40} {:10.4} -> {:10.4}", a.exp(), b.exp())
        }
    }
    let fitted = apply(&x);
    report("fitted", &fitted.nominal());
    std::fs::write(out, fitted.to_toml()).unwrap();
}
