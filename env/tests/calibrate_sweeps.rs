//! The simulator learns a machine from sweeps on it: what half of the cells teach holds for the other half.

use std::path::Path;

use dynamiccl_env::calibrate::sweep::{LeftOut, group};
use dynamiccl_env::calibrate::{Group, calibrate_all};
use dynamiccl_env::cluster::{Calibration, Cluster};
use dynamiccl_env::measure::sweep::{self, Sweep};
use dynamiccl_env::model::{Call, Constants, ConstantsFile};
use dynamiccl_env::statistics::median;
use dynamiccl_env::swept::machine;
use dynamiccl_env::validate::sweeps::PreparedSweep;
use dynamiccl_spec::ChunkChoice;

/// The recorded sweeps, with every second cell only.
fn sweeps(odd: bool) -> Vec<Sweep> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/live-h200");
    let mut sweeps = sweep::read(&folder).unwrap_or_else(|error| panic!("{error}"));
    for sweep in &mut sweeps {
        // Sizes are powers of 4, so neighbours are of different halves.
        sweep.rows.retain(|row| {
            let collective = row.collective as u64;
            (u64::from(row.bytes.ilog2() / 2) + collective) % 2 == u64::from(odd)
        });
    }
    sweeps
}

fn groups(cluster: &Cluster, sweeps: &[Sweep]) -> Vec<Group> {
    let machine = |sweep: &Sweep| {
        machine(sweep.ranks, sweep.link, &sweep.about, Some(cluster), &sweep.file)
            .unwrap_or_else(|e| panic!("{e}"))
    };
    let one = |sweep: &Sweep| group(&machine(sweep), sweep).unwrap_or_else(|e| panic!("{e}")).0;
    sweeps.iter().map(one).collect()
}

fn error(groups: &[Group], calibration: Calibration, constants: &Constants) -> f64 {
    let errors = groups.iter().flat_map(|group| group.errors(calibration, constants)).map(f64::abs);
    median(errors).expect("there are lines")
}

/// Constants that never saw these sweeps, as on a machine that is new.
#[test]
fn half_of_the_cells_teach_the_other_half() {
    let constants = ConstantsFile::load("blind").unwrap_or_else(|e| panic!("{e}")).nominal();
    let cluster = Cluster::load("h200_shared").unwrap();
    for sweep in 0..sweeps(false).len() {
        let [taught, others] = [false, true].map(|odd| groups(&cluster, &sweeps(odd)[sweep..=sweep]));
        let fitted = calibrate_all(cluster.calibration, &taught, &constants);
        let (before, after) =
            (error(&others, cluster.calibration, &constants), error(&others, fitted, &constants));
        println!("{:?}: {before:.3} to {after:.3} with {fitted:?}", sweeps(true)[sweep].file.file_name());
        assert!(after < before, "{before} {after}");
    }
}

/// All links and ranks together have one set of factors.
#[test]
fn sweeps_of_several_links_are_one_machine() {
    let constants = ConstantsFile::load("blind").unwrap_or_else(|e| panic!("{e}")).nominal();
    let cluster = Cluster::load("h200_shared").unwrap();
    let [taught, others] = [false, true].map(|odd| groups(&cluster, &sweeps(odd)));
    let fitted = calibrate_all(cluster.calibration, &taught, &constants);
    let (before, after) =
        (error(&others, cluster.calibration, &constants), error(&others, fitted, &constants));
    println!("all: {before:.3} to {after:.3} with {fitted:?}");
    assert!(after < before, "{before} {after}");
}

/// The model has chunks. What a release lets nobody set was not measured, whatever a file says.
#[test]
fn lines_of_chunk_sizes_are_learnt_from_where_nccl_asks_for_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/live-h200-chunks");
    let mut sweep = sweep::read(&folder).unwrap_or_else(|error| panic!("{error}")).remove(0);
    let cluster = Cluster::load("h200_shared").unwrap();
    let samples = |sweep: &Sweep| {
        let machine = machine(sweep.ranks, sweep.link, &sweep.about, Some(&cluster), &sweep.file);
        group(&machine.unwrap_or_else(|e| panic!("{e}")), sweep).unwrap_or_else(|e| panic!("{e}"))
    };
    let (all, left_out) = samples(&sweep);
    assert_eq!((all.samples.len(), left_out), (sweep.rows.len(), LeftOut::default()));
    let largest = |chunk| {
        let of = sweep.rows.iter().zip(&all.samples).filter(|(row, _)| row.chunk == chunk);
        of.map(|(_, sample)| sample.call.chunk_bytes).max().expect("it was tried")
    };
    assert!(largest(ChunkChoice::Half) < largest(ChunkChoice::Own));
    sweep.about.nccl = Some("2.28.9".to_owned());
    let own = sweep.rows.iter().filter(|row| row.chunk == ChunkChoice::Own).count();
    let (some, left_out) = samples(&sweep);
    assert_eq!(
        (some.samples.len(), left_out),
        (own, LeftOut { settings: 0, chunks: sweep.rows.len() - own })
    );
}

/// Ranks that were started with fewer threads take the same pairs, on other channels.
#[test]
fn launches_are_those_of_the_threads_that_ranks_were_started_with() {
    let cluster = Cluster::load("h200_shared").unwrap();
    let own = sweeps(false).swap_remove(0);
    let few = Sweep { threads: Some(64), ..own.clone() };
    let [own_calls, few_calls] = [&own, &few].map(|sweep| {
        let of = groups(&cluster, std::slice::from_ref(sweep)).swap_remove(0);
        of.samples.iter().map(|sample| sample.call).collect::<Vec<_>>()
    });
    assert_eq!(own_calls.len(), few_calls.len());
    assert!(own_calls.iter().zip(&few_calls).all(|(own, few)| own.pair == few.pair));
    let differ = |own: &Call, few: &Call| (own.threads, own.channels) != (few.threads, few.channels);
    assert!(own_calls.iter().zip(&few_calls).any(|(own, few)| differ(own, few)));

    let constants = ConstantsFile::full().nominal();
    let [own_calls, few_calls] =
        [&own, &few].map(|sweep| PreparedSweep::new(sweep).unwrap().residuals(&constants));
    assert!(own_calls.iter().zip(&few_calls).any(|((own, _), (few, _))| differ(own, few)));
}
