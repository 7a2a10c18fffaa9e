//! What ran and how long it took: one finished collective of one rank.

use std::fmt::Write;

use dynamiccl_spec::{Algorithm, Collective, Protocol};

use super::clock;

/// Machine words of a record, so that it crosses threads as plain numbers: one cache line.
pub const WORDS: usize = 8;

/// Whose clock measured a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Clock {
    /// The GPU's: from the first channel's kernel start to the last one's stop.
    Gpu = 0,
    /// The host's, as NCCL's proxy thread saw the kernel start and stop.
    Host = 1,
    /// The host's, of the launch alone: the collective may still have been running.
    Launch = 2,
}

/// A finished collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The communicator's id.
    pub comm: u64,
    /// The rank that launched it.
    pub rank: u32,
    /// Ranks of the communicator; 0 where NCCL did not say.
    pub ranks: u32,
    /// Its nodes; 0 where NCCL did not say.
    pub nodes: u32,
    /// NCCL's number of it among those of its kind in its communicator.
    pub seq: u64,
    /// Which.
    pub collective: Collective,
    /// Bytes as a tuner is told, or one rank's part of them.
    pub bytes: u64,
    /// Whether the bytes are one rank's part.
    pub is_part: bool,
    /// The algorithm.
    pub algorithm: Option<Algorithm>,
    /// The protocol.
    pub protocol: Option<Protocol>,
    /// Channels that carried it; 0 where NCCL did not say.
    pub channels: u8,
    /// Most channels that could; 0 where `channels` says it.
    pub channels_max: u8,
    /// Warps of a block.
    pub warps: u8,
    /// When the host launched it ([`clock::nanos`]).
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// By whose clock.
    pub clock: Clock,
    /// The communicator's name, as a position in the table of names.
    pub name: u16,
}

const NONE: u8 = u8::MAX;

impl Record {
    /// As machine words.
    pub fn to_words(self) -> [u64; WORDS] {
        let ids = [
            self.collective.id() as u8,
            self.algorithm.map_or(NONE, |of| of.id() as u8),
            self.protocol.map_or(NONE, |of| of.id() as u8),
            self.clock as u8,
        ];
        let [name_low, name_high] = self.name.to_le_bytes();
        let small =
            [self.channels, self.channels_max, self.warps, u8::from(self.is_part), name_low, name_high, 0, 0];
        [
            self.comm,
            u64::from(self.rank) << 32 | u64::from(self.ranks),
            u64::from(self.nodes) << 32 | u64::from(u32::from_le_bytes(ids)),
            self.seq,
            self.bytes,
            self.start_ns,
            self.duration_ns,
            u64::from_le_bytes(small),
        ]
    }

    /// From machine words; nothing where they are none of ours.
    pub fn from_words(words: [u64; WORDS]) -> Option<Self> {
        let [comm, ranks, ids, seq, bytes, start_ns, duration_ns, small] = words;
        let [collective, algorithm, protocol, clock] = (ids as u32).to_le_bytes();
        let [channels, channels_max, warps, is_part, name_low, name_high, ..] = small.to_le_bytes();
        Some(Record {
            comm,
            rank: (ranks >> 32) as u32,
            ranks: ranks as u32,
            nodes: (ids >> 32) as u32,
            seq,
            collective: Collective::from_id(collective.into())?,
            bytes,
            is_part: is_part != 0,
            algorithm: Algorithm::from_id(algorithm.into()),
            protocol: Protocol::from_id(protocol.into()),
            channels,
            channels_max,
            warps,
            start_ns,
            duration_ns,
            clock: [Clock::Gpu, Clock::Host, Clock::Launch].get(usize::from(clock)).copied()?,
            name: u16::from_le_bytes([name_low, name_high]),
        })
    }

    /// Bytes as a tuner is told, where that is known.
    pub fn whole_bytes(&self) -> Option<u64> {
        if !self.is_part {
            return Some(self.bytes);
        }
        (self.ranks > 0).then(|| self.bytes.saturating_mul(self.ranks.into()))
    }

    /// Adds its line of JSON.
    pub fn write_line(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = self.try_write_line(out);
    }

    fn try_write_line(&self, out: &mut String) -> std::fmt::Result {
        write!(out, r#"{{"comm":"{:#x}","rank":{}"#, self.comm, self.rank)?;
        if self.ranks > 0 {
            write!(out, r#","ranks":{},"nodes":{}"#, self.ranks, self.nodes)?;
        }
        write!(out, r#","seq":{},"coll":"{}""#, self.seq, self.collective)?;
        match self.whole_bytes() {
            Some(bytes) => write!(out, r#","bytes":{bytes}"#)?,
            None => write!(out, r#","part_bytes":{}"#, self.bytes)?,
        }
        if let Some(algorithm) = self.algorithm {
            write!(out, r#","algo":"{algorithm}""#)?;
        }
        if let Some(protocol) = self.protocol {
            write!(out, r#","proto":"{protocol}""#)?;
        }
        if self.channels > 0 {
            write!(out, r#","nchannels":{}"#, self.channels)?;
        }
        if self.channels_max > 0 {
            write!(out, r#","nchannels_max":{}"#, self.channels_max)?;
        }
        let (micros, thousandths) = (self.duration_ns / 1000, self.duration_ns % 1000);
        let start = clock::wall_micros(self.start_ns);
        write!(out, r#","warps":{},"t_us":{start},"us":{micros}.{thousandths:03}"#, self.warps)?;
        writeln!(out, r#","clock":"{}"}}"#, self.clock.word())
    }
}

impl Clock {
    /// Its word in a record.
    pub fn word(self) -> &'static str {
        match self {
            Clock::Gpu => "gpu",
            Clock::Host => "host",
            Clock::Launch => "launch",
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A record to begin with.
    pub fn example() -> Record {
        Record {
            comm: 0xfeed_f00d_dead_beef,
            rank: 3,
            ranks: 8,
            nodes: 2,
            seq: 1407,
            collective: Collective::AllGather,
            bytes: 1 << 20,
            is_part: true,
            algorithm: Some(Algorithm::NvlsTree),
            protocol: Some(Protocol::LL128),
            channels: 16,
            channels_max: 0,
            warps: 20,
            start_ns: 5_000_000,
            duration_ns: 61_974_012,
            clock: Clock::Gpu,
            name: 513,
        }
    }

    #[test]
    fn words_are_read_back() {
        let plain = Record {
            algorithm: None,
            protocol: None,
            clock: Clock::Launch,
            channels: 0,
            channels_max: 255,
            is_part: false,
            name: u16::MAX,
            ..example()
        };
        let largest = Record { comm: u64::MAX, rank: u32::MAX, ranks: u32::MAX, nodes: u32::MAX, ..plain };
        for record in [example(), plain, largest] {
            assert_eq!(Record::from_words(record.to_words()), Some(record));
        }
        assert_eq!(Record::from_words([u64::MAX; WORDS]), None);
    }

    #[test]
    fn a_line_says_what_is_known_and_no_more() {
        let start = clock::wall_micros(5_000_000);
        let mut line = String::new();
        example().write_line(&mut line);
        let expected = format!(
            "{{\"comm\":\"0xfeedf00ddeadbeef\",\"rank\":3,\"ranks\":8,\"nodes\":2,\"seq\":1407,\
             \"coll\":\"allgather\",\"bytes\":8388608,\"algo\":\"nvls_tree\",\"proto\":\"ll128\",\
             \"nchannels\":16,\"warps\":20,\"t_us\":{start},\"us\":61974.012,\"clock\":\"gpu\"}}\n"
        );
        assert_eq!(line, expected);
        line.clear();
        let old = Record { ranks: 0, nodes: 0, channels: 0, channels_max: 24, algorithm: None, ..example() };
        Record { protocol: None, clock: Clock::Launch, ..old }.write_line(&mut line);
        let expected = format!(
            "{{\"comm\":\"0xfeedf00ddeadbeef\",\"rank\":3,\"seq\":1407,\"coll\":\"allgather\",\
             \"part_bytes\":1048576,\"nchannels_max\":24,\"warps\":20,\"t_us\":{start},\"us\":61974.012,\
             \"clock\":\"launch\"}}\n"
        );
        assert_eq!(line, expected);
    }
}
