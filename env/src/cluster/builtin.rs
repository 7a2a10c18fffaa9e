//! The clusters that ship with the program, and reading and writing cluster files.
//!
//! The files are part of the binary: a name means the same cluster wherever the program runs. `tier1`
//! to `tier4` are generic: one for each tier, with the latency multipliers 1, 7, 15 and 30.

use std::path::Path;

use dynamiccl_spec::words::look_up;

use super::{Cluster, ClusterError};
use crate::text;

macro_rules! built_in {
    ($name:literal) => {
        ($name, include_str!(concat!("../../clusters/", $name, ".toml")))
    };
}

/// Names and texts of the built-in clusters.
const BUILT_IN: [(&str, &str); 35] = [
    built_in!("a100_4gpu"),
    built_in!("a100_4nic200"),
    built_in!("a100_8_tcp100g"),
    built_in!("a100_8_tcp25g"),
    built_in!("a40_8_nvlink"),
    built_in!("a40_8_pcie"),
    built_in!("aws_p4d"),
    built_in!("aws_p5"),
    built_in!("aws_p5en"),
    built_in!("dgx1_v100"),
    built_in!("dgx2_v100"),
    built_in!("dgx_a100"),
    built_in!("dgx_h100"),
    built_in!("gb200_4gpu"),
    built_in!("gb200_nvl36"),
    built_in!("gb200_nvl72"),
    built_in!("gh200_4gpu"),
    built_in!("h100_2gpu"),
    built_in!("h100_4gpu"),
    built_in!("h200_shared"),
    built_in!("h800_8gpu"),
    built_in!("hgx_b200"),
    built_in!("ib100g_1gpu"),
    built_in!("ib400g_1gpu"),
    built_in!("l40s_8pcie"),
    built_in!("nvsw64_h100"),
    built_in!("photonic_a100"),
    built_in!("rtx4090_8pcie"),
    built_in!("tcp10g_1gpu"),
    built_in!("tcp25g_1gpu"),
    built_in!("tier1"),
    built_in!("tier2"),
    built_in!("tier3"),
    built_in!("tier4"),
    built_in!("wan100g_1gpu"),
];

impl Cluster {
    /// The names of the built-in clusters.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Loads a built-in cluster by name, or a file whose path ends in `.toml`.
    pub fn load(name_or_path: &str) -> Result<Self, ClusterError> {
        if !name_or_path.ends_with(".toml") {
            let (name, text) =
                look_up("cluster", name_or_path, &BUILT_IN.map(|(name, text)| (name, (name, text))))
                    .map_err(ClusterError::Unknown)?;
            return Cluster::from_toml(&format!("{name}.toml"), text);
        }
        let text = text::read(name_or_path)
            .map_err(|source| ClusterError::Read { path: name_or_path.to_owned(), source })?;
        Cluster::from_toml(name_or_path, &text)
    }

    /// Reads a cluster from the text of a file; `file` names it in errors, and its stem the cluster.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, ClusterError> {
        let mut cluster: Cluster = toml::from_str(text)
            .map_err(|source| ClusterError::Syntax { file: file.to_owned(), source: Box::new(source) })?;
        let stem = Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        cluster.name = stem.unwrap_or_else(|| file.to_owned());
        cluster.check(file)?;
        Ok(cluster)
    }

    /// The text of a file that reads back as this cluster.
    pub fn to_toml(&self) -> Result<String, ClusterError> {
        toml::to_string(self)
            .map_err(|source| ClusterError::Write { cluster: self.name.clone(), source: Box::new(source) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<Cluster, ClusterError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn every_built_in_cluster_loads_and_survives_writing() {
        for name in Cluster::names() {
            let cluster = Cluster::load(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(cluster.name, name);
            let text = cluster.to_toml().unwrap();
            let again = Cluster::from_toml(&format!("{name}.toml"), &text);
            assert_eq!(again.unwrap_or_else(|error| panic!("{error}\n{text}")), cluster);
        }
        assert_eq!(Cluster::names().count(), BUILT_IN.len());
    }

    #[test]
    fn every_file_of_the_folder_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("clusters");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
                assert!(Cluster::names().any(|name| name == stem), "{stem} is not in BUILT_IN");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let text = message(Cluster::load("dgx_a10"));
        assert!(text.starts_with("unknown cluster \"dgx_a10\"; did you mean \"dgx_a100\"?"), "{text}");
        assert!(text.contains("a path ending in .toml"), "{text}");
    }

    #[test]
    fn a_file_that_cannot_be_read_or_parsed_says_where_and_what() {
        let text = message(Cluster::load("no/such.toml"));
        assert!(text.contains("no/such.toml"), "{text}");

        let bad = BUILT_IN[0].1.replace("bandwidth =", "bandwith =");
        let text = message(Cluster::from_toml("mine.toml", &bad));
        for part in ["mine.toml", "line ", "column ", "`bandwith`", "`bandwidth`"] {
            assert!(text.contains(part), "{part} not in {text}");
        }
    }
}
