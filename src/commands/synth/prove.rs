//! `synth --verify`: the proof of an MSCCL file.

use std::fmt;
use std::path::Path;

use anyhow::{Result, anyhow};
use dynamiccl_env::text;
use dynamiccl_synth::msccl;
use serde::Serialize;

use crate::commands::machine;
use crate::exit::Ending;
use crate::session::Session;

/// What came of a proof.
#[derive(Debug, Serialize)]
struct Report {
    /// The file.
    file: String,
    /// The collective, in MSCCL's words.
    coll: String,
    /// Ranks.
    ranks: usize,
    /// Whether it is proved.
    verified: bool,
    /// The rule that it breaks, the rank and the step where it shows.
    violation: Option<Violation>,
}

#[derive(Debug, Serialize)]
struct Violation {
    rule: String,
    rank: u32,
    thread_block: Option<u32>,
    step: Option<u32>,
}

/// Most bytes of a file: a schedule of hundreds of ranks has tens of MB.
const MOST: u64 = 256 << 20;

/// Proves a file.
pub fn run(path: &Path, session: &Session) -> Result<Ending> {
    let file = machine::name(path);
    let text = text::read_up_to(MOST, path).map_err(|error| {
        anyhow!("--verify {file}: {error}; name an MSCCL file, such as synth --out writes")
    })?;
    let algorithm = msccl::read(&file, &text)?;
    let room = msccl::check_limits(&algorithm).err().map(|error| Violation {
        rule: error.to_string(),
        rank: if let dynamiccl_synth::SynthError::Limit { rank, .. } = error { rank } else { 0 },
        thread_block: None,
        step: None,
    });
    let violation = msccl::run(&algorithm, msccl::SLOTS).err().map(|fault| Violation {
        rule: fault.says(),
        rank: fault.rank,
        thread_block: fault.block,
        step: Some(fault.step),
    });
    let violation = violation.or(room);
    let verified = violation.is_none();
    let (coll, ranks) = (algorithm.coll.to_string(), algorithm.programs.len());
    session.report("synth", &Report { file, coll, ranks, verified, violation })?;
    Ok(if verified { Ending::Done } else { Ending::No })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}: {} on {} ranks", self.file, self.coll, self.ranks)?;
        let Some(broken) = &self.violation else { return writeln!(f, "Summary  proved") };
        write!(f, "Summary  broken at rank {}", broken.rank)?;
        if let Some(block) = broken.thread_block {
            write!(f, ", thread block {block}")?;
        }
        if let Some(step) = broken.step {
            write!(f, ", step {step}")?;
        }
        writeln!(f, ": {}", broken.rule)
    }
}
