//! The text of an algorithm file, with every attribute in the order in which published files have it.

use std::fmt::Write;

use super::{Algorithm, Step};
use crate::xml::attribute;

impl Algorithm {
    /// The text of the file.
    pub fn to_xml(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            r#"<algo name="{}" proto="{}" nchannels="{}" nchunksperloop="{}" ngpus="{}" coll="{}" inplace="{}" outofplace="{}" minBytes="{}" maxBytes="{}">"#,
            attribute(&self.name),
            attribute(&self.protocol),
            self.channels,
            self.chunks,
            self.programs.len(),
            self.coll,
            u8::from(self.in_place),
            u8::from(self.out_of_place),
            self.sizes.0,
            self.sizes.1,
        )?;
        for (rank, program) in self.programs.iter().enumerate() {
            let (inputs, outputs, scratch) = (program.inputs, program.outputs, program.scratch);
            writeln!(
                out,
                r#"  <gpu id="{rank}" i_chunks="{inputs}" o_chunks="{outputs}" s_chunks="{scratch}">"#
            )?;
            for block in &program.blocks {
                let [send, recv] = [block.send, block.recv].map(|peer| peer.map_or(-1, i64::from));
                let (id, channel) = (block.id, block.channel);
                writeln!(out, r#"    <tb id="{id}" send="{send}" recv="{recv}" chan="{channel}">"#)?;
                for (number, step) in block.steps.iter().enumerate() {
                    write_step(out, number, step)?;
                }
                writeln!(out, "    </tb>")?;
            }
            writeln!(out, "  </gpu>")?;
        }
        writeln!(out, "</algo>")
    }
}

fn write_step(out: &mut String, number: usize, step: &Step) -> std::fmt::Result {
    let (block, after) = step.after.map_or((-1, -1), |(block, step)| (i64::from(block), i64::from(step)));
    writeln!(
        out,
        r#"      <step s="{number}" type="{}" srcbuf="{}" srcoff="{}" dstbuf="{}" dstoff="{}" cnt="{}" depid="{block}" deps="{after}" hasdep="{}"/>"#,
        step.op,
        step.source.0,
        step.source.1,
        step.target.0,
        step.target.1,
        step.count,
        u8::from(step.awaited),
    )
}
