use dynamiccl_env::measure::tables::{self, Health};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::validate::tables::*;
use std::collections::BTreeMap;
fn main() {
    let tables = tables::read(std::path::Path::new("/work/shared/data/nccl-tests")).unwrap();
    let k = ConstantsFile::full().nominal();
    let mut reports = vec![];
    let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
    let t0 = std::time::Instant::now();
    for t in &tables {
        match PreparedTable::new(t) {
            Ok(p) => reports.push((p.report(&k), p)),
            Err(s) => *skipped.entry(s.why).or_default() += 1,
        }
    }
    println!("{:?} {:?}", t0.elapsed(), skipped);
    let mut g: BTreeMap<String, Vec<&TableReport>> = BTreeMap::new();
    for (r, p) in &reports {
        let s = r.id.split('_').next().unwrap();
        g.entry(format!("{:?} {s} {} {}", r.health, p.cluster.description, p.samples[0].call.collective))
            .or_default()
            .push(r)
    }
    for (k, v) in &g {
        let o = Overall::of(v.iter().copied()).unwrap();
        println!(
            "{k:70} n {:3} nccl {:.2} zero {:.2} cal {:.2}",
            o.tables,
            o.nccl,
            o.zero_shot,
            o.calibrated.unwrap_or(9.9)
        )
    }
    for h in [Health::Yes, Health::Unknown, Health::Partly, Health::No] {
        println!("{h:?} {:?}", Overall::of(reports.iter().map(|r| &r.0).filter(|r| r.health == h)))
    }
}
