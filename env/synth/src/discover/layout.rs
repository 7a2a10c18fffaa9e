//! The inside of a node of a cluster file, which names no PCIe tree: GPUs and NICs spread evenly, as vendors
//! build them.

use dynamiccl_env::cluster::hardware::{Hardware, NvFabric};
use dynamiccl_env::cluster::topology::Topology;
use dynamiccl_env::cluster::{Cluster, IntraLink};

/// One node.
pub fn node(cluster: &Cluster) -> Topology {
    let mut hardware = Hardware::new(cluster.gpu.sm, cluster.gpus_per_node);
    hardware.nvlink = fabric(cluster);
    // Only proportions of links count here: the cluster says what a GPU moves.
    hardware.nvlink_rate = if hardware.nvlink == NvFabric::None { 0.0 } else { links(cluster) };
    (hardware.cpu, hardware.arch) = (cluster.host.cpu, cluster.host.arch);
    hardware.peer_to_peer = cluster.intra.link != IntraLink::Shm;
    if let Some(inter) = &cluster.inter {
        hardware.nics = vec![inter.nic_rate as f32; inter.nics as usize];
        // One NIC for all hangs on one switch; as many as there are GPUs hang beside them.
        let per_switch = cluster.gpus_per_node.div_ceil(inter.nics.max(1));
        hardware.gpus_per_switch = per_switch;
        hardware.sockets = if inter.nics > 1 && cluster.gpus_per_node > 4 { 2 } else { 1 };
    }
    hardware.topology()
}

fn links(cluster: &Cluster) -> f32 {
    let rate = dynamiccl_env::cluster::topology::nvlink_rate(cluster.gpu.sm);
    let count = match cluster.gpu.sm {
        90.. => 18.0,
        80..90 => 12.0,
        _ => 6.0,
    };
    rate * count
}

/// How NVLink joins the GPUs of a node of the cluster.
pub fn fabric(cluster: &Cluster) -> NvFabric {
    match (cluster.intra.link, cluster.intra.nvswitch, cluster.gpus_per_node) {
        (IntraLink::Nvlink, true, _) => NvFabric::Switch,
        (IntraLink::Nvlink, false, 8) if cluster.gpu.sm < 80 => NvFabric::CubeMesh,
        (IntraLink::Nvlink, false, 2..=4) => NvFabric::Mesh,
        (IntraLink::Nvlink, false, _) => NvFabric::Pairs,
        _ => NvFabric::None,
    }
}
