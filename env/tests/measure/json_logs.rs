//! nccl-tests' JSON.

use dynamiccl_env::measure::{MeasureError, read_log_as};
use dynamiccl_spec::{Algorithm, Collective};

use crate::{folder, log_file, read_log};

fn sample() -> String {
    std::fs::read_to_string(log_file("v2_17_3.json")).expect("a sample")
}

fn error_of(text: &str) -> MeasureError {
    let dir = folder(&[("run.json", text)]);
    read_log(&dir.path().join("run.json")).expect_err("a bad file")
}

#[test]
fn the_first_version() {
    let log = read_log(&log_file("v2_17_3.json")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((log.ranks, log.nodes), (Some(8), Some(2)), "one device is listed per process of four GPUs");
    assert_eq!((log.gpu.as_deref(), log.nccl_version.as_deref()), (Some("NVIDIA H200"), Some("2.28.3")));
    let rows: Vec<_> = log.rows.iter().map(|row| (row.bytes, row.time_us, row.in_place)).collect();
    assert_eq!(
        rows,
        [(1 << 20, 52.2, Some(false)), (1 << 20, 51.9, Some(true)), (1 << 21, 61.9, Some(true))]
    );
    assert_eq!(log.rows[0].pair, (Some(Algorithm::Tree), None), "a list of protocols pins none");
    assert_eq!(log.rows[0].channels, Some(8));
    assert_eq!(log.warnings, Vec::<String>::new());
}

#[test]
fn per_iteration_times_are_skipped() {
    let log = read_log(&log_file("v2_19_per_iter.json")).unwrap_or_else(|e| panic!("{e}"));
    assert!(log.rows.iter().all(|row| row.collective == Collective::ReduceScatter));
    assert_eq!(log.rows.iter().map(|row| row.time_us).collect::<Vec<_>>(), [31.0, 30.5]);
    assert_eq!((log.ranks, log.nodes), (Some(2), Some(2)));
}

#[test]
fn a_file_that_breaks_off_is_refused() {
    let text = sample();
    let error = error_of(&text[..text.len() / 2]);
    assert!(matches!(error, MeasureError::Truncated(_)), "{error}");
    assert!(error.to_string().contains("the run did not end: measure again"), "{error}");
}

#[test]
fn times_that_are_none_name_their_result() {
    let error = error_of(&sample().replace("61.900000", "\"nan\""));
    assert!(error.to_string().contains("bad time of result 2 \"nan\""), "{error}");
    let error = error_of(&sample().replace("\"time\"", "\"cpu_time\""));
    assert!(error.fault().remedy.contains("without -C 1"), "{error}");
}

#[test]
fn other_json_is_refused() {
    for (text, words) in [
        ("{\"a\": 1}", "lacks \"results\""),
        ("{\"results\": []}", "does not say which collective"),
        ("{\"results\": 3}", "bad field"),
        ("{\"results\": [}", "bad JSON"),
        ("{\"args\": [\"gather_perf\"], \"results\": []}", "holds no measurements"),
    ] {
        let error = error_of(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_nameless_program_needs_a_word() {
    let text = sample().replace("all_reduce_perf", "bench");
    let dir = folder(&[("run.json", &text)]);
    let file = dir.path().join("run.json");
    assert!(matches!(read_log(&file), Err(MeasureError::WhichCollective(_))));
    let log = read_log_as(&file, Some(Collective::AllReduce)).expect("told");
    assert_eq!(log.rows[0].collective, Collective::AllReduce);
}
