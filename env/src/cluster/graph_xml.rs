//! NCCL's graph dump (`NCCL_GRAPH_DUMP_FILE`): what its search found for one communicator.
//!
//! A dump is one rank's and one communicator's; NCCL reduces the values over all ranks afterwards,
//! which changes nothing where all nodes are alike.

use std::path::Path;

use roxmltree::Node;

use super::dump::{Dump, DumpError};
use crate::nccl::graph::{Graph, Graphs, PathType};

impl Graphs {
    /// Reads the file that NCCL wrote because of `NCCL_GRAPH_DUMP_FILE`.
    pub fn read(file: &Path) -> Result<Graphs, DumpError> {
        let dump = Dump::read(file, "graph", "NCCL_GRAPH_DUMP_FILE")?;
        let document = dump.document("graphs")?;
        let root = document.root_element();
        let mut found: [Option<Graph>; 5] = [None; 5];
        for node in root.children().filter(|node| node.has_tag_name("graph")) {
            let id: usize = dump.required(node, "id")?;
            let slot = found.get_mut(id).ok_or_else(|| dump.bad(node, "id", "0 to 4 are known"))?;
            *slot = graph(&dump, node)?;
        }
        let [ring, tree, chain, nvls, direct] = found;
        let needed = |graph: Option<Graph>, name: &str| {
            graph.ok_or_else(|| {
                dump.bad(root, "version", format!("there is no {name} graph with channels in it"))
            })
        };
        let (ring, tree) = (needed(ring, "ring")?, needed(tree, "tree")?);
        // Before 2.18 graph 2 was the only CollNet graph, and NCCL used it for chains.
        Ok(Graphs { ring, tree, nvls, collnet_chain: chain, collnet_direct: direct })
    }
}

/// One graph; nothing where the search found none.
fn graph(dump: &Dump, node: Node) -> Result<Option<Graph>, DumpError> {
    let channels: u32 = dump.required(node, "nchannels")?;
    if channels == 0 {
        return Ok(None);
    }
    if channels > 64 {
        return Err(dump.bad(node, "nchannels", "NCCL has at most 64"));
    }
    let pattern: u32 = dump.required(node, "pattern")?;
    if !(1..=6).contains(&pattern) {
        return Err(dump.bad(node, "pattern", "1 to 6 are known"));
    }
    let latency = if node.has_attribute("latencyinter") { dump.quantity(node, "latencyinter")? } else { 0.0 };
    Ok(Some(Graph {
        channels,
        bw_intra: dump.quantity(node, "speedintra")?,
        bw_inter: dump.quantity(node, "speedinter")?,
        type_intra: path_type(dump, node, "typeintra")?,
        type_inter: path_type(dump, node, "typeinter")?,
        pattern,
        same_channels: dump.optional::<i64>(node, "samechannels")?.unwrap_or(0) != 0,
        latency_inter: latency,
    }))
}

fn path_type(dump: &Dump, node: Node, name: &str) -> Result<PathType, DumpError> {
    let word = node.attribute(name).unwrap_or("");
    PathType::ALL.into_iter().find(|kind| kind.name() == word).ok_or_else(|| {
        let known = PathType::ALL.map(PathType::name).join(", ");
        dump.bad(node, name, format!("one of {known} is expected"))
    })
}
