//! What a policy is told where a deployment file says much, little or nonsense.

use dynamiccl_spec::{Collective, GpuGeneration, Parallelism, Role, SyncMode, TopologyClass};

use super::*;

const FILE: &str = r#"
[cluster]
gpu = "hopper"
intra = "nvlink"
intra_generation = 4
inter = "infiniband"
class = "fat_tree"
tiers = [{ nodes = 1, tier = 1 }, { nodes = 2, tier = 2 }, { nodes = 5, tier = 3 }]
in_network = false

[workload]
environment = "datacentre"
sync = "bsp"
tau = 1
compression = "none"
compression_rate = 1

[scheduler]
sharing = "dedicated"
template = false

[llm]
params = 7e9
parallelism = "3d"
fault_tolerance = "none"
three_d = true

[[communicator]]
ranks = 8
nodes = 1
role = "intra_stage"

[[communicator]]
ranks = [16, 32]
role = "inter_stage"
parallelism = "fsdp"
tier_max = 4
tier_mix = [0, 0, 0.5, 0, 0.5]
"#;

fn deployment() -> Deployment {
    Deployment::read(FILE.as_bytes()).unwrap()
}

#[test]
fn without_a_file_all_but_the_size_is_unknown() {
    let mut expected = JobContext::default();
    (expected.topology.ranks, expected.topology.nodes) = (16, 2);
    assert_eq!(Deployment::default().context(16, 2), expected);
    assert_eq!(Deployment::default().hash(), None);
}

#[test]
fn the_first_rule_that_matches_holds() {
    let roles = [(8, 1), (8, 2), (16, 1), (32, 4)].map(|(ranks, nodes)| {
        let context = deployment().context(ranks, nodes);
        (context.scheduler.role, context.llm.parallelism)
    });
    let free = (Role::Unknown, Parallelism::ThreeD);
    let data = (Role::InterStage, Parallelism::Fsdp);
    assert_eq!(roles, [(Role::IntraStage, Parallelism::ThreeD), free, data, data]);
    let told = deployment().context(32, 4).topology;
    assert_eq!((told.tier_max, told.tier_mix), (Some(4), Some([0.0, 0.0, 0.5, 0.0, 0.5])));
}

#[test]
fn a_communicator_is_told_as_in_training() {
    let one = deployment().context(8, 1);
    assert_eq!((one.topology.gpu, one.topology.class), (GpuGeneration::Hopper, TopologyClass::FatTree));
    assert_eq!((one.topology.intra, one.topology.inter), (NodeLink::Nvlink, NetLink::None));
    assert_eq!((one.topology.tier_max, one.topology.in_network), (Some(1), Some(false)));
    assert_eq!(one.topology.tier_mix, Some([0.0, 1.0, 0.0, 0.0, 0.0]));
    assert_eq!((one.workload.sync, one.llm.params), (SyncMode::Bsp, 7e9));
    let spread = deployment().context(4, 4).topology;
    assert_eq!((spread.intra, spread.inter), (NodeLink::None, NetLink::Infiniband));
    assert_eq!((spread.tier_max, spread.tier_mix), (Some(2), Some([0.0, 0.0, 1.0, 0.0, 0.0])));
}

/// Training never says half of what a machine is.
#[test]
fn a_cluster_that_is_described_in_part_is_found_out() {
    let read = |text: &str| Deployment::read(text.as_bytes()).unwrap();
    let library = |deployment: &Deployment| deployment.context(16, 2).topology.library;
    assert_eq!((deployment().left_out(), library(&deployment())), (vec![], CclLibrary::Nccl));
    let half = read("[cluster]\ngpu = \"hopper\"\ninter = \"infiniband\"");
    assert_eq!(half.left_out(), ["cluster.intra", "cluster.class", "cluster.tiers", "cluster.in_network"]);
    let unnumbered = read(&FILE.replace("intra_generation = 4\n", ""));
    assert_eq!(unnumbered.left_out(), ["cluster.intra_generation"]);
    assert_eq!(library(&half), CclLibrary::Nccl);
    let nothing = read("[workload]\nenvironment = \"edge\"");
    assert_eq!((nothing.left_out(), library(&nothing)), (vec![], CclLibrary::Unknown));
    assert_eq!(library(&read("[cluster]\nlibrary = \"gloo\"")), CclLibrary::Gloo);
    let shared = read(include_str!("../../../../scripts/live/shared_gpu.toml"));
    assert_eq!(shared.left_out(), [""; 0]);
}

/// Nor half of a job.
#[test]
fn a_job_that_is_described_in_part_is_found_out() {
    let left_out = |text: &str| Deployment::read(text.as_bytes()).unwrap().left_out();
    let workload =
        ["workload.environment", "workload.tau", "workload.compression", "workload.compression_rate"];
    assert_eq!(left_out("[workload]\nsync = \"bsp\""), workload);
    assert_eq!(left_out("[scheduler]\nsharing = \"mps\""), ["scheduler.template"]);
    assert_eq!(left_out("[llm]\nparams = 7e9\nthree_d = false"), ["llm.parallelism", "llm.fault_tolerance"]);
    assert_eq!(left_out("[llm]\nfault_tolerance = \"none\""), [""; 0]);
}

/// A domain of several trays is told as such, whatever joins such domains.
#[test]
fn many_ranks_of_one_node_have_switches_between_trays() {
    for inter in ["infiniband", "nvswitch_256", "none"] {
        let text = FILE.replace("\"infiniband\"", &format!("\"{inter}\""));
        let deployment = Deployment::read(text.as_bytes()).unwrap();
        let told = |ranks| deployment.context(ranks, 1).topology.inter;
        assert_eq!((told(8), told(16), told(72)), (NetLink::None, NetLink::None, NetLink::NvSwitch256));
    }
}

#[test]
fn a_mix_needs_to_know_how_near_ranks_of_one_node_are() {
    let mix = |intra: &str| {
        let text = format!("[cluster]\n{intra}tiers = [{{ nodes = 2, tier = 4 }}]");
        Deployment::read(text.as_bytes()).unwrap().context(4, 2).topology.tier_mix
    };
    // Four ranks on two nodes: two of six pairs are within a node.
    let [near, far] = [1.0_f32 / 3.0, 2.0 / 3.0];
    assert_eq!(mix("intra = \"nvlink\"\n"), Some([0.0, near, 0.0, 0.0, far]));
    assert_eq!(mix("intra = \"pcie\"\n"), Some([0.0, 0.0, near, 0.0, far]));
    assert_eq!(mix(""), None);
}

#[test]
fn the_documented_file_can_be_read() {
    let page = include_str!("../../../../docs/plugin.md");
    let (_, example) = page.split_once("```toml\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let read = Deployment::read(example.as_bytes()).unwrap();
    assert_eq!(read.context(8, 1).scheduler.role, Role::IntraStage);
    assert_eq!(read.context(32, 4).topology.tier_max, Some(2));
    let (_, configured) = page.split_once("context.toml: |\n").expect("a ConfigMap");
    let (configured, _) = configured.split_once("---").expect("its end");
    assert_eq!(
        Deployment::read(configured.as_bytes()).unwrap().context(16, 2).topology.gpu,
        GpuGeneration::Hopper
    );
}

#[test]
fn schedules_are_stated_by_size_and_hold_in_between() {
    let entry = |ranks: u32, bytes: u64, micros: f32| {
        format!(
            "[[schedule]]\ncollective = \"allgather\"\nranks = {ranks}\nnodes = 2\nbytes = {bytes}\nmicros = {micros:?}\n"
        )
    };
    let text = entry(16, 4096, 40.0) + &entry(16, 1024, 10.0) + &entry(8, 1024, 1.0);
    let schedules = Deployment::read(text.as_bytes()).unwrap().schedules(16, 2);
    let micros = |bytes| schedules.micros(Collective::AllGather, bytes);
    assert_eq!([micros(1024), micros(4096)], [Some(10.0), Some(40.0)]);
    assert!(micros(2048).is_some_and(|us| (us - 20.0).abs() < 1e-3));
    assert_eq!([micros(1023), micros(4097), schedules.micros(Collective::Reduce, 1024)], [None; 3]);
    assert_eq!(deployment().schedules(16, 2), Schedules::default());
    for (from, to, said) in [
        ("1024", "0", "schedule 2: bytes = 0"),
        ("10.0", "nan", "schedule 2: micros"),
        ("allgather", "alltoall", "schedule 1: collective"),
    ] {
        let refused = Deployment::read(text.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert!(refused.starts_with(said), "{refused}");
    }
}

#[test]
fn files_that_differ_have_different_fingerprints() {
    let other = Deployment::read(FILE.replace("7e9", "8e9").as_bytes()).unwrap();
    assert!(other.hash().is_some() && other.hash() != deployment().hash());
}

#[test]
fn what_means_nothing_is_refused_with_its_place() {
    let refused = |from: &str, to: &str| {
        assert!(FILE.contains(from), "{from}");
        Deployment::read(FILE.replace(from, to).as_bytes()).unwrap_err()
    };
    let unknown = refused("gpu = \"hopper\"", "gpu = \"hoper\"");
    assert!(unknown.starts_with("line 3: unknown variant `hoper`"), "{unknown}");
    assert!(refused("gpu =", "gpuu =").starts_with("line 3: unknown field `gpuu`"));
    assert_eq!(refused("tier = 3", "tier = 9"), "cluster.tiers: tier 9: must be 0 to 4");
    assert_eq!(refused("nodes = 5", "nodes = 2"), "cluster.tiers: node counts must ascend");
    assert_eq!(refused("nodes = 2", "nodes = 0"), "cluster.tiers: nodes = 0: must be at least 1");
    assert_eq!(
        refused("tier = 3", "tier = 1"),
        "cluster.tiers: tier 1 from 5 nodes on: must not be below the 2 before"
    );
    assert_eq!(
        refused("intra_generation = 4", "intra_generation = 99"),
        "cluster.intra_generation = 99: must be 1 to 8, or 0 for unknown"
    );
    for (from, to, said) in [
        ("ranks = 8", "ranks = []", "communicator rule 1: ranks = []: holds for none"),
        ("nodes = 1\n", "nodes = 0\n", "communicator rule 1: nodes = 0: must be at least 1"),
        ("[16, 32]", "[16, 0]", "communicator rule 2: ranks = [16, 0]: must be at least 1"),
    ] {
        let refused = refused(from, to);
        assert!(refused.starts_with(said), "{refused}");
    }
    let rule = "communicator rule 2: tier_m";
    assert!(refused("tier_max = 4", "tier_max = 5").starts_with(rule));
    assert!(refused("0.5]", "0.9]").starts_with(rule));
    assert!(refused("7e9", "nan").starts_with("llm.params"));
    assert!(refused("ranks = 8", "ranks = \"8\"").contains("expected a number or a list of numbers"));
    assert!(Deployment::read(b"").unwrap_err().starts_with("empty"));
    assert!(Deployment::read(&[0xff, 0xfe]).unwrap_err().starts_with("no text"));
    assert!(Deployment::read(&vec![b' '; 2 << 20]).unwrap_err().contains("1024 KiB"));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Deployment::open(Path::new("/nowhere/context.toml")).unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/context.toml: No such file"), "{error}");
}
