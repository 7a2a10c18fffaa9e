//! Reading algorithm files, ours and published ones.

use std::ops::RangeInclusive;
use std::str::FromStr;

use roxmltree::{Document, Node};

use super::{Algorithm, Block, Buffer, Coll, Op, Program, Step};
use crate::error::SynthError;

/// Chunks of a buffer: steps name them in signed 16 bits.
const CHUNKS: u32 = 1 << 15;
/// Chunks of all buffers of all ranks: what proving a file has room for.
const ALL_CHUNKS: u64 = 1 << 24;
/// Channels of a runtime.
const CHANNELS: u32 = 32;
/// What is called a protocol.
const PROTOCOLS: [&str; 3] = ["LL", "LL128", "Simple"];

/// Reads a file; `file` names it in errors.
pub fn read(file: &str, text: &str) -> Result<Algorithm, SynthError> {
    let document = Document::parse(text).map_err(|error| SynthError::Format {
        file: file.to_owned(),
        place: format!("line {}", error.pos().row),
        problem: error.to_string(),
    })?;
    let reader = Reader { file, document: &document };
    let root = document.root_element();
    if !root.has_tag_name("algo") {
        return Err(reader.bad(root, format!("<{}> where <algo> is expected", root.tag_name().name())));
    }
    reader.algorithm(root)
}

struct Reader<'a> {
    file: &'a str,
    document: &'a Document<'a>,
}

impl Reader<'_> {
    fn bad(&self, node: Node, problem: String) -> SynthError {
        let line = self.document.text_pos_at(node.range().start).row;
        SynthError::Format { file: self.file.to_owned(), place: format!("line {line}"), problem }
    }

    fn word<'b>(&self, node: Node<'b, '_>, name: &str) -> Result<&'b str, SynthError> {
        let missing = || self.bad(node, format!("<{}> has no {name}", node.tag_name().name()));
        node.attribute(name).ok_or_else(missing)
    }

    fn value<T: FromStr>(&self, node: Node, name: &str) -> Result<T, SynthError>
    where
        T::Err: std::fmt::Display,
    {
        let word = self.word(node, name)?;
        word.parse().map_err(|error| self.bad(node, format!("{name}=\"{word}\": {error}")))
    }

    fn optional<T: FromStr>(&self, node: Node, name: &str, usual: T) -> Result<T, SynthError>
    where
        T::Err: std::fmt::Display,
    {
        if node.has_attribute(name) { self.value(node, name) } else { Ok(usual) }
    }

    /// Something that −1 says there is none of.
    fn maybe(&self, node: Node, name: &str) -> Result<Option<u32>, SynthError> {
        Ok(u32::try_from(self.value::<i64>(node, name)?).ok())
    }

    /// A number of this range.
    fn within(&self, node: Node, name: &str, range: RangeInclusive<u32>) -> Result<u32, SynthError> {
        let number = self.value(node, name)?;
        if range.contains(&number) {
            return Ok(number);
        }
        let (least, most) = (range.start(), range.end());
        Err(self.bad(node, format!("{name}=\"{number}\": give {least} to {most}")))
    }

    fn protocol(&self, root: Node) -> Result<String, SynthError> {
        let word = self.word(root, "proto")?;
        if PROTOCOLS.contains(&word) {
            return Ok(word.to_owned());
        }
        Err(self.bad(root, format!("proto=\"{word}\": give {}", PROTOCOLS.join(", "))))
    }

    fn flag(&self, node: Node, name: &str) -> Result<bool, SynthError> {
        Ok(self.optional::<u8>(node, name, 0)? != 0)
    }

    /// Children of one name, each with the number that it must have.
    fn numbered<'b>(
        &self,
        parent: Node<'b, 'b>,
        name: &str,
        key: &str,
    ) -> Result<Vec<Node<'b, 'b>>, SynthError> {
        let nodes: Vec<Node> = parent.children().filter(|node| node.has_tag_name(name)).collect();
        for (&node, number) in nodes.iter().zip(0_u32..) {
            let said: u32 = self.value(node, key)?;
            if said != number {
                return Err(self.bad(node, format!("<{name} {key}=\"{said}\"> where {number} is expected")));
            }
        }
        Ok(nodes)
    }

    fn algorithm(&self, root: Node) -> Result<Algorithm, SynthError> {
        let ranks: usize = self.value(root, "ngpus")?;
        let gpus = self.numbered(root, "gpu", "id")?;
        if gpus.len() != ranks || ranks == 0 {
            return Err(self.bad(root, format!("ngpus=\"{ranks}\", but {} <gpu>", gpus.len())));
        }
        let coll: Coll = self.value(root, "coll")?;
        let chunks = self.within(root, "nchunksperloop", 1..=CHUNKS)?;
        let per_rank = matches!(coll, Coll::AllGather | Coll::ReduceScatter | Coll::AllToAll);
        if per_rank && !(chunks as usize).is_multiple_of(ranks) {
            return Err(
                self.bad(root, format!("nchunksperloop=\"{chunks}\" does not divide by {ranks} ranks"))
            );
        }
        let (in_place, out_of_place) = (self.flag(root, "inplace")?, self.flag(root, "outofplace")?);
        if !in_place && !out_of_place {
            return Err(self.bad(root, "neither inplace nor outofplace: set one to 1, or both".to_owned()));
        }
        let programs: Vec<Program> =
            gpus.into_iter().map(|gpu| self.program(gpu)).collect::<Result<_, _>>()?;
        let all: u64 = programs.iter().map(|program| u64::from(2 * chunks + program.scratch)).sum();
        if all > ALL_CHUNKS {
            return Err(self.bad(root, format!("{all} chunks of all ranks: give at most {ALL_CHUNKS}")));
        }
        Ok(Algorithm {
            name: self.word(root, "name")?.to_owned(),
            protocol: self.protocol(root)?,
            channels: self.within(root, "nchannels", 1..=CHANNELS)?,
            chunks,
            coll,
            in_place,
            out_of_place,
            sizes: (self.optional(root, "minBytes", 0)?, self.optional(root, "maxBytes", 0)?),
            programs,
        })
    }

    fn program(&self, gpu: Node) -> Result<Program, SynthError> {
        let blocks = self.numbered(gpu, "tb", "id")?.into_iter().zip(0..);
        Ok(Program {
            inputs: self.value(gpu, "i_chunks")?,
            outputs: self.value(gpu, "o_chunks")?,
            scratch: self.within(gpu, "s_chunks", 0..=CHUNKS)?,
            blocks: blocks.map(|(tb, id)| self.block(tb, id)).collect::<Result<_, _>>()?,
        })
    }

    fn block(&self, tb: Node, id: u32) -> Result<Block, SynthError> {
        let steps = self.numbered(tb, "step", "s")?;
        Ok(Block {
            id,
            send: self.maybe(tb, "send")?,
            recv: self.maybe(tb, "recv")?,
            channel: self.value(tb, "chan")?,
            steps: steps.into_iter().map(|step| self.step(step)).collect::<Result<_, _>>()?,
        })
    }

    fn step(&self, step: Node) -> Result<Step, SynthError> {
        let op: Op = self.value(step, "type")?;
        let place = |buffer: &str, offset: &str| -> Result<(Buffer, i32), SynthError> {
            Ok((self.value(step, buffer)?, self.value(step, offset)?))
        };
        let after = self.maybe(step, "depid")?.zip(self.maybe(step, "deps")?);
        Ok(Step {
            op,
            source: place("srcbuf", "srcoff")?,
            target: place("dstbuf", "dstoff")?,
            count: self.within(step, "cnt", 0..=CHUNKS)?,
            after,
            awaited: self.flag(step, "hasdep")?,
        })
    }
}
