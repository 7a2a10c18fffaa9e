//! The env plugin: what it answers, and what it leaves alone.

use std::fs;

use crate::host::{Folder, run, run_sanitized};

/// What is answered to threads, buffer and algorithm.
fn answers(said: &str) -> [&str; 3] {
    let answer = |name: &str| said.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap();
    ["NCCL_NTHREADS", "NCCL_BUFFSIZE", "NCCL_ALGO"].map(answer)
}

#[test]
fn without_a_launch_it_is_the_environment() {
    for version in [1, 2] {
        let said = run_sanitized("env", version, &[("NCCL_ALGO", "Ring")]);
        assert!(said.starts_with("init 0 warnings 0\n"), "{said}");
        assert_eq!(answers(&said), ["(null)", "(null)", "Ring"]);
        assert!(said.contains("NO_SUCH_VARIABLE=(null)\n"), "{said}");
    }
}

#[test]
fn it_hands_over_what_the_launch_was_given_unless_the_user_has_set_it() {
    for version in [1, 2, 3] {
        let given = [("DYNAMICCL_NTHREADS", "256"), ("DYNAMICCL_BUFFSIZE", "8M")];
        assert_eq!(answers(&run_sanitized("env", version, &given)), ["256", "8388608", "(null)"]);
        let users = [given[0], given[1], ("NCCL_NTHREADS", "128"), ("NCCL_BUFFSIZE", "")];
        assert_eq!(answers(&run("env", version, &users)), ["128", "", "(null)"]);
        for mode in ["observe", "driven", "off"] {
            let quiet = [given[0], given[1], ("DYNAMICCL_MODE", mode)];
            assert_eq!(answers(&run("env", version, &quiet)), ["(null)", "(null)", "(null)"]);
        }
    }
}

#[test]
fn the_deployment_file_is_read_and_a_wrong_one_stops_the_rank() {
    let folder = Folder::new("launch");
    fs::create_dir_all(folder.path()).unwrap();
    let file = folder.path().join("context.toml");
    let variables = [("DYNAMICCL_CONTEXT", file.to_str().unwrap())];
    fs::write(&file, "[launch]\nthreads = 512\nbuffer = \"2M\"\n").unwrap();
    assert_eq!(answers(&run("env", 2, &variables)), ["512", "2097152", "(null)"]);
    fs::write(&file, "[launch]\nthreads = 500\n").unwrap();
    // 5 is ncclInvalidUsage, and the reason stands beside it: in NCCL's log, or on stderr where v1 has none.
    for version in [1, 2] {
        let said = run("env", version, &variables);
        assert!(said.contains("init 5 ") && said.contains("launch.threads = 500"), "{said}");
        assert_eq!(answers(&said), ["(null)", "(null)", "(null)"]);
        let lenient = [variables[0], ("DYNAMICCL_STRICT", "0")];
        let said = run("env", version, &lenient);
        assert!(said.contains("init 0 "), "{said}");
        assert_eq!(answers(&said), ["(null)", "(null)", "(null)"]);
    }
    fs::remove_file(&file).unwrap();
    assert!(run("env", 2, &variables).contains("init 5 warnings 1"));
}
