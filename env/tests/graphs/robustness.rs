//! No dump can do worse than be refused with one line, and no topology can break the search.

use dynamiccl_env::cluster::hardware::{Hardware, NvFabric};
use dynamiccl_env::cluster::search::{Span, graphs};
use dynamiccl_env::cluster::topology::Topology;
use dynamiccl_env::cluster::{Cluster, CpuVendor};
use dynamiccl_env::nccl::graph::{Graph, Graphs, PathType};
use proptest::prelude::*;

use crate::xml_file;

const SAMPLES: [&str; 4] =
    ["topo_one_gpu_tcp.xml", "topo_hgx_h100.xml", "graph_2_8_pcie_pair.xml", "graph_h100_two_nodes.xml"];

fn read_both(bytes: &[u8]) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("dump.xml");
    std::fs::write(&file, bytes).expect("a temporary file");
    for error in [Topology::read(&file).err(), Graphs::read(&file).err()].into_iter().flatten() {
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

fn sane(graph: &Graph) -> bool {
    (1..=64).contains(&graph.channels)
        && graph.bw_intra.is_finite()
        && graph.bw_inter.is_finite()
        && graph.bw_intra > 0.0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_dumps_never_panic(
        index in 0..SAMPLES.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = std::fs::read(xml_file(SAMPLES[index])).expect("a sample");
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let end = cut.map_or(bytes.len(), |cut| cut.index(bytes.len()));
        read_both(&bytes[..end]);
    }

    #[test]
    fn noise_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        read_both(&bytes);
    }
}

proptest! {
    // A search may take NCCL's full patience, which is long without optimisation.
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_hardware_has_sane_graphs(
        sm in prop::sample::select(vec![60u32, 70, 75, 80, 86, 89, 90, 100, 103, 120]),
        gpus in 0u32..6,
        fabric in prop::sample::select(vec![NvFabric::None, NvFabric::Switch, NvFabric::Mesh, NvFabric::Pairs, NvFabric::CubeMesh]),
        nvlink_rate in 0f32..800.0,
        gpus_per_switch in 0u32..5,
        sockets in 0u32..5,
        nics in prop::collection::vec(0.01f32..120.0, 0..5),
        nic_path in prop::sample::select(PathType::ALL.to_vec()),
        (gpu_direct, peer_to_peer, collnet, amd) in any::<(bool, bool, bool, bool)>(),
    ) {
        let cpu = if amd { CpuVendor::Amd } else { CpuVendor::Intel };
        let hardware = Hardware {
            nvlink: fabric, nvlink_rate, gpus_per_switch, sockets, nics, nic_path, gpu_direct, peer_to_peer, collnet, cpu,
            ..Hardware::new(sm, gpus)
        };
        for span in [Span::One, Span::Several] {
            let Some(found) = hardware.graphs(span) else { continue };
            let rest = [found.nvls, found.collnet_chain, found.collnet_direct].into_iter().flatten();
            for graph in [found.ring, found.tree].into_iter().chain(rest) {
                prop_assert!(sane(&graph), "{graph:?} of {hardware:?}");
            }
        }
        if let Ok(cluster) = Cluster::from_topology("any", &hardware.topology(), "facts") {
            prop_assert!(Cluster::from_toml("any.toml", &cluster.to_toml().expect("TOML")).is_ok());
        }
    }
}

#[test]
fn odd_topologies_are_searched_without_harm() {
    let text = std::fs::read_to_string(xml_file("topo_hgx_h100.xml")).expect("a sample");
    let (one_socket, _) = text.split_once("</cpu>").expect("two sockets");
    let text = format!("{one_socket}</cpu></system>");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("dump.xml");
    for (from, to) in [
        ("count=\"5\"", "count=\"0\""),
        ("link_width=\"16\"", "link_width=\"1\""),
        ("speed=\"400000\"", "speed=\"9000000000\""),
        ("tclass=\"0x068000\"", "tclass=\"0x030200\""),
        ("gdr=\"1\"", "gdr=\"0\""),
        ("dev=\"3\"", "dev=\"0\""),
        ("sm=\"90\"", "sm=\"4000000000\""),
    ] {
        std::fs::write(&file, text.replace(from, to)).expect("a temporary file");
        let topology = Topology::read(&file).unwrap_or_else(|e| panic!("{from}: {e}"));
        for span in [Span::One, Span::Several] {
            let found = graphs(&topology, span).unwrap_or_else(|| panic!("{from}: nothing found"));
            assert!(sane(&found.ring) && sane(&found.tree), "{from}: {found:?}");
        }
    }
}
