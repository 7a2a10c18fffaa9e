//! The clusters that we ship: their graphs come from NCCL's own search, and ours must find the same.

use dynamiccl_env::cluster::hardware::{Hardware, NvFabric};
use dynamiccl_env::cluster::search::Span;
use dynamiccl_env::cluster::{Cluster, CpuArch, CpuVendor, GraphPart, PARTS};
use dynamiccl_env::nccl::graph::PathType;

/// Grace: an ARM host, its GPU on a chip-to-chip link, NICs on its root ports.
fn on_grace(hardware: Hardware, sockets: u32, c2c: f32) -> Hardware {
    Hardware {
        arch: CpuArch::Arm,
        cpu: CpuVendor::Other,
        gpus_per_switch: 0,
        nic_path: PathType::P2c,
        sockets,
        c2c,
        ..hardware
    }
}

fn on_amd(hardware: Hardware) -> Hardware {
    Hardware { cpu: CpuVendor::Amd, ..hardware }
}

fn with_latency(hardware: Hardware, latency: f32) -> Hardware {
    Hardware { latency, ..hardware }
}

fn with_collnet(hardware: Hardware) -> Hardware {
    Hardware { collnet: true, ..hardware }
}

fn hardware(name: &str) -> Option<Hardware> {
    let v100 = |gpus| Hardware::new(70, gpus);
    let a100 = |gpus| Hardware::new(80, gpus).on_nvswitch(12);
    let h100 = |gpus| Hardware::new(90, gpus).on_nvswitch(18);
    let b200 = |gpus| Hardware::new(100, gpus).on_nvswitch(18);
    let a40 = Hardware { gpus_per_switch: 4, ..Hardware::new(86, 8) };
    let l40s = Hardware { gpus_per_switch: 4, ..Hardware::new(89, 8) };
    Some(match name {
        "dgx1_v100" => {
            Hardware { nvlink: NvFabric::CubeMesh, nvlink_rate: 120.0, ..v100(8) }.with_nics(4, 100.0)
        }
        "dgx2_v100" => with_collnet(v100(16).on_nvswitch(6).with_nics(8, 100.0)),
        "dgx_a100" => with_collnet(on_amd(a100(8).with_nics(8, 200.0))),
        "a100_4nic200" => a100(8).with_nics(4, 200.0),
        "aws_p4d" => with_latency(a100(8).with_nics(4, 100.0), 75.0),
        "a100_4gpu" => on_amd(a100(4).with_nics(4, 200.0)),
        "dgx_h100" => with_collnet(h100(8).with_nics(8, 400.0)),
        "aws_p5" => with_latency(on_amd(h100(8).with_nics(8, 400.0)), 75.0),
        "aws_p5en" => with_latency(h100(8).with_nics(8, 400.0), 35.0),
        "h100_4gpu" => h100(4).with_nics(4, 400.0),
        "h100_2gpu" => h100(2),
        "h800_8gpu" => Hardware::new(90, 8).on_nvswitch(8),
        "hgx_b200" => b200(8).with_nics(8, 400.0),
        "gb200_4gpu" => on_grace(b200(4).with_nics(4, 400.0), 2, 625.968),
        "gb200_nvl36" => Hardware { hosts: 9, ..on_grace(b200(4).with_nics(4, 400.0), 2, 625.968) },
        "gb200_nvl72" => Hardware { hosts: 18, ..on_grace(b200(4).with_nics(4, 400.0), 2, 625.968) },
        "gh200_4gpu" => {
            Hardware { nvlink: NvFabric::Mesh, ..on_grace(h100(4).with_nics(4, 200.0), 4, 447.12) }
        }
        "nvsw64_h100" | "tier1" => Hardware { hosts: 8, ..h100(8) },
        "a40_8_nvlink" => Hardware { nvlink: NvFabric::Pairs, nvlink_rate: 48.0, ..a40 }.with_nics(2, 400.0),
        "a40_8_pcie" => a40.with_nics(1, 100.0),
        "l40s_8pcie" => l40s.with_nics(2, 200.0),
        "rtx4090_8pcie" => Hardware {
            gpus_per_switch: 0,
            peer_to_peer: false,
            nic_path: PathType::Phb,
            ..on_amd(Hardware::new(89, 8).with_nics(1, 100.0))
        },
        "ib100g_1gpu" => Hardware::new(80, 1).with_nics(1, 100.0),
        "ib400g_1gpu" => Hardware::new(90, 1).with_nics(1, 400.0),
        "tcp25g_1gpu" => {
            Hardware { gpus_per_switch: 0, ..Hardware::new(80, 1).with_nics(1, 25.0).over_tcp() }
        }
        "tcp10g_1gpu" => {
            Hardware { gpus_per_switch: 0, ..Hardware::new(80, 1).with_nics(1, 10.0).over_tcp() }
        }
        "a100_8_tcp100g" => on_amd(a100(8).with_nics(1, 100.0).over_tcp()),
        "a100_8_tcp25g" => on_amd(a100(8).with_nics(1, 25.0).over_tcp()),
        _ => return None,
    })
}

#[test]
fn every_shipped_graph_is_found_again() {
    let mut compared = 0;
    for name in Cluster::names() {
        let cluster = Cluster::load(name).expect(name);
        let Some(hardware) = hardware(name) else {
            // Clusters whose graphs were read off others have no hardware to search.
            assert!(!cluster.graphs.source.contains("hand-built"), "{name} needs its hardware here");
            continue;
        };
        for (span, shipped) in [(Span::One, cluster.graphs.single), (Span::Several, cluster.graphs.multi)] {
            let Some(shipped) = shipped else { continue };
            assert_eq!(hardware.graphs(span), Some(shipped), "{name}, {span:?}");
            compared += 1;
        }
    }
    assert!(compared >= 39, "only {compared} graph sets compared");
}

/// What the search finds for a part of a node, as far as the cluster has nodes to join.
fn searched_part(name: &str, ranks_per_node: u32) -> Option<GraphPart> {
    let cluster = Cluster::load(name).expect(name);
    let found = GraphPart::search(&hardware(name)?.topology(), ranks_per_node);
    let multi = found.multi.filter(|_| cluster.graphs.multi.is_some());
    Some(GraphPart { multi, ..found }).filter(|part| part.single.is_some() || part.multi.is_some())
}

/// The parts that a cluster's file should have.
fn expected_parts(name: &str) -> Vec<GraphPart> {
    let whole = Cluster::load(name).expect(name).gpus_per_node;
    PARTS.iter().filter(|&&ranks| ranks < whole).filter_map(|&ranks| searched_part(name, ranks)).collect()
}

#[test]
fn every_part_of_a_node_is_found_again() {
    let mut compared = 0;
    for name in Cluster::names().filter(|name| hardware(name).is_some()) {
        let shipped = Cluster::load(name).expect(name).graphs.part;
        assert_eq!(shipped, expected_parts(name), "{name}");
        compared += shipped.len();
    }
    assert!(compared >= 50, "only {compared} parts compared");
}
