//! Fits the model's constants to measurements and writes a constants file.
//!
//!     cargo run --release -p dynamiccl-env --example fit_constants -- TABLES SWEEPS|none OUT [LEAVE_OUT]
//!
//! TABLES is a folder as `validate --tables` takes, SWEEPS one as `validate --sweeps` takes. `none`
//! leaves the sweeps out, which is how `constants-blind.toml` is made. LEAVE_OUT names tables or sweeps by
//! how they start; they are judged but not fitted to. Everything starts from `start.toml` and is held near it:
//! what the data does not speak about stays.
//!
//! Two steps. The tables fit everything but the sockets of one host. Then tables and sweeps together fit
//! what only sockets show: the host's own links, PAT and chains over a network.

mod residuals;

use std::collections::BTreeMap;
use std::path::Path;

use dynamiccl_env::calibrate::fabric;
use dynamiccl_env::least_squares::{Options, minimise};
use dynamiccl_env::measure::tables::Health;
use dynamiccl_env::measure::{sweep, tables};
use dynamiccl_env::model::{Constants, ConstantsFile};
use dynamiccl_env::validate::Describer;
use dynamiccl_env::validate::sweeps::{Fidelity, PreparedSweep};
use dynamiccl_env::validate::tables::{Overall, PreparedTable};

/// The first values: a hand fit to a few tables, NCCL's own constants, and guesses by analogy. Fits always
/// start here, so that the same data gives the same constants however often it is fitted.
const START: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/fit_constants/start.toml");
/// Facts, and ranges that no data of ours speaks about. A channel's rate is bounded by NCCL's own caps and
/// trades against other terms, so it is one of them; so does what RDMA hides of a launch.
const FIXED: [&str; 27] = [
    "eager",
    "collision",
    "incast",
    "cache",
    "spilled",
    "ll_between",
    "residual",
    "weather",
    "bandwidth",
    "collnet",
    "wiring.",
    "around.",
    "transfer.",
    "aggregation.",
    "lone_channel",
    "side_by_side",
    "held_up",
    "rooted.node.rate",
    "broadcast.ll128",
    "reduce.ll128",
    "nvls_channels",
    "channel_rate",
    "infiniband.launch",
    "roce.launch",
    "efa.launch",
    "slingshot.launch",
    "tcpx.launch",
];
/// Links that only sweeps have: the first step leaves them to the second.
const LOCAL: &str = "hop.tcp_";
/// What only sweeps over sockets show.
const SOCKETS: [&str; 3] = [LOCAL, "pat.", "rooted.network."];

/// What sources say instead where no sweep was used.
const UNSEEN: [(&str, &str); 7] = [
    ("fit to the live sweeps over loopback", "as sockets between hosts: no sweep was used"),
    ("fit to the live sweeps over shaped virtual Ethernet", "as sockets between hosts: no sweep was used"),
    (
        "fit to the live socket sweeps together with public tables",
        "public tables, NCCL's own, or neutral: no sweep was used",
    ),
    ("one channel against two, 16 MiB broadcasts of the live sweeps", "neutral: no sweep was used"),
    ("broadcasts of the live sweeps, measured at the root in a row of calls", "neutral: no sweep was used"),
    ("fit to public broadcast tables and the live sweeps", "fit to public broadcast tables"),
    ("residuals of the fitted model: live sweeps", "as over RDMA: no sweep was used"),
];

struct Data {
    tables: Vec<PreparedTable>,
    sweeps: Vec<PreparedSweep>,
    left_out: Option<String>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ([tables, sweeps, out], left_out) = match &arguments[..] {
        [a, b, c] => ([a, b, c], None),
        [a, b, c, d] => ([a, b, c], Some(d.clone())),
        _ => {
            eprintln!("usage: fit_constants TABLES SWEEPS|none OUT [LEAVE_OUT]");
            std::process::exit(2);
        }
    };
    let data = read(tables, sweeps, left_out);
    let blind = data.sweeps.is_empty();
    let start = ConstantsFile::load(START).unwrap_or_else(|error| panic!("{error}"));
    let mut file = if blind { without_sweeps(start) } else { start };
    file = fit(&data, file, false, &|name| !name.starts_with(LOCAL));
    if !blind {
        file = fit(&data, file, true, &|name| SOCKETS.iter().any(|s| name.starts_with(s)));
    }
    residuals::measure(&data.tables, &data.sweeps, &mut file);
    if blind {
        for (from, to) in [
            ("hop.tcp", "hop.tcp_loopback"),
            ("hop.tcp", "hop.tcp_veth"),
            ("residual.rdma", "residual.socket"),
        ] {
            file = copy(&file, from, to);
        }
        // No public table has a chain over sockets: whether a lone channel holds it up is not known.
        file = ranged(&file, "rooted.network", "lone_channel", [0.4, 1.6]);
    }
    report(&data, &file.nominal());
    let fitted_on = if blind { "public tables only" } else { "public tables and live sweeps" };
    let mut body = rounded(file).to_toml();
    for (fitted, instead) in UNSEEN {
        body = if blind { body.replace(fitted, instead) } else { body };
    }
    let text = format!(
        "# Constants of the performance model, fitted to {fitted_on} by examples/fit_constants.\n{body}"
    );
    std::fs::write(out, text).unwrap_or_else(|error| panic!("{out}: {error}"));
}

fn read(tables_dir: &str, sweeps_dir: &str, left_out: Option<String>) -> Data {
    let tables = tables::read(Path::new(tables_dir)).unwrap_or_else(|error| panic!("{error}"));
    let mut describer = Describer::default();
    let tables = tables.iter().filter_map(|t| PreparedTable::new(t, &mut describer).ok()).collect();
    let sweeps = match sweeps_dir {
        "none" => Vec::new(),
        dir => sweep::read(Path::new(dir)).unwrap_or_else(|error| panic!("{error}")),
    };
    let sweeps =
        sweeps.iter().map(|s| PreparedSweep::new(s).unwrap_or_else(|error| panic!("{error}"))).collect();
    Data { tables, sweeps, left_out }
}

impl Data {
    fn leaves_out(&self, name: &str) -> bool {
        self.left_out.as_deref().is_some_and(|prefix| name.starts_with(prefix))
    }

    fn fitted_tables(&self) -> impl Iterator<Item = &PreparedTable> {
        self.tables.iter().filter(|t| t.health != Health::No && !self.leaves_out(&t.id))
    }

    /// Weighted logs of modelled over measured time. A kind of table counts once however often it was
    /// repeated, and in a sweep settings near the best count most, because ranks are decided there.
    fn residuals(&self, constants: &Constants, with_sweeps: bool) -> Vec<f64> {
        let mut siblings: BTreeMap<String, f64> = BTreeMap::new();
        for table in self.fitted_tables() {
            *siblings.entry(kind(table)).or_default() += 1.0;
        }
        let mut all = Vec::new();
        for table in self.fitted_tables() {
            const ROWS: f64 = 20.0;
            let weight = (ROWS / (table.samples.len() as f64 * siblings[&kind(table)])).sqrt();
            let fabric = fabric(&table.cluster, &table.communicator, constants);
            all.extend(table.samples.iter().map(|s| weight * (fabric.time(&s.call) / s.measured_us).ln()));
        }
        for sweep in self.sweeps.iter().filter(|s| with_sweeps && !self.leaves_out(s.file())) {
            for cell in sweep.times(constants) {
                let best = cell.iter().map(|(measured, _)| *measured).fold(f64::INFINITY, f64::min);
                let weight = |measured: f64| 1.0 / (1.0 + (measured / best).ln().powi(2)).sqrt();
                all.extend(
                    cell.iter().map(|&(measured, modelled)| weight(measured) * (modelled / measured).ln()),
                );
            }
        }
        all
    }
}

/// Tables of one source on one machine for one collective say the same thing several times.
fn kind(table: &PreparedTable) -> String {
    let source = table.id.split('_').next().unwrap_or_default();
    format!("{source} {} {}", table.cluster.description, table.samples[0].call.collective)
}

/// Constants that move together: where no source forces a protocol, only NCCL's pick was measured, and
/// its neighbours' latencies cannot be told apart. They keep the proportions of the first values.
fn tied(name: &str) -> &str {
    const APART: [&str; 3] = ["hop.nvlink.", "hop.tcp_loopback.", "hop.tcp_veth."];
    let by_protocol = name.starts_with("hop.") && !APART.iter().any(|hop| name.starts_with(hop));
    let protocol =
        name.rfind('.').filter(|&dot| by_protocol && ["ll", "ll128", "simple"].contains(&&name[dot + 1..]));
    protocol.map_or(name, |dot| &name[..dot])
}

fn fit(data: &Data, start: ConstantsFile, sockets: bool, wanted: &dyn Fn(&str) -> bool) -> ConstantsFile {
    let mut names: Vec<String> = Vec::new();
    start.clone().visit(&mut |name, value| {
        // 1000 and more stands for "no limit".
        let known = FIXED.iter().any(|fixed| name.contains(fixed)) || *value >= 1e3 || *value <= 0.0;
        if !known && wanted(name) && names.last().is_none_or(|last| last != tied(name)) {
            names.push(tied(name).to_owned());
        }
    });
    let apply = |logs: &[f64]| {
        let factors: BTreeMap<&str, f64> =
            names.iter().map(String::as_str).zip(logs.iter().map(|x| x.exp())).collect();
        let mut file = start.clone();
        file.visit(&mut |name, value| *value *= factors.get(tied(name)).unwrap_or(&1.0));
        file
    };
    let options = match sockets {
        false => Options { outlier: 0.2, hold: 2.0, reach: 1.1, iterations: 40 },
        true => Options { outlier: 0.2, hold: 0.1, reach: 1.5, iterations: 40 },
    };
    let logs = minimise(&vec![0.0; names.len()], options, |x| data.residuals(&apply(x).nominal(), sockets));
    for (name, log) in names.iter().zip(&logs).filter(|(_, log)| log.abs() > 0.02) {
        println!("{name:36} x {:.3}", log.exp());
    }
    apply(&logs)
}

/// Forgets what only the sweeps have shown: neutral values, or NCCL's own.
fn without_sweeps(mut file: ConstantsFile) -> ConstantsFile {
    file.visit(&mut |name, value| match name {
        "pat.round" | "rooted.network.lone_channel" => *value = 1.0,
        "pat.linear" => *value = 2.8,
        "pat.share" => *value = 0.75,
        // NCCL's own base latencies, and the shares of the first prototype.
        "rooted.network.broadcast.ll" | "rooted.network.reduce.ll" => *value = 6.6,
        "rooted.network.broadcast.ll128" | "rooted.network.reduce.ll128" => *value = 14.0,
        "rooted.network.broadcast.simple" | "rooted.network.reduce.simple" => *value = 8.4,
        "rooted.network.chain" => *value = 0.3,
        "hop.tcp.launch" => *value = 1.0,
        // NCCL's own network row, and a guess for the socket calls of one message.
        "hop.tcp.alpha.ll" => *value = 5.0,
        "hop.tcp.alpha.ll128" => *value = 8.5,
        "hop.tcp.alpha.simple" => *value = 14.0,
        name if name.starts_with("hop.tcp.serial") => *value = 10.0,
        name if name.ends_with("absorbed") => *value = 0.0,
        name if name.starts_with("hop.tcp.tree") => *value = 1.0,
        _ => {}
    });
    file
}

/// Gives every constant of the section `to` the value and the range of its namesake in `from`.
fn copy(file: &ConstantsFile, from: &str, to: &str) -> ConstantsFile {
    let mut all = toml::Table::try_from(file).expect("constants are tables");
    let known = section(&mut all, from).clone();
    for (name, constant) in section(&mut all, to) {
        if let (Some(constant), Some(namesake)) = (constant.as_table_mut(), known.get(name)) {
            ["value", "range"].iter().for_each(|&key| constant[key] = namesake[key].clone());
        }
    }
    all.try_into().expect("still the same constants")
}

/// Gives a constant this range.
fn ranged(file: &ConstantsFile, of: &str, name: &str, range: [f64; 2]) -> ConstantsFile {
    let mut all = toml::Table::try_from(file).expect("constants are tables");
    section(&mut all, of)[name]["range"] = toml::Value::from(range.to_vec());
    all.try_into().expect("still the same constants")
}

fn section<'a>(all: &'a mut toml::Table, path: &str) -> &'a mut toml::Table {
    path.split('.').fold(all, |table, name| table[name].as_table_mut().expect("a section"))
}

/// Four significant digits are more than any of this is worth.
fn rounded(mut file: ConstantsFile) -> ConstantsFile {
    file.visit(&mut |_, value| {
        *value = format!("{value:.3e}").parse().expect("a number that was just printed");
    });
    file
}

fn report(data: &Data, constants: &Constants) {
    let reports: Vec<_> = data.tables.iter().map(|t| t.report(constants)).collect();
    let healthy = reports.iter().filter(|r| r.health == Health::Yes);
    println!("healthy tables  {:?}", Overall::of(healthy));
    println!("not unhealthy   {:?}", Overall::of(reports.iter().filter(|r| r.health != Health::No)));
    println!(
        "left out        {:?}",
        Overall::of(reports.iter().filter(|r| r.health != Health::No && data.leaves_out(&r.id)))
    );
    let reports: Vec<_> = data.sweeps.iter().map(|s| s.report(constants)).collect();
    for report in &reports {
        let mark = if data.leaves_out(&report.file) { " (left out)" } else { "" };
        println!("{}{mark} {:?}", report.file, Fidelity::of([report]));
    }
    println!("sweeps          {:?}", Fidelity::of(&reports));
}
