//! No file can do worse than be refused with one line.

use std::path::Path;

use dynamiccl_env::measure::{MeasureError, sweep, tables};
use proptest::prelude::*;

use crate::{folder, log_file, read_log};

const SAMPLES: [&str; 8] = [
    "v2_0_all_gather.txt",
    "v2_11_out.txt",
    "v2_13_broadcast.txt",
    "v2_16_mpirun_noise.txt",
    "v2_17_alltoall_crlf.txt",
    "v2_19_two_tests.txt",
    "v2_17_3.json",
    "v2_19_per_iter.json",
];

fn sample(index: usize) -> Vec<u8> {
    std::fs::read(log_file(SAMPLES[index])).expect("a sample")
}

/// Replaces, removes, doubles or adds bytes.
fn mutate(mut bytes: Vec<u8>, edits: &[(prop::sample::Index, u8, u8)]) -> Vec<u8> {
    for (at, kind, value) in edits {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        match kind % 4 {
            0 => bytes[at] = *value,
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, *value),
            _ => {
                let end = (at + usize::from(*value)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

fn one_line(error: &MeasureError) -> bool {
    let text = error.to_string();
    !text.contains('\n') && !error.fault().remedy.is_empty()
}

fn check_all_readers(bytes: &[u8]) {
    let dir = folder(&[]);
    for name in ["all_reduce.log", "tables.csv", "measurements.csv"] {
        std::fs::write(dir.path().join(name), bytes).expect("a temporary file");
    }
    let file = dir.path().join("all_reduce.log");
    match read_log(&file) {
        Ok(log) => {
            assert!(!log.rows.is_empty());
            assert!(log.rows.iter().all(|row| row.bytes > 0 && row.time_us > 0.0 && row.time_us.is_finite()));
            assert!(log.warnings.iter().all(|warning| !warning.contains('\n')));
        }
        Err(error) => assert!(one_line(&error), "{error}"),
    }
    for error in [sweep::read(&file).err(), tables::read(dir.path()).err()].into_iter().flatten() {
        assert!(one_line(&error), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_logs_never_panic(
        index in 0..SAMPLES.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<u8>()), 0..12),
    ) {
        check_all_readers(&mutate(sample(index), &edits));
    }

    #[test]
    fn truncated_logs_never_lie(index in 0..SAMPLES.len(), cut in any::<prop::sample::Index>()) {
        let whole = sample(index);
        let all = read_log(&log_file(SAMPLES[index])).expect("a sample").rows;
        let part = &whole[..cut.index(whole.len())];
        check_all_readers(part);
        let dir = folder(&[]);
        // The name must not tell what the text no longer does.
        let file = dir.path().join(SAMPLES[index]);
        std::fs::write(&file, part).expect("a temporary file");
        if let Ok(log) = read_log(&file) {
            prop_assert!(all.starts_with(&log.rows), "rows that the whole file does not have");
        }
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        check_all_readers(&bytes);
    }
}

#[test]
fn folders_and_missing_files_are_refused() {
    let dir = folder(&[]);
    for path in [dir.path().to_owned(), dir.path().join("absent.log")] {
        let error = read_log(&path).expect_err("no file");
        assert!(one_line(&error), "{error}");
    }
    assert!(tables::read(Path::new("/definitely/not/here")).is_err());
}
