//! With how many threads a policy is fitted: NCCL reads their number once in the life of a process, so one must do for
//! all calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, ensure};
use dynamiccl_env::swept::Swept;
use dynamiccl_spec::Collective;

/// A call on one of the machines that sweeps are of.
type Call = (usize, Collective, u64);

/// What a policy is fitted to.
#[derive(Debug)]
pub struct Fastest {
    /// The sweeps with the number of threads whose best launches are the fastest.
    pub kept: Vec<Arc<Swept>>,
    /// That number; none is NCCL's own.
    pub threads: Option<u32>,
    /// Those with other numbers.
    pub left_out: Vec<Arc<Swept>>,
}

/// Chooses a number of threads, by the geometric mean of the best launches over the calls that all numbers have on the same
/// machine.
pub fn fastest(sweeps: Vec<Arc<Swept>>) -> Result<Fastest> {
    let mut counts: Vec<Option<u32>> = sweeps.iter().map(|sweep| sweep.threads).collect();
    counts.sort_unstable();
    counts.dedup();
    let times: Vec<BTreeMap<Call, Vec<f64>>> = counts.iter().map(|&count| best(&sweeps, count)).collect();
    let common = |call: &Call| times.iter().all(|of| of.contains_key(call));
    let shared = times.first().is_none_or(|first| first.keys().any(common));
    ensure!(
        shared,
        "--sweep: no call was swept with {} on the same ranks, link and clock and under the same circumstances (compute \
         beside, MPS, variables), so that nobody can tell which is faster; sweep the same calls with each, or give the sweeps of \
         one number alone",
        words(&counts)
    );
    let mean = |of: &BTreeMap<Call, Vec<f64>>| {
        let logs = of.iter().filter(|(call, _)| common(call));
        let logs =
            logs.map(|(_, times)| times.iter().map(|micros| micros.ln()).sum::<f64>() / times.len() as f64);
        logs.sum::<f64>()
    };
    let sums = times.iter().map(mean).zip(&counts);
    let threads = sums.min_by(|a, b| a.0.total_cmp(&b.0)).and_then(|(_, count)| *count);
    let (kept, left_out) = sweeps.into_iter().partition(|sweep| sweep.threads == threads);
    Ok(Fastest { kept, threads, left_out })
}

/// The best launch of every call in every sweep with so many threads, µs.
fn best(sweeps: &[Arc<Swept>], threads: Option<u32>) -> BTreeMap<Call, Vec<f64>> {
    let mut found: BTreeMap<Call, Vec<f64>> = BTreeMap::new();
    let machines = Swept::comparable(sweeps);
    let sweeps = machines.iter().enumerate().flat_map(|(at, of)| of.iter().map(move |sweep| (at, sweep)));
    for (machine, sweep) in sweeps.filter(|(_, sweep)| sweep.threads == threads) {
        for ((collective, bytes), micros) in sweep.fastest() {
            found.entry((machine, collective, bytes)).or_default().push(micros);
        }
    }
    found
}

/// Numbers of threads as people say them.
fn words(counts: &[Option<u32>]) -> String {
    counts.iter().map(|&count| word(count)).collect::<Vec<_>>().join(", ")
}

/// A number of threads as people say it.
pub fn word(threads: Option<u32>) -> String {
    threads.map_or_else(|| "NCCL's own threads".to_owned(), |threads| format!("{threads} threads"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A link, a number of threads, a size and what the best takes.
    type Line = (&'static str, &'static str, u64, f64);

    fn sweeps(lines: &[Line], about: &str) -> Vec<Arc<Swept>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sweep.csv");
        let mut text = "ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us,max_us,nccl_model_us,nthreads\n"
            .to_owned();
        for (link, threads, bytes, micros) in lines {
            let line = |knobs: &str, micros: f64| {
                format!("4,{link},allreduce,{bytes},{knobs},{micros},{micros},{micros},,{threads}\n")
            };
            text += &line("default,default,", 100.0);
            text += &line("ring,ll,1", *micros);
        }
        fs::write(&file, text).unwrap();
        fs::write(folder.path().join("sweep.csv.about.json"), about).unwrap();
        Swept::read(&file, None).unwrap()
    }

    fn chosen(lines: &[Line]) -> Result<(usize, Option<u32>, usize)> {
        fastest(sweeps(lines, "{}")).map(|found| (found.kept.len(), found.threads, found.left_out.len()))
    }

    const HERE: &str = "loopback";

    #[test]
    fn the_number_with_the_fastest_launches_is_kept() {
        let lines = [(HERE, "128", 65_536, 60.0), (HERE, "256", 65_536, 50.0), (HERE, "512", 65_536, 80.0)];
        assert_eq!(chosen(&lines).unwrap(), (1, Some(256), 2));
    }

    #[test]
    fn a_sweep_that_says_nothing_of_threads_has_nccls_own() {
        let own = (HERE, "0", 65_536, 60.0);
        assert_eq!(chosen(&[own]).unwrap(), (1, None, 0));
        assert_eq!(chosen(&[own, (HERE, "128", 65_536, 70.0)]).unwrap(), (1, None, 1));
    }

    /// A slow link makes no number of threads slow.
    #[test]
    fn threads_are_compared_on_the_same_machine() {
        let slow = ("1gbit", "128", 65_536, 90.0);
        let both = [(HERE, "128", 65_536, 40.0), slow, (HERE, "256", 65_536, 50.0)];
        assert_eq!(chosen(&both).unwrap(), (2, Some(128), 1));
        for other in [slow, (HERE, "128", 1024, 9.0)] {
            let error = chosen(&[other, (HERE, "0", 65_536, 50.0)]).unwrap_err().to_string();
            assert!(error.contains("with NCCL's own threads, 128 threads on the same"), "{error}");
        }
    }

    /// A sweep that does not say whether MPS ran is like one with and like one without, which are not alike.
    #[test]
    fn threads_are_compared_under_the_same_circumstances() {
        let [few, many] = [(HERE, "128", 65_536, 40.0), (HERE, "256", 65_536, 50.0)];
        let [with, without] = [r#"{"mps": true}"#, r#"{"mps": false}"#];
        let silent = sweeps(&[few, (HERE, "128", 1 << 20, 40.0)], "{}");
        let apart = [sweeps(&[few], with), sweeps(&[many], without)].concat();
        for sweeps in [apart.clone(), [silent, apart].concat()] {
            let error = fastest(sweeps).unwrap_err().to_string();
            assert!(error.contains("the same circumstances (compute beside, MPS, variables)"), "{error}");
        }
    }
}
