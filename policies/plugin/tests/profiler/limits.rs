//! What is done where something is too much, missing, gone or wrong.

use std::fs;

use dynamiccl_env::trace::Trace;

use crate::host::{Folder, run, run_sanitized, whole_lines};

#[test]
fn what_comes_too_fast_is_counted_and_said_once() {
    for version in [1, 6] {
        let folder = Folder::new(&format!("overflow-{version}"));
        let folder_text = folder.path().to_str().unwrap();
        let variables = [("DYNAMICCL_PROFILE", folder_text), ("DYNAMICCL_PROFILE_KERNELS", "0")];
        let said = run("overflow", version, &variables);
        let (recorded, dropped) = (folder.calls().len() as u64, folder.dropped());
        assert!(dropped >= 904, "only {dropped} of 100000 dropped");
        assert!(recorded >= 4096, "{recorded} recorded");
        assert_eq!(recorded + dropped, 100_000);
        assert_eq!(said.matches("came too fast to be recorded").count(), 1, "{said}");
        assert!(said.contains("mask 2 "), "{said}");
        assert!(
            Trace::read(folder.path()).unwrap().warnings.iter().any(|w| w.contains("could not be recorded"))
        );
    }
}

#[test]
fn an_aborted_communicator_costs_the_others_nothing() {
    let folder = Folder::new("abort");
    let said = run("abort", 6, &[("DYNAMICCL_PROFILE", folder.path())]);
    assert!(said.ends_with("warnings 0\n"), "{said}");
    assert_eq!(folder.dropped(), 0);
    let calls = folder.calls();
    let of = |comm: &str, clock: &str| {
        calls.iter().filter(|call| call["comm"] == comm && call["clock"] == clock).count()
    };
    assert_eq!((of("0x1", "gpu"), of("0x2", "launch"), calls.len()), (5000, 1000, 6000));
}

#[test]
fn files_are_rotated_below_the_size_that_was_asked_for() {
    let folder = Folder::new("rotate");
    let variables = [
        ("DYNAMICCL_PROFILE", folder.path().to_str().unwrap()),
        ("DYNAMICCL_PROFILE_KERNELS", "0"),
        ("DYNAMICCL_PROFILE_MAX_MB", "1"),
    ];
    run("rotate", 6, &variables);
    let names = folder.names();
    assert_eq!(names.len(), 2, "{names:?}");
    let sizes: u64 = names.iter().map(|name| fs::metadata(folder.path().join(name)).unwrap().len()).sum();
    assert!((500_000..=1 << 20).contains(&sizes), "{sizes} bytes");
    let mut numbers: Vec<u64> = folder.calls().iter().map(|call| call["seq"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers.last(), Some(&29_999), "the newest are kept");
    assert!(numbers.len() > 2000 && numbers.windows(2).all(|pair| pair[1] > pair[0]));
}

#[test]
fn a_full_disk_costs_records_and_nothing_else() {
    let folder = Folder::new("full");
    let folder_text = folder.path().to_str().unwrap();
    let variables = [("DYNAMICCL_PROFILE", folder_text), ("DYNAMICCL_PROFILE_KERNELS", "0")];
    let said = run("full", 6, &variables);
    assert_eq!(said.matches("WARN").count(), 1, "{said}");
    assert!(said.contains("records are lost until it can be written again"), "{said}");
    let names = folder.names();
    let size = fs::metadata(folder.path().join(&names[0])).unwrap().len();
    assert!(size <= 100_000, "{size} bytes");
    // Whole lines, up to where the disk was full.
    let kept = whole_lines(&folder.path().join(&names[0])).len();
    assert!(kept <= 600, "{kept} lines");
}

#[test]
fn a_disk_with_room_again_goes_on_and_says_what_it_lost() {
    let folder = Folder::new("room");
    let folder_text = folder.path().to_str().unwrap();
    let variables =
        [("DYNAMICCL_PROFILE", folder_text), ("DYNAMICCL_PROFILE_KERNELS", "0"), ("MAKE_ROOM", "1")];
    let said = run("full", 6, &variables);
    assert_eq!(said.matches("WARN").count(), 1, "{said}");
    let calls = folder.calls();
    assert_eq!(calls.last().unwrap()["seq"], 10_099);
    assert!(folder.dropped() > 5000);
    assert_eq!(calls.len() as u64 + folder.dropped(), 10_100);
}

#[test]
fn a_child_of_a_fork_begins_anew_and_its_parent_goes_on() {
    let folder = Folder::new("fork");
    let folder_text = folder.path().to_str().unwrap();
    let variables = [("DYNAMICCL_PROFILE", folder_text), ("DYNAMICCL_PROFILE_KERNELS", "0")];
    // Not sanitized: the sanitizer's own allocator does not survive a fork between threads.
    let said = run("fork", 6, &variables);
    assert!(said.ends_with("warnings 0\n"), "{said}");
    let mut files: Vec<(u64, Vec<u64>)> = Vec::new();
    for name in folder.names() {
        let lines = whole_lines(&folder.path().join(name));
        let of = |key: &str| lines.iter().filter_map(|line| line[key].as_u64()).collect::<Vec<_>>();
        let comms: Vec<_> = lines.iter().filter_map(|line| line["comm"].as_str()).collect();
        assert!(comms.windows(2).all(|pair| pair[0] == pair[1]), "{comms:?}");
        files.push((of("pid")[0], of("seq")));
    }
    files.sort_by_key(|(_, numbers)| numbers.len());
    assert_eq!(files.len(), 2);
    assert_eq!(said.split_whitespace().nth(1).unwrap(), files[0].0.to_string(), "the child's own file");
    assert_eq!(files[0].1, (0..10).collect::<Vec<_>>());
    assert_eq!(files[1].1, (0..200).collect::<Vec<_>>());
}

#[test]
fn the_library_can_be_unloaded_and_loaded_again() {
    let folder = Folder::new("reload");
    let folder_text = folder.path().to_str().unwrap();
    let variables = [("DYNAMICCL_PROFILE", folder_text), ("DYNAMICCL_PROFILE_KERNELS", "0")];
    for version in [1, 6] {
        let said = run("reload", version, &variables);
        let grown: i64 = said.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(grown < 1024, "{said}");
    }
    assert_eq!(folder.names().len(), 2, "a process has one file, however often it loads");
    assert_eq!(folder.calls().len(), 800);
    assert_eq!(run("abandon", 6, &variables), "alive\n");
}

#[test]
fn nothing_that_nccl_could_pass_does_harm() {
    for version in 1..=6 {
        let folder = Folder::new(&format!("nulls-{version}"));
        let said = run_sanitized("nulls", version, &[("DYNAMICCL_PROFILE", folder.path())]);
        assert_eq!(said, "warnings 0\n", "v{version}");
    }
}

#[test]
fn threads_and_communicators_lose_nothing() {
    for (version, sanitized) in [(5, true), (6, false)] {
        let folder = Folder::new(&format!("threads-{version}"));
        let variables = [("DYNAMICCL_PROFILE", folder.path())];
        let run = if sanitized { run_sanitized } else { run };
        let said = run("threads", version, &variables);
        assert!(said.contains("calls 16000 "), "{said}");
        let calls = folder.calls();
        assert_eq!(calls.len() as u64 + folder.dropped(), 16_000);
        for thread in 0..8 {
            let comm = format!("{:#x}", 100 + thread);
            let of = calls.iter().filter(|call| call["comm"] == comm.as_str());
            let mut numbers: Vec<u64> = of.map(|call| call["seq"].as_u64().unwrap()).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert!(numbers.len() > 1000, "{comm}: {}", numbers.len());
        }
        assert!(calls.iter().all(|call| call["clock"] == "gpu" && call["us"] == 5.0));
    }
}
