//! Values that no cluster can have, each refused with its place and a remedy.
//!
//! TOML and the types refuse what cannot be read; this refuses what reads well and would make
//! nonsense of every time computed from it.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::{Calibration, Cluster, ClusterError, Inter, IntraLink};
use crate::nccl::graph::{Graph, Graphs};

/// Above any link that exists, with room for a few generations.
const MOST_GBPS: f64 = 1e5;
/// One second: above any latency that is not a fault.
const MOST_MICROS: f64 = 1e6;
/// Smallest positive number that a file may state, far below any real quantity.
const LEAST: f64 = 1e-6;

struct Check<'a> {
    file: &'a str,
}

impl Check<'_> {
    fn refuse(&self, key: &str, value: impl Display, remedy: impl Into<String>) -> ClusterError {
        ClusterError::Value {
            file: self.file.to_owned(),
            key: key.to_owned(),
            value: value.to_string(),
            remedy: remedy.into(),
        }
    }

    fn within<T: PartialOrd + Display>(
        &self,
        key: &str,
        value: T,
        range: RangeInclusive<T>,
    ) -> Result<(), ClusterError> {
        if range.contains(&value) {
            return Ok(());
        }
        Err(self.refuse(key, value, format!("must be {} to {}", range.start(), range.end())))
    }

    fn rate(&self, key: &str, value: f64) -> Result<(), ClusterError> {
        if (LEAST..=MOST_GBPS).contains(&value) {
            return Ok(());
        }
        Err(self.refuse(key, value, format!("must be GB/s above 0 and up to {MOST_GBPS}")))
    }

    fn graph(&self, key: &str, graph: &Graph) -> Result<(), ClusterError> {
        self.within(&format!("{key}.channels"), graph.channels, 1..=64)?;
        self.rate(&format!("{key}.bw_intra"), f64::from(graph.bw_intra))?;
        self.rate(&format!("{key}.bw_inter"), f64::from(graph.bw_inter))?;
        self.within(&format!("{key}.pattern"), graph.pattern, 1..=6)?;
        self.within(&format!("{key}.latency_inter"), f64::from(graph.latency_inter), 0.0..=MOST_MICROS)
    }

    fn graphs(&self, key: &str, graphs: &Graphs) -> Result<(), ClusterError> {
        let optional = [
            ("nvls", graphs.nvls),
            ("collnet_chain", graphs.collnet_chain),
            ("collnet_direct", graphs.collnet_direct),
        ];
        self.graph(&format!("{key}.ring"), &graphs.ring)?;
        self.graph(&format!("{key}.tree"), &graphs.tree)?;
        for (name, graph) in optional {
            if let Some(graph) = graph {
                self.graph(&format!("{key}.{name}"), &graph)?;
            }
        }
        Ok(())
    }

    fn inter(&self, inter: &Inter) -> Result<(), ClusterError> {
        self.within("inter.nics", inter.nics, 1..=1024)?;
        self.rate("inter.nic_rate", inter.nic_rate)?;
        self.rate("inter.bandwidth", inter.bandwidth)?;
        self.within("inter.propagation", inter.propagation, 0.0..=MOST_MICROS)?;
        for (protocol, hop) in ["LL", "LL128", "Simple"].into_iter().zip(inter.hop.into_iter().flatten()) {
            self.within(&format!("inter.hop ({protocol})"), hop, LEAST..=MOST_MICROS)?;
        }
        let nominal = f64::from(inter.nics) * inter.nic_rate;
        if inter.bandwidth > nominal {
            let remedy = format!("is above nics x nic_rate ({nominal}), give what a node really moves");
            return Err(self.refuse("inter.bandwidth", inter.bandwidth, remedy));
        }
        Ok(())
    }

    fn calibration(&self, calibration: &Calibration) -> Result<(), ClusterError> {
        for (name, factor) in [
            ("launch", calibration.launch),
            ("intra_latency", calibration.intra_latency),
            ("intra_bandwidth", calibration.intra_bandwidth),
            ("inter_latency", calibration.inter_latency),
            ("inter_bandwidth", calibration.inter_bandwidth),
            ("channel_rate", calibration.channel_rate),
        ] {
            self.within(&format!("calibration.{name}"), factor, 0.01..=100.0)?;
        }
        Ok(())
    }

    fn sources(&self, cluster: &Cluster) -> Result<(), ClusterError> {
        let inter = cluster.inter.as_ref().map(|inter| ("inter.source", inter.source.as_str()));
        let sections = [
            ("gpu.source", cluster.gpu.source.as_str()),
            ("host.source", cluster.host.source.as_str()),
            ("intra.source", cluster.intra.source.as_str()),
            ("graphs.source", cluster.graphs.source.as_str()),
        ];
        match sections.into_iter().chain(inter).find(|(_, source)| source.trim().is_empty()) {
            Some((key, _)) => Err(self.refuse(key, "\"\"", "say where the numbers come from")),
            None => Ok(()),
        }
    }

    fn tiers(&self, cluster: &Cluster) -> Result<(), ClusterError> {
        if cluster.tiers.is_empty() {
            return Err(self.refuse("tiers", "[]", "give at least { nodes = 1, tier = 1 }"));
        }
        for (index, from) in cluster.tiers.iter().enumerate() {
            self.within(&format!("tiers[{index}].tier"), from.tier, 0..=4)?;
            self.within(&format!("tiers[{index}].nodes"), from.nodes, 1..=u32::MAX)?;
            self.within(&format!("tiers[{index}].hop_latency"), from.hop_latency, 0.0..=MOST_MICROS)?;
            self.within(&format!("tiers[{index}].bandwidth_share"), from.bandwidth_share, LEAST..=1.0)?;
        }
        for (index, two) in cluster.tiers.windows(2).enumerate() {
            if two[1].nodes <= two[0].nodes {
                let key = format!("tiers[{}].nodes", index + 1);
                let remedy = format!("must be above the {} before it", two[0].nodes);
                return Err(self.refuse(&key, two[1].nodes, remedy));
            }
            if two[1].tier < two[0].tier {
                let key = format!("tiers[{}].tier", index + 1);
                let remedy =
                    format!("must not be below the {} before it: more nodes are no nearer", two[0].tier);
                return Err(self.refuse(&key, two[1].tier, remedy));
            }
        }
        Ok(())
    }

    fn parts(&self, cluster: &Cluster) -> Result<(), ClusterError> {
        let mut least = 1;
        for (index, part) in cluster.graphs.part.iter().enumerate() {
            let key = format!("graphs.part[{index}]");
            let ranks = part.ranks_per_node;
            if !(least..cluster.gpus_per_node).contains(&ranks) {
                let remedy = "parts ascend, each with fewer ranks than a node has GPUs";
                return Err(self.refuse(&format!("{key}.ranks_per_node"), ranks, remedy));
            }
            least = ranks + 1;
            for (name, graphs) in [("single", &part.single), ("multi", &part.multi)] {
                if let Some(graphs) = graphs {
                    self.graphs(&format!("{key}.{name}"), graphs)?;
                }
            }
        }
        Ok(())
    }

    /// What one section asks of another.
    fn together(&self, cluster: &Cluster) -> Result<(), ClusterError> {
        let several = cluster.gpus_per_node > 1;
        let linked = cluster.intra.link != IntraLink::None;
        if several && !linked {
            let remedy = "a node with several GPUs needs a link: nvlink, pcie or shm";
            return Err(self.refuse("intra.link", "none", remedy));
        }
        if cluster.intra.nvswitch && cluster.intra.link != IntraLink::Nvlink {
            return Err(self.refuse("intra.nvswitch", true, "an NVSwitch needs intra.link = \"nvlink\""));
        }
        if cluster.graphs.single.is_some() && !several {
            let remedy = "one GPU on one node has nobody to talk to: remove it or raise gpus_per_node";
            return Err(self.refuse("graphs.single", "present", remedy));
        }
        if cluster.graphs.multi.is_some() && cluster.inter.is_none() {
            return Err(self.refuse("graphs.multi", "present", "needs an [inter] section, add it"));
        }
        if cluster.graphs.single.is_none() && cluster.graphs.multi.is_none() {
            return Err(self.refuse("graphs", "empty", "give [graphs.single], [graphs.multi] or both"));
        }
        Ok(())
    }
}

impl Cluster {
    /// Refuses what no cluster can be.
    pub(super) fn check(&self, file: &str) -> Result<(), ClusterError> {
        let check = Check { file };
        check.within("gpus_per_node", self.gpus_per_node, 1..=4096)?;
        check.tiers(self)?;
        check.within("gpu.sm", self.gpu.sm, 50..=200)?;
        check.within("gpu.sms", self.gpu.sms, 1..=1024)?;
        check.within("intra.generation", self.intra.generation, 0..=16)?;
        check.rate("intra.bandwidth", self.intra.bandwidth)?;
        if let Some(inter) = &self.inter {
            check.inter(inter)?;
        }
        for (key, graphs) in [("graphs.single", &self.graphs.single), ("graphs.multi", &self.graphs.multi)] {
            if let Some(graphs) = graphs {
                check.graphs(key, graphs)?;
            }
        }
        check.parts(self)?;
        check.sources(self)?;
        check.calibration(&self.calibration)?;
        check.together(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first line of `dgx_h100` that starts with `from` becomes `to`.
    fn refused(from: &str, to: &str) -> String {
        let good = Cluster::load("dgx_h100").unwrap();
        let text = include_str!("../../clusters/dgx_h100.toml");
        assert!(text.contains(from), "{from}");
        let bad = text.replacen(from, to, 1);
        match Cluster::from_toml("mine.toml", &bad) {
            Err(error) => error.to_string(),
            Ok(cluster) => panic!("{to} was accepted: {}", cluster == good),
        }
    }

    #[test]
    fn nonsense_is_refused_with_place_value_and_remedy() {
        for (from, to, expected) in [
            ("gpus_per_node = 8", "gpus_per_node = 0", "gpus_per_node = 0: must be 1 to 4096"),
            ("sms = 132", "sms = 0", "gpu.sms = 0: must be 1 to 1024"),
            ("bandwidth = 370.8", "bandwidth = -1.0", "intra.bandwidth = -1: must be GB/s above 0"),
            ("bandwidth = 370.8", "bandwidth = nan", "intra.bandwidth = NaN: must be GB/s above 0"),
            ("bandwidth = 376.0", "bandwidth = 1e99", "inter.bandwidth = 1"),
            ("bandwidth = 376.0", "bandwidth = 500.0", "above nics x nic_rate (400)"),
            ("nodes = 5, tier = 3", "nodes = 2, tier = 3", "tiers[2].nodes = 2: must be above the 2"),
            ("nodes = 5, tier = 3", "nodes = 5, tier = 1", "tiers[2].tier = 1: must not be below the 2"),
            ("nodes = 5, tier = 3", "nodes = 5, tier = 5", "tiers[2].tier = 5: must be 0 to 4"),
            ("hop_latency = 1.5", "hop_latency = nan", "tiers[2].hop_latency = NaN"),
            (
                "nodes = 5, tier = 3",
                "nodes = 5, tier = 3, bandwidth_share = 0.0",
                "tiers[2].bandwidth_share = 0",
            ),
            ("link = \"nvlink\"", "link = \"none\"", "intra.link = none"),
            ("link = \"nvlink\"", "link = \"pcie\"", "intra.nvswitch = true"),
            ("channels = 12", "channels = 65", "graphs.single.ring.channels = 65: must be 1 to 64"),
            ("bw_intra = 30.0", "bw_intra = inf", "graphs.single.ring.bw_intra = inf"),
            ("ranks_per_node = 2", "ranks_per_node = 1", "graphs.part[1].ranks_per_node = 1: parts ascend"),
            ("ranks_per_node = 4", "ranks_per_node = 8", "graphs.part[2].ranks_per_node = 8: parts ascend"),
            ("source = \"vendor specification\"", "source = \"\"", "host.source = \"\": say where"),
        ] {
            let text = refused(from, to);
            assert!(text.starts_with("mine.toml: ") && text.contains(expected), "{to}: {text}");
        }
    }

    #[test]
    fn sections_that_need_each_other_say_so() {
        let text = include_str!("../../clusters/dgx_h100.toml");
        let (head, graphs) = text.split_once("[inter]").unwrap();
        let without_inter = format!("{head}{}", &graphs[graphs.find("[graphs]").unwrap()..]);
        let error = Cluster::from_toml("mine.toml", &without_inter).unwrap_err().to_string();
        assert!(error.contains("needs an [inter] section"), "{error}");

        let without_graphs = &text[..text.find("[graphs.single]").unwrap()];
        let error = Cluster::from_toml("mine.toml", without_graphs).unwrap_err().to_string();
        assert!(error.contains("give [graphs.single], [graphs.multi] or both"), "{error}");
    }
}
