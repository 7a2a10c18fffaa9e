//! Metrics for Prometheus' textfile collector, by the names and labels of NCCL's own inspector, so that the
//! dashboards made for it show them.
//!
//! As there, a value is the mean over the calls since the file was last written: of times the arithmetic
//! mean, of bandwidths the geometric one. The inspector knows the GPU's number and we do not; `process`
//! tells the processes of a node apart instead.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use dynamiccl_spec::{Algorithm, Collective, Protocol, math};

use super::labels::Labels;
use super::record::{Clock, Record};

/// Most series of a process; calls beyond are not counted in any.
const SERIES_MAX: usize = 4096;

/// What a series is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    name: u16,
    ranks: u32,
    nodes: u32,
    collective: Collective,
    /// The range of sizes: so many of the unit.
    size: (u32, u64),
    algorithm: Option<Algorithm>,
    protocol: Option<Protocol>,
}

/// What came to a series since it was last written.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    calls: u64,
    micros: f64,
    ln_bandwidth: f64,
    bandwidths: u64,
}

/// A process's metrics.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    labels: String,
    series: BTreeMap<Key, Sums>,
    records: u64,
    dropped: u64,
    /// Records and dropped ones when the file was last written.
    written: (u64, u64),
}

impl Metrics {
    /// Metrics of this process, in a folder that is made where it is not there.
    pub fn open(folder: &Path, host: &str, process: &str, job: &str) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("dynamiccl-{host}-{process}.prom"));
        let labels = format!(
            r#"version="{}",slurm_job_id="{}",node="{}",gpu="unknown",process="{}""#,
            env!("CARGO_PKG_VERSION"),
            escape(job),
            escape(host),
            escape(process)
        );
        Ok(Metrics { path, labels, series: BTreeMap::new(), records: 0, dropped: 0, written: (0, 0) })
    }

    /// Counts a record.
    pub fn add(&mut self, record: &Record) {
        self.records += 1;
        let Some(bytes) = record.whole_bytes().filter(|_| record.clock != Clock::Launch) else { return };
        let key = Key {
            name: record.name,
            ranks: record.ranks,
            nodes: record.nodes,
            collective: record.collective,
            size: size_range(bytes),
            algorithm: record.algorithm,
            protocol: record.protocol,
        };
        if self.series.len() == SERIES_MAX && !self.series.contains_key(&key) {
            return;
        }
        let sums = self.series.entry(key).or_default();
        let micros = record.duration_ns as f64 / 1e3;
        sums.calls += 1;
        sums.micros += micros;
        let bandwidth = bus_bandwidth(record.collective, bytes, record.ranks, micros);
        if bandwidth > 0.0 {
            sums.ln_bandwidth += math::ln(bandwidth);
            sums.bandwidths += 1;
        }
    }

    /// Counts records that were lost.
    pub fn add_dropped(&mut self, count: u64) {
        self.dropped += count;
    }

    /// Puts what has come since the last time in the file's place, whole; leaves it where nothing has come.
    pub fn write(&mut self, labels: &Labels) -> io::Result<()> {
        // Calls without a time of their own have no series, and are counted all the same.
        if self.written == (self.records, self.dropped) {
            return Ok(());
        }
        let text = self.text(labels);
        self.series.clear();
        // Another job's process may have the same name on this node.
        let scratch = self.path.with_extension(format!("prom.{}.tmp", std::process::id()));
        let placed = fs::write(&scratch, text).and_then(|()| fs::rename(&scratch, &self.path));
        match placed {
            Ok(()) => self.written = (self.records, self.dropped),
            Err(_) => drop(fs::remove_file(&scratch)),
        }
        placed
    }

    fn text(&self, labels: &Labels) -> String {
        let mut text = String::new();
        let of = |key: &Key| self.labels_of(key, &labels.name(key.name));
        family(&mut text, "nccl_bus_bandwidth_gbs", "gauge", "Bus bandwidth in GB/s, geometric mean.");
        for (key, sums) in self.series.iter().filter(|(_, sums)| sums.bandwidths > 0) {
            let mean = math::exp(sums.ln_bandwidth / sums.bandwidths as f64);
            let _ = writeln!(text, "nccl_bus_bandwidth_gbs{{{}}} {mean}", of(key));
        }
        let times = "nccl_collective_exec_time_microseconds";
        family(&mut text, times, "gauge", "Time of a collective in microseconds, mean.");
        for (key, sums) in &self.series {
            let _ = writeln!(text, "{times}{{{}}} {}", of(key), sums.micros / sums.calls as f64);
        }
        let counted = [
            ("dynamiccl_profile_records_total", "Collectives recorded.", self.records),
            ("dynamiccl_profile_dropped_total", "Collectives that could not be recorded.", self.dropped),
        ];
        for (name, help, count) in counted {
            family(&mut text, name, "counter", help);
            let _ = writeln!(text, "{name}{{{}}} {count}", self.labels);
        }
        text
    }

    fn labels_of(&self, key: &Key, name: &str) -> String {
        let (unit, count) = key.size;
        let size = if count == 0 {
            "0B".to_owned()
        } else {
            format!("{count}-{}{}", count + 1, ["B", "KB", "MB", "GB", "TB"][unit as usize])
        };
        let word = |word: Option<&'static str>| word.unwrap_or("unknown").to_uppercase();
        format!(
            r#"{},comm_name="{}",n_nodes="{}",nranks="{}",collective="{}",message_size="{size}",algo_proto="{}_{}""#,
            self.labels,
            escape(name),
            key.nodes,
            key.ranks,
            nccl_name(key.collective),
            word(key.algorithm.map(Algorithm::name)),
            word(key.protocol.map(Protocol::name)),
        )
    }
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// NCCL's own name, as the inspector writes it.
fn nccl_name(collective: Collective) -> &'static str {
    match collective {
        Collective::Broadcast => "Broadcast",
        Collective::Reduce => "Reduce",
        Collective::AllGather => "AllGather",
        Collective::ReduceScatter => "ReduceScatter",
        Collective::AllReduce => "AllReduce",
        other => other.name(),
    }
}

/// The inspector's range of a size: the unit, by powers of 1024, and how many of it there are.
fn size_range(bytes: u64) -> (u32, u64) {
    let unit = bytes.checked_ilog2().map_or(0, |bits| (bits / 10).min(4));
    (unit, bytes >> (10 * unit))
}

/// GB/s as nccl-tests counts them on the bus.
fn bus_bandwidth(collective: Collective, bytes: u64, ranks: u32, micros: f64) -> f64 {
    if micros <= 0.0 || ranks == 0 {
        return 0.0;
    }
    let others = f64::from(ranks - 1) / f64::from(ranks);
    let factor = match collective {
        Collective::AllReduce => 2.0 * others,
        Collective::AllGather | Collective::ReduceScatter => others,
        _ => 1.0,
    };
    bytes as f64 / micros / 1e3 * factor
}

fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::example;
    use super::*;

    #[test]
    fn sizes_are_in_the_inspectors_ranges() {
        for (bytes, range) in [
            (0, (0, 0)),
            (1, (0, 1)),
            (1023, (0, 1023)),
            (1024, (1, 1)),
            (1535 << 10, (2, 1)),
            (4 << 30, (3, 4)),
            (3 << 50, (4, 3072)),
        ] {
            assert_eq!(size_range(bytes), range, "{bytes}");
        }
    }

    #[test]
    fn the_file_is_whole_and_names_what_the_inspector_names() {
        let folder = std::env::temp_dir().join(format!("dynamiccl-prom-{}", std::process::id()));
        let labels = Labels::new();
        let name = labels.intern("DP \"0\"");
        let mut metrics = Metrics::open(&folder, "n1", "3", "77").unwrap();
        metrics.write(&labels).unwrap();
        assert!(!metrics.path.exists(), "nothing to say");
        let allreduce = Record { collective: Collective::AllReduce, is_part: false, name, ..example() };
        for micros in [1000, 4000] {
            metrics.add(&Record { bytes: 4 << 30, duration_ns: micros * 1000, ..allreduce });
        }
        metrics.add(&Record { clock: Clock::Launch, ..allreduce });
        metrics.add_dropped(5);
        metrics.write(&labels).unwrap();
        let text = fs::read_to_string(&metrics.path).unwrap();
        let expected = format!(
            "version=\"{}\",slurm_job_id=\"77\",node=\"n1\",gpu=\"unknown\",process=\"3\",\
             comm_name=\"DP \\\"0\\\"\",n_nodes=\"2\",nranks=\"8\",collective=\"AllReduce\",\
             message_size=\"4-5GB\",algo_proto=\"NVLS_TREE_LL128\"",
            env!("CARGO_PKG_VERSION")
        );
        assert!(
            text.contains(&format!("nccl_collective_exec_time_microseconds{{{expected}}} 2500\n")),
            "{text}"
        );
        let bandwidth = text.lines().find(|line| line.starts_with("nccl_bus_bandwidth_gbs{")).unwrap();
        let value: f64 = bandwidth.rsplit(' ').next().unwrap().parse().unwrap();
        // 2 × 7/8 of 4 GiB in 1 and in 4 ms: the geometric mean is that of 2 ms.
        assert!((value / (1.75 * (4u64 << 30) as f64 / 2e6) - 1.0).abs() < 1e-9, "{value}");
        assert!(text.contains("dynamiccl_profile_records_total{") && text.contains("} 3\n"), "{text}");
        assert!(text.contains("dynamiccl_profile_dropped_total{") && text.contains("} 5\n"), "{text}");
        for line in text.lines() {
            assert!(line.starts_with("# ") || line.contains("{") && line.contains("} "), "{line}");
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no scratch file is left");
        metrics.write(&labels).unwrap();
        assert_eq!(fs::read_to_string(&metrics.path).unwrap(), text, "nothing new");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_has_no_time_of_its_own_is_counted_all_the_same() {
        let folder = std::env::temp_dir().join(format!("dynamiccl-prom-launches-{}", std::process::id()));
        let mut metrics = Metrics::open(&folder, "n1", "3", "77").unwrap();
        for count in 1..=2 {
            metrics.add(&Record { clock: Clock::Launch, ..example() });
            metrics.write(&Labels::new()).unwrap();
            let text = fs::read_to_string(&metrics.path).unwrap();
            let line =
                text.lines().find(|line| line.starts_with("dynamiccl_profile_records_total{")).unwrap();
            assert!(line.ends_with(&format!("}} {count}")), "{line}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn series_are_bounded() {
        let mut metrics = Metrics::open(&std::env::temp_dir(), "n1", "bounded", "77").unwrap();
        for ranks in 1..=SERIES_MAX as u32 + 10 {
            metrics.add(&Record { ranks, ..example() });
        }
        assert_eq!(metrics.series.len(), SERIES_MAX);
        metrics.add(&Record { ranks: 1, ..example() });
        assert_eq!(metrics.series.values().map(|sums| sums.calls).sum::<u64>(), SERIES_MAX as u64 + 1);
    }
}
