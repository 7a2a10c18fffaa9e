//! Recorded sweeps as environments: the contract, what is known of every choice, what an evaluation finds.

use std::path::PathBuf;
use std::sync::Arc;

use dynamiccl_env::cluster::Cluster;
use dynamiccl_env::evaluate::{Entrant, Evaluation};
use dynamiccl_env::gym::check::{CheckOptions, check};
use dynamiccl_env::gym::{Action, Env, EnvError, Observation};
use dynamiccl_env::job::Shown;
use dynamiccl_env::measure::sweep::{self, Setting};
use dynamiccl_env::model::ConstantsFile;
use dynamiccl_env::nccl::Version;
use dynamiccl_env::sim_env::SimEnv;
use dynamiccl_env::swept::{LeftOut, Swept, SweptError, judge};
use dynamiccl_spec::ids::PAIRS;
use dynamiccl_spec::{Choice, Decision, Head, Knobs, Measure, Query, Tuner};

/// Numbers of [`SimEnv::gains`].
const CHOICES: usize = PAIRS * Head::Channels.size() * Head::Chunk.size();

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn sweeps(name: &str) -> Vec<Arc<Swept>> {
    Swept::read(&data(name), None).unwrap_or_else(|error| panic!("{error}"))
}

fn env(name: &str) -> SimEnv {
    SimEnv::of_sweeps(sweeps(name), None, Arc::new(ConstantsFile::full()))
}

/// Always NCCL's own.
struct Own;

impl Tuner for Own {
    fn name(&self) -> &str {
        "own"
    }

    fn decide(&mut self, query: &Query<'_>, _: &mut Measure<'_>) -> Decision {
        Decision::chosen(query, query.own())
    }
}

#[test]
fn sweeps_keep_the_contract() {
    for folder in ["live-h200", "live-h200-held-out/1gbit_2ranks.csv", "live-h200-chunks"] {
        let options = CheckOptions { steps: 3000, seeds: vec![1, 2, 3], ..CheckOptions::default() };
        let report = check(|| Ok::<_, EnvError>(env(folder)), &options, |_| Ok::<_, EnvError>(())).unwrap();
        assert_eq!(report.broken().map(|rule| rule.name).collect::<Vec<_>>(), [""; 0], "{folder}");
        assert_eq!(report.id, "sweep-v1");
    }
}

/// Every cell of every file has NCCL's own line and settings beside it, and none is lost.
#[test]
fn every_cell_of_a_file_is_there() {
    for folder in ["live-h200", "live-h200-held-out", "live-h200-chunks"] {
        for (swept, read) in sweeps(folder).iter().zip(sweep::read(&data(folder)).unwrap()) {
            let own = read.rows.iter().filter(|row| row.setting == Setting::Default).count();
            assert_eq!((swept.len(), swept.ranks()), (own, read.ranks), "{}", swept.name);
            assert_eq!((swept.left_out(), swept.notes()), (LeftOut::default(), vec![]), "{}", swept.name);
        }
    }
}

/// Two starts of the same ranks say together what each says alone, and are surer of it; other ranks, links and clocks
/// stay apart.
#[test]
fn sweeps_of_one_machine_are_put_together() {
    let files =
        ["loopback_2ranks", "10gbit_4ranks", "loopback_4ranks"].map(|file| format!("live-h200/{file}.csv"));
    let again = ["live-h200-held-out", "live-h200-slowest"].map(|of| format!("{of}/loopback_4ranks.csv"));
    let all: Vec<_> = files.iter().chain(&again).flat_map(|file| sweeps(file)).collect();
    let joined = Swept::joined(&all).unwrap();
    let names: Vec<_> = joined.iter().map(|swept| swept.name.as_str()).collect();
    assert_eq!(
        names,
        ["loopback_2ranks", "10gbit_4ranks", "loopback_4ranks+loopback_4ranks", "loopback_4ranks"]
    );
    let [both, one, other] = [&joined[2], &all[2], &all[3]];
    for (((call, both), (_, one)), (_, other)) in both.fastest().zip(one.fastest()).zip(other.fastest()) {
        assert!(both > one.min(other) * 0.999, "{call:?}: {both} of {one} and {other}");
    }
    let surely =
        |swept: &Swept| judge(&Arc::new(swept.cautious(0.75)), Shown::NOTHING, &mut Own).unwrap().oracle;
    let [both, one, other] = [both, one, other].map(|swept| surely(swept));
    assert!(both > (one * other).sqrt(), "{both} of {one} and {other}");
}

/// A sweep of ranks with a GPU each, and what is said beside it.
fn of_lines(lines: &[&str], about: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let header = "ranks,link,collective,size_bytes,algo,proto,nchannels,median_us,min_us,max_us,chunk";
    let text: Vec<&str> = std::iter::once(header).chain(lines.iter().copied()).collect();
    std::fs::write(folder.path().join("s.csv"), text.join("\n") + "\n").unwrap();
    std::fs::write(folder.path().join("s.csv.about.json"), about).unwrap();
    folder
}

/// That sweep, on a cluster of this name.
fn on(cluster: &str, lines: &[&str], about: &str) -> Result<Arc<Swept>, SweptError> {
    let cluster = Cluster::load(cluster).unwrap();
    Swept::read(of_lines(lines, about).path(), Some(&cluster)).map(|mut sweeps| sweeps.remove(0))
}

/// Sixteen ranks' allreduce; four channels take twice as long as eight.
const LINES: [&str; 3] = [
    "16,none,allreduce,65536,default,default,,100,100,100,",
    "16,none,allreduce,65536,ring,Simple,4,80,80,80,",
    "16,none,allreduce,65536,ring,Simple,8,40,40,40,",
];

/// A cluster that somebody names is linked as its ranks were; and where it looks the same over every link, it is not.
#[test]
fn links_of_a_named_cluster_stay_apart() {
    for name in ["h200_shared", "tcp10g_1gpu"] {
        let cluster = Cluster::load(name).unwrap();
        let read = |file: &str| Swept::read(&data(&format!("live-h200/{file}.csv")), Some(&cluster)).unwrap();
        let all: Vec<_> = ["loopback_4ranks", "10gbit_4ranks"].iter().flat_map(|file| read(file)).collect();
        assert_eq!(Swept::joined(&all).unwrap().len(), 2, "{name}");
        let inters = [0, 1].map(|at| all[at].machine.cluster.inter.clone());
        assert_eq!(inters[0] == inters[1], name == "tcp10g_1gpu", "{name}");
    }
}

/// Each is a host of its own to NCCL, as on a cluster that was calibrated from such ranks.
#[test]
fn ranks_that_share_a_gpu_are_on_no_cluster_with_several_on_a_node() {
    let read = |cluster: &str| {
        Swept::read(&data("live-h200-slowest/loopback_4ranks.csv"), Some(&Cluster::load(cluster).unwrap()))
    };
    let place = read("ib400g_1gpu").unwrap()[0].machine.place;
    assert_eq!((place.nodes, place.ranks_per_node), (4, 1));
    let error = read("dgx_h100").unwrap_err().to_string();
    assert!(error.contains("cluster dgx_h100 has 8 GPUs per node"), "{error}");
    let named = Cluster::load("dgx_a100").unwrap();
    let error = Swept::read(&data("live-h200/loopback_2ranks.csv"), Some(&named)).unwrap_err().to_string();
    assert!(error.contains("loopback_2ranks.csv: link loopback is one of ranks that share a GPU"), "{error}");
    assert!(
        error.contains("write {\"shared\": false} into ") && error.ends_with("csv.about.json"),
        "{error}"
    );
    let one_machine = r#"{"shared": true, "nodes": 1, "ranks_per_node": 16}"#;
    let place = on("h200_shared", &LINES, one_machine).unwrap().machine.place;
    assert_eq!((place.nodes, place.ranks_per_node), (16, 1), "whatever machine they were on");
}

/// What stands beside a file goes before what its link lets one think; where neither is there, ranks had a GPU each.
#[test]
fn a_link_says_whether_ranks_shared_a_gpu_where_nobody_else_does() {
    let over = |link: &str| LINES.map(|line| line.replace("none", link));
    for link in ["loopback", "25gbit"] {
        let lines = over(link);
        let lines = lines.each_ref().map(String::as_str);
        let refused = on("dgx_h100", &lines, "{}").unwrap_err().to_string();
        assert!(refused.contains(&format!("link {link} is one of ranks that share")), "{refused}");
        let place = on("dgx_h100", &lines, r#"{"shared": false}"#).unwrap().machine.place;
        assert_eq!((place.nodes, place.ranks_per_node), (2, 8), "{link}");
    }
    let unnamed = |about: &str| Swept::read(of_lines(&LINES, about).path(), None).map(|sweeps| sweeps.len());
    let refused = unnamed("{}").unwrap_err().to_string();
    assert!(refused.contains("its ranks had a GPU each; name the machine"), "{refused}");
    assert_eq!(unnamed(r#"{"shared": true}"#).unwrap(), 1);
}

#[test]
fn ranks_lie_as_the_file_beside_their_sweep_says() {
    let place = |about: &str| {
        on("dgx_h100", &LINES, about).map(|swept| swept.machine.place).map(|at| (at.nodes, at.ranks_per_node))
    };
    for (about, lie) in [
        (r#"{"shared": false}"#, (2, 8)),
        (r#"{"nodes": 4, "ranks_per_node": 4}"#, (4, 4)),
        (r#"{"nodes": 8}"#, (8, 2)),
        (r#"{"ranks_per_node": 4}"#, (4, 4)),
    ] {
        assert_eq!(place(about).unwrap(), lie, "{about}");
    }
    for (about, words) in [
        (r#"{"nodes": 1}"#, "its 16 ranks were on 1 nodes with 16 each, which cluster dgx_h100 (8 GPUs"),
        (r#"{"nodes": 3}"#, "3 nodes with 6 each"),
        (r#"{"nodes": 0}"#, "0 nodes with 16 each"),
        (r#"{"nodes": 4, "ranks_per_node": 8}"#, "4 nodes with 8 each"),
        (r#"{"nodes": 4294967295, "ranks_per_node": 4294967295}"#, "4294967295 each"),
    ] {
        let error = place(about).unwrap_err().to_string();
        assert!(error.contains(words), "{about}: {error}");
    }
}

/// From 2.29 on NCCL adds a channel for twice the traffic only: it makes four of these eight, which are then one launch.
#[test]
fn the_release_that_was_measured_decides() {
    let of = |nccl: &str| on("dgx_h100", &LINES, &format!(r#"{{"nccl": "{nccl}"}}"#));
    let fastest = |swept: &Swept| swept.fastest().map(|(_, micros)| micros.round()).collect::<Vec<_>>();
    let [silent, old, new, newest] =
        [on("dgx_h100", &LINES, "{}"), of("2.28.9"), of("2.30.7"), of("2.31.1")].map(|swept| swept.unwrap());
    assert_eq!([&silent, &old, &new, &newest].map(|swept| fastest(swept)[0]), [40.0, 40.0, 57.0, 57.0]);
    assert_eq!(old.job(Shown::NOTHING).setting.version, Version::V2_28);
    assert_eq!(new.job(Shown::NOTHING).setting.version, Version::V2_30);
    let joined = Swept::joined(&[silent, Arc::clone(&new), old, Arc::clone(&newest)]).unwrap();
    assert_eq!(joined.iter().map(|swept| swept.name.as_str()).collect::<Vec<_>>(), ["s+s", "s", "s"]);
    assert!(new.notes().is_empty());
    let note = "s: NCCL 2.31 is not reproduced; its choices are taken to be those of 2.30";
    assert_eq!(newest.notes(), [note]);
    let error = of("lately").unwrap_err().to_string();
    assert!(error.contains("\"lately\" is no release of NCCL"), "{error}");
}

#[test]
fn what_says_nothing_is_counted() {
    let more = [
        "16,none,allreduce,65536,ring,Simple,3,30,30,30,",
        "16,none,allreduce,65536,ring,Simple,4,20,20,20,half",
        "16,none,allreduce,4096,ring,Simple,1,20,20,20,",
        "16,none,broadcast,4096,default,default,,20,20,20,",
    ];
    let swept = on("dgx_h100", &[&LINES[..], &more[..]].concat(), "{}").unwrap();
    assert_eq!((swept.len(), swept.left_out()), (1, LeftOut { lines: 2, calls: 2, chunks: 0 }));
    let notes = swept.notes();
    assert!(
        notes[0].starts_with("s: left out 2 of its lines") && notes[1].contains("2 of its calls"),
        "{notes:?}"
    );
    let joined = Swept::joined(&[Arc::clone(&swept), swept]).unwrap();
    assert_eq!(joined[0].left_out(), LeftOut { lines: 4, calls: 4, chunks: 0 });
}

/// How many chunk sizes can be chosen in the only call of a sweep.
fn chunk_choices(swept: &Arc<Swept>) -> usize {
    let mut env = SimEnv::of_sweeps(vec![Arc::clone(swept)], None, Arc::new(ConstantsFile::full()));
    let mut seen = Observation::new(env.spaces());
    env.reset(Some(1), &mut seen).unwrap();
    env.question().unwrap().gated.mask.indices(Head::Chunk).count()
}

/// One sweep has its ring in two chunk sizes; another has a tree in NCCL's own, and of both together nobody knows what the
/// tree takes with the other size.
#[test]
fn chunk_sizes_that_are_lost_in_joining_are_counted() {
    let read = |lines: &[&str]| {
        let lines: Vec<_> = lines.iter().map(|line| format!("4,loopback,allreduce,4194304,{line}")).collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        Swept::read(of_lines(&lines, r#"{"nccl": "2.30.7"}"#).path(), None).unwrap().remove(0)
    };
    let [own, ring] = ["default,default,,50,50,50,", "ring,Simple,1,60,60,60,"];
    let tree = "tree,LL,1,70,70,70,";
    let one = read(&[own, ring, "ring,Simple,1,40,40,40,half"]);
    let other = read(&[own, tree]);
    assert_eq!([&one, &other].map(|swept| swept.left_out()), [LeftOut::default(); 2]);
    assert_eq!([&one, &other].map(chunk_choices), [2, 1]);
    let joined = Swept::joined(&[Arc::clone(&one), other]).unwrap();
    assert_eq!((chunk_choices(&joined[0]), joined[0].left_out().chunks), (1, 1));
    let notes = joined[0].notes();
    assert!(notes[0].starts_with("s+s: 1 of its lines are of chunk sizes"), "{notes:?}");
    // With what was missing, it is a choice again.
    let other = read(&[own, tree, "tree,LL,1,65,65,65,half"]);
    let joined = Swept::joined(&[one, other]).unwrap();
    assert_eq!((chunk_choices(&joined[0]), joined[0].left_out().chunks), (2, 0));
}

/// Times beside compute, or with other buffers, are those of another machine.
#[test]
fn sweeps_of_other_circumstances_stay_apart() {
    let of = |about: &str| on("dgx_h100", &LINES, about).unwrap();
    let [plain, told] = [of("{}"), of(r#"{"load": 0, "mps": true, "variables": {}}"#)];
    let beside = of(r#"{"load": 66, "mps": true, "variables": {"NCCL_BUFFSIZE": "65536"}}"#);
    assert!(plain.notes().is_empty() && told.notes().is_empty());
    let note = "s: measured with compute on 66 multiprocessors beside every call, NCCL_BUFFSIZE=65536: it says nothing of \
                ranks without";
    assert_eq!(beside.notes(), [note]);
    let joined = |sweeps: &[&Arc<Swept>]| {
        let sweeps: Vec<_> = sweeps.iter().map(|swept| Arc::clone(swept)).collect();
        let joined = Swept::joined(&sweeps).unwrap();
        joined.iter().map(|swept| swept.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(joined(&[&plain, &beside, &told]), ["s+s", "s"]);
    // Whoever says less is like both, but these are not alike.
    let other = of(r#"{"variables": {"NCCL_BUFFSIZE": "4096"}}"#);
    assert_eq!(joined(&[&plain, &told, &other]), ["s+s", "s"]);
}

/// Nor does it take away what the other says: twice joined is as much as once.
#[test]
fn what_any_of_several_sweeps_says_is_said_of_them_together() {
    let of = |about: &str| on("dgx_h100", &LINES, about).unwrap();
    let [silent, alone] = [of("{}"), of(r#"{"mps": false}"#)];
    let buffers = of(r#"{"variables": {"NCCL_BUFFSIZE": "65536"}}"#);
    let joined = |sweeps: &[&Arc<Swept>]| {
        let sweeps: Vec<_> = sweeps.iter().map(|swept| Arc::clone(swept)).collect();
        Swept::joined(&sweeps).unwrap()
    };
    let all = joined(&[&silent, &alone, &buffers]);
    let note = "s+s+s: measured with no MPS, NCCL_BUFFSIZE=65536: it says nothing of ranks without";
    assert_eq!(all[0].notes(), [note]);
    let again = joined(&[&all[0], &of(r#"{"mps": true}"#)]);
    assert_eq!(again.len(), 2, "what was told is not forgotten");
}

/// What is known in hindsight is known of everything that the mask allows, and NCCL's own wins nothing over itself.
#[test]
fn hindsight_knows_every_choice() {
    for (file, chunks) in [("live-h200/loopback_4ranks.csv", 1), ("live-h200-chunks/loopback_8ranks.csv", 4)]
    {
        hindsight_knows(file, chunks);
    }
}

fn hindsight_knows(file: &str, chunk_sizes: usize) {
    let mut env = env(file);
    let mut seen = Observation::new(env.spaces());
    env.reset(Some(5), &mut seen).unwrap();
    let (mut slower, mut faster) = (0, 0);
    for _ in 0..200 {
        let question = env.question().expect("a call to decide");
        let own = Choice::of(&Knobs::OWN, question.gated.own.unwrap());
        let mut gains = vec![0.0; CHOICES];
        env.gains(&own, &mut gains).expect("something to choose");
        let at =
            |pair: usize, channels: usize| (pair * Head::Channels.size() + channels) * Head::Chunk.size();
        let mask = question.gated.mask;
        assert_eq!(mask.indices(Head::Chunk).count(), chunk_sizes);
        for (pair, channels) in
            mask.indices(Head::Pair).flat_map(|pair| mask.indices(Head::Channels).map(move |c| (pair, c)))
        {
            assert!(mask.indices(Head::Chunk).all(|chunk| gains[at(pair, channels) + chunk].is_finite()));
        }
        assert_eq!(gains[at(own.index(Head::Pair), 0)], 0.0);
        slower += gains.iter().filter(|gain| **gain < 0.0).count();
        faster += gains.iter().filter(|gain| **gain > 0.0).count();
        env.step(&Action { choice: own.0, exploratory: false }, &mut seen).unwrap();
    }
    assert!(slower > 200 && faster > 200, "{slower} choices are slower than NCCL's own, {faster} faster");
}

/// Measured times scatter as the file says, and the fastest is seen now and then.
#[test]
fn measured_times_scatter_around_the_true_one() {
    let mut env = env("live-h200/loopback_4ranks.csv");
    let mut seen = Observation::new(env.spaces());
    env.reset(Some(5), &mut seen).unwrap();
    let (mut off, mut apart, mut calls) = (0.0, 0.0, 0.0);
    for _ in 0..900 {
        let own = Choice::of(&Knobs::OWN, env.question().unwrap().gated.own.unwrap());
        let info = env.step(&Action { choice: own.0, exploratory: false }, &mut seen).unwrap().info;
        let last = info.last.expect("a call has run");
        let log = (last.measured / last.ran.unwrap().micros).ln();
        (off, apart, calls) = (off + log, apart + log.abs(), calls + 1.0);
    }
    assert!((off / calls).abs() < 0.02, "biased by {}", off / calls);
    assert!(apart / calls > 0.02, "they hardly vary: {}", apart / calls);
}

#[test]
fn an_evaluation_says_that_it_measured_and_nobody_beats_the_oracle() {
    let constants = ConstantsFile::full();
    let evaluation =
        Evaluation { seed: 1, seeds: 1, worlds: 1, threads: 2, constants: &constants, schedules: None };
    let entrants = [Entrant::oracle(), Entrant::tuner("own", |_| Box::new(Own))];
    let sweeps = sweeps("live-h200");
    let report =
        evaluation.sweeps("live-h200", &sweeps, Shown::NOTHING, &entrants, || Ok::<_, EnvError>(())).unwrap();
    assert!(!report.simulated);
    let [oracle, own] = [0, 1].map(|at| report.tuners[at].overall.clone().expect("nothing is held out"));
    assert_eq!((own.cells, own.speedup, own.worst_cell), (sweeps.iter().map(|s| s.len()).sum(), 1.0, 1.0));
    assert!(oracle.speedup > 1.1 && oracle.regret == 0.0, "{oracle:?}");
    for swept in &sweeps {
        let judged = judge(swept, Shown::NOTHING, &mut Own).unwrap();
        assert_eq!((judged.speedup, judged.headroom), (1.0, Some(0.0)), "{}", swept.name);
        eprintln!("{}: {} cells, oracle {:.3}", swept.name, swept.len(), judged.oracle);
    }
}
