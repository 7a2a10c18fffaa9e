//! NCCL's dumps: what they say, what is found on them, and the clusters made from them.

use std::path::PathBuf;

use dynamiccl_env::cluster::search::{Span, graphs};
use dynamiccl_env::cluster::topology::Topology;
use dynamiccl_env::cluster::{Cluster, CpuArch, CpuVendor, InterLink, IntraLink};
use dynamiccl_env::nccl::graph::Graphs;

use crate::{line, xml_file};

fn topology(name: &str) -> Topology {
    Topology::read(&xml_file(name)).unwrap_or_else(|e| panic!("{e}"))
}

/// A temporary file with this text; the folder must outlive it.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = dir.path().join("dump.xml");
    std::fs::write(&file, text).expect("a temporary file");
    (dir, file)
}

#[test]
fn a_dgx_a100_is_what_its_dump_says() {
    let dgx = topology("topo_dgx_a100.xml");
    assert_eq!((dgx.gpus().len(), dgx.nets().len(), dgx.sockets.len(), dgx.hosts()), (8, 8, 4, 1));
    assert_eq!(
        (dgx.sm(), dgx.nvlinks_per_gpu(), dgx.nvlink_rate_per_gpu(), dgx.nvswitch()),
        (80, 12, 240.0, true)
    );
    assert_eq!((dgx.pcie(), dgx.nets()[0].rate), (24.0, 25.0));
    assert_eq!((dgx.sockets[0].vendor, dgx.sockets[0].arch), (CpuVendor::Amd, CpuArch::X86));
    let shipped = Cluster::load("dgx_a100").expect("a shipped cluster").graphs;
    assert_eq!(graphs(&dgx, Span::One), shipped.single);
    assert_eq!(graphs(&dgx, Span::Several), shipped.multi);
}

#[test]
fn an_hgx_h100_has_the_graphs_that_we_ship() {
    let hgx = topology("topo_hgx_h100.xml");
    assert_eq!((hgx.nvlinks_per_gpu(), hgx.pcie(), hgx.nets()[7].name.as_str()), (18, 48.0, "mlx5_7"));
    let shipped = Cluster::load("dgx_h100").expect("a shipped cluster").graphs;
    assert_eq!(graphs(&hgx, Span::One), shipped.single);
    let found = graphs(&hgx, Span::Several).expect("graphs");
    let multi = shipped.multi.expect("graphs");
    assert_eq!((found.ring, found.tree, found.nvls), (multi.ring, multi.tree, multi.nvls));
    assert_eq!((found.collnet_chain, found.collnet_direct), (None, None), "its NICs offer no collectives");
}

#[test]
fn one_gpu_behind_tcp_has_only_graphs_of_several_nodes() {
    let one = topology("topo_one_gpu_tcp.xml");
    assert_eq!((one.nets()[0].rate, one.nvswitch()), (1.25, false));
    assert_eq!(graphs(&one, Span::One), None);
    let several = graphs(&one, Span::Several).expect("graphs");
    assert_eq!(line(Some(several.ring)), "1x1.2/1.2 LOC/PHB 4 same");
    assert_eq!(line(Some(several.tree)), "1x2.4/1.2 LOC/PHB 3 same");
}

#[test]
fn a_nic_listed_under_every_socket_is_one() {
    let text = std::fs::read_to_string(xml_file("topo_hgx_h100.xml")).expect("a sample");
    let nic =
        "<nic><net name=\"eth0\" dev=\"9\" speed=\"10000\" port=\"0\" guid=\"0x0\" gdr=\"0\"/></nic></cpu>";
    let (_dir, file) = file(&text.replace("</cpu>", nic));
    let both = Topology::read(&file).expect("a topology");
    assert_eq!(both.nets().len(), 10);
    assert_eq!(graphs(&both, Span::Several), graphs(&topology("topo_hgx_h100.xml"), Span::Several));
}

#[test]
fn graph_dumps_of_two_generations() {
    let new = Graphs::read(&xml_file("graph_h100_two_nodes.xml")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(line(Some(new.ring)), "8x48/48 NVL/PIX 4");
    assert_eq!(line(Some(new.tree)), "8x48/48 NVL/PIX 3");
    assert_eq!(line(new.nvls), "8x40/48 NVL/PIX 5");
    assert_eq!((new.ring.latency_inter, new.collnet_chain, new.collnet_direct), (75.0, None, None));
    let old = Graphs::read(&xml_file("graph_2_8_pcie_pair.xml")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(line(Some(old.tree)), "1x18/9 PHB/PIX 1 same");
    assert_eq!((old.ring.latency_inter, old.nvls), (0.0, None));
}

#[test]
fn a_cluster_takes_the_graphs_of_a_dump() {
    let mut cluster = Cluster::load("dgx_h100").expect("a shipped cluster");
    let single = cluster.graphs.single;
    let dumped = Graphs::read(&xml_file("graph_h100_two_nodes.xml")).expect("graphs");
    cluster.replace_graphs(Span::Several, dumped, "graph.xml of my machine").expect("fitting graphs");
    assert_eq!((cluster.graphs.single, cluster.graphs.multi), (single, Some(dumped)));
    assert!(cluster.graphs.source.ends_with("; multi: graph.xml of my machine"), "{}", cluster.graphs.source);
    let text = cluster.to_toml().expect("TOML");
    assert_eq!(Cluster::from_toml("again.toml", &text).expect("a cluster").graphs, cluster.graphs);
}

#[test]
fn graphs_that_do_not_fit_leave_the_cluster_alone() {
    let mut lonely = Cluster::load("ib400g_1gpu").expect("a shipped cluster");
    let before = lonely.clone();
    let dumped = Graphs::read(&xml_file("graph_2_8_pcie_pair.xml")).expect("graphs");
    let error = lonely.replace_graphs(Span::One, dumped, "graph.xml").expect_err("one GPU").to_string();
    assert!(error.contains("graphs.single"), "{error}");
    assert_eq!(lonely, before);
}

#[test]
fn clusters_from_topologies_say_what_is_assumed() {
    let dgx = Cluster::from_topology("mine", &topology("topo_dgx_a100.xml"), "topo.xml").expect("a cluster");
    let shipped = Cluster::load("dgx_a100").expect("a shipped cluster");
    assert_eq!((dgx.graphs.single, dgx.graphs.multi), (shipped.graphs.single, shipped.graphs.multi));
    assert_eq!((dgx.gpus_per_node, dgx.gpu.sm, dgx.gpu.sms), (8, 80, 108));
    assert_eq!((dgx.intra.link, dgx.intra.generation, dgx.intra.nvswitch), (IntraLink::Nvlink, 3, true));
    let inter = dgx.inter.as_ref().expect("NICs");
    assert_eq!((inter.link, inter.nics, inter.nic_rate), (InterLink::Infiniband, 8, 25.0));
    assert_eq!(dgx.tiers.iter().map(|t| (t.nodes, t.tier)).collect::<Vec<_>>(), [(1, 1), (2, 2), (5, 3)]);
    let text = dgx.to_toml().expect("TOML");
    let again = Cluster::from_toml("mine.toml", &text).expect("a cluster");
    assert_eq!(Cluster { name: dgx.name.clone(), ..again }, dgx);

    let one = Cluster::from_topology("t4", &topology("topo_one_gpu_tcp.xml"), "topo.xml").expect("a cluster");
    assert_eq!((one.intra.link, one.graphs.single), (IntraLink::None, None));
    assert_eq!(one.inter.as_ref().map(|inter| inter.link), Some(InterLink::Tcp));
    assert_eq!(one.tiers.iter().map(|t| (t.nodes, t.tier)).collect::<Vec<_>>(), [(2, 4)]);
}

#[test]
fn the_other_dump_is_named_with_the_variable_to_set() {
    let error = Topology::read(&xml_file("graph_2_8_pcie_pair.xml")).expect_err("graphs").to_string();
    assert!(error.contains("<graphs> is not what a topology dump starts with"), "{error}");
    assert!(error.ends_with("let NCCL write a topology dump with NCCL_TOPO_DUMP_FILE=FILE"), "{error}");
    let error = Graphs::read(&xml_file("topo_dgx_a100.xml")).expect_err("a topology").to_string();
    assert!(error.ends_with("let NCCL write a graph dump with NCCL_GRAPH_DUMP_FILE=FILE"), "{error}");
}

#[test]
fn faults_are_found_by_line() {
    let good = std::fs::read_to_string(xml_file("topo_one_gpu_tcp.xml")).expect("a sample");
    for (from, to, words) in [
        ("sm=\"75\"", "sm=\"turing\"", "dump.xml:4: sm of <gpu> \"turing\": NCCL writes a number here"),
        (" sm=\"75\"", "", "dump.xml:4: sm of <gpu> \"\": the attribute is missing"),
        (" rank=\"0\"", "", "no GPU in it has a rank, as in a file made for NCCL_TOPO_FILE"),
        ("x86_64", "riscv", "dump.xml:2: arch of <cpu> \"riscv\": x86_64, arm64 or ppc64"),
        ("0000:00:1e.0", "slot 4", "dump.xml:3: busid of <pci> \"slot 4\": a bus id such as"),
        ("</cpu>", "", "is not XML"),
    ] {
        let (_dir, file) = file(&good.replacen(from, to, 1));
        let error = Topology::read(&file).expect_err(words).to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{error}");
    }
    let good = std::fs::read_to_string(xml_file("graph_2_8_pcie_pair.xml")).expect("a sample");
    for (from, to, words) in [
        ("nchannels=\"1\"", "nchannels=\"0\"", "there is no ring graph with channels in it"),
        (
            "nchannels=\"1\"",
            "nchannels=\"65\"",
            "dump.xml:2: nchannels of <graph> \"65\": NCCL has at most 64",
        ),
        ("typeintra=\"PHB\"", "typeintra=\"FAR\"", "typeintra of <graph> \"FAR\": one of LOC, NVL, NVB"),
        ("speedintra=\"9\"", "speedintra=\"-9\"", "speedintra of <graph> \"-9\": a number from zero up"),
        ("id=\"0\"", "id=\"7\"", "id of <graph> \"7\": 0 to 4 are known"),
        ("pattern=\"4\"", "pattern=\"9\"", "1 to 6 are known"),
    ] {
        let (_dir, file) = file(&good.replacen(from, to, 1));
        let error = Graphs::read(&file).expect_err(words).to_string();
        assert!(error.contains(words) && !error.contains('\n'), "{error}");
    }
    let error = Topology::read(&xml_file("absent.xml")).expect_err("no file").to_string();
    assert!(error.contains("cannot be read") && error.contains("check the path"), "{error}");
}
