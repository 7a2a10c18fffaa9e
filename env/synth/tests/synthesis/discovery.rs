//! Machines from cluster files, from NCCL's dumps and from PCI trees.

use std::fs;
use std::path::Path;

use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::cluster::topology::Topology;
use dynamiccl_spec::Collective;
use dynamiccl_synth::discover::sysfs;
use dynamiccl_synth::machine::Wiring;
use dynamiccl_synth::plan::{self, Choice};
use dynamiccl_synth::{Machine, Mode, Sketch};

use crate::{data, machine};

#[test]
fn every_built_in_cluster_becomes_a_machine_with_a_schedule() {
    for name in Cluster::names() {
        let cluster = Cluster::load(name).unwrap();
        let nodes = if cluster.inter.is_some() { 2 } else { 1 };
        let ranks = cluster.gpus_per_node.min(4);
        if nodes * ranks > 1 {
            let machine = machine(name, nodes, ranks);
            let best =
                plan::best(&machine, Collective::AllReduce, 1 << 20, &Choice::usual(&machine)).unwrap();
            assert!(best.micros > 0.0, "{name}");
        }
    }
}

#[test]
fn what_a_cluster_cannot_be_is_refused_with_a_remedy() {
    let cluster = Cluster::load("dgx_a100").unwrap();
    let refused = |nodes, ranks| Machine::from_cluster(&cluster, nodes, ranks).unwrap_err().to_string();
    assert!(refused(2, 9).contains("give 1 to 8"), "{}", refused(2, 9));
    assert!(refused(1, 1).contains("at least 2 ranks"));
    assert!(refused(1 << 29, 8).contains("give 1 to 131072 nodes"), "{}", refused(1 << 29, 8));
    let alone = Cluster::load("gb200_nvl72").unwrap();
    assert!(Machine::from_cluster(&alone, 2, 72).unwrap_err().to_string().contains("no NIC"));
}

#[test]
fn a_dump_of_nccl_gives_gpus_their_own_nics() {
    let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/xml/topo_dgx_a100.xml");
    let topology = Topology::read(&dump).unwrap();
    let cluster = Cluster::from_topology("topo_dgx_a100", &topology, &dump.display().to_string()).unwrap();
    let machine = Machine::from_topology(&cluster, &topology, 2, cluster.gpus_per_node).unwrap();
    assert_eq!((machine.ranks(), machine.nodes(), &machine.wiring), (16, 2, &Wiring::Switched));
    let sketch = Sketch::new(&machine, Mode::Pair);
    for (gpu, nic) in machine.gpus.iter().zip(&sketch.nic_of) {
        let nic = &machine.nics[nic.unwrap() as usize];
        assert_eq!(nic.place[0], gpu.place[0], "the same socket");
    }
}

#[test]
fn cube_meshes_have_only_the_links_that_are_there() {
    let machine = machine("dgx1_v100", 1, 8);
    assert!(machine.local_rate(0, 3) > machine.local_rate(0, 1) && machine.local_rate(0, 1) > 0.0);
    assert_eq!((machine.local_rate(0, 5), machine.local_rate(0, 0)), (0.0, 0.0));
    let links: f64 = (1..8).map(|peer| machine.local_rate(0, peer)).sum();
    assert!((links / machine.port - 1.0).abs() < 1e-9);
}

#[test]
fn a_recorded_tree_says_who_shares_a_switch_with_whom() {
    let cluster = Cluster::load("dgx_a100").unwrap();
    let file = data("pci/dgx_a100.txt");
    let functions = sysfs::read(&file).unwrap();
    let topology = sysfs::topology(&functions, &cluster, "dgx_a100.txt").unwrap();
    let machine = Machine::from_topology(&cluster, &topology, 2, 8).unwrap();
    assert_eq!((machine.ranks(), machine.nics.len()), (16, 16));
    let sketch = Sketch::new(&machine, Mode::Pair);
    let nics: Vec<u32> = sketch.nic_of[..8].iter().map(|nic| nic.unwrap()).collect();
    assert_eq!(nics, [0, 1, 2, 3, 4, 5, 6, 7], "each GPU has a NIC of its own behind its switch");
    for (gpu, &nic) in machine.gpus.iter().zip(&nics) {
        assert_eq!(gpu.place[..2], machine.nics[nic as usize].place[..2]);
    }
    assert_eq!(machine.nics[0].rate, 188.0 / 8.0);
}

#[test]
fn nics_that_gpus_do_not_talk_over_take_nothing_from_the_others() {
    let cluster = Cluster::load("dgx_a100").unwrap();
    let functions = sysfs::read(&data("pci/dgx_a100.txt")).unwrap();
    let machine = |functions: &[sysfs::Function]| {
        let topology = sysfs::topology(functions, &cluster, "tree").unwrap();
        Machine::from_topology(&cluster, &topology, 2, 8).unwrap()
    };
    let right = machine(&functions);
    let mut more = functions.clone();
    let bridge = functions[0].path.split('/').next().unwrap();
    let nic = functions.iter().find(|function| function.class.starts_with("0x02")).unwrap();
    // One for storage, as fast as the others, and one beside the first, much slower.
    more.insert(0, sysfs::Function { path: format!("{bridge}/0000:00:1f.0"), ..nic.clone() });
    more.push(sysfs::Function { path: format!("{}1", nic.path), net_mbps: 1000, ..nic.clone() });
    more.sort_by(|a, b| a.path.cmp(&b.path));
    let rates = |machine: &Machine| machine.nics.iter().map(|nic| nic.rate).collect::<Vec<_>>();
    assert_eq!(rates(&machine(&more)), rates(&right));
    assert_eq!(Sketch::new(&machine(&more), Mode::Pair).nic_of, Sketch::new(&right, Mode::Pair).nic_of);
}

#[test]
fn a_real_tree_is_read_from_its_folder_and_from_its_record_alike() {
    let recorded = sysfs::read(&data("pci/h200_vm.txt")).unwrap();
    assert_eq!(sysfs::record(&recorded), fs::read_to_string(data("pci/h200_vm.txt")).unwrap());
    let root = tempfile::tempdir().unwrap();
    for function in &recorded {
        let folder = root.path().join("devices").join(&function.path);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("class"), format!("{}\n", function.class)).unwrap();
        fs::write(folder.join("vendor"), format!("{}\n", function.vendor)).unwrap();
        if function.width > 0 {
            fs::write(folder.join("current_link_width"), format!("{}\n", function.width)).unwrap();
            fs::write(folder.join("current_link_speed"), format!("{}\n", function.speed)).unwrap();
        }
    }
    assert_eq!(sysfs::read(root.path()).unwrap(), recorded);
    let cluster = Cluster::load("ib400g_1gpu").unwrap();
    let topology = sysfs::topology(&recorded, &cluster, "h200").unwrap();
    let machine = Machine::from_topology(&cluster, &topology, 2, 1).unwrap();
    assert_eq!((machine.ranks(), machine.nics.len()), (2, 2));
}

#[test]
fn a_tree_without_a_gpu_or_with_a_bad_line_is_refused() {
    let cluster = Cluster::load("dgx_a100").unwrap();
    let error = sysfs::topology(&[], &cluster, "empty.txt").unwrap_err().to_string();
    assert!(error.contains("no NVIDIA GPU"), "{error}");
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "# a comment\npci0000:00/0000:00:00.0 what\n").unwrap();
    let error = sysfs::read(file.path()).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}
