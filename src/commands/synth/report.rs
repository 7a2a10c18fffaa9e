//! The result of `synth`.

use std::fmt;

use dynamiccl_spec::{Bytes, Collective, Micros};
use dynamiccl_synth::{Assume, Backend, Synthesizer};
use serde::Serialize;

use crate::words::counted;

/// One schedule.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Always: no number here was measured.
    pub simulated: bool,
    /// The machine.
    pub machine: String,
    /// Ranks.
    pub ranks: usize,
    /// The collective.
    pub collective: Collective,
    /// Its size.
    pub bytes: u64,
    /// The sketch.
    pub sketch: String,
    /// Connections that it has.
    pub connections: usize,
    /// The synthesizer.
    pub synthesizer: Synthesizer,
    /// What it took to be shared.
    pub assume: Assume,
    /// Chunks of each rank.
    pub chunks: u32,
    /// The backend.
    pub backend: Backend,
    /// Sends.
    pub sends: usize,
    /// The longest chain of sends of which each needs the one before.
    pub steps: u32,
    /// µs by the executor.
    pub time_us: f64,
    /// µs below which no schedule can come.
    pub lower_bound_us: f64,
    /// Share of the NICs' capacity × time that is used.
    pub nic_utilisation: f64,
    /// The same of the connections of the sketch.
    pub link_utilisation: f64,
    /// The same of the GPUs' links inside nodes.
    pub port_utilisation: f64,
    /// Whether the schedule is proved.
    pub verified: bool,
    /// ms that making the schedule took.
    pub synthesis_ms: f64,
    /// ms that making and running all that were compared took.
    pub search_ms: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { machine, collective, sketch, synthesizer, assume, backend, .. } = self;
        writeln!(
            f,
            "# {machine}: {}; {collective} of {}",
            counted(self.ranks as u32, "rank"),
            Bytes(self.bytes)
        )?;
        writeln!(f, "# simulated; sketch {sketch} with {}", counted(self.connections as u32, "connection"))?;
        let chunks = counted(self.chunks, "chunk");
        writeln!(
            f,
            "# {synthesizer}, shared: {assume}, {chunks} a rank: {} sends in {} steps",
            self.sends, self.steps
        )?;
        let (channels, threads) = (counted(backend.channels, "channel"), backend.threads);
        let buffer = Bytes(backend.buffer);
        writeln!(f, "# {}, {channels}, {threads} threads, buffer {buffer}", backend.protocol)?;
        let over = self.time_us / self.lower_bound_us;
        let proof = if self.verified { "proved" } else { "NOT PROVED" };
        let (time, bound) = (Micros(self.time_us), Micros(self.lower_bound_us));
        writeln!(f, "Summary  {time}, {over:.2} times the bound of {bound}; {proof}")?;
        let percent =
            [self.nic_utilisation, self.link_utilisation, self.port_utilisation].map(|share| 100.0 * share);
        let [nic, link, port] = percent;
        writeln!(f, "         used: NICs {nic:.1} %, connections {link:.1} %, ports in nodes {port:.1} %")?;
        writeln!(f, "         made in {:.1} ms, chosen in {:.1} ms", self.synthesis_ms, self.search_ms)
    }
}
