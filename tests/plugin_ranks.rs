//! `plugin doctor` on several ranks: processes of this machine, with the variables of launchers.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::plugin::{library, program};
use crate::util::Dir;

/// A job whose ranks may differ.
struct Job {
    dir: Dir,
    library: String,
    port: String,
    ranks: u32,
    timeout: u32,
}

type Set<'a> = &'a [(&'a str, &'a str)];

impl Job {
    fn new(ranks: u32) -> Self {
        // Nobody else takes it in the moment between.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        Job { dir: Dir::new(), library: library().display().to_string(), port, ranks, timeout: 30 }
    }

    /// Starts a rank as torchrun would.
    fn start(&self, rank: u32, own: Set<'_>) -> Child {
        let (number, all, timeout) = (rank.to_string(), self.ranks.to_string(), self.timeout);
        let launched =
            [("RANK", number.as_str()), ("WORLD_SIZE", &all), ("NCCL_TUNER_PLUGIN", &self.library)];
        let words = format!("plugin doctor --json --timeout {timeout} --rendezvous 127.0.0.1:{}", self.port);
        let mut command = program(&self.dir, &words, &[&launched, own].concat());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// A connection to rank 0 as soon as it listens.
    fn connected(&self) -> TcpStream {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            match TcpStream::connect(format!("127.0.0.1:{}", self.port)) {
                Ok(stream) => return stream,
                Err(error) if Instant::now() > until => panic!("rank 0 does not listen: {error}"),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Runs all ranks; the ones that are named have variables of their own.
    fn run(&self, own: &[(u32, Set<'_>)]) -> Vec<Output> {
        let of = |rank| own.iter().find(|(who, _)| *who == rank).map_or(&[][..], |(_, set)| *set);
        let started: Vec<Child> = (0..self.ranks).rev().map(|rank| self.start(rank, of(rank))).collect();
        started.into_iter().rev().map(|child| child.wait_with_output().unwrap()).collect()
    }

    /// Runs all ranks, which must end with the same code and say something on rank 0 only; gives its document.
    fn verdict(&self, own: &[(u32, Set<'_>)]) -> (i32, Value) {
        let ended = self.run(own);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let code = ended[0].status.code().unwrap();
        for other in &ended {
            assert_eq!(other.status.code(), Some(code), "{}", text(&other.stderr));
            assert_eq!(text(&other.stderr), "");
        }
        assert!(ended[1..].iter().all(|other| other.stdout.is_empty()));
        (code, serde_json::from_slice(&ended[0].stdout).expect("a document"))
    }
}

/// What ranks differ in, and who has something else than most.
fn odd_ones(document: &Value) -> Vec<(String, Value)> {
    let differences = document["differences"].as_array().unwrap().iter();
    differences
        .map(|difference| {
            (difference["what"].as_str().unwrap().to_owned(), difference["values"][1]["ranks"].clone())
        })
        .collect()
}

#[test]
fn ranks_that_are_alike_agree() {
    for ranks in [2, 3] {
        let (code, document) = Job::new(ranks).verdict(&[]);
        assert_eq!((code, &document["agree"], &document["ranks"]), (0, &true.into(), &ranks.into()));
        assert_eq!(document["launcher"], "torchrun");
        assert_eq!(odd_ones(&document), []);
    }
}

#[test]
fn the_rank_with_another_policy_is_named() {
    let job = Job::new(3);
    job.dir.write_wild_policy("wild.safetensors");
    let other = [("DYNAMICCL_POLICY", "wild.safetensors")];
    let (code, document) = job.verdict(&[(1, &other)]);
    assert_eq!((code, &document["agree"], &document["healthy"]), (1, &false.into(), &true.into()));
    let one: Value = vec![1].into();
    assert_eq!(odd_ones(&document), [("policy".to_owned(), one.clone()), ("decisions".to_owned(), one)]);
}

#[test]
fn whatever_differs_is_named() {
    let job = Job::new(2);
    job.dir.write("a.toml", "[cluster]\ngpu = \"hopper\"\n");
    job.dir.write("b.toml", "[cluster]\ngpu = \"ampere\"\n");
    let a = [("DYNAMICCL_CONTEXT", "a.toml")];
    for (zero, one, what) in [
        (&a[..], &[("DYNAMICCL_CONTEXT", "b.toml")][..], "context"),
        (&[], &[("DYNAMICCL_MODE", "observe")], "mode"),
        (&[], &[("DYNAMICCL_DETERMINISTIC", "1")], "deterministic"),
        (&[], &[("NCCL_ALGO", "Ring")], "fixed"),
        (&[], &[("DYNAMICCL_EXPECT", "00000000000000ff")], "expect"),
        (&[], &[("NCCL_TUNER_PLUGIN", "none")], "tuner"),
        (&[("NCCL_BUFFSIZE", "4194304")], &[], "buffer"),
    ] {
        let (code, document) = job.verdict(&[(0, zero), (1, one)]);
        assert_eq!(code, 1, "{what}: {document}");
        let odd = odd_ones(&document);
        assert!(odd.contains(&(what.to_owned(), vec![1].into())), "{what}: {odd:?}");
    }
}

/// Builds of one version are the same in all that they say of themselves.
#[test]
fn the_rank_with_another_build_is_named() {
    let job = Job::new(2);
    let mut build = std::fs::read(library()).unwrap();
    // Beyond what the dynamic linker reads.
    build.push(0);
    std::fs::write(job.dir.path("other.so"), build).unwrap();
    let (code, document) = job.verdict(&[(1, &[("NCCL_TUNER_PLUGIN", "./other.so")])]);
    assert_eq!((code, &document["healthy"]), (1, &true.into()));
    assert_eq!(odd_ones(&document), [("library".to_owned(), vec![1].into())]);
}

#[test]
fn a_host_whose_configuration_of_nccl_differs_is_named() {
    let job = Job::new(2);
    job.dir.write("nccl.conf", "NCCL_PROTO=Simple\n");
    let (code, document) = job.verdict(&[(1, &[("NCCL_CONF_FILE", "nccl.conf")])]);
    assert_eq!((code, &document["agree"]), (1, &false.into()));
    assert!(odd_ones(&document).contains(&("fixed".to_owned(), vec![1].into())), "{document}");
}

#[test]
fn tables_that_may_differ_are_said_and_no_disagreement() {
    let (code, document) = Job::new(2).verdict(&[(1, &[("NCCL_TOPO_FILE", "x.xml"), ("NCCL_HOSTID", "7")])]);
    assert_eq!((code, &document["agree"]), (0, &true.into()));
    assert_eq!(odd_ones(&document), [("nccl_variables".to_owned(), vec![1].into())]);
    assert_eq!(document["differences"][0]["decides"], false);
}

#[test]
fn a_rank_that_could_not_begin_is_named() {
    let (code, document) = Job::new(3).verdict(&[(2, &[("DYNAMICCL_POLICY", "/nowhere")])]);
    assert_eq!((code, &document["healthy"]), (1, &false.into()));
    let fault = &document["findings"][0];
    assert_eq!((&fault["level"], &fault["ranks"]), (&"fault".into(), &vec![2].into()));
    assert!(fault["text"].as_str().unwrap().contains("/nowhere"));
}

#[test]
fn a_library_that_no_rank_can_load_is_said_of_all() {
    let nowhere = [("NCCL_TUNER_PLUGIN", "/nowhere.so")];
    let (code, document) = Job::new(2).verdict(&[(0, &nowhere), (1, &nowhere)]);
    assert_eq!(
        (code, &document["healthy"], &document["facts"]["tuner"]),
        (1, &false.into(), &"not loaded".into())
    );
    let fault = &document["findings"][0];
    assert_eq!(fault["ranks"], Value::from(vec![0, 1]));
    let text = fault["text"].as_str().unwrap();
    assert!(text.ends_with("NCCL would go on without it, and hang beside ranks that have it"), "{text}");
}

#[test]
fn a_rank_that_never_comes_costs_the_time_that_was_given() {
    let job = Job { timeout: 2, ..Job::new(3) };
    let began = Instant::now();
    let [zero, one] = [0, 1].map(|rank| job.start(rank, &[])).map(|child| child.wait_with_output().unwrap());
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!((zero.status.code(), one.status.code()), (Some(2), Some(2)));
    let said = String::from_utf8(zero.stderr).unwrap();
    assert!(said.starts_with("error: rank 2 did not come within 2 s; "), "{said}");
    let said = String::from_utf8(one.stderr).unwrap();
    assert!(said.starts_with("error: rank 0 says: rank 2 did not come"), "{said}");
}

#[test]
fn a_rank_0_that_never_comes_costs_the_time_that_was_given() {
    let job = Job { timeout: 1, ..Job::new(2) };
    let one = job.start(1, &[]).wait_with_output().unwrap();
    assert_eq!(one.status.code(), Some(2));
    let said = String::from_utf8(one.stderr).unwrap();
    assert!(
        said.starts_with(&format!("error: rank 0 was not at 127.0.0.1:{} within 1 s", job.port)),
        "{said}"
    );
}

#[test]
fn a_port_that_is_taken_is_said_at_once() {
    let job = Job::new(2);
    let _taken = TcpListener::bind(format!("127.0.0.1:{}", job.port)).unwrap();
    let zero = job.start(0, &[]).wait_with_output().unwrap();
    assert_eq!(zero.status.code(), Some(2));
    let said = String::from_utf8(zero.stderr).unwrap();
    assert!(said.contains(&format!("cannot listen on 127.0.0.1:{}", job.port)), "{said}");
    assert!(said.contains("--rendezvous"), "{said}");
}

#[test]
fn ranks_meet_by_the_name_of_the_host_too() {
    let job = Job::new(2);
    let port = job.port.parse::<u16>().unwrap() - 1;
    let start = |rank: &str| {
        let port = port.to_string();
        let set = [("RANK", rank), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.2"), ("MASTER_PORT", &port)];
        let mut command = program(&job.dir, "plugin doctor -q --timeout 20", &set);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let ended = ["0", "1"].map(start).map(|child| child.wait_with_output().unwrap());
    assert_eq!(ended.map(|rank| rank.status.code()), [Some(0), Some(0)]);
}

#[test]
fn strangers_are_sent_away() {
    let job = Job { timeout: 20, ..Job::new(2) };
    let zero = job.start(0, &[]);
    let mut stranger = job.connected();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    // And one that says nothing at all.
    let _silent = job.connected();
    let one = job.start(1, &[]);
    assert_eq!(one.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(zero.wait_with_output().unwrap().status.code(), Some(0));
}

/// Sends the limits of open files that a rank 0 gets, and so many who say nothing, before rank 1 comes.
fn crowded(limits: &str, crowd: usize) -> [Output; 2] {
    let job = Job { timeout: 8, ..Job::new(2) };
    let mut zero = limited(&job, limits);
    let address = format!("127.0.0.1:{}", job.port);
    let until = Instant::now() + Duration::from_secs(10);
    let mut silent = Vec::new();
    // One that has said why it can let in no more listens no more either.
    while silent.len() < crowd && zero.try_wait().unwrap().is_none() {
        match TcpStream::connect(&address) {
            Ok(stream) => silent.push(stream),
            Err(error) => assert!(Instant::now() < until, "rank 0 does not listen: {error}"),
        }
    }
    let one = job.start(1, &[]);
    [zero, one].map(|child| child.wait_with_output().unwrap())
}

/// Rank 0 in a shell that has set limits.
fn limited(job: &Job, limits: &str) -> Child {
    let set = [("RANK", "0"), ("WORLD_SIZE", "2"), ("NCCL_TUNER_PLUGIN", job.library.as_str())];
    let plain = program(&job.dir, "", &set);
    let mut command = Command::new("sh");
    let doctor = format!(
        "{limits}; exec {} plugin doctor --json --timeout {} --rendezvous 127.0.0.1:{}",
        plain.get_program().display(),
        job.timeout,
        job.port
    );
    command.current_dir(job.dir.path("")).arg("-c").arg(doctor);
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Every rank is a socket, and the usual limit is 1024.
#[test]
fn more_ranks_than_the_usual_limit_of_files_are_let_in() {
    let ended = crowded("ulimit -Sn 40", 60);
    let said = String::from_utf8_lossy(&ended[0].stderr).into_owned();
    assert_eq!(ended.map(|rank| rank.status.code()), [Some(0), Some(0)], "{said}");
}

/// Where the limit cannot be raised, it is the limit's fault and no rank's.
#[test]
fn a_limit_of_files_that_is_too_low_is_said() {
    let [zero, _] = crowded("ulimit -n 40", 60);
    assert_eq!(zero.status.code(), Some(2));
    let said = String::from_utf8(zero.stderr).unwrap();
    let expected = "error: rank 0 has heard 0 of 1 other ranks and can let in no more; raise its limits (ulimit -n, ulimit -u): \
                    Too many open files (os error 24)\n";
    assert_eq!(said, expected);
}

/// What a rank that is turned away says, and that the meeting goes on without it.
fn turned_away(job: &Job, stray: Child, zero: Child, own: Set<'_>) -> String {
    let stray = stray.wait_with_output().unwrap();
    assert_eq!(stray.status.code(), Some(2));
    let one = job.start(1, own).wait_with_output().unwrap();
    let zero = zero.wait_with_output().unwrap();
    let said = String::from_utf8(zero.stderr).unwrap();
    assert_eq!((zero.status.code(), one.status.code()), (Some(0), Some(0)), "{said}");
    String::from_utf8(stray.stderr).unwrap()
}

#[test]
fn a_stray_rank_of_another_number_is_turned_away_and_the_meeting_goes_on() {
    let job = Job::new(2);
    let other = Job { ranks: 8, port: job.port.clone(), ..Job::new(8) };
    let said = turned_away(&job, other.start(5, &[]), job.start(0, &[]), &[]);
    let expected = "error: rank 0 says: rank 5 believes in 8 ranks, rank 0 in 2: one launcher must start all; give each job";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn a_stray_rank_of_a_job_of_the_same_size_is_turned_away_where_launchers_name_jobs() {
    let job = Job::new(2);
    let [own, other] = ["a", "b"].map(|name| [("TORCHELASTIC_RUN_ID", name)]);
    let said = turned_away(&job, job.start(1, &other), job.start(0, &own), &own);
    let expected =
        "error: rank 0 says: rank 1 of 2 is of another job (TORCHELASTIC_RUN_ID=b, which is a on rank 0)";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn who_was_turned_away_is_named_where_ranks_are_missing() {
    let job = Job { timeout: 5, ..Job::new(2) };
    let other = Job { ranks: 4, port: job.port.clone(), ..Job::new(4) };
    let zero = job.start(0, &[]);
    let one = other.start(1, &[]).wait_with_output().unwrap();
    let zero = zero.wait_with_output().unwrap();
    assert_eq!((zero.status.code(), one.status.code()), (Some(2), Some(2)));
    let said = String::from_utf8(zero.stderr).unwrap();
    assert!(said.starts_with("error: rank 1 did not come within 5 s; "), "{said}");
    assert!(said.contains("turned away: rank 1 believes in 4 ranks, rank 0 in 2"), "{said}");
}

/// Ranks of version 1 say neither their job nor all that is compared.
#[test]
fn a_rank_of_another_version_is_named() {
    let job = Job { timeout: 20, ..Job::new(2) };
    let zero = job.start(0, &[]);
    let mut one = job.connected();
    one.write_all(b"{\"mark\":\"dynamiccl doctor 1\",\"ranks\":2,\"checkup\":{\"rank\":1}}\n").unwrap();
    let zero = zero.wait_with_output().unwrap();
    let said = String::from_utf8(zero.stderr).unwrap();
    assert_eq!(zero.status.code(), Some(2));
    assert!(said.starts_with("error: rank 1 speaks \"dynamiccl doctor 1\" and rank 0 \"dynamiccl"), "{said}");
}

#[test]
fn every_launcher_starts_it() {
    let job = Job::new(2);
    let rendezvous = format!("plugin doctor --rendezvous 127.0.0.1:{}", job.port);
    for [rank, ranks] in [
        ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
        ["SLURM_PROCID", "SLURM_NTASKS"],
        ["PMI_RANK", "PMI_SIZE"],
    ] {
        let start = |number| {
            let mut command = program(&job.dir, &rendezvous, &[(rank, number), (ranks, "2")]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let ended = ["0", "1"].map(start).map(|child| child.wait_with_output().unwrap());
        let said = String::from_utf8(ended[0].stdout.clone()).unwrap();
        assert!(said.ends_with("Summary  all 2 ranks would decide the same\n"), "{rank}: {said}");
        assert_eq!(ended.map(|rank| rank.status.code()), [Some(0), Some(0)]);
    }
    let refused = program(&job.dir, "plugin doctor", &[("RANK", "x"), ("WORLD_SIZE", "2")]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().starts_with("error: RANK=x: not a whole number"));
}
