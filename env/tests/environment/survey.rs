//! The survey's worked example (arXiv 2404.06114, section VII-A): one synchronisation of a model of 100
//! billion parameters in 16 bits takes 1600 s over 1 Gb/s and 0.22 s over NVLink, counted as volume ÷
//! nominal rate.

use dynamiccl_env::cluster::{Cluster, CommOptions};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::sim::Simulator;
use dynamiccl_env::world::World;
use dynamiccl_spec::Collective;

/// 100 billion parameters of 2 bytes.
const BYTES: u64 = 200_000_000_000;
const SURVEY: [f64; 2] = [1600.0, 0.22];

fn seconds(cluster: &Cluster, nodes: u32) -> f64 {
    let world = World::nominal(&ConstantsFile::full());
    let simulator = Simulator::new(cluster, nodes, &CommOptions::default(), &world).unwrap();
    simulator.own(Collective::AllReduce, BYTES).unwrap().micros / 1e6
}

/// Tier 4 with links of 1 Gb/s.
fn gigabit() -> Cluster {
    let mut cluster = Cluster::load("tier4").unwrap();
    let inter = cluster.inter.as_mut().unwrap();
    let share = inter.bandwidth / (f64::from(inter.nics) * inter.nic_rate);
    (inter.nic_rate, inter.bandwidth) = (0.125, 0.125 * share);
    cluster
}

#[test]
fn a_model_of_100_billion_parameters_takes_what_the_survey_says() {
    let slow = seconds(&gigabit(), 2);
    let fast = seconds(&Cluster::load("dgx_h100").unwrap(), 1);
    println!("1 Gb/s: {slow:.0} s, NVLink: {fast:.3} s, ratio {:.0}", slow / fast);
    for (ours, theirs) in [(slow, SURVEY[0]), (fast, SURVEY[1])] {
        let off = (ours / theirs).max(theirs / ours);
        assert!(off <= 5.0, "{ours} s, the survey has {theirs} s");
    }
    assert!(slow / fast >= 1000.0, "ratio {:.0}", slow / fast);
}
