//! NCCL's graphs: found by our search, read from NCCL's dumps, and put into clusters.

mod dumps;
mod known;
mod others;
mod robustness;

use std::path::{Path, PathBuf};

use dynamiccl_env::cluster::hardware::Hardware;
use dynamiccl_env::cluster::search::Span;
use dynamiccl_env::nccl::graph::Graph;

/// A file of `tests/data/xml`.
fn xml_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/xml").join(name)
}

/// `channels x intra/inter typeintra/typeinter pattern`, with `same` where channels are alike.
fn line(graph: Option<Graph>) -> String {
    let Some(g) = graph else { return "-".to_owned() };
    let same = if g.same_channels { " same" } else { "" };
    let (channels, intra, inter) = (g.channels, g.bw_intra, g.bw_inter);
    format!("{channels}x{intra}/{inter} {}/{} {}{same}", g.type_intra.name(), g.type_inter.name(), g.pattern)
}

/// The lines of ring, tree and nvls.
fn lines(hardware: &Hardware, span: Span) -> [String; 3] {
    match hardware.graphs(span) {
        Some(g) => [line(Some(g.ring)), line(Some(g.tree)), line(g.nvls)],
        None => ["none", "none", "none"].map(str::to_owned),
    }
}
