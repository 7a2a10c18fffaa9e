//! nccl-tests' text, one file per generation of its layout.

use dynamiccl_env::measure::{Log, MeasureError, read_log_as};
use dynamiccl_spec::{Algorithm, Collective, Protocol};

use crate::{folder, log_file, read_log};

fn read(name: &str) -> Log {
    read_log(&log_file(name)).unwrap_or_else(|e| panic!("{e}"))
}

/// (bytes, time, in place) of every row.
fn times(log: &Log) -> Vec<(u64, f64, Option<bool>)> {
    log.rows.iter().map(|row| (row.bytes, row.time_us, row.in_place)).collect()
}

/// The error of a log with this text.
fn error_of(text: &str) -> MeasureError {
    let dir = folder(&[("run.txt", text)]);
    read_log(&dir.path().join("run.txt")).expect_err("a bad log")
}

const HEADER: &str = "# Collective test starting: all_reduce_perf\n\
    #  Rank  0 Group  0 Pid 1 on a device  0 [0x07] X\n\
    #  Rank  1 Group  0 Pid 2 on a device  1 [0x08] X\n\
    #  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n";
const ROW: &str = "  1024  256  float  sum  -1  9.10  0.11  0.11  0  9.00  0.11  0.11  0\n";
const TRAILER: &str = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0.11\n";

#[test]
fn the_first_layout_has_neither_operation_nor_root() {
    let log = read("v2_0_all_gather.txt");
    assert_eq!((log.ranks, log.nodes), (Some(2), Some(1)));
    assert_eq!(log.gpu.as_deref(), Some("Tesla V100-SXM2-16GB"));
    assert!(log.rows.iter().all(|row| row.collective == Collective::AllGather && row.pair == (None, None)));
    assert_eq!(times(&log)[..2], [(1024, 11.2, Some(false)), (1024, 10.9, Some(true))]);
    assert_eq!(log.rows.len(), 6);
    assert_eq!(log.warnings, Vec::<String>::new());
}

#[test]
fn columns_and_bandwidths_tell_the_collective_where_no_name_does() {
    let log = read("v2_11_out.txt");
    assert!(log.rows.iter().all(|row| row.collective == Collective::AllReduce));
    assert_eq!(log.warnings, ["taken as allreduce because of the table's columns"]);
}

#[test]
fn an_operation_column_may_be_blank() {
    let log = read("v2_13_broadcast.txt");
    assert_eq!((log.ranks, log.nodes), (Some(2), Some(2)));
    assert_eq!(times(&log)[2..], [(2_097_152, 780.3, Some(false)), (2_097_152, 779.1, Some(true))]);
    assert_eq!(log.rows[0].collective, Collective::Broadcast);
}

#[test]
fn messages_of_nccl_may_stand_between_and_inside_rows() {
    let log = read("v2_16_mpirun_noise.txt");
    let expected = [(1024, 19.1), (1024, 18.9), (4096, 21.4), (4096, 21.2), (16_384, 27.8), (16_384, 27.5)];
    assert_eq!(times(&log).iter().map(|t| (t.0, t.1)).collect::<Vec<_>>(), expected);
    assert_eq!(log.nccl_version.as_deref(), Some("2.26.2"));
    assert_eq!(log.rows[0].pair, (Some(Algorithm::Ring), Some(Protocol::LL)));
    assert_eq!(log.rows[0].channels, Some(4));
    assert_eq!(log.gpu.as_deref(), Some("NVIDIA H100 80GB HBM3"));
}

#[test]
fn windows_line_ends_and_time_stamps_are_read_over() {
    let log = read("v2_17_alltoall_crlf.txt");
    assert_eq!(log.rows[0].collective, Collective::AllToAll);
    assert_eq!((log.ranks, log.rows.len()), (Some(4), 4));
    assert_eq!(log.nccl_version.as_deref(), Some("2.28.9"));
    assert_eq!(times(&log)[3], (131_072, 43.37, Some(true)));
}

#[test]
fn per_iteration_columns_and_foreign_tests_are_skipped() {
    let log = read("v2_19_two_tests.txt");
    assert!(log.rows.iter().all(|row| row.collective == Collective::ReduceScatter));
    let expected = [(1 << 20, 41.2), (1 << 20, 40.9), (1 << 25, 1.2e7), (1 << 25, 205.4)];
    assert_eq!(times(&log).iter().map(|t| (t.0, t.1)).collect::<Vec<_>>(), expected);
    assert_eq!((log.ranks, log.nodes, log.nccl_version.as_deref()), (Some(4), Some(2), Some("2.30.7")));
    assert_eq!(
        log.warnings,
        [
            "2 reducescatter times of no bytes or no time left out",
            "1 rows have wrong results (#wrong)",
            "2 times of tests without an NCCL collective left out"
        ]
    );
}

#[test]
fn the_caller_knows_better_than_the_file() {
    let log = read_log_as(&log_file("v2_11_out.txt"), Some(Collective::ReduceScatter)).expect("a log");
    assert!(log.rows.iter().all(|row| row.collective == Collective::ReduceScatter));
}

#[test]
fn a_row_that_breaks_off_is_refused_by_its_line() {
    for cut in [
        "  2048  512  float  sum  -1  9.2",
        "  2048  512  float  sum  -1  9.20  0.22  0.22  0  9.1",
        "  2048  512  float",
    ] {
        let error = error_of(&format!("{HEADER}{ROW}{cut}"));
        assert!(matches!(error, MeasureError::Truncated(_)), "{error}");
        assert_eq!(error.fault().line, 6, "{error}");
        assert!(error.to_string().contains("run.txt:6: is cut off at \"2048 512 float"), "{error}");
        assert!(error.fault().remedy.contains("delete it or measure again"), "{error}");
    }
    let followed = error_of(&format!("{HEADER}  2048  512  float  sum\n{ROW}{TRAILER}"));
    assert!(matches!(followed, MeasureError::Truncated(_)), "{followed}");
}

#[test]
fn no_cut_through_a_row_goes_unnoticed() {
    let text = std::fs::read_to_string(log_file("v2_11_out.txt")).expect("a sample");
    let table = text.find("     4194304").expect("a row")..text.find("# Out of").expect("a trailer");
    for cut in table {
        let line = text[..cut].lines().next_back().filter(|_| !text[..cut].ends_with('\n')).unwrap_or("");
        let dir = folder(&[("all_reduce.txt", &text[..cut])]);
        let result = read_log(&dir.path().join("all_reduce.txt"));
        match line.split_whitespace().count() {
            0 | 12 => {}
            _ => assert!(matches!(result, Err(MeasureError::Truncated(_))), "{line:?}: {result:?}"),
        }
    }
}

#[test]
fn a_missing_trailer_is_only_a_warning() {
    let dir = folder(&[("run.txt", &format!("{HEADER}{ROW}"))]);
    let log = read_log(&dir.path().join("run.txt")).expect("a log");
    assert_eq!(log.rows.len(), 2);
    assert_eq!(log.warnings, ["the log ends without its averages: the run may not have finished"]);
}

#[test]
fn nothing_to_read_says_what_to_give() {
    for text in ["", HEADER, "hello\n", &format!("{HEADER}{TRAILER}")] {
        let error = error_of(text);
        assert!(matches!(error, MeasureError::NoRows(_)), "{error}");
        assert!(error.fault().remedy.contains("output of nccl-tests"), "{error}");
    }
}

#[test]
fn a_bad_number_names_its_column() {
    let error = error_of(&format!("{HEADER}{}{TRAILER}", ROW.replace("9.10", "9,10")));
    assert!(error.to_string().contains("run.txt:5: bad time \"9,10\""), "{error}");
    let error = error_of(&format!("{HEADER}{}{TRAILER}", ROW.replace("9.10", "nan")));
    assert!(error.to_string().contains("bad time \"nan\""), "{error}");
}

#[test]
fn times_of_the_launching_thread_are_no_measurement() {
    let error = error_of(&format!("{}{ROW}{TRAILER}", HEADER.replace("time", "cputime")));
    assert!(error.fault().remedy.contains("without -C 1"), "{error}");
}

#[test]
fn a_table_that_could_be_several_collectives_asks() {
    let anonymous = HEADER.replace("all_reduce_perf", "test");
    let error = error_of(&format!("{anonymous}{ROW}{TRAILER}"));
    assert!(matches!(error, MeasureError::WhichCollective(_)), "{error}");
    let dir = folder(&[("n2_all-reduce.log", &format!("{anonymous}{ROW}{TRAILER}"))]);
    let log = read_log(&dir.path().join("n2_all-reduce.log")).expect("a name");
    assert_eq!(log.rows[0].collective, Collective::AllReduce);
}

#[test]
fn runs_of_different_communicators_are_not_mixed() {
    let other = HEADER.replace("#  Rank  1 Group  0 Pid 2 on a device  1 [0x08] X\n", "");
    let error = error_of(&format!("{HEADER}{ROW}{TRAILER}{other}{ROW}{TRAILER}"));
    assert!(matches!(error, MeasureError::Mixed(_)), "{error}");
    assert!(error.to_string().contains("1 ranks after 2 ranks"), "{error}");
    let same = read_log_text(&format!("{HEADER}{ROW}{TRAILER}{HEADER}{ROW}{TRAILER}"));
    assert_eq!(same.rows.len(), 4);
}

#[test]
fn processes_that_ran_alone_are_found_out() {
    let alone = HEADER.replace("Rank  1", "Rank  0");
    let error = error_of(&format!("{alone}{ROW}{TRAILER}"));
    assert!(error.fault().remedy.contains("MPI=1"), "{error}");
}

#[test]
fn a_crash_is_a_warning_beside_whole_rows() {
    let log = read_log_text(&format!("{HEADER}{ROW}a: Test NCCL failure common.cu:958 'unhandled error'\n"));
    assert!(log.warnings[0].starts_with("the run failed: a: Test NCCL failure"), "{:?}", log.warnings);
}

#[test]
fn rows_without_any_header_are_still_rows() {
    let dir = folder(&[("all_reduce.txt", ROW)]);
    let log = read_log(&dir.path().join("all_reduce.txt")).expect("rows");
    assert_eq!((log.rows.len(), log.ranks), (2, None));
}

fn read_log_text(text: &str) -> Log {
    let dir = folder(&[("run.txt", text)]);
    read_log(&dir.path().join("run.txt")).unwrap_or_else(|e| panic!("{e}"))
}
