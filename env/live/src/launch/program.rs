//! Programs of the system, and what they say when they fail.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Where a program is, by the search path.
pub fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|file| file.is_file());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Runs a program to its end, with something to read; what it complained of where it fails or takes too long.
pub fn run(
    program: &Path,
    arguments: &[&str],
    variables: &[(&str, &Path)],
    input: &str,
    limit: Duration,
) -> Result<(), String> {
    let name = program.display();
    let said = tempfile::tempfile().map_err(|error| format!("{name}: {error}"))?;
    let mut command = Command::new(program);
    command.args(arguments).envs(variables.iter().copied()).stdin(Stdio::piped());
    let copies = said.try_clone().and_then(|out| Ok((out, said.try_clone()?)));
    // Files and not pipes: a daemon that it leaves behind would hold a pipe open for ever.
    let (out, err) = copies.map_err(|error| format!("{name}: {error}"))?;
    let mut child = command.stdout(out).stderr(err).spawn().map_err(|error| format!("{name}: {error}"))?;
    if let Some(mut pipe) = child.stdin.take() {
        // One that does not read has no need of it.
        let _ = pipe.write_all(input.as_bytes());
    }
    let until = Instant::now() + limit;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{name} {}: not done within {} s", arguments.join(" "), limit.as_secs()));
            }
        }
    };
    if status.success() {
        return Ok(());
    }
    Err(format!("{name} {}: {status}: {}", arguments.join(" "), complaint(said)))
}

fn complaint(mut said: std::fs::File) -> String {
    use std::io::{Read, Seek};
    let mut text = String::new();
    let _ = said.rewind().and_then(|()| said.read_to_string(&mut text));
    text.trim().replace('\n', " | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_complains_of_is_kept() {
        let shell = find("sh").unwrap();
        let run = |script: &str, limit| run(&shell, &["-c", script], &[], "hello\n", limit);
        let second = Duration::from_secs(1);
        assert_eq!(run("read word && test $word = hello", second * 10), Ok(()));
        let error = run("echo oh dear >&2; exit 4", second * 10).unwrap_err();
        assert!(error.ends_with("oh dear"), "{error}");
        let error = run("sleep 20", second / 10).unwrap_err();
        assert!(error.contains("not done"), "{error}");
        assert_eq!(find("no-such-program-here"), None);
    }
}
