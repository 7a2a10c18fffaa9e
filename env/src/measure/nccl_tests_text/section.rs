//! One run inside a log: its devices, its table, and what they say about each other.

use std::collections::{BTreeMap, BTreeSet};

use dynamiccl_spec::Collective;

use super::layout::{Half, Layout, Lead};
use crate::measure::collective::{Named, Shape};

/// A device line: `#  Rank  0 Group  0 Pid 123 on HOST device  0 [0000:07:00] NVIDIA A100`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    rank: u32,
    host: String,
    gpu: String,
}

impl Device {
    /// The device that a line lists, if it lists one.
    pub(super) fn parse(line: &str) -> Option<Device> {
        let words: Vec<&str> = line.strip_prefix('#')?.split_whitespace().collect();
        let after = |word: &str| words.iter().position(|w| *w == word).map(|at| at + 1);
        let bracket = words.iter().position(|w| w.starts_with('[') && w.ends_with(']'))?;
        (words.first() == Some(&"Rank")).then_some(())?;
        Some(Device {
            rank: words.get(1)?.parse().ok()?,
            host: (*words.get(after("on")?)?).to_owned(),
            gpu: words[bracket + 1..].join(" "),
        })
    }
}

/// One time of a row, before its collective is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) line: u64,
    pub(super) bytes: u64,
    pub(super) time: f64,
    pub(super) in_place: bool,
}

/// One run.
#[derive(Debug, Clone, Default)]
pub(super) struct Section {
    /// What the run itself says it measures.
    pub(super) named: Option<Named>,
    /// Whether the line with the thread count was seen.
    pub(super) threads_seen: bool,
    /// The line on which two processes claim the same rank.
    pub(super) duplicate_rank: Option<u64>,
    /// Whether the averages after the table were seen.
    pub(super) trailer: bool,
    /// The times.
    pub(super) cells: Vec<Cell>,
    /// Rows in which the test found wrong results.
    pub(super) wrong: usize,
    devices: BTreeMap<u32, Device>,
    shape: Shape,
}

impl Section {
    /// Adds a device of the list, which is complete before the table starts.
    pub(super) fn add_device(&mut self, line: u64, device: Device) {
        if self.devices.insert(device.rank, device).is_some() {
            self.duplicate_rank.get_or_insert(line);
        }
    }

    /// Adds the times of one whole row.
    pub(super) fn add_row(&mut self, line: u64, layout: &Layout, tokens: &[String], halves: &[Half]) {
        let bytes = layout.lead_token(Lead::Size, tokens).and_then(|t| t.parse().ok()).unwrap_or(0);
        let redop = layout.lead_token(Lead::Redop, tokens);
        let root = layout.lead_token(Lead::Root, tokens);
        self.shape.redop |= redop.is_some_and(|word| word != "none");
        self.shape.root |= root.is_some_and(|word| word != "-1");
        self.shape.sharded = sharded(bytes, layout, tokens).or(self.shape.sharded);
        self.wrong += usize::from(halves.iter().any(|half| half.wrong));
        for (index, half) in halves.iter().enumerate() {
            self.shape.bus_ratio = half.bus_ratio.or(self.shape.bus_ratio);
            self.cells.push(Cell { line, bytes, time: half.time, in_place: index == 1 });
        }
    }

    /// Ranks, from the device list.
    pub(super) fn ranks(&self) -> Option<u32> {
        self.devices.keys().next_back().map(|rank| rank.saturating_add(1))
    }

    /// Distinct hosts, from the device list.
    pub(super) fn nodes(&self) -> Option<u32> {
        let hosts: BTreeSet<&str> = self.devices.values().map(|device| device.host.as_str()).collect();
        u32::try_from(hosts.len()).ok().filter(|&n| n > 0)
    }

    /// Distinct GPU names, from the device list.
    pub(super) fn gpus(&self) -> BTreeSet<&str> {
        self.devices.values().map(|device| device.gpu.as_str()).filter(|gpu| !gpu.is_empty()).collect()
    }

    /// The collective that the table's shape leaves no doubt about.
    pub(super) fn by_shape(&self) -> Option<Collective> {
        Shape { ranks: self.ranks(), ..self.shape }.collective()
    }
}

/// Whether the size is more than the elements of one rank fill.
fn sharded(bytes: u64, layout: &Layout, tokens: &[String]) -> Option<bool> {
    let count: u64 = layout.lead_token(Lead::Count, tokens)?.parse().ok()?;
    let element = match layout.lead_token(Lead::Type, tokens)? {
        "char" | "int8" | "uint8" | "f8e4m3" | "f8e5m2" => 1,
        "half" | "bfloat16" => 2,
        "int" | "int32" | "uint32" | "float" => 4,
        "double" | "int64" | "uint64" => 8,
        _ => return None,
    };
    (bytes > 0 && count > 0).then(|| bytes / element > count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_lines_of_both_generations() {
        let old = Device::parse("#   Rank  3 Pid  14926 on v100-gpu-1 device  0 [0x00] Tesla V100-PCIE-16GB");
        let new = Device::parse(
            "#  Rank 11 Group  0 Pid 895549 on     h100-2 device  5 [0003:00:02] NVIDIA H100 80GB HBM3",
        );
        let device =
            |rank, host: &str, gpu: &str| Some(Device { rank, host: host.to_owned(), gpu: gpu.to_owned() });
        assert_eq!(old, device(3, "v100-gpu-1", "Tesla V100-PCIE-16GB"));
        assert_eq!(new, device(11, "h100-2", "NVIDIA H100 80GB HBM3"));
        assert_eq!(Device::parse("#  Rank  0 .. Rank  7 on h100a  NVIDIA H100"), None);
    }
}
