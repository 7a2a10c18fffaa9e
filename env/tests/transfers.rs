//! Times of send and receive and of all-to-all, held against published tables.

use std::collections::BTreeMap;
use std::path::Path;

use dynamiccl_env::calibrate::fabric;
use dynamiccl_env::measure::tables::{self, Health};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::statistics::median;
use dynamiccl_env::validate::Describer;
use dynamiccl_spec::Collective;

/// Absolute log errors of the model, by source and collective.
fn errors() -> BTreeMap<(String, Collective), Vec<f64>> {
    let constants = ConstantsFile::full().nominal();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nccl-tests");
    let mut describer = Describer::default();
    let mut errors: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for table in tables::read(&folder).unwrap().iter().filter(|t| t.health != Health::No) {
        let transfers = |c: Collective| matches!(c, Collective::AllToAll | Collective::SendRecv);
        if !table.rows.iter().any(|row| transfers(row.collective)) {
            continue;
        }
        let Ok((cluster, communicator)) = describer.describe(table) else { continue };
        let fabric = fabric(&cluster, &communicator, &constants);
        let source = table.id.split('_').next().unwrap().to_owned();
        for row in table.rows.iter().filter(|row| transfers(row.collective)) {
            let error = (fabric.transfer(row.collective, row.bytes) / row.time_us).ln();
            errors.entry((source.clone(), row.collective)).or_default().push(error.abs());
        }
    }
    errors
}

/// Sources of healthy machines with NCCL of the last years, and the median error that they are held to.
const HELD: [(&str, Collective, f64); 4] = [
    ("aiconf", Collective::AllToAll, 0.2),
    ("together", Collective::SendRecv, 0.2),
    ("xxrjun", Collective::AllToAll, 0.1),
    ("xxrjun", Collective::SendRecv, 0.2),
];
/// What every other source is held to: old releases, slow hosts, shared machines.
const OTHERS: f64 = 0.65;

#[test]
fn transfers_are_near_published_tables() {
    let errors = errors();
    assert!(errors.values().map(Vec::len).sum::<usize>() > 3000);
    for ((source, collective), errors) in errors {
        let rows = errors.len();
        let error = median(errors).unwrap();
        println!("{source:12} {collective:10} {rows:5} rows {error:.3}");
        let held = HELD.iter().find(|(name, of, _)| *name == source && *of == collective);
        let most = held.map_or(OTHERS, |(.., most)| *most);
        assert!(error < most, "{source} {collective}: {error} is above {most}");
    }
}
