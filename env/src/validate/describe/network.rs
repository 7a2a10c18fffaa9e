//! What words say about the network between nodes.

use super::products::Product;
use crate::cluster::InterLink;
use crate::nccl::graph::PathType;

/// A network that words describe.
#[derive(Debug, Clone, Copy)]
pub struct Network {
    /// Technology.
    pub link: InterLink,
    /// µs that the network plugin declares to NCCL.
    pub declared: f32,
    /// Where the NICs are, seen from the GPUs.
    pub path: PathType,
    /// Gb/s of all NICs of one node.
    pub gbits: f64,
    /// NICs of one node.
    pub nics: u32,
}

/// The network of a table: `inter` names it, `rate` may say how fast it is.
pub fn of(inter: &str, rate: &str, product: &Product, gpus: u32) -> Network {
    let words = inter.to_lowercase();
    let has = |any: &[&str]| any.iter().any(|word| words.contains(word));
    let each = rdma_gbits(product);
    let rdma = |link| Network {
        link,
        declared: 0.0,
        path: PathType::Pix,
        gbits: each * f64::from(gpus),
        nics: gpus,
    };
    let mut network = match () {
        () if has(&["efa"]) => Network {
            declared: 75.0,
            gbits: 100.0 * f64::from(gpus.min(4)),
            nics: gpus.min(4),
            ..rdma(InterLink::Efa)
        },
        () if has(&["slingshot"]) => Network { path: PathType::Phb, ..rdma(InterLink::Slingshot) },
        () if has(&["tcpxo"]) => Network { gbits: 1600.0, nics: 8, ..rdma(InterLink::Tcpx) },
        () if has(&["tcpx"]) => Network { gbits: 800.0, nics: 4, ..rdma(InterLink::Tcpx) },
        () if has(&["tcp", "socket", "ethernet"]) => {
            Network { path: PathType::Phb, gbits: 25.0, nics: 1, ..rdma(InterLink::Tcp) }
        }
        () if has(&["roce", "gib"]) => rdma(InterLink::Roce),
        () => rdma(InterLink::Infiniband),
    };
    if let Some((nics, gbits)) = stated(&format!("{rate} ; {inter} "), gpus) {
        network.gbits = gbits;
        network.nics = nics.unwrap_or_else(|| ((gbits / each).round() as u32).clamp(1, gpus.max(1)));
    }
    network
}

/// Gb/s per GPU of an RDMA network of the GPU's time.
fn rdma_gbits(product: &Product) -> f64 {
    match product.sm {
        90.. => 400.0,
        80..90 => 200.0,
        _ => 100.0,
    }
}

/// NICs and Gb/s of one node, where words say them: "2 x EDR 100 Gb/s per 4-GPU node", "200 Gb/s per GPU",
/// "dual rail 200G", "3200 Gb/s per node".
fn stated(words: &str, gpus: u32) -> Option<(Option<u32>, f64)> {
    let words = words.to_lowercase();
    let (rate, start, end) = rate(&words)?;
    let (before, after) = (&words[..start], &words[end..]);
    let count = before
        .rsplit_once('x')
        .filter(|(_, between)| between.len() < 12)
        .and_then(|(counted, _)| {
            counted.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        })
        .or_else(|| before.contains("dual").then_some(2));
    match count {
        Some(count) => Some((Some(count), rate * f64::from(count))),
        None if after.trim_start().starts_with("per node") => Some((None, rate)),
        None => Some((Some(gpus), rate * f64::from(gpus))),
    }
}

/// The first number with a unit of Gb/s, and where it stands.
fn rate(words: &str) -> Option<(f64, usize, usize)> {
    const UNITS: [&str; 5] = ["gb/s", "gbps", "gbit/s", "gbit", "g "];
    let mut from = 0;
    while let Some(start) = words[from..].find(|c: char| c.is_ascii_digit()).map(|at| from + at) {
        let end = words[start..]
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .map_or(words.len(), |at| start + at);
        let unit = words[end..].trim_start();
        if let Some(name) = UNITS.iter().find(|name| unit.starts_with(**name)) {
            return Some((words[start..end].parse().ok()?, start, words.len() - unit.len() + name.len()));
        }
        from = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        for (words, gpus, nics, gbits) in [
            ("2 x EDR 100 Gb/s per 4-GPU node (guess)", 4, Some(2), 200.0),
            ("400 Gb/s per GPU", 8, Some(8), 3200.0),
            ("3200 Gb/s per node (p5 spec; guess)", 8, None, 3200.0),
            (" ; RoCE, dual rail 200G (switch) ", 1, Some(2), 400.0),
            ("8 x 400 Gb/s per node", 8, Some(8), 3200.0),
            ("IB 100G (one NIC) ", 8, Some(8), 800.0),
        ] {
            assert_eq!(stated(words, gpus), Some((nics, gbits)), "{words}");
        }
        assert_eq!(stated("not stated in log, mlx5_0 to mlx5_3", 8), None);
        assert_eq!(stated("", 8), None);
    }

    #[test]
    fn technologies_are_told_by_their_names() {
        let product = super::super::products::of("NVIDIA H100 80GB HBM3");
        let link = |words: &str| of(words, "", &product, 8).link;
        assert_eq!(link("EFA (p5)"), InterLink::Efa);
        assert_eq!(link("HPE Slingshot-11"), InterLink::Slingshot);
        assert_eq!(link("TCP sockets"), InterLink::Tcp);
        assert_eq!(link("GCP GPUDirect-TCPXO"), InterLink::Tcpx);
        assert_eq!(link("RoCE gIB"), InterLink::Roce);
        assert_eq!(link("not stated in log"), InterLink::Infiniband);
    }
}
