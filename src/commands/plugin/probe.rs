//! A library, asked in a process of its own: one that crashes or hangs must not take the answer along.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use dynamiccl_host::{Answers, Configured, NcclVersion};
use serde::de::DeserializeOwned;

use crate::args::ProbeArgs;
use crate::exit::Ending;
use crate::session::Session;

/// No library needs longer to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the process is looked after.
const GLANCE: Duration = Duration::from_millis(5);

/// What a plugin says, by the names that NCCL would try.
pub fn ask(names: &[PathBuf]) -> Result<Answers> {
    ask_with(names, &[])
}

/// The same, with what NCCL takes from its files.
pub fn ask_with(names: &[PathBuf], configured: &[Configured]) -> Result<Answers> {
    in_process(names, &[], configured)
}

/// NCCL's release, by the names under which its library may be found.
pub fn nccl(names: &[PathBuf]) -> Result<String> {
    in_process(names, &["--nccl"], &[])
}

/// The process: asks, and prints the answer on one line.
pub fn run(args: &ProbeArgs, session: &Session) -> Result<Ending> {
    let mut refused = anyhow!("no library was named");
    for name in &args.names {
        let answer = if args.nccl {
            NcclVersion::of(name).map(|version| serde_json::json!(version.to_string())).map_err(Into::into)
        } else {
            dynamiccl_host::ask(name)
                .map_err(Into::into)
                .and_then(|answers| Ok(serde_json::to_value(answers)?))
        };
        match answer {
            Ok(answer) => {
                session.output.line(
                    "plugin probe",
                    session.seed,
                    &serde_json::json!({ "answer": answer }),
                )?;
                return Ok(Ending::Done);
            }
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Runs ourselves as the process.
fn in_process<A: DeserializeOwned>(
    names: &[PathBuf],
    flags: &[&str],
    configured: &[Configured],
) -> Result<A> {
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let mut command = Command::new(program);
    command.args(["plugin", "probe", "--json"]).args(flags).arg("--").args(names);
    command.envs(configured.iter().map(|said| (&said.name, &said.value)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start a process of our own")?;
    let (words, complaints) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = wait(&mut child)?;
    let read = |thread: thread::JoinHandle<String>| thread.join().unwrap_or_default();
    let (words, complaints) = (read(words), read(complaints));
    if !status.success() {
        bail!("{}", complaint(status, &complaints));
    }
    // A library may print as well; what we print comes last.
    let last = words.lines().last().unwrap_or_default();
    let mut document: serde_json::Value =
        serde_json::from_str(last).context("it answers in no known form")?;
    serde_json::from_value(document["answer"].take()).context("it answers in no known form")
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read until it broke is what there is.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child) -> Result<ExitStatus> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            bail!("it did not answer within {} s", PATIENCE.as_secs());
        }
        thread::sleep(GLANCE);
    }
}

/// What was wrong, in its own words.
fn complaint(status: ExitStatus, said: &str) -> String {
    let last = said.lines().last().unwrap_or_default();
    match status.signal() {
        Some(signal) => format!("it crashes when it is opened or asked (signal {signal})"),
        None => last.strip_prefix("error: ").unwrap_or(last).to_owned(),
    }
}
