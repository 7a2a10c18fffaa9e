//! With how many threads a policy is fitted: NCCL reads their number once in the life of a process, so one must do for
//! all calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use dynamiccl_env::swept::Swept;
use dynamiccl_spec::Collective;

/// A call of so many ranks.
type Call = (u32, Collective, u64);

/// The sweeps with the number of threads whose best launches are the fastest, by the geometric mean over the calls that all
/// numbers have; none is NCCL's own number.
pub fn fastest(sweeps: Vec<Arc<Swept>>) -> (Vec<Arc<Swept>>, Option<u32>) {
    let mut counts: Vec<Option<u32>> = sweeps.iter().map(|sweep| sweep.threads).collect();
    counts.sort_unstable();
    counts.dedup();
    let times: Vec<BTreeMap<Call, Vec<f64>>> = counts.iter().map(|&count| best(&sweeps, count)).collect();
    let common = |call: &Call| times.iter().all(|of| of.contains_key(call));
    let mean = |of: &BTreeMap<Call, Vec<f64>>| {
        let logs = of.iter().filter(|(call, _)| common(call));
        let logs =
            logs.map(|(_, times)| times.iter().map(|micros| micros.ln()).sum::<f64>() / times.len() as f64);
        logs.sum::<f64>()
    };
    let sums = times.iter().map(mean).zip(&counts);
    let threads = sums.min_by(|a, b| a.0.total_cmp(&b.0)).and_then(|(_, count)| *count);
    let kept = sweeps.into_iter().filter(|sweep| sweep.threads == threads);
    (kept.collect(), threads)
}

/// The best launch of every call in every sweep with so many threads, µs.
fn best(sweeps: &[Arc<Swept>], threads: Option<u32>) -> BTreeMap<Call, Vec<f64>> {
    let mut found: BTreeMap<Call, Vec<f64>> = BTreeMap::new();
    for sweep in sweeps.iter().filter(|sweep| sweep.threads == threads) {
        for ((collective, bytes), micros) in sweep.fastest() {
            found.entry((sweep.ranks(), collective, bytes)).or_default().push(micros);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn sweeps(lines: &[(&str, f64)]) -> Vec<Arc<Swept>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sweep.csv");
        let mut text = "ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us,max_us,nccl_model_us,nthreads\n"
            .to_owned();
        for (threads, micros) in lines {
            let line = |knobs: &str, micros: f64| {
                format!("4,loopback,allreduce,65536,{knobs},{micros},{micros},{micros},,{threads}\n")
            };
            text += &line("default,default,", 100.0);
            text += &line("ring,ll,1", *micros);
        }
        fs::write(&file, text).unwrap();
        Swept::read(&file, None).unwrap()
    }

    #[test]
    fn the_number_with_the_fastest_launches_is_kept() {
        let (kept, threads) = fastest(sweeps(&[("128", 60.0), ("256", 50.0), ("512", 80.0)]));
        assert_eq!((kept.len(), threads), (1, Some(256)));
        assert_eq!(kept[0].threads, Some(256));
    }

    #[test]
    fn a_sweep_that_says_nothing_of_threads_has_nccls_own() {
        let (kept, threads) = fastest(sweeps(&[("0", 60.0)]));
        assert_eq!((kept.len(), threads), (1, None));
        let (kept, threads) = fastest(sweeps(&[("0", 60.0), ("128", 70.0)]));
        assert_eq!((kept.len(), threads), (1, None));
    }
}
