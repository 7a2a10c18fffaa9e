//! Readers of nccl-tests' logs, each handed what the door would give to another.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;

fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn check(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all_reduce.log");
    fs::write(&file, bytes).unwrap();
    for read in [nccl_tests_json::read, nccl_tests_text::read] {
        match read(&file, None) {
            Ok(log) => {
                assert!(!log.rows.is_empty());
                assert!(
                    log.rows
                        .iter()
                        .all(|row| { row.bytes > 0 && row.time_us > 0.0 && row.time_us.is_finite() })
                );
                assert!(log.warnings.iter().all(|warning| !warning.contains('\n')));
            }
            Err(error) => {
                assert!(!error.to_string().contains('\n') && !error.fault().remedy.is_empty(), "{error}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_logs_never_panic(
        sample in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<[u8; 4]>()), 0..12),
    ) {
        let samples = samples();
        let mut bytes = fs::read(&samples[sample.index(samples.len())]).unwrap();
        for (at, gone, new) in edits {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            let end = (at + usize::from(gone % 8)).min(bytes.len());
            bytes.splice(at..end, new.into_iter().take(usize::from(gone / 64)));
        }
        check(&bytes);
    }

    #[test]
    fn cut_logs_never_panic(sample in any::<prop::sample::Index>(), cut in any::<prop::sample::Index>()) {
        let samples = samples();
        let bytes = fs::read(&samples[sample.index(samples.len())]).unwrap();
        check(&bytes[..cut.index(bytes.len())]);
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        check(&bytes);
    }
}
