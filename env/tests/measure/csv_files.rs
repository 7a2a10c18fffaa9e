//! Collected tables and sweeps.

use dynamiccl_env::measure::sweep::{self, About, Link, Setting, Sure};
use dynamiccl_env::measure::tables::{self, Health};
use dynamiccl_env::measure::{Clock, MeasureError};
use dynamiccl_spec::{Algorithm, ChunkChoice, Collective, GBps, Pair, Protocol};

use crate::{folder, read_log};

const TABLES: &str = "table_id,source_url,gpu,n_nodes,gpus_per_node,intra,inter,inter_gbps_per_gpu_or_node,nccl_version,notes\n\
    a,https://example.org/a,NVIDIA A100,2,8,NVSwitch,IB,200 Gb/s per GPU,2.18,\"trust=A (raw log); healthy=partly: some sizes; dtype=half; more\"\n\
    b,https://example.org/b,,,,,none,,,healthy=unknown (who knows)\n";
const ROWS: &str = "table_id,collective,size_bytes,time_us,algbw_gbps,busbw_gbps,inplace,algo,proto,nchannels\n\
    a,all_reduce,1048576,80.5,13.03,24.42,0,Ring,Simple,4\n\
    a,all_reduce,2097152,,,24.00,,,,\n\
    a,all_reduce,1024,,,0.06,0,,,\n\
    a,all_reduce,1024,9.0,,,0,CollNet,,\n\
    b,sendrecv,4096,9.5,0.43,0.43,1,,,\n";

fn tables_error(tables: &str, rows: &str) -> MeasureError {
    let dir = folder(&[("tables.csv", tables), ("measurements.csv", rows)]);
    tables::read(dir.path()).expect_err("bad tables")
}

#[test]
fn tables_carry_their_source_and_their_rows() {
    let dir = folder(&[("tables.csv", TABLES), ("measurements.csv", ROWS)]);
    let tables = tables::read(dir.path()).unwrap_or_else(|e| panic!("{e}"));
    let a = &tables[0];
    assert_eq!((a.id.as_str(), a.nodes, a.gpus_per_node, a.ranks()), ("a", Some(2), Some(8), Some(16)));
    assert_eq!((a.health, a.dtype.as_deref()), (Health::Partly, Some("half")));
    assert_eq!((tables[1].health, tables[1].ranks()), (Health::Unknown, None));
    assert_eq!(a.rows[0].pair, (Some(Algorithm::Ring), Some(Protocol::Simple)));
    assert_eq!((a.rows[0].channels, a.rows[0].in_place), (Some(4), Some(false)));
    // 2 MiB at a bus bandwidth of 24 GB/s over 16 ranks: 24 / 1.875 = 12.8 GB/s.
    assert!((a.rows[1].time_us - 2_097_152.0 / 12_800.0).abs() < 1e-9);
    assert_eq!((a.rows.len(), a.left_out), (2, 2), "0.06 GB/s is too coarse, CollNet is two algorithms");
    assert_eq!(tables[1].rows[0].collective, Collective::SendRecv);
}

#[test]
fn a_bad_cell_is_found_by_line_and_column() {
    for (from, to, words) in [
        ("80.5", "fast", "measurements.csv:2: bad time_us \"fast\"; a number above zero"),
        ("80.5", "-1", "bad time_us \"-1\""),
        ("80.5", "inf", "bad time_us \"inf\""),
        ("1048576", "1e6", "bad size_bytes \"1e6\""),
        ("Ring", "Rng", "bad algo \"Rng\"; unknown algorithm \"Rng\"; did you mean \"ring\"?"),
        ("sendrecv", "sendrcv", "measurements.csv:6: bad collective"),
        (
            "\na,all_reduce,1048576",
            "\nc,all_reduce,1048576",
            "bad table_id \"c\"; describe this table in tables.csv",
        ),
        ("4\n", "four\n", "bad nchannels \"four\""),
        ("9.5,0.43,0.43,1", "9.5,0.43,0.43,yes", "bad inplace \"yes\""),
    ] {
        let error = tables_error(TABLES, &ROWS.replacen(from, to, 1)).to_string();
        assert!(error.contains(words), "{error}");
    }
    let error = tables_error(&TABLES.replace("\nb,", "\na,"), ROWS).to_string();
    assert!(error.contains("a name of its own"), "{error}");
}

#[test]
fn a_missing_column_is_named_with_all_that_are_expected() {
    let error = tables_error(TABLES, &ROWS.replace("time_us", "t")).to_string();
    assert!(
        error.contains("lacks \"time_us\"; the first line must name the columns table_id, collective"),
        "{error}"
    );
    let dir = folder(&[("tables.csv", TABLES)]);
    let error = tables::read(dir.path()).expect_err("no rows").to_string();
    assert!(
        error.contains("measurements.csv: cannot be read") && error.contains("check the path"),
        "{error}"
    );
}

const SWEEP: &str = "note,ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us,max_us,nccl_model_us\n\
    x,3,2.5gbit,allreduce,1024,default,default,,70.3,70.2,82.9,\n\
    x,3,2.5gbit,allreduce,1024,tree,LL,1,70.7,69.7,83.2,36.0\n";

#[test]
fn sweeps_of_ranks_and_rates_never_seen_before() {
    let other = SWEEP.replace("3,2.5gbit", "5,loopback");
    let dir = folder(&[("b.csv", SWEEP), ("a.csv", &other), ("README.md", "not a sweep")]);
    let sweeps = sweep::read(dir.path()).unwrap_or_else(|e| panic!("{e}"));
    let seen: Vec<_> = sweeps.iter().map(|s| (s.ranks, s.link)).collect();
    assert_eq!(seen, [(5, Link::Loopback), (3, Link::Rate(GBps(0.3125)))]);
    let [first, second] = sweeps[1].rows[..] else { panic!("{:?}", sweeps[1].rows) };
    assert_eq!((first.setting, first.nccl_model_us), (Setting::Default, None));
    let pair = Pair::new(Algorithm::Tree, Protocol::LL);
    assert_eq!(second.setting, Setting::Knobs { pair, channels: Some(1) });
    assert_eq!((second.median_us, second.min_us, second.max_us), (70.7, 69.7, 83.2));
    assert_eq!(second.nccl_model_us, Some(36.0));
    assert_eq!("500mbit".parse(), Ok(Link::Rate(GBps(0.0625))));
}

#[test]
fn one_file_may_hold_several_communicators() {
    let text = format!("{SWEEP}x,8,25gbit,broadcast,4096,ring,Simple,,9.0,9.0,9.0,\n");
    let dir = folder(&[("all.csv", &text)]);
    let sweeps = sweep::read(&dir.path().join("all.csv")).expect("a sweep");
    assert_eq!(sweeps.iter().map(|s| (s.ranks, s.rows.len())).collect::<Vec<_>>(), [(3, 2), (8, 1)]);
    let error = read_log(&dir.path().join("all.csv")).expect_err("two communicators").to_string();
    assert!(error.contains("all.csv:4: mixes several runs"), "{error}");
}

#[test]
fn a_file_beside_a_sweep_says_whose_clock_it_went_by() {
    let said = |about: &str| {
        let dir = folder(&[("s.csv", SWEEP), ("s.csv.about.json", about)]);
        sweep::read(dir.path()).map(|sweeps| sweeps[0].about.clone())
    };
    let about = said(r#"{"nccl": "2.28.9", "clock": "slowest", "gpu": "any"}"#).expect("a sweep");
    assert_eq!((about.nccl.as_deref(), about.clock), (Some("2.28.9"), Clock::Slowest));
    assert_eq!(said("{}").expect("a sweep").clock, Clock::First);
    assert_eq!(sweep::read(folder(&[("s.csv", SWEEP)]).path()).expect("a sweep")[0].about, About::default());
    let error = said(r#"{"clock": "last"}"#).expect_err("no such clock").to_string();
    assert!(error.contains("s.csv.about.json:1: bad conditions \"unknown variant `last`"), "{error}");
    let dir = folder(&[("s.csv", SWEEP)]);
    std::fs::create_dir(dir.path().join("s.csv.about.json")).expect("a folder in its place");
    assert!(matches!(sweep::read(dir.path()), Err(MeasureError::Unreadable(_))));
}

#[test]
fn a_file_beside_a_sweep_says_how_its_ranks_were_started() {
    let said = |about: &str, sweep: &str| {
        let dir = folder(&[("s.csv", sweep), ("s.csv.about.json", about)]);
        sweep::read(dir.path()).unwrap_or_else(|e| panic!("{e}"))
    };
    let about = said(r#"{"nodes": 4, "ranks_per_node": 2}"#, SWEEP)[0].about.clone();
    assert_eq!((about.nodes, about.ranks_per_node), (Some(4), Some(2)));
    for (about, threads) in [
        ("{}", None),
        (r#"{"threads": []}"#, None),
        (r#"{"threads": 0}"#, None),
        (r#"{"threads": 128}"#, Some(128)),
        (r#"{"threads": [128]}"#, Some(128)),
        (r#"{"threads": [128, 256]}"#, None),
    ] {
        assert_eq!(said(about, SWEEP)[0].threads, threads, "{about}");
    }
    let column: Vec<_> = said(r#"{"threads": [512]}"#, MORE).iter().map(|sweep| sweep.threads).collect();
    assert_eq!(column, [Some(128), Some(256), None], "a column says more than the file beside it");
}

/// Columns that only those have who asked for them.
const MORE: &str = "ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us,max_us,nccl_model_us,nthreads,chunk,beside_us,alone_us\n\
    2,none,allreduce,1024,default,default,,70.3,70.2,82.9,,128,,150.0,100.0\n\
    2,none,allreduce,1024,tree,LL,1,70.7,69.7,83.2,36.0,128,half,110.0,100.0\n\
    2,none,allreduce,1024,tree,LL,1,60.7,59.7,63.2,36.0,256,own,,\n\
    2,none,allreduce,1024,tree,LL,1,80.7,79.7,83.2,36.0,,,,\n";

#[test]
fn threads_chunks_and_compute_have_columns_where_they_were_varied() {
    let dir = folder(&[("s.csv", MORE)]);
    let sweeps = sweep::read(dir.path()).unwrap_or_else(|e| panic!("{e}"));
    let seen: Vec<_> = sweeps.iter().map(|s| (s.threads, s.rows.len(), s.link)).collect();
    assert_eq!(
        seen,
        [(Some(128), 2, Link::Machine), (Some(256), 1, Link::Machine), (None, 1, Link::Machine)]
    );
    let chunks: Vec<_> = sweeps.iter().flat_map(|s| &s.rows).map(|row| (row.chunk, row.slowdown)).collect();
    let own = ChunkChoice::Own;
    assert_eq!(chunks, [(own, Some(1.5)), (ChunkChoice::Half, Some(1.1)), (own, None), (own, None)]);
    assert_eq!(sweeps[0].rows[1].plain(), None, "others would take it for NCCL's own chunk size");
    let error =
        sweep::read(folder(&[("s.csv", &MORE.replace("half", "hlaf"))]).path()).expect_err("no such size");
    assert!(error.to_string().contains("did you mean \"half\""), "{error}");
    let forced = MORE.replacen("128,,", "128,half,", 1);
    let error =
        sweep::read(folder(&[("s.csv", &forced)]).path()).expect_err("nothing was forced").to_string();
    assert!(error.contains("s.csv:2: bad chunk \"half\"; name the algorithm"), "{error}");
    let one = MORE.lines().take(3).map(|line| format!("{line}\n")).collect::<String>();
    let dir = folder(&[("s.csv", &one), ("own.csv", &one.replace(",128,", ",0,"))]);
    let log = read_log(&dir.path().join("own.csv")).expect("a log");
    assert_eq!((log.rows.len(), log.warnings.len()), (1, 1));
    let error = read_log(&dir.path().join("s.csv")).expect_err("threads of its own").to_string();
    assert!(error.contains("s.csv:2: bad nthreads \"128\"; give it as a sweep"), "{error}");
    let dir = folder(&[("s.csv", SWEEP), ("s.csv.about.json", r#"{"threads": [256]}"#)]);
    let error = read_log(&dir.path().join("s.csv")).expect_err("threads of its own").to_string();
    assert!(error.contains("s.csv.about.json: bad threads \"256\"; give it as a sweep"), "{error}");
}

#[test]
fn a_sweep_may_say_how_sure_it_is() {
    let text = SWEEP.lines().enumerate().map(|(at, line)| match at {
        0 => format!("{line},rounds,low_us,high_us\n"),
        1 => format!("{line},8,69.5,71.25\n"),
        _ => format!("{line},,,\n"),
    });
    let text: String = text.collect();
    let read = |text: &str| sweep::read(folder(&[("s.csv", text)]).path());
    let rows = read(&text).unwrap_or_else(|e| panic!("{e}"))[0].rows.clone();
    assert_eq!(rows[0].sure, Some(Sure { rounds: 8, low_us: 69.5, high_us: 71.25 }));
    for (from, to, words) in [
        ("8,69.5,", "8,79.5,", "bad low_us \"79.5\"; it must not be more than high_us"),
        ("8,69.5,", "0,69.5,", "bad rounds \"0\""),
        ("71.25", "nan", "bad high_us \"nan\""),
    ] {
        let error = read(&text.replacen(from, to, 1)).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn bad_sweeps_say_where_and_what() {
    for (from, to, words) in [
        (
            "2.5gbit,allreduce,1024,tree",
            "fast,allreduce,1024,tree",
            "s.csv:3: bad link \"fast\"; \"fast\" is not a rate",
        ),
        ("\nx,3", "\nx,0", "s.csv:2: bad ranks \"0\""),
        ("tree,LL", "tree,default", "bad proto \"default\"; name the protocol"),
        ("69.7", "99.7", "s.csv:3: bad median_us \"70.7\"; it must lie between"),
        ("36.0", "?", "bad nccl_model_us \"?\""),
        ("link", "wire", "lacks \"link\""),
    ] {
        let dir = folder(&[("s.csv", &SWEEP.replacen(from, to, 1))]);
        let error = sweep::read(dir.path()).expect_err(words).to_string();
        assert!(error.contains(words), "{error}");
    }
    let dir = folder(&[]);
    assert!(matches!(sweep::read(dir.path()), Err(MeasureError::NoRows(_))));
}

#[test]
fn a_sweep_is_a_log_too() {
    let dir = folder(&[("s.csv", SWEEP)]);
    let log = read_log(&dir.path().join("s.csv")).expect("a log");
    assert_eq!((log.ranks, log.rows.len()), (Some(3), 2));
    assert_eq!(log.rows[1].pair, (Some(Algorithm::Tree), Some(Protocol::LL)));
    let rows: String = ROWS.lines().take(5).map(|line| format!("{line}\n")).collect();
    let dir = folder(&[("m.csv", &rows)]);
    let log = read_log(&dir.path().join("m.csv")).expect("one table");
    assert_eq!((log.rows.len(), log.warnings.len()), (1, 1));
}
