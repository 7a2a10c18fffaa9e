//! Machines that we do not ship. What NCCL 2.30.7 finds on them was computed once with NCCL's own
//! search on the same layouts; the numbers are facts about NCCL, not about these machines.

use dynamiccl_env::cluster::hardware::{Hardware, NvFabric};
use dynamiccl_env::cluster::search::Span;
use dynamiccl_env::cluster::{CpuArch, CpuVendor};
use dynamiccl_env::nccl::graph::PathType;

use crate::lines;

fn check(name: &str, hardware: &Hardware, span: Span, expected: [&str; 3]) {
    assert_eq!(lines(hardware, span), expected, "{name}, {span:?}");
}

fn mesh(sm: u32, gpus: u32, rate: f32) -> Hardware {
    Hardware { nvlink: NvFabric::Mesh, nvlink_rate: rate, sockets: 2, ..Hardware::new(sm, gpus) }
}

fn on_amd(hardware: Hardware) -> Hardware {
    Hardware { cpu: CpuVendor::Amd, ..hardware }
}

#[test]
fn four_gpus_with_a_mesh_and_two_nics() {
    let v100 = Hardware { socket_link: Some(10.0), ..mesh(70, 4, 120.0).with_nics(2, 100.0) };
    check("V100 x4", &v100, Span::One, ["6x20/20 NVL/PIX 4", "6x20/20 NVL/PIX 1", "-"]);
    check("V100 x4", &v100, Span::Several, ["2x12/12 NVL/PIX 4", "2x24/12 NVL/PIX 1", "-"]);
    let a100 = on_amd(mesh(80, 4, 240.0).with_nics(2, 200.0));
    check("A100 x4", &a100, Span::One, ["12x20/20 NVL/PIX 4", "12x20/20 NVL/PIX 1", "-"]);
    check("A100 x4", &a100, Span::Several, ["2x24/24 NVL/PIX 4", "2x48/24 NVL/PIX 1", "-"]);
}

#[test]
fn one_gpu_per_node() {
    let a100 = on_amd(Hardware::new(80, 1).with_nics(1, 200.0));
    check("A100", &a100, Span::Several, ["1x24/24 LOC/PIX 4 same", "1x48/24 LOC/PIX 3 same", "-"]);
    let root = Hardware { nic_path: PathType::Phb, gpus_per_switch: 0, ..a100 };
    check("A100", &root, Span::Several, ["1x24/24 LOC/PHB 4 same", "1x48/24 LOC/PHB 3 same", "-"]);
    assert_eq!(root.graphs(Span::One), None, "one GPU on one node has nobody to talk to");
    let t4 =
        Hardware { nic_path: PathType::Phb, gpus_per_switch: 0, ..Hardware::new(75, 1).with_nics(1, 100.0) };
    check("T4", &t4, Span::Several, ["1x9/9 LOC/PHB 4 same", "1x18/9 LOC/PHB 3 same", "-"]);
    let spark = Hardware {
        arch: CpuArch::Arm,
        cpu: CpuVendor::Other,
        c2c: 223.56,
        gpus_per_switch: 0,
        nic_path: PathType::P2c,
        ..Hardware::new(121, 1).with_nics(2, 200.0)
    };
    check("GB10", &spark, Span::Several, ["2x24/24 LOC/P2C 4 same", "2x48/24 LOC/P2C 3 same", "-"]);
    let h100 = Hardware::new(90, 1).with_nics(1, 400.0);
    check("H100", &h100, Span::Several, ["2x24/24 LOC/PIX 4 same", "2x48/24 LOC/PIX 3 same", "-"]);
}

#[test]
fn bridged_pairs() {
    let pair = Hardware {
        nvlink: NvFabric::Pairs,
        nvlink_rate: 48.0,
        gpus_per_switch: 0,
        nic_path: PathType::Phb,
        ..on_amd(Hardware::new(86, 2).with_nics(1, 100.0))
    };
    check("A6000 x2", &pair, Span::One, ["2x20/20 NVL/PIX 4 same", "2x40/40 NVL/PIX 1", "-"]);
    check("A6000 x2", &pair, Span::Several, ["1x12/12 NVL/PHB 4 same", "1x24/12 NVL/PHB 1 same", "-"]);
    let two = Hardware { gpus: 4, sockets: 2, ..pair };
    check("A6000 x4", &two, Span::One, ["4x4/4 SYS/PIX 4 same", "4x4/4 SYS/PIX 1 same", "-"]);
    check("A6000 x4", &two, Span::Several, ["2x6/6 SYS/SYS 4 same", "2x7/6 SYS/SYS 1 same", "-"]);
}

#[test]
fn any_number_of_gpus_of_an_nvswitch_box() {
    let a100 = |gpus: u32| {
        on_amd(Hardware {
            sockets: 1,
            ..Hardware::new(80, gpus).on_nvswitch(12).with_nics(gpus as usize, 200.0)
        })
    };
    check("A100 x2", &a100(2), Span::One, ["12x20/20 NVL/PIX 4 same", "12x40/40 NVL/PIX 1", "-"]);
    for gpus in 3..=8 {
        check("A100", &a100(gpus), Span::One, ["12x20/20 NVL/PIX 4 same", "12x20/20 NVL/PIX 1 same", "-"]);
    }
    for (gpus, ring, tree) in [
        (2, "2x24/24 NVL/PIX 4", "2x48/24 NVL/PIX 1"),
        (3, "3x24/24 NVL/PXN 4", "3x48/24 NVL/PHB 1"),
        (4, "4x24/24 NVL/PIX 4", "4x48/24 NVL/PIX 1"),
        (5, "5x24/24 NVL/PXN 4", "5x48/24 NVL/PHB 1"),
        (6, "6x24/24 NVL/PIX 4", "6x48/24 NVL/PIX 1"),
        (7, "7x24/24 NVL/PXN 4", "7x30/24 NVL/PHB 1"),
        (8, "8x24/24 NVL/PIX 4", "8x30/24 NVL/PIX 1"),
    ] {
        check(&format!("A100 x{gpus}"), &a100(gpus), Span::Several, [ring, tree, "-"]);
    }
}

#[test]
fn hopper_and_blackwell_boxes() {
    let h100 = |gpus: u32| Hardware::new(90, gpus).on_nvswitch(18).with_nics(gpus as usize, 400.0);
    for (gpus, ring, tree, nvls) in [
        (2, "4x24/24 NVL/PXN 4", "4x48/24 NVL/PIX 3", "2x48/48 NVL/PIX 5"),
        (4, "8x24/24 NVL/PXN 4", "8x48/24 NVL/PIX 3", "4x48/48 NVL/PIX 5"),
        (8, "8x48/48 NVL/PIX 4", "8x48/48 NVL/PIX 3", "8x40/48 NVL/PIX 5"),
    ] {
        check(&format!("H100 x{gpus}"), &h100(gpus), Span::Several, [ring, tree, nvls]);
    }
    let b300 = Hardware { pcie: 96.0, ..Hardware::new(103, 8).on_nvswitch(18).with_nics(8, 800.0) };
    check(
        "B300",
        &b300,
        Span::One,
        ["16x45/45 NVL/PIX 4 same", "16x45/45 NVL/PIX 1 same", "8x80/90 NVL/PIX 5"],
    );
    check("B300", &b300, Span::Several, ["16x48/48 NVL/PIX 4", "16x48/48 NVL/PIX 3", "8x80/96 NVL/PIX 5"]);
}

#[test]
fn boxes_without_nvlink() {
    for gpus in [2, 4, 8] {
        let l40s =
            Hardware { gpus_per_switch: gpus / 2, sockets: 2, ..Hardware::new(89, gpus).with_nics(2, 200.0) };
        check("L40S", &l40s, Span::One, ["1x20/20 SYS/PIX 4 same", "1x20/20 SYS/PIX 1 same", "-"]);
        let (ring, tree) = match gpus {
            2 => ("2x12/12 SYS/PIX 4", "2x12/12 SYS/SYS 1"),
            _ => ("2x12/12 SYS/SYS 4", "2x9/9 SYS/SYS 1"),
        };
        check(&format!("L40S x{gpus}"), &l40s, Span::Several, [ring, tree, "-"]);
    }
    let root =
        |hardware: Hardware| Hardware { gpus_per_switch: 0, nic_path: PathType::Phb, ..on_amd(hardware) };
    let rtx4090 = Hardware { peer_to_peer: false, ..root(Hardware::new(89, 2).with_nics(1, 100.0)) };
    check("4090 x2", &rtx4090, Span::One, ["2x12/12 PHB/PIX 4 same", "2x20/20 PHB/PIX 1", "-"]);
    check("4090 x2", &rtx4090, Span::Several, ["1x12/12 PHB/PHB 4 same", "1x18/12 PHB/PHB 1 same", "-"]);
    let pro = Hardware { sockets: 2, ..root(Hardware::new(120, 8).with_nics(2, 400.0)) };
    // The slowest speed that NCCL tries inside a Blackwell node is above what it gives AMD's sockets.
    check("RTX PRO 6000", &pro, Span::One, ["1x0.1/0.1 SYS/SYS 4 same", "1x0.1/0.1 SYS/SYS 1 same", "-"]);
    check("RTX PRO 6000", &pro, Span::Several, ["1x15/15 SYS/SYS 4 same", "1x15/15 SYS/SYS 1 same", "-"]);
}

#[test]
fn nothing_to_search_is_no_graph() {
    assert_eq!(Hardware::new(90, 0).graphs(Span::One), None);
    assert_eq!(Hardware::new(90, 8).on_nvswitch(18).graphs(Span::Several), None, "no NIC between the nodes");
}

#[test]
fn a_domain_of_256_gpus_is_found_in_time() {
    let domain = Hardware { hosts: 32, ..Hardware::new(90, 8).on_nvswitch(18) };
    check("NVL256", &domain, Span::One, ["12x30/30 NVL/PIX 4", "12x30/30 NVL/PIX 1", "32x11/24 NVL/PIX 5"]);
}
